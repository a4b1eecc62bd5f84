"""Trials for the engines' tests (small random graphs and a problem around them), and tools for whole runs."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

from augmenters import AUGMENTERS
from augmenters.base import Augmenter
from bench.cli import app as cli
from bench.learning.fast.engine import fit_fast
from bench.learning.problem import Fitted, Problem
from bench.learning.reference import ReferenceEngine
from bench.protocol.training import Training, training_settings
from models import BACKBONES, READOUTS


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def double() -> Iterator[None]:
    """In double precision, two ways to compute the same thing agree to many digits or are not the same thing."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def some_graphs() -> Callable[..., list[Data]]:
    return make_graphs


@pytest.fixture
def problem() -> Callable[..., Problem]:
    return make_problem


@pytest.fixture
def weights() -> Callable[[Fitted | Exception], torch.Tensor]:
    """All weights of a trained model in one row; the error of a training that failed."""
    return trained_weights


@pytest.fixture
def same_training() -> Callable[..., None]:
    """Train with both engines, the fast one without a fallback, and compare everything."""
    return assert_same_training


def make_graphs(
    seed: int, density: float = 0.3, weighted: bool = False, one_hot: int = 0, count: int = 6
) -> list[Data]:
    """Random graphs of two classes, some with twins, isolated nodes or no edge at all."""
    graphs = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for i in range(6):
            n = 4 + 3 * i
            edge_index = erdos_renyi_graph(n, 0.0 if i == 1 else density)
            labels = torch.randint(0, one_hot or 3, (n,))
            x = torch.nn.functional.one_hot(labels, one_hot or 3).to(torch.get_default_dtype())
            graph = Data(x=x, edge_index=edge_index, y=torch.tensor([i % 2]), num_nodes=n)
            if weighted:
                table = torch.rand(n, n)
                table = table + table.t()
                graph.edge_weight = table[edge_index[0], edge_index[1]]
            graphs.append(graph)
    return graphs


def make_problem(
    augmenter: str | Augmenter = "none", graphs: Sequence[Data] = (), seed: int = 0, **changes: Any
) -> Problem:
    """One trial of 20 epochs; `changes` are further fields of Problem, or settings of the training."""
    chosen = AUGMENTERS.create(augmenter) if isinstance(augmenter, str) else augmenter
    backbone, readout = changes.pop("backbone", "gcn"), changes.pop("readout", "mean")
    settings = {name: changes.pop(name) for name in training_settings() if name in changes}
    training = Training(**{"epochs": 20, **settings})
    return Problem(
        graphs=list(graphs) or make_graphs(seed),
        num_classes=2,
        backbone=BACKBONES.resolve(backbone),
        readout=READOUTS.resolve(readout),
        augmenter=chosen,
        training=changes.pop("training", training),
        init_seed=seed + 1,
        augment_seed=seed + 2,
        pretrain_seed=seed + 3,
        shared_seed=lambda key: seed + 4 + sum(key.encode()),
        featurize=lambda graph: graph,
        **changes,
    )


def fitted(result: Fitted | Exception) -> Fitted:
    if isinstance(result, Exception):
        raise result
    return result


def trained_weights(result: Fitted | Exception) -> torch.Tensor:
    return torch.cat([parameter.detach().view(-1) for parameter in fitted(result).predictor.model.parameters()])


def assert_same_training(task: Problem, tolerance: float = 1e-7) -> None:
    """Both engines, and the fast one without a fallback."""
    slow, quick = ReferenceEngine().fit([task])[0], fit_fast(task)
    torch.testing.assert_close(trained_weights(quick), trained_weights(slow), rtol=tolerance, atol=tolerance)
    assert quick.loss == pytest.approx(fitted(slow).loss, rel=1e-4)
    assert quick.generated == fitted(slow).generated
    assert [epoch for epoch, _ in quick.curve] == [epoch for epoch, _ in fitted(slow).curve]
    assert [loss for _, loss in quick.curve] == pytest.approx([loss for _, loss in fitted(slow).curve], rel=1e-4)


def _load_tools(file: str = "run_tools") -> ModuleType:
    name = f"augbench_{file}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{file}.py"))
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture
def bench(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Run one command in this process; exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bench", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capfd.readouterr()
        return int(end.value.code or 0), out, err

    return call


@pytest.fixture(scope="session")
def tools() -> ModuleType:
    """Small runs and what they leave; loaded by path because test folders are no packages."""
    return _load_tools()


@pytest.fixture(scope="session")
def tuning() -> ModuleType:
    """Small searches, and workers that only pretend to train."""
    return _load_tools("tuning_tools")


@pytest.fixture(scope="session")
def servers() -> ModuleType:
    """Real PostgreSQL and MLflow servers."""
    return _load_tools("server_tools")


@pytest.fixture(scope="module")
def postgresql(servers: ModuleType) -> Iterator[Any]:
    """A PostgreSQL server of our own; it is gone afterwards."""
    server = servers.PostgreSQL()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def mlflow_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty MLflow store to copy: making its tables takes seconds."""
    from bench.results.workspace import Workspace
    from bench.tracking.store import open_store

    workspace = Workspace(tmp_path_factory.mktemp("store"))
    open_store(workspace.tracking_uri)
    return workspace.root / "mlflow.db"


@pytest.fixture
def workspace(tmp_path: Path, mlflow_store: Path, tools: ModuleType) -> Callable[[str], Path]:
    """New workspaces by name, with an MLflow store in each."""
    return lambda name="runs": tools.prepare(tmp_path / name, mlflow_store)


@pytest.fixture
def misbehaving(tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with augmenters that fail, for this process and for workers."""
    package = tmp_path / f"misbehaving_{abs(hash(str(tmp_path)))}"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "methods.py").write_text(tools.MISBEHAVING, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    paths = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(tools.ROOT), paths]))
    return f"{package.name}.methods"
