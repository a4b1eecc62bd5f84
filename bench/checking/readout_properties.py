"""Properties of readouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from bench.checking.cases import Case, graph_cases
from bench.checking.comparing import brief
from bench.checking.contract import BrokenError, DoesNotApplyError, Finding, one_line, verdict
from bench.checking.subject import watched_globals
from bench.learning.steps import bare_graphs
from bench.registry import Choice, UserError
from models import READOUTS
from models.readouts import Pooled, Readout

WIDTH, OTHER_WIDTHS = 6, (1, 17)
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}  # single precision, different order of summation


@dataclass(frozen=True)
class ReadoutSubject:
    """One readout with its settings; its weights are the same each time it is created."""

    choice: Choice

    def make(self, width: int = WIDTH) -> Readout:
        """A new instance in evaluation mode."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            try:
                readout: Readout = READOUTS.create(self.choice, in_channels=width)
            except TypeError as error:
                raise UserError(
                    f"{self.choice.name} cannot be made: {error}; its constructor must take in_channels "
                    "and settings with defaults"
                ) from error
        return readout.eval()

    def pooled(self, graphs: Sequence[Data], width: int = WIDTH, training: bool = False) -> tuple[Pooled, Tensor]:
        """Its output for graphs whose features stand for node embeddings, and these embeddings."""
        batch = Batch.from_data_list(bare_graphs(graphs))
        x, readout = batch.x.requires_grad_(), self.make(width).train(training)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            made = readout(x, batch.edge_index, batch.get("edge_weight"), batch.batch, batch.num_graphs)
        pooled = made if isinstance(made, Pooled) else Pooled(made)
        if not isinstance(pooled.rows, Tensor):
            raise TypeError(f"it must return a tensor or Pooled(rows, loss), not {type(made).__name__}")
        return pooled, x

    def seen(self) -> Iterator[tuple[Case, list[Data], Pooled]]:
        """Every case that it runs on, with its output."""
        some = False
        for case in graph_cases():
            graphs = embedded(case)
            try:
                pooled = self.pooled(graphs)[0]
            except Exception:  # reported in a row of its own
                continue
            some = True
            yield case, graphs, pooled
        if not some:
            raise DoesNotApplyError("it ran on no case")


def embedded(case: Case, width: int = WIDTH) -> list[Data]:
    """The graphs of a case with random embeddings instead of features."""
    stream = torch.Generator().manual_seed(len(case.graphs))
    graphs = [graph.clone() for graph in case.graphs]
    for graph in graphs:
        graph.x = torch.randn(int(graph.num_nodes or 0), width, generator=stream)
    return graphs


def reordered(graph: Data) -> Data:
    """The same graph with its nodes reordered."""
    nodes = int(graph.num_nodes or 0)
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(nodes))
    new = graph.clone()
    new.x, new.edge_index = graph.x[order], order.argsort()[graph.edge_index]
    return new


def bears(case: Case, subject: ReadoutSubject) -> str | None:
    subject.pooled(embedded(case))
    return None


def declares_its_width(subject: ReadoutSubject) -> str | None:
    for case, graphs, pooled in subject.seen():
        width = subject.make().out_channels
        if pooled.rows.shape != (len(graphs), width):
            raise BrokenError(
                f"{case.name}: rows have shape {list(pooled.rows.shape)}, not [{len(graphs)}, out_channels={width}]"
            )
    return f"{subject.make().out_channels} for embeddings of {WIDTH}"


def takes_other_widths(subject: ReadoutSubject) -> str | None:
    for width in OTHER_WIDTHS:
        try:
            rows = subject.pooled(embedded(graph_cases()[0], width), width)[0].rows
        except Exception as error:
            raise BrokenError(f"in_channels={width}: {one_line(error)}") from error
        if rows.shape[1:] != (subject.make(width).out_channels,):
            raise BrokenError(f"in_channels={width}: rows have shape {list(rows.shape)}")
    return None


def ignores_the_order_of_nodes(subject: ReadoutSubject) -> str | None:
    for case, graphs, pooled in subject.seen():
        require_close(pooled.rows, subject.pooled([reordered(graph) for graph in graphs])[0].rows, case)
    return None


