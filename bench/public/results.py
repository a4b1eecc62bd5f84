"""Results for Python users: tidy frames, paired differences, tables and plots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from bench.api import RunOutcome
from bench.plan.cells import PARTS
from bench.public.shown import Plots, Selection, Table, TableOptions, filled, page
from bench.results.ledger import LedgerState
from bench.results.merge import joined
from bench.results.records import SCORES
from bench.results.verification import Verification, counting
from bench.words import counted

if TYPE_CHECKING:
    import pandas as pd

    from bench.results.frame import Results as Frames

_FIRST = ("dataset", "k", "method", *PARTS)
_METHOD = ("augmenter", "backbone", "readout", "learner")
_HIDDEN = tuple(f"{part}.settings" for part in PARTS)
_TRIAL = ("fold", "repeat", "status", *SCORES)


class Results:
    """The results of some cells. `trials` and `cells` are pandas DataFrames that you may modify."""

    def __init__(self, state: LedgerState, interrupted: bool = False, sources: Sequence[Path] = ()) -> None:
        self.state = state
        self.interrupted = interrupted  # whether the run was stopped before its end
        self.sources = tuple(sources)  # where the results were read from

    @classmethod
    def of_run(cls, outcome: RunOutcome) -> Results:
        """The cells of a run's plan with all their trials, including earlier ones."""
        return cls(outcome.state.only({cell.key for cell in outcome.plan.cells}), outcome.interrupted)

    @classmethod
    def load(cls, sources: Sequence[Path]) -> Results:
        """Everything in workspaces, ledgers and archives; contradictions between them are an error."""
        return cls(joined(sources), sources=sources)

    @property
    def trials(self) -> pd.DataFrame:
        """One row per trial, with the settings of its cell as columns."""
        cells = self._described
        trials = self.frames.trials
        mixed = trials.drop(columns=[name for name in trials if name in cells and name != "cell"])
        found = mixed.merge(cells, left_on="cell", right_index=True, how="left", validate="many_to_one")
        first = [*_FIRST, *_TRIAL]
        columns = [*first, *(name for name in found if name not in (*first, "cell")), "cell"]
        return found[columns].sort_values([*_FIRST, "fold", "repeat"], ignore_index=True)

    @property
    def cells(self) -> pd.DataFrame:
        """One row per cell: settings as columns, numbers of finished and planned trials, mean and standard deviation of
        scores.
        """
        found = self._described.copy()
        done = self.frames.trials[self.frames.trials["status"] == "done"]
        grouped = done.groupby("cell")
        found.insert(len(_FIRST), "trials", grouped.size().reindex(found.index, fill_value=0))
        found.insert(len(_FIRST) + 1, "planned", [self.frames.planned_trials(str(key)) for key in found.index])
        for place, score in enumerate(SCORES):
            numbers = done[score].astype(float).groupby(done["cell"])
            found.insert(len(_FIRST) + 2 + 2 * place, score, numbers.mean().reindex(found.index))
            found.insert(len(_FIRST) + 3 + 2 * place, f"{score}_std", numbers.std(ddof=1).reindex(found.index))
        return found.rename_axis("cell").sort_values(list(_FIRST))

    @property
    def failures(self) -> pd.DataFrame:
        """The trials that were tried and have no result, with the reason."""
        trials = self.trials
        return trials[trials["status"] != "done"].dropna(axis="columns", how="all")

    def differences(self, to: str = "none", metric: str = "accuracy") -> pd.DataFrame:
        """Paired differences between every method and the method `to`, with intervals and p-values.

        Cells are compared if they agree in everything else: dataset, k, model, features, splits and training.
        """
        from tables.differences import paired_differences

        return paired_differences(self.frames, to, metric)

    def table(self, rows: Any = "augmenter", columns: Any = None, **options: Unpack[TableOptions]) -> Table:
        """A table of your own, `table(rows="augmenter.eps", columns="dataset")`, or one by name.

        Properties are dataset, k, augmenter, backbone, readout, learner, features, splits and every setting, such as
        `augmenter.p` or `training.lr`; pass several as a list. The default columns are dataset and k. Keywords: where,
        labels, caption, name, metric, mark, settings, mix, strict, as in `bench tables`.
        """
        return filled(self.frames, rows, columns, options)

    def report(
        self, path: str | Path | None = None, title: str = "augbench report", **options: Unpack[Selection]
    ) -> str:
        """The page of `bench report` as text, optionally also written to `path`. Keywords as in `table`."""
        return page(self, title, options, path)

    @property
    def verifications(self) -> list[Verification]:
        """The recorded runs of `bench verify` that refer to exactly these trials."""
        return [run for source in self.sources for run in counting(source, self.state)]

    @property
    def plot(self) -> Plots:
        """The figures of these results: `plot.label_rate()`, `plot.differences()`."""
        return Plots(self.frames)

    @property
    def frames(self) -> Frames:
        """The results in the form that `tables/` uses."""
        return self._frames

    @cached_property
    def _frames(self) -> Frames:
        from bench.results.frame import Results as Frames

        return Frames.from_state(self.state)

    @cached_property
    def _described(self) -> pd.DataFrame:
        """The cells with every setting of their plug-ins as a column."""
        import pandas as pd

        from tables.specs import method_name

        cells = self.frames.cells
        rows = []
        for _, cell in cells.iterrows():
            row: dict[str, Any] = {}
            for part in PARTS:
                settings = json.loads(cell[f"{part}.settings"]) if str(cell[f"{part}.settings"])[:1] == "{" else {}
                row |= {f"{part}.{name}": value for name, value in settings.items()}
            augmenter, backbone, readout, learner = (str(cell[part]) for part in _METHOD)
            row["method"] = method_name(augmenter, backbone, readout, learner)
            rows.append(row)
        settings = pd.DataFrame(rows, index=cells.index)
        found = pd.concat([cells.drop(columns=list(_HIDDEN)), settings], axis=1)
        groups = [
            sorted(str(name) for name in found if str(name).startswith(f"{part}.")) for part in (*PARTS, "training")
        ]
        first = [*_FIRST, *(name for group in groups for name in group)]
        return found[[*first, *(name for name in found if name not in first)]]

    def __len__(self) -> int:
        return sum(len(self.state.done(key)) for key in self.state.cells)

    def __repr__(self) -> str:
        failed = sum(len(self.state.failed(key)) for key in self.state.cells)
        words = f"{counted(len(self.state.cells), 'cell')}, {counted(len(self), 'finished trial')}"
        words += f", {failed} without a result" if failed else ""
        return f"<Results: {words}{', interrupted' if self.interrupted else ''}>"

    def _repr_html_(self) -> str:
        shown = self.cells[["dataset", "k", "method", "trials", "planned", "accuracy", "accuracy_std"]]
        return str(shown.style.hide(axis="index").format(precision=3).to_html())
