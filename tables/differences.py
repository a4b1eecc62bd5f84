"""Paired differences as a frame: pairs of cells that agree in everything except the augmenter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import pandas as pd

from bench.registry import UserError, unknown
from bench.results.frame import Results
from bench.results.records import SCORES
from tables.selection import base_label
from tables.specs import method_name
from tables.statistics import Paired, holm, paired

PLACE = ("dataset", "k", "learner", "backbone", "readout")
_METHOD = ("augmenter", "backbone", "readout", "learner")
_CONDITIONS = ("features", "splits", "tuned_how")


def paired_differences(results: Results, to: str = "none", metric: str = "accuracy") -> pd.DataFrame:
    """One row per cell that has a counterpart with the augmenter `to`; fractions, as in `tables.statistics.paired`.

    `p_holm` is corrected for the methods compared under the same conditions. Raises `UserError` if there are no pairs.
    """
    if metric not in SCORES:
        raise unknown("metric", metric, SCORES)
    cells = {
        str(key): {str(name): value for name, value in row.items()}
        for key, row in results.cells.to_dict(orient="index").items()
    }
    references = {_place(cell): key for key, cell in cells.items() if base_label(cell, "augmenter") == to}
    if not references:
        there = sorted({base_label(cell, "augmenter") for cell in cells.values()})
        raise UserError(f"no cell has the augmenter '{to}' to compare with; there are: {', '.join(there)}")
    rows = []
    for key, cell in cells.items():
        against = references.get(_place(cell))
        if against is None or against == key:
            continue
        augmenter, backbone, readout, learner = (str(cell[part]) for part in _METHOD)
        found = paired(results.values(key, metric), results.values(against, metric))
        rows.append(
            {
                "dataset": cell["dataset"],
                "k": int(cell["k"]),
                "method": method_name(augmenter, backbone, readout, learner),
                **{part: cell[part] for part in _METHOD},
                **{name: cell[name] for name in _CONDITIONS if name != "tuned_how"},
                "tuned": cell["tuned"],
                "to": to,
                **asdict(found),
                "cell": key,
                "reference": against,
            }
        )
    measured = [field.name for field in fields(Paired)]
    columns = ["dataset", "k", "method", *_METHOD, "features", "splits", "tuned"]
    frame = pd.DataFrame(rows, columns=[*columns, "to", *measured, "cell", "reference"])
    frame = frame.sort_values(["dataset", "k", "backbone", "readout", "learner", "augmenter"], ignore_index=True)
    frame.insert(len(columns) + 1 + len(measured), "p_holm", math.nan)
    for _, group in frame.groupby([*PLACE, "features", "splits", "tuned"], sort=False):
        frame.loc[group.index, "p_holm"] = holm(group[P_VALUE].astype(float).tolist())
    return frame


P_VALUE = "p"


def _place(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """What two cells must have in common to be compared: everything except the augmenter and its version.

    The training of tuned cells differs by design; the training before tuning is used instead.
    """
    tuned = bool(cell["tuned"])
    shared = [name for name in cell if name.startswith(("training.", "versions.")) and name != "versions.augmenter"]
    shared = [name for name in shared if not (tuned and name.startswith("training.") and name != "training.preset")]
    shared = [name for name in shared if not name.startswith("versions.engine")]  # engines support different methods
    model = [base_label(cell, part) for part in PLACE[2:]]
    facts = [cell["dataset"], int(cell["k"]), *model, *(cell[name] for name in (*_CONDITIONS, *shared))]
    return tuple(None if isinstance(fact, float) and math.isnan(fact) else fact for fact in facts)