def keeps_graphs_apart(subject: ReadoutSubject) -> str | None:
    for case, graphs, pooled in subject.seen():
        weighted = bare_graphs(graphs)  # unweighted graphs get weights of 1, as in a mixed batch
        alone = torch.cat([subject.pooled([graph])[0].rows for graph in weighted])
        require_close(pooled.rows, alone, case)
    return None


def require_close(rows: Tensor, others: Tensor, case: Case) -> None:
    if rows.shape != others.shape:
        raise BrokenError(f"{case.name}: rows of shape {list(rows.shape)} became {list(others.shape)}")
    unlike = ~torch.isclose(rows, others, equal_nan=True, **TOLERANCE).all(dim=1)
    if unlike.any():
        place = int(torch.nonzero(unlike)[0])
        raise BrokenError(f"{case.name}, graph {place}: {brief(rows[place])} became {brief(others[place])}")


def gives_numbers(subject: ReadoutSubject) -> str | None:
    for case, _, pooled in subject.seen():
        if not pooled.rows.isfinite().all():
            raise BrokenError(f"{case.name}: a row holds {float(pooled.rows[~pooled.rows.isfinite()][0])}")
    return None


def lets_the_gradient_through(subject: ReadoutSubject) -> str | None:
    pooled, x = subject.pooled(embedded(graph_cases()[0]))
    if not pooled.rows.requires_grad:
        raise BrokenError("its rows have no gradient, so the backbone would not learn")
    (gradient,) = torch.autograd.grad(pooled.rows.square().sum(), x, allow_unused=True)
    if gradient is None or not gradient.isfinite().all() or not gradient.any():
        raise BrokenError("the gradient does not reach the node embeddings, or is not finite")
    return None


def has_a_proper_loss(subject: ReadoutSubject) -> str | None:
    some = False
    for case in graph_cases():
        try:
            loss = subject.pooled(embedded(case), training=True)[0].loss
        except Exception:
            continue
        if loss is not None:
            some = True
            if not isinstance(loss, Tensor) or loss.numel() != 1 or not bool(loss.isfinite().all()):
                raise BrokenError(f"{case.name}: the auxiliary loss is {brief(loss)}, not one finite number")
    if not some:
        raise DoesNotApplyError("it returns no auxiliary loss")
    return None


def repeats_itself(subject: ReadoutSubject) -> str | None:
    """In evaluation mode, without using any global generator."""
    for case, graphs, pooled in subject.seen():
        require_close(pooled.rows, subject.pooled(graphs)[0].rows, case)
        readout, batch = subject.make(), Batch.from_data_list(bare_graphs(graphs))
        with watched_globals() as leaks:
            readout(batch.x, batch.edge_index, batch.get("edge_weight"), batch.batch, batch.num_graphs)
        if leaks:
            raise BrokenError(f"{case.name}: {', '.join(leaks)} moved in evaluation mode")
    return None


def leaves_its_input(subject: ReadoutSubject) -> str | None:
    for case, graphs, _ in subject.seen():
        batch = Batch.from_data_list(bare_graphs(graphs))
        before = [part.clone() for part in (batch.x, batch.edge_index, batch.batch)]
        subject.make()(batch.x, batch.edge_index, batch.get("edge_weight"), batch.batch, batch.num_graphs)
        for old, new in zip(before, (batch.x, batch.edge_index, batch.batch), strict=True):
            if not torch.equal(old, new):
                raise BrokenError(f"{case.name}: {brief(old)} became {brief(new)}")
    return None


PROMISES: dict[str, Callable[[ReadoutSubject], str | None]] = {
    "rows are as wide as out_channels": declares_its_width,
    "works at any width": takes_other_widths,
    "the order of nodes does not matter": ignores_the_order_of_nodes,
    "graphs of a batch stay apart": keeps_graphs_apart,
    "rows are finite": gives_numbers,
    "the gradient reaches the nodes": lets_the_gradient_through,
    "auxiliary loss is one finite number": has_a_proper_loss,
    "same input, same rows": repeats_itself,
    "the input is untouched": leaves_its_input,
}


def readout_findings(choice: Choice) -> list[Finding]:
    """Check one readout against the contract of readouts."""
    subject = ReadoutSubject(choice)
    subject.make()
    borne = [verdict(f"works on: {case.name}", partial(bears, case, subject)) for case in graph_cases()]
    return [*borne, *(verdict(title, partial(judge, subject)) for title, judge in PROMISES.items())]
