"""The graph neural network as a learner: a backbone, a readout and a head, trained by an engine."""

from __future__ import annotations

from augmenters.base import Augmenter, EmbeddingAugmenter, GraphAugmenter, StepAugmenter
from bench.learning.learner import Learner
from bench.learning.problem import Engine, Fitted, Problem
from models.backbones import Backbone
from models.readouts import Readout


class GNN(Learner):
    """Accepts every kind of augmenter; the engine that trains it is chosen by the caller and is not a setting."""

    network = True
    trained = True

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def refuses(
        cls, augmenter: type[Augmenter], backbone: type[Backbone] | None = None, readout: type[Readout] | None = None
    ) -> str | None:
        if not issubclass(augmenter, GraphAugmenter | EmbeddingAugmenter | StepAugmenter):
            return (
                f"{augmenter.__name__} does not say what it changes; derive it from GraphAugmenter, "
                "EmbeddingAugmenter or StepAugmenter"
            )
        if issubclass(augmenter, GraphAugmenter) and augmenter.when not in ("offline", "epoch"):
            return (
                f"{augmenter.__name__} says when={augmenter.when!r}, at which no graph augmenter is called; "
                "use offline or epoch, or derive it from StepAugmenter"
            )
        if backbone is not None and augmenter.weighted and not backbone.reads_edge_weight:
            return (
                f"{augmenter.__name__} makes edge weights, which {backbone.__name__} does not read; "
                "use gcn, gin or sage"
            )
        return None

    def fit(self, problem: Problem) -> Fitted:
        fitted = self.engine.fit([problem])[0]
        if isinstance(fitted, Exception):
            raise fitted
        return fitted
