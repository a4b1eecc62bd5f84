"""Generated cases for everything that reads files and words from outside.

Each target has a quick form for every run of the suite and a long one (`make soak`); the long one prints its count.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def _load_targets() -> ModuleType:
    name = "augbench_hostile_targets"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("hostile_targets.py"))
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


targets = _load_targets()
Check = Callable[[Any, Path], None]

NUMBERS = st.one_of(
    st.integers(-3, 70), st.sampled_from([2**31, 2**63 - 1, 2**63, -(2**63), 10**30, -1]), st.floats(), st.booleans()
)
NAMES = st.sampled_from(
    "none dropedge dropnode softedge m-mixup g-mixup gdm-acc gdm-unc duplicate gcn gat gin sage mean add max "
    "digits synthetic tu PROTEINS MUTAG os.path:join bench.registry:UserError .:x ..a:b a.b:c".split()
)
KEYS = st.sampled_from(
    "p alpha eps encoder k layers width dropout heads threshold nodes graphs degree seed name".split()
)
JSON = st.recursive(
    st.one_of(st.none(), NUMBERS, st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
    max_leaves=8,
)


@st.composite
def setting_strings(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        return draw(st.text(st.characters(), max_size=40))
    value = st.one_of(NUMBERS.map(str), st.text(max_size=6), st.sampled_from(["none", "true", "nan", "1e400", "vgsae"]))
    pairs = draw(st.lists(st.tuples(KEYS, value), max_size=3))
    return draw(NAMES) + "".join(f"{',' if n else ':'}{key}={text}" for n, (key, text) in enumerate(pairs))


def changed(original: bytes) -> st.SearchStrategy[bytes]:
    """The same bytes with some cut out, put in or changed."""

    @st.composite
    def mutate(draw: st.DrawFn) -> bytes:
        content = bytearray(original)
        for _ in range(draw(st.integers(1, 4))):
            at = draw(st.integers(0, len(content)))
            length = draw(st.sampled_from([0, 1, 1, 2, 4, 50]))
            content[at : at + length] = draw(st.one_of(st.binary(max_size=8), st.just(bytes(content[:20]))))
        return bytes(content)

    return mutate()


@st.composite
def grid_files(draw: st.DrawFn) -> bytes:
    if draw(st.booleans()):
        return draw(
            changed(b'name = "x"\ndatasets = ["digits"]\nk = [2, 3]\n[training]\nepochs = 5\n[space]\na.b = 1\n')
        )
    value = st.one_of(JSON, NAMES, st.lists(NAMES, max_size=3), st.lists(st.integers(-1, 9), max_size=3))
    keys = "datasets augmenters backbones readouts k name features splits folds repeats preset training block space"
    lines = []
    for key in draw(st.lists(st.sampled_from(keys.split()), max_size=5, unique=True)):
        lines.append(f"{key} = {toml(draw(value))}")
    table = draw(st.sampled_from(["", "[training]\n", "[[block]]\n", "[space]\n"]))
    inner = draw(
        st.lists(st.tuples(st.sampled_from("epochs lr select datasets k gcn.layers a".split()), value), max_size=2)
    )
    return ("\n".join(lines) + "\n" + table + "".join(f"{k} = {toml(v)}\n" for k, v in inner)).encode(
        "utf-8", "surrogateescape" if draw(st.booleans()) else "replace"
    )


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps("" if value is None else value)


@st.composite
def ledgers(draw: st.DrawFn) -> bytes:
    """Valid records with a part removed, replaced or doubled, or with bytes changed."""
    records = json.loads(json.dumps(targets.ledger_records()))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = draw(st.sampled_from(records))
        key = draw(st.sampled_from(sorted(place)))
        if isinstance(place[key], dict) and place[key] and draw(st.booleans()):
            place, key = place[key], draw(st.sampled_from(sorted(place[key])))
        if draw(st.booleans()):
            place[key] = draw(JSON)
        else:
            del place[key]
            if not place:
                break
    if draw(st.booleans()):
        records = targets.keyed(records)
    content: bytes = targets.ledger_lines(draw(st.permutations(records)))
    return draw(changed(content)) if draw(st.integers(0, 3)) == 0 else content


@st.composite
def split_files(draw: st.DrawFn) -> bytes:
    folds: Any = targets.split_content()
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return json.dumps(draw(JSON)).encode()
    if kind == 1:
        return draw(changed(json.dumps(folds).encode()))
    if kind == 2:
        return draw(st.sampled_from([b"[", b'{"a":', b'[{"test":'])) * draw(st.sampled_from([10, 2000, 100_000]))
    fold = draw(st.sampled_from(folds))
    inner = fold["model_selection"][0]
    owner, key = draw(st.sampled_from([(fold, "test"), (inner, "train"), (inner, "validation")]))
    owner[key] = draw(st.one_of(JSON, st.lists(NUMBERS, max_size=6)))
    return json.dumps(folds).encode()


@st.composite
def tu_sets(draw: st.DrawFn) -> dict[str, bytes]:
    """Valid files with lines changed, columns added or missing, other counts, other bytes."""
    texts: dict[str, bytes] = targets.tu_texts()
    number = st.one_of(st.integers(-2, 65), st.sampled_from([2**31, 2**63 - 1, 2**63, -(2**63), 10**40]))
    for kind in draw(st.lists(st.sampled_from(targets.TU_KINDS), min_size=1, max_size=2, unique=True)):
        lines = texts[kind].split(b"\n")
        way = draw(st.integers(0, 6))
        at = draw(st.integers(0, len(lines) - 1))
        if way == 0:
            del texts[kind]
        elif way == 1:
            texts[kind] = draw(changed(texts[kind]))
        elif way == 2:
            columns = draw(st.lists(number, min_size=1, max_size=3))
            texts[kind] = "".join(f"{n}\n" for n in columns).encode() if kind != "A" else b""
        elif way == 3:
            texts[kind] = b"\n".join(lines[:at])
        else:
            columns = draw(
                st.lists(st.one_of(number, st.sampled_from(["", "x", "1e3", "1_0", "²", "nan"])), max_size=3)
            )
            lines[at] = ", ".join(map(str, columns)).encode()
            texts[kind] = b"\n".join(lines)
    return texts


@functools.cache
def some_archive() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as opened:
        for kind, text in targets.tu_texts(4).items():
            opened.writestr(f"TINY/TINY_{kind}.txt", text)
    return out.getvalue()


@st.composite
def archives(draw: st.DrawFn) -> bytes:
    if draw(st.booleans()):
        return draw(changed(some_archive()))
    name = st.one_of(
        st.sampled_from(["../x", "/etc/x", "T/../../x", "C:\\x", "T\\..\\x", "T/T_A.txt", "T/", "..", "T/T_A.txt/x"]),
        st.text(max_size=12),
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as opened:
        for path in draw(st.lists(name, max_size=4, unique=True)):
            member = zipfile.ZipInfo("x")
            member.filename = path.encode("utf-8", "replace").decode()  # as it is, not tidied
            member.external_attr = draw(st.sampled_from([0, 0o120777 << 16, 0o100644 << 16, 0o020600 << 16]))
            member.compress_type = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]))
            opened.writestr(member, b"1, 2\n")
    return out.getvalue()


@functools.cache
def some_results() -> Any:
    import pyarrow.parquet as pq

    from bench.results.archive import write_archive
    from bench.results.records import parse

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.parquet"
        write_archive(map(parse, targets.ledger_records()), path)
        return path.read_bytes(), pq.read_table(path)


@st.composite
def result_files(draw: st.DrawFn) -> bytes:
    """A valid file with columns removed or replaced, its notes changed, or its bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content, table = some_results()
    way = draw(st.integers(0, 2))
    if way == 0:
        return draw(changed(content))
    values = st.one_of(st.none(), st.integers(-2, 2**62), st.text(max_size=5), st.floats(), st.binary(max_size=3))
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, table.num_columns - 1))
        if draw(st.booleans()) and table.num_columns > 1:
            table = table.remove_column(at)
        else:
            table = table.set_column(at, table.column_names[at], pa.array([draw(values)] * table.num_rows))
    if draw(st.booleans()):
        note = st.one_of(JSON.map(lambda v: json.dumps(v).encode()), st.binary(max_size=9))
        table = table.replace_schema_metadata({b"augbench": draw(note), b"pandas": draw(note)})
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


