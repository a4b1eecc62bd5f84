"""Generate graphs exactly as a run would, trial by trial, and measure them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from augmenters.base import GraphAugmenter, SharedParts, StepAugmenter, generator, label_distribution
from bench.execution.trial import TrialRunner, engines
from bench.inspecting.features import feature_distance, feature_rows, new_rows
from bench.inspecting.first_step import graphs_of_first_step
from bench.inspecting.shapes import Shape, distances, sampled, shape_of
from bench.learning.augmentation import generate, make_context
from bench.learning.problem import Problem
from bench.plan.cells import Cell, Trial
from bench.plan.grids import FOLDS, Grid, product
from bench.plan.planner import Planner
from bench.registry import UserError
from bench.seeding import seed_from

ENGINE = "reference"
OTHER_DRAW = 1_000_000  # added to the repeat: labeled graphs that no run draws
ORIGINALS, OTHERS = "originals", "other originals"


@dataclass(frozen=True)
class Look:
    """The measurements of one trial's graphs of one method."""

    shapes: list[Shape]
    entropy: float  # of the labels, in bits
    count: int
    rows: list[np.ndarray] = field(default_factory=list)  # node features of each graph
    distance: dict[str, float] = field(default_factory=dict)
    notes: dict[str, float] = field(default_factory=dict)
    seconds: float | None = None  # per graph


@dataclass
class Column:
    """One method over all trials, with some graphs of its first trial for the figure."""

    label: str
    looks: list[Look] = field(default_factory=list)
    examples: list[Data] = field(default_factory=list)


@dataclass(frozen=True)
class Inspection:
    """All measurements."""

    cells: dict[str, Cell]
    trials: list[Trial]
    columns: list[Column]

    @property
    def cell(self) -> Cell:
        return next(iter(self.cells.values()))


def chosen_trials(fold: int, repeat: int, count: int) -> list[Trial]:
    """Trials starting at this one, breadth first over folds as in a run."""
    if not 0 <= fold < FOLDS:
        raise UserError(f"--fold {fold} is not a fold; give 0 to {FOLDS - 1}")
    if repeat < 0:
        raise UserError(f"--repeat {repeat} is not a repeat; give 0 or more")
    if not 1 <= count <= 1000:
        raise UserError(f"--trials {count} is not a number of trials; give 1 to 1000")
    return [Trial((fold + i) % FOLDS, repeat + (fold + i) // FOLDS) for i in range(count)]


def resolve_cells(dataset: str, augmenters: Sequence[str], k: int, root: Path) -> dict[str, Cell]:
    """A cell for each augmenter, by label; mistakes are reported before anything is generated."""
    grid = Grid("inspect", product([dataset], augmenters, [k]))
    planner = Planner(root, ENGINE)
    for coordinate in grid.cells:
        reason = planner.obstacle(coordinate)
        if reason is not None:
            raise UserError(reason)
        method = AUGMENTERS.load(AUGMENTERS.resolve(coordinate.augmenter).name)
        if not issubclass(method, GraphAugmenter | StepAugmenter):
            raise UserError(
                f"{coordinate.augmenter} mixes embeddings inside the step and makes no graphs; "
                f"inspect one that generates graphs"
            )
    return {cell.augmenter.label: cell for cell in planner.plan(grid).cells}


def inspect_trials(
    cells: dict[str, Cell], trials: list[Trial], root: Path, turn_to: Callable[[str, Trial], None]
) -> Inspection:
    """Inspect every augmenter in every trial; `turn_to` is called with the next one."""
    runner = TrialRunner(root, engines()[ENGINE]())
    columns = {name: Column(name) for name in (ORIGINALS, OTHERS, *cells)}
    for trial in trials:
        originals: Look | None = None
        for label, cell in cells.items():
            turn_to(label, trial)
            problem, _ = runner.problem(cell, trial)
            if originals is None:
                other, _ = runner.problem(cell, Trial(trial.fold, trial.repeat + OTHER_DRAW))
                originals = look_at(problem, list(problem.graphs), "originals", trial)
                second = look_at(problem, list(other.graphs), "others", trial)
                columns[ORIGINALS].looks.append(originals)
                columns[OTHERS].looks.append(replace(second, distance=all_distances(originals, second)))
                columns[ORIGINALS].examples = columns[ORIGINALS].examples or list(problem.graphs)
                columns[OTHERS].examples = columns[OTHERS].examples or list(other.graphs)
            made, notes, seconds = timed_generation(problem)
            seen = look_at(problem, made, label, trial)
            distance = all_distances(originals, seen)
            columns[label].looks.append(replace(seen, distance=distance, notes=notes, seconds=seconds / len(made)))
            columns[label].examples = columns[label].examples or made
    return Inspection(cells, trials, list(columns.values()))


def timed_generation(problem: Problem) -> tuple[list[Data], dict[str, float], float]:
    """The trial's generated graphs, recorded events, and the seconds with nothing computed beforehand."""
    augmenter = problem.augmenter
    if not isinstance(augmenter, GraphAugmenter | StepAugmenter):
        raise TypeError(f"{type(augmenter).__name__} makes no graphs")
    alone = replace(problem, shared=SharedParts())
    context = make_context(alone)
    start = time.perf_counter()
    if isinstance(augmenter, StepAugmenter):
        made = graphs_of_first_step(alone, augmenter, context)
    else:
        made = generate(alone, augmenter, generator(problem.augment_seed), context)
    seconds = time.perf_counter() - start
    if not made:
        raise UserError(f"{type(augmenter).__name__} generated no graph; `bench check` shows what is wrong")
    return made, context.notes, seconds


def look_at(problem: Problem, graphs: list[Data], name: str, trial: Trial) -> Look:
    """Measure some graphs; the sample depends only on names."""
    rng = generator(seed_from("inspect", name, trial.fold, trial.repeat))
    labels = np.concatenate([label_distribution(graph, problem.num_classes).double().numpy() for graph in graphs])
    logs = np.log2(labels, out=np.zeros_like(labels), where=labels > 0)
    chosen = sampled(graphs, rng)
    shapes = [shape_of(graph, rng) for graph in chosen]
    rows = [feature_rows(graph) for graph in chosen]
    return Look(shapes, float(-(labels * logs).sum(axis=1).mean()) + 0.0, len(graphs), rows)


def all_distances(originals: Look, seen: Look) -> dict[str, float]:
    """Distances to the originals: in structure and, if there are any, in features."""
    found = distances(originals.shapes, seen.shapes)
    features = {
        "features": feature_distance(originals.rows, seen.rows),
        "new_rows": new_rows(originals.rows, seen.rows),
    }
    found |= {name: value for name, value in features.items() if value is not None}
    return {name: round(value, 12) for name, value in found.items()}  # less than that is a sum in another order
