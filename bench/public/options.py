"""The keywords of the Python functions: the options of the command line under the same names, and their requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict, get_type_hints

from bench.datasets.paths import data_root
from bench.execution.precision import asked_precision
from bench.execution.request import RunRequest
from bench.plan.asked import adjusted, changed, chosen_grid
from bench.plan.grids import Grid
from bench.public.classes import CODE, is_written_here, spec_of
from bench.registry import Registry, UserError, show, unknown

DEFAULT_WORKSPACE = Path("runs")
GRID = ("folds", "repeats", "preset", "features", "splits", "metric")  # keywords that change a grid as a whole


class CellOptions(TypedDict, total=False):
    """Which cells are meant, and on what they depend."""

    grid: str | Path | Grid
    backbones: Any
    readouts: Any
    learners: Any
    models: Any  # another name for learners
    folds: int
    repeats: int
    preset: str
    epochs: int
    set: Mapping[str, Any] | list[str]  # {"training.lr": 0.001, "augmenter.p": [0.1, 0.4]}
    add: Any  # methods in addition to those of a grid
    features: str
    splits: str
    metric: str
    workspace: str | Path
    data: str | Path
    device: str
    engine: str
    skip_unavailable: bool


class PlanOptions(CellOptions, total=False):
    """The same, with tuned settings, or a part of them."""

    tuned: bool
    pooled: bool
    storage: str
    shard: str


class WorkOptions(TypedDict, total=False):
    """How something is to run, and where it is shown."""

    tracking_uri: str
    jobs: int
    memory: str
    executor: str
    scheduler: str
    trial_timeout: float
    progress: bool | None


class RunOptions(PlanOptions, WorkOptions, total=False):
    """What is to run, how, and when label draws are enough."""

    cluster: Mapping[str, Any] | list[str]  # {"partition": "gpu"}
    retry: bool
    precision: float
    max_repeats: int


class TuneOptions(CellOptions, WorkOptions, total=False):
    """What is to be tuned, how, and how settings are searched."""

    pooled: bool
    storage: str
    trials: int
    timeout: float
    space: Mapping[str, str] | list[str]
    validation: str
    sampler: str
    pruner: str
    seed: int


class InspectOptions(TypedDict, total=False):
    """Which graphs to inspect."""

    k: int
    fold: int
    repeat: int
    trials: int
    workspace: str | Path
    data: str | Path
    tracking_uri: str


class ShareOptions(TypedDict, total=False):
    """What a shared folder contains."""

    data: str | Path
    graphs: bool


def check_keywords(given: Iterable[str], options: Any, function: str) -> None:
    """Reject unknown keywords, suggesting the closest known one."""
    known = {"datasets", "augmenters", "k", *get_type_hints(options)}
    for name in given:
        if name not in known:
            raise unknown(f"keyword of bench.{function}", name, known)


def workspace_of(options: Mapping[str, Any]) -> Path:
    return Path(options.get("workspace", DEFAULT_WORKSPACE)).expanduser()


def run_request(datasets: Any, augmenters: Any, k: Any, options: Mapping[str, Any], tuning: bool = False) -> RunRequest:
    """The request that the command line would build from the same options."""
    from augmenters import AUGMENTERS
    from bench.learning import LEARNERS
    from models import BACKBONES, READOUTS

    if "models" in options and "learners" in options:
        raise UserError("models and learners mean the same; pass only one of them")
    code = workspace_of(options) / CODE
    root = data_root(options.get("data"))
    axes: dict[str, list[Any]] = {
        "datasets": [dataset_name(one, root, code, name) for name, one in _named(datasets)],
        "augmenters": _specs(AUGMENTERS, augmenters, code),
        "k": [_whole(one) for one in _several(k)],
        "backbones": _specs(BACKBONES, options.get("backbones"), code),
        "readouts": _specs(READOUTS, options.get("readouts"), code),
        "learners": _specs(LEARNERS, options.get("learners", options.get("models")), code),
    }
    added = _specs(AUGMENTERS, options.get("add"), code)
    _refuse_unreachable({**axes, "added": added}, code, options.get("scheduler"))
    changes = {name: options.get(name) for name in GRID}
    if tuning and changes["repeats"] is None:
        changes["repeats"] = 1
    given = {
        name: value
        for name, value in options.items()
        if name in RunRequest.__dataclass_fields__ and name not in ("grid", "workspace", "data") and value is not None
    }
    given["cluster"] = _pairs(options.get("cluster"))
    given["precision"] = asked_precision(options.get("precision"), options.get("max_repeats"))
    grid = changed(_grid(options.get("grid"), axes, options.get("data")), _pairs(options.get("set")), added)
    return RunRequest(
        grid=adjusted(grid, changes, options.get("epochs")),
        workspace=workspace_of(options),
        data=None if options.get("data") is None else Path(options["data"]),
        **given,
    )


def _grid(given: Any, axes: dict[str, list[Any]], data: Any) -> Grid:
    if isinstance(given, Grid):
        from bench.plan.grids import narrowed

        return narrowed(given, axes)
    return chosen_grid(None if given is None else str(given), axes, None if data is None else Path(data))


def _pairs(given: Any) -> list[str]:
    """What is given by name, as the command line writes it: `name=value`, several values with `|` between them."""
    if not isinstance(given, Mapping):
        return _several(given)
    return [f"{name}={'|'.join(show(one) for one in _several(value))}" for name, value in given.items()]


def _refuse_unreachable(axes: Mapping[str, list[Any]], code: Path, scheduler: Any) -> None:
    written = [spec for name in axes if name != "k" for spec in axes[name] if is_written_here(spec, code)]
    if scheduler and written:
        name = written[0].split(":")[1]
        raise UserError(
            f"{name} was defined in a notebook or script, which the workers of {scheduler} cannot import; "
            "put it into a module that is installed on every machine"
        )


def _named(datasets: Any) -> list[tuple[str | None, Any]]:
    """Datasets with the names given to them."""
    return [*datasets.items()] if isinstance(datasets, Mapping) else [(None, one) for one in _several(datasets)]


def dataset_name(given: Any, root: Path, code: Path, name: str | None = None) -> str:
    """The name of a dataset given as a name, a class or instance of `Dataset`, or graphs, which are stored."""
    from bench.datasets.base import Dataset
    from bench.datasets.catalogue import DATASETS

    if isinstance(given, str | type | Dataset):
        return spec_of(DATASETS, given, code)
    from torch_geometric.data import Data

    from bench.datasets.stored import store_graphs

    graphs = list(given) if isinstance(given, Iterable) and not isinstance(given, Data | Mapping) else []
    if not graphs or not all(isinstance(graph, Data) for graph in graphs):
        raise UserError(
            f"a dataset cannot be a {type(given).__name__}; pass a name, a list of Data, a PyG dataset or a Dataset"
        )
    return store_graphs(graphs, root, name)


def _several(given: Any) -> list[Any]:
    """A list of the given values; a single value becomes a list of one."""
    if given is None:
        return []
    if isinstance(given, list | tuple | set | frozenset | range):
        found = list(given)
        if found and _is_graph(found[0]):
            raise UserError("datasets is a list of datasets; for one list of graphs write datasets=[graphs]")
        return found
    return [given]


def _is_graph(given: Any) -> bool:
    return type(given).__module__.startswith("torch_geometric.data") and hasattr(given, "edge_index")


def _specs(registry: Registry, given: Any, code: Path) -> list[str]:
    return [spec_of(registry, one, code) for one in _several(given)]


def _whole(given: Any) -> int:
    try:
        if int(given) != given or isinstance(given, bool):
            raise ValueError
    except (TypeError, ValueError):
        raise UserError(
            f"k={given!r} is not a whole number; pass labeled graphs per class, such as k=[2, 10]"
        ) from None
    return int(given)