# target: what reads it, what is generated, cases in the quick and in the long form
TARGETS: dict[str, tuple[Check, st.SearchStrategy[Any], int, int]] = {
    "settings": (lambda text, _: targets.setting_string(text), setting_strings(), 200, 30_000),
    "datasets": (targets.dataset_string, setting_strings(), 100, 10_000),
    "grids": (targets.grid_file, grid_files(), 120, 15_000),
    "ledgers": (targets.ledger_file, ledgers(), 80, 10_000),
    "splits": (targets.split_file, split_files(), 60, 10_000),
    "tu": (targets.tu_files, tu_sets(), 60, 10_000),
    "archives": (targets.archive, archives(), 80, 15_000),
    "parquet": (targets.results_file, result_files(), 20, 4_000),
}


def fuzz(target: str, cases: int, folder: Path) -> int:
    """Put some cases to a target; how many there were."""
    check, strategy, *_ = TARGETS[target]
    count = 0

    @settings(max_examples=cases, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(strategy)
    def one(case: Any) -> None:
        nonlocal count
        count += 1
        check(case, folder)

    one()
    return count


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What planning keeps about plug-ins goes here, not to the user's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("target", TARGETS)
def test_hostile_input_ends_in_the_documented_error(target: str, tmp_path: Path) -> None:
    assert fuzz(target, TARGETS[target][2], tmp_path) > 0


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", TARGETS)
def test_hostile_input_in_great_number(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = fuzz(target, TARGETS[target][3], tmp_path)
    with capsys.disabled():
        print(f"\n{target}: {count} cases")
    assert count >= TARGETS[target][3]
