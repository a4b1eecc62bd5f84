"""The functions of `import bench`: the commands with their options as keywords.

Each builds the same typed request as the command line and passes it to `bench.api`, so planning, ledger, resuming,
pools and MLflow work the same. Nothing is printed except an optional progress bar.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from bench import api
from bench.plan.planner import Plan
from bench.public import options as words
from bench.public.classes import CODE, base_of, spec_of
from bench.public.options import InspectOptions, PlanOptions, RunOptions, ShareOptions, TuneOptions
from bench.public.results import Results
from bench.registry import Registry, UserError
from bench.words import are, counted

if TYPE_CHECKING:
    from bench.checking import Report
    from bench.public.sharing import Shared

SEARCH = ("sampler", "pruner", "seed")
Source = str | os.PathLike[str]  # of results


def run(datasets: Any = None, augmenters: Any = None, k: Any = None, **options: Unpack[RunOptions]) -> Results:
    """Run the trials of these cells that are missing from the workspace, and return the results.

    `datasets`: names, lists of PyG `Data`, PyG datasets, or `Dataset` classes and instances; `{"mine": graphs}` gives
    graphs a name. `augmenters`: names such as "dropedge:p=0.4", classes, or instances such as `DropEdge(p=0.4)`. `k`:
    labeled graphs per class. Without `datasets` and `grid` it is the grid "quick"; beside `grid`, the three narrow it.
    The keywords are the options of `bench run`: folds, repeats, preset, epochs, set, add, backbones, readouts, learners
    (or models), features, splits, metric, precision, max_repeats, workspace, data, jobs, memory, executor, scheduler,
    cluster, trial_timeout, device, engine, retry, skip_unavailable, tuned, pooled, storage, shard, tracking_uri.
    `progress`: True or False; without it there is a bar in a notebook and none elsewhere.

    Keywords are the options of `bench run`: folds, repeats, preset, epochs, set, add, backbones, readouts, learners (or
    models), features, splits, workspace, data, jobs, memory, executor, scheduler, trial_timeout, device, engine, retry,
    skip_unavailable, tuned, pooled, storage, tracking_uri. `progress`: whether to show a progress bar; by default, only
    in notebooks.

    Repeating a call runs nothing twice. After Ctrl-C (or the stop button), the finished trials are kept and returned,
    with a warning about what is missing.
    """
    words.check_keywords(options, RunOptions, "run")
    request = words.run_request(datasets, augmenters, k, options)
    with _told(options.get("progress")) as listeners:
        outcome = api.run(request, listeners)
    if outcome.interrupted:
        _warn(
            f"stopped; {counted(outcome.ran, 'trial')} finished in this run {are(outcome.ran)} kept, "
            f"{outcome.left} {are(outcome.left)} left. "
            "Call it again to go on."
        )
    elif outcome.failures:
        cell, record = outcome.failures[0]
        _warn(
            f"{counted(len(outcome.failures), 'trial')} without a result; the first: {cell.label}, fold {record.fold}: "
            f"{record.reason}. Calling it again tries them again; see `failures` of the results"
        )
    return Results.of_run(outcome)


def plan(datasets: Any = None, augmenters: Any = None, k: Any = None, **options: Unpack[PlanOptions]) -> Plan:
    """The cells that `run` would run with the same arguments, checked and resolved; nothing is run."""
    words.check_keywords(options, PlanOptions, "plan")
    return api.plan(words.run_request(datasets, augmenters, k, options))


def tune(
    datasets: Any = None, augmenters: Any = None, k: Any = None, **options: Unpack[TuneOptions]
) -> api.TuneOutcome:
    """Search settings for every method, like `bench tune`; `run(..., tuned=True)` then uses the best ones of each fold.

    Beside the keywords of `run` that say what is trained and how: trials, timeout, space (`{"lr": "0.001..0.01"}`),
    validation, sampler, pruner, seed.
    """
    from bench.tuning.request import TuneRequest
    from bench.tuning.space import read_narrowing
    from bench.tuning.study import Search

    words.check_keywords(options, TuneOptions, "tune")
    run_options = {name: value for name, value in options.items() if name not in ("pooled", "storage")}
    request = words.run_request(datasets, augmenters, k, run_options, tuning=True)
    how: dict[str, Any] = {name: value for name, value in options.items() if name in SEARCH}
    search = Search(options.get("trials", 30), **how)
    space = options.get("space", {})
    listed = [f"{name}={value}" for name, value in space.items()] if isinstance(space, Mapping) else list(space)
    narrowing = {**request.grid.space, **read_narrowing(listed)}
    asked = TuneRequest(
        request,
        search,
        options.get("validation", "budget"),
        options.get("storage"),
        options.get("timeout"),
        narrowing,
        options.get("pooled", False),
    )
    with _told(options.get("progress")) as listeners:
        outcome = api.tune(asked, listeners)
    if outcome.interrupted:
        _warn(
            f"stopped; {counted(outcome.ran, 'trial')} of this search {are(outcome.ran)} kept. Call it again to go on."
        )
    return outcome


def check(*plugins: Any) -> Report | list[Report]:
    """Check plug-ins (names, classes or instances) against their contract, like `bench check`; by default, all of them.

    For a single plug-in, returns its report: `bench.check(MyAugmenter).broken` lists the properties that do not hold.
    """
    from bench.checking import KINDS

    registries = [kind.registry for kind in KINDS.values()]
    names = [one if isinstance(one, str) else _checked_name(one, registries) for one in plugins]
    reports = list(api.check(names))
    return reports[0] if len(plugins) == 1 else reports


def _checked_name(thing: Any, registries: Sequence[Registry]) -> str:
    cls = thing if isinstance(thing, type) else type(thing)
    for registry in registries:
        if issubclass(cls, base_of(registry)):
            return spec_of(registry, thing, _scratch())
    kinds = ", ".join(base_of(registry).__name__ for registry in registries)
    raise UserError(f"{cls.__name__} cannot be checked; derive it from one of {kinds}")


def inspect(dataset: Any, augmenters: Any, **options: Unpack[InspectOptions]) -> api.InspectOutcome:
    """Inspect the graphs that augmenters generate, like `bench inspect`: statistics and a figure."""
    from augmenters import AUGMENTERS
    from bench.datasets.paths import data_root
    from bench.inspecting.request import InspectRequest

    words.check_keywords(options, InspectOptions, "inspect")
    workspace, root = words.workspace_of(options), data_root(options.get("data"))
    several = augmenters if isinstance(augmenters, list | tuple) else [augmenters]
    given: dict[str, Any] = {name: value for name, value in options.items() if name not in ("workspace", "data")}
    request = InspectRequest(
        words.dataset_name(dataset, root, workspace / CODE),
        [spec_of(AUGMENTERS, one, workspace / CODE) for one in several],
        workspace=workspace,
        data=root,
        **given,
    )
    return api.inspect(request)


def load(*sources: Source | Sequence[Source]) -> Results:
    """Results of workspaces, ledger files, parquet archives or shared folders; of several (or a list), joined.

    Two different results for the same trial are an error. Without a source, loads the workspace "runs".
    """
    return Results.load(_places(sources))


def share(folder: Source, *sources: Source | Sequence[Source], **options: Unpack[ShareOptions]) -> Shared:
    """Write results of workspaces, ledgers or archives into a folder for somebody else, as `bench share`.

    Keywords: data (the data root), graphs (whether to include the graphs of stored datasets).
    """
    from bench.datasets.paths import data_root
    from bench.public.sharing import share as write

    words.check_keywords(options, ShareOptions, "share")
    root, graphs = data_root(options.get("data")), options.get("graphs", False)
    return write(_places(sources), Path(folder).expanduser(), root, graphs)


def _places(sources: Sequence[Source | Sequence[Source]]) -> list[Path]:
    """Where to read, of paths and lists of paths; the usual workspace without any."""
    given: list[Any] = [one for source in sources for one in (source if isinstance(source, list | tuple) else [source])]
    for one in given:
        if not isinstance(one, str | os.PathLike):
            raise UserError(f"{one!r} is not a path; give workspaces, ledgers, archives or shared folders")
    return [Path(one).expanduser() for one in given] or [words.DEFAULT_WORKSPACE]


def _told(progress: bool | None) -> Any:
    from bench.public.progress import told

    return told(progress)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)


@cache
def _scratch() -> Path:
    """A temporary folder for notebook classes that are only inspected; removed when Python exits."""
    folder = tempfile.TemporaryDirectory(prefix="augbench-code-")
    atexit.register(folder.cleanup)
    return Path(folder.name)
