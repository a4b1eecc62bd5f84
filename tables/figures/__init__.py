"""The figures: functions from a frame (`tables.frames`, `paper_frame`) to a matplotlib figure."""

from tables.figures.cost import cost_figure
from tables.figures.differences import forest_figure, heat_map_figure
from tables.figures.label_rates import (
    Curves,
    curves,
    difference_curves_figure,
    draw_panel,
    label_rate_figure,
    learner_curves,
)
from tables.figures.paper import dumbbell_figure, paper_frame
from tables.figures.ranks import critical_difference_figure, rank_methods, ranking_rates, ranks_figure
from tables.frames import NothingToDraw, method_frame

__all__ = [
    "Curves",
    "NothingToDraw",
    "cost_figure",
    "critical_difference_figure",
    "curves",
    "difference_curves_figure",
    "draw_panel",
    "dumbbell_figure",
    "forest_figure",
    "heat_map_figure",
    "label_rate_figure",
    "learner_curves",
    "method_frame",
    "paper_frame",
    "rank_methods",
    "ranking_rates",
    "ranks_figure",
]
