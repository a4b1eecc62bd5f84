"""Compiled sums of rows: bit for bit what torch gives, and torch alone where they cannot be had."""

from __future__ import annotations

import ctypes
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest
import scipy.sparse as sp
import torch

from bench.engine.fast import compiled as building
from bench.engine.fast import engine as fast
from bench.engine.fast import layers, units
from bench.engine.fast.compiled import Compiled, compiled_or_reason
from bench.engine.fast.fused import ReluBackward, ReluForward, RowsForward, SumsForward
from bench.engine.fast.product import Bag, Direction, Half

Make = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("one_thread")
FOUND = compiled_or_reason()
needs_compiled = pytest.mark.skipif(isinstance(FOUND, str), reason=f"no compiled sums here: {FOUND}")


@pytest.fixture
def found() -> Compiled:
    assert isinstance(FOUND, Compiled)
    return FOUND


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "LOOK_EVERY", 7)


@needs_compiled
@pytest.mark.usefixtures("looks_often")
@pytest.mark.parametrize("labels", [0, 40])
@pytest.mark.parametrize("readout", ["mean", "max"])
@pytest.mark.parametrize("backbone", ["gcn", "gcn:width=30", "gin", "sage", "gcn:dropout=0.5"])
@pytest.mark.parametrize("method", ["none", "dropedge", "dropnode", "softedge", "m-mixup", "gdm-complete"])
def test_a_trial_has_the_same_bits_without(
    problem: Make,
    some_graphs: Make,
    weights: Make,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    backbone: str,
    readout: str,
    labels: int,
) -> None:
    def trained() -> torch.Tensor:
        task = problem(method, some_graphs(3, one_hot=labels), backbone=backbone, readout=readout, epochs=60)
        return weights(fast.fit_fast(task))

    with_compiled = trained()
    monkeypatch.setattr(layers, "compiled", lambda: None)
    assert torch.equal(with_compiled, trained())


@needs_compiled
@pytest.mark.parametrize(("backbone", "share"), [("gcn", 1.0), ("gin", 0.75), ("gcn:dropout=0.5", 0.0)])
def test_trials_use_them_in_every_epoch_but_the_looks(
    problem: Make, monkeypatch: pytest.MonkeyPatch, backbone: str, share: float
) -> None:
    finished: list[bool] = []
    done = ReluForward.done

    def counted(self: ReluForward, used: int) -> bool:
        finished.append(done(self, used))
        return finished[-1]

    monkeypatch.setattr(ReluForward, "done", counted)
    fast.fit_fast(problem("dropedge", backbone=backbone, epochs=9))
    assert all(finished) and len(finished) == 4 * 9 * share  # GIN's first layer has a ReLU in place


def a_half(rows: int, columns: int, width: int, sums: int = 0) -> Half:
    """A random direction over a random table, with shared sums if asked for."""
    draw = np.random.default_rng(rows + width)
    main = sp.random_array((rows, columns + sums), density=0.2, format="csr", rng=draw)
    gather = Bag(sp.random_array((sums, columns), density=0.5, format="csr", rng=draw)) if sums else None
    source = torch.from_numpy(draw.normal(size=(columns + sums, width))).float()
    return Half(Direction(Bag(sp.csr_array(main)), gather, columns, sums), source)


@needs_compiled
@pytest.mark.parametrize("sums", [0, 3])
@pytest.mark.parametrize("width", [1, 8, 13, 24, 40, 56, 64, 72, 130])
def test_relu_of_a_product_is_torchs(found: Compiled, width: int, sums: int) -> None:
    half, bias = a_half(37, 20, width, sums), torch.randn(width)
    relu = SumsForward(found, half, 37, bias, half.rows[-1])
    assert relu.done(width)
    half.rows[-1] = bias
    assert torch.equal(relu.front, half().relu())
    apart = SumsForward(found, half, 37, bias, None)
    assert apart.done(width)
    assert torch.equal(apart.front, (half() + bias).relu())


@needs_compiled
@pytest.mark.parametrize("sums", [0, 3])
@pytest.mark.parametrize("width", [1, 8, 13, 40, 64, 130])
def test_the_way_back_is_torchs(found: Compiled, width: int, sums: int) -> None:
    half = a_half(21, 30, width, sums)
    gradient, output = torch.randn(30, width + 3)[:, :width], torch.randn(30, width + 5).relu()[:, :width]
    out, bias_gradient = torch.empty(21, width), torch.empty(width)
    ReluBackward(found, half, out, bias_gradient)(gradient, output)
    assert torch.equal(half.rows, gradient * (output > 0))
    assert torch.equal(out, half()) and torch.equal(bias_gradient, out[-1])


