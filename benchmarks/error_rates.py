"""False positives and power of the candidate tests (docs/statistics.md).

Reads recorded trials and, with --null, the file written by null_pairs.py; prints Markdown. With the defaults, takes
about a minute.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.candidate_tests import CANDIDATES, t_over_folds, t_over_trials

ROOT = Path(__file__).resolve().parents[1]
FOLDS, REPEATS = 10, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=Path, default=ROOT / "results" / "trials.parquet")
    parser.add_argument("--null", type=Path, default=ROOT / "benchmarks" / "null_pairs.csv")
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--shift", type=float, default=3.0, help="points: the true difference whose power is shown")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, count = np.random.default_rng(options.seed), options.simulations
    recorded = differences_on_record(options.trials)
    print("## Variance of paired differences on record\n")
    print(markdown(components(recorded)))
    worlds: dict[str, np.ndarray] = {}
    if options.null.exists():
        null = pd.read_csv(options.null)
        print("\n## What plain training's accuracy varies with\n")
        print(markdown(nested_components(null)))
        for dataset, part in null.groupby("dataset"):
            worlds[f"other weights, {dataset}"] = null_experiments(part, count, rng)
    for dataset, matrices in recorded.items():
        worlds[f"on record, {dataset}"] = resampled(matrices, count, rng)
    for share in (0.0, 0.1, 0.3):
        worlds[f"normal, {share:g} of the variance by fold"] = normal(share, count, rng)
    print(f"\n## False positives at 5 %, in percent ({count} experiments of {FOLDS} folds and {REPEATS} draws)\n")
    print(markdown(rates(worlds, 0.0)))
    print(f"\n## Power: how often a true difference of {options.shift:g} points is found, in percent\n")
    print(markdown(rates(worlds, options.shift)))
    print("\n## Mean half-width of the 95 % interval, in points\n")
    print(markdown(widths(worlds)))
    print("\n## Adding label draws until the interval is narrow enough: coverage of the interval then, in percent\n")
    print(markdown(stopping(count, rng)))


def markdown(frame: pd.DataFrame) -> str:
    heads = [frame.index.name or "", *map(str, frame.columns)]
    lines = [f"| {' | '.join(heads)} |", f"| --- {'| ---: ' * len(frame.columns)}|"]
    lines += [
        f"| {name} | {' | '.join(map(_shown, row))} |" for name, row in zip(frame.index, frame.values, strict=True)
    ]
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.2f}" if abs(value) < 1 else f"{value:.1f}"
    return str(value)


def differences_on_record(path: Path) -> dict[str, list[np.ndarray]]:
    """Per dataset, the differences of every method to plain training of the same cell: folds by repeats, in points."""
    model = ["dataset", "k", "features", "backbone", "readout", "training.preset"]
    trials = pd.read_parquet(path, columns=[*model, "augmenter", "fold", "repeat", "status", "accuracy", "tuned"])
    trials = trials[(trials["status"] == "done") & ~trials["tuned"] & (trials["repeat"] < REPEATS)]
    trials = trials[(trials["backbone"] != "gat") & (trials["backbone"] != "")]  # GAT needs features to attend to
    wide = trials.pivot_table(index=[*model, "augmenter"], columns=["fold", "repeat"], values="accuracy").dropna()
    found: dict[str, list[np.ndarray]] = {}
    for place, row in wide.iterrows():
        plain = (*place[:-1], "none")
        if place[-1] != "none" and plain in wide.index:
            difference = 100 * (row - wide.loc[plain]).to_numpy().reshape(FOLDS, REPEATS)
            found.setdefault(place[0], []).append(difference)
    return found


def components(recorded: dict[str, list[np.ndarray]]) -> pd.DataFrame:
    """The spread of single differences, and the share that trials of a fold have in common (mean over cells)."""
    rows = {}
    for dataset, matrices in recorded.items():
        stack = np.stack(matrices)
        within = stack.var(2, ddof=1).mean()
        between = (stack.mean(2).var(1, ddof=1) - stack.var(2, ddof=1).mean(1) / REPEATS).mean()
        rows[dataset] = [len(matrices), np.sqrt(between + within), between / (between + within)]
    return pd.DataFrame.from_dict(
        rows, orient="index", columns=["cells", "standard deviation", "correlation in a fold"]
    )


def nested_components(null: pd.DataFrame) -> pd.DataFrame:
    """Variance components of the accuracy of a training: fold, label draw in the fold, initial weights in the draw."""
    rows = {}
    for dataset, part in null.groupby("dataset"):
        cube = _cube(part)
        inits, draws = cube.shape[2], cube.shape[1]
        weights = cube.var(2, ddof=1).mean()
        labels = cube.mean(2).var(1, ddof=1).mean() - weights / inits
        folds = cube.mean((1, 2)).var(ddof=1) - labels / draws - weights / (inits * draws)
        parts = np.maximum([folds, labels, weights], 0)
        rows[dataset] = [cube.size, np.sqrt(parts.sum()), *(100 * parts / parts.sum())]
    heads = ["trainings", "standard deviation", "% fold", "% label draw", "% first weights"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=heads)


def _cube(null: pd.DataFrame) -> np.ndarray:
    """Accuracy in points: folds by label draws by initial weights; only draws that every fold has."""
    wide = null.pivot_table(index=["fold", "repeat"], columns="init", values="accuracy").dropna()
    whole = [repeat for repeat, part in wide.groupby("repeat") if len(part) == FOLDS]
    wide = wide[wide.index.get_level_values("repeat").isin(whole)].sort_index()
    return 100 * wide.to_numpy().reshape(FOLDS, len(whole), -1)


def null_experiments(null: pd.DataFrame, count: int, rng: np.random.Generator) -> np.ndarray:
    """Two trainings that differ only in the initial weights, on some of the label draws of each fold."""
    cube = _cube(null)
    folds, draws, inits = cube.shape
    repeats = np.argsort(rng.random((count, folds, draws)), axis=2)[:, :, :REPEATS]
    pair = np.argsort(rng.random((count, folds, REPEATS, inits)), axis=3)
    fold = np.arange(folds)[None, :, None]
    return cube[fold, repeats, pair[..., 0]] - cube[fold, repeats, pair[..., 1]]


def resampled(matrices: list[np.ndarray], count: int, rng: np.random.Generator) -> np.ndarray:
    """Experiments without a difference: resampled folds of recorded ones, each minus its cell's mean."""
    rows = np.concatenate([matrix - matrix.mean() for matrix in matrices])
    return rows[rng.integers(len(rows), size=(count, FOLDS))]


def normal(share: float, count: int, rng: np.random.Generator, repeats: int = REPEATS, sd: float = 6.0) -> np.ndarray:
    """Normal differences with a share of the variance common to a fold."""
    common = rng.normal(0, sd * np.sqrt(share), (count, FOLDS, 1))
    return common + rng.normal(0, sd * np.sqrt(1 - share), (count, FOLDS, repeats))


def rates(worlds: dict[str, np.ndarray], shift: float) -> pd.DataFrame:
    rows = {
        name: [100 * float((test(world + shift)[0] < 0.05).mean()) for test in CANDIDATES.values()]
        for name, world in worlds.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(CANDIDATES))


def widths(worlds: dict[str, np.ndarray]) -> pd.DataFrame:
    first = next(iter(worlds.values()))[:2]
    with_interval = {name: test for name, test in CANDIDATES.items() if not np.isnan(test(first)[1]).all()}
    rows = {name: [float(test(world)[1].mean()) for test in with_interval.values()] for name, world in worlds.items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(with_interval))


def stopping(count: int, rng: np.random.Generator, most: int = 60) -> pd.DataFrame:
    """`bench run --precision`: add draws, starting at three, until the half-width is small, by each of two rules."""
    rows = {}
    for share in (0.0, 0.1):
        world = normal(share, count // 4, rng, most)
        for target in (1.0, 2.0):
            for name, tests in (("folds", (t_over_folds,)), ("folds and trials", (t_over_folds, t_over_trials))):
                repeats, covered = _stopped(world, target, tests)
                place = f"{share:g} by fold, {target:g} points, width of {name}"
                rows[place] = [
                    float(repeats.mean()),
                    100 * float(covered.mean()),
                    100 * float((repeats == most).mean()),
                ]
    return pd.DataFrame.from_dict(rows, orient="index", columns=["mean draws", "coverage", "% at the cap"])


def _stopped(world: np.ndarray, target: float, tests: tuple) -> tuple[np.ndarray, np.ndarray]:
    most = world.shape[2]
    repeats, covered = np.full(len(world), most), np.zeros(len(world), dtype=bool)
    running = np.ones(len(world), dtype=bool)
    for done in range(REPEATS, most + 1):
        so_far = world[:, :, :done]
        width = np.max([test(so_far)[1] for test in tests], axis=0)
        stop = running & ((width <= target) | (done == most))
        half = t_over_folds(so_far)[1]
        covered[stop] = np.abs(so_far.mean((1, 2)))[stop] <= half[stop]
        repeats[stop] = done
        running &= ~stop
    return repeats, covered


if __name__ == "__main__":
    main()