@needs_compiled
@pytest.mark.parametrize("keep", [16, 40])
def test_only_the_columns_in_use_are_kept(found: Compiled, keep: int) -> None:
    before_relu = torch.randn(11, 64)
    before_relu[:, keep - 2 :] = -1.0
    before_relu[3, 50] = -0.0
    relu = RowsForward(found, lambda: before_relu, before_relu)
    relu.narrow(keep)
    assert relu.done(used=keep - 2)
    assert torch.equal(relu.front, before_relu[:, :keep].relu())


@needs_compiled
@pytest.mark.parametrize("value", [1e-30, float("nan"), float("inf")])
@pytest.mark.parametrize("column", [38, 41, 63])
def test_a_unit_that_comes_back_is_seen(found: Compiled, column: int, value: float) -> None:
    before_relu = torch.randn(11, 64)
    before_relu[:, 38:] = -1.0
    relu = RowsForward(found, lambda: before_relu, before_relu)
    relu.narrow(40)
    assert relu.done(used=38)
    before_relu[10, column] = value
    assert not relu.done(used=38)

    half = Half(Direction(Bag(sp.csr_array(sp.eye_array(11, format="csr"))), None, 11, 0), before_relu)
    product = SumsForward(found, half, 11, bias := before_relu[0].clone(), before_relu[0])
    product.narrow(40)
    assert not product.done(used=38)
    before_relu[10, column] = -1.0
    assert product.done(used=38) and torch.equal(bias, before_relu[0])


@needs_compiled
def test_numbers_that_are_not_finite_pass_as_in_torch(found: Compiled) -> None:
    before_relu = torch.tensor([[float("nan"), float("inf"), -float("inf"), -0.0, 1e-42, -1e-42, 0.0, 1.0]])
    relu = RowsForward(found, lambda: before_relu, before_relu)
    assert relu.done(8)
    torch.testing.assert_close(relu.front, before_relu.relu(), rtol=0, atol=0, equal_nan=True)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder, and nothing remembered."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    compiled_or_reason.cache_clear()
    yield tmp_path
    compiled_or_reason.cache_clear()


def a_compiler(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@needs_compiled
def test_the_second_process_needs_no_compiler(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(compiled_or_reason(), Compiled)
    assert [path.suffix for path in (fresh / "cache" / "compiled").iterdir()] == [".so"]
    compiled_or_reason.cache_clear()
    monkeypatch.setenv("BENCH_CC", a_compiler(fresh / "broken", "exit 1"))
    assert isinstance(compiled_or_reason(), Compiled)


@needs_compiled
def test_a_cache_that_cannot_be_written_or_read_costs_a_build(fresh: Path) -> None:
    (fresh / "cache").write_text("a file where the folder should be")
    assert isinstance(compiled_or_reason(), Compiled)


@needs_compiled
def test_a_file_in_the_cache_that_is_no_library_is_built_again(fresh: Path) -> None:
    assert isinstance(compiled_or_reason(), Compiled)
    compiled_or_reason.cache_clear()
    (kept,) = (fresh / "cache" / "compiled").iterdir()
    kept.unlink()
    kept.write_text("half of a libr")
    assert isinstance(compiled_or_reason(), Compiled)
    assert ctypes.CDLL(str(kept)).row_sums


def test_without_a_compiler_torch_does_it(fresh: Path, problem: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_CC", str(fresh / "nowhere"))
    reason = compiled_or_reason()
    assert isinstance(reason, str) and ("nowhere" in reason or "AVX2" in reason)
    assert fast.fit_fast(problem("dropedge", epochs=12)).loss > 0


@pytest.mark.parametrize(("chosen", "reason"), [("none", "BENCH_CC=none"), ("broken", "broken")])
def test_a_compiler_that_fails_or_is_not_wanted(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, reason: str
) -> None:
    broken = a_compiler(fresh / "broken", "echo no such option >&2; exit 1")
    monkeypatch.setenv("BENCH_CC", chosen if chosen == "none" else broken)
    found = compiled_or_reason()
    assert isinstance(found, str) and (reason in found or "AVX2" in found)


@needs_compiled
def test_sums_with_other_bits_are_not_used(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = fresh / "rows.c"
    text = building.SOURCE.read_text()
    fused, rounded = (
        "_mm256_fmadd_ps(value, _mm256_loadu_ps(row + n * LANES), sum[n])",
        "sum[n] + value * *(__m256_u *)(row + n * LANES)",
    )
    assert fused in text
    other.write_text(text.replace(fused, rounded))
    monkeypatch.setattr(building, "SOURCE", other)
    monkeypatch.setattr(building, "FLAGS", [*building.FLAGS, "-ffp-contract=off"])
    assert compiled_or_reason() == "its sums differ from torch's in the last bits"
