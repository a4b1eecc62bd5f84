"""Compiled sums of rows: bit for bit what torch gives, and torch alone where they cannot be had."""

from __future__ import annotations

import gc
import shutil
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from bench.learning.fast import engine as fast
from bench.learning.fast.graphs import joined
from bench.learning.fast.ops import factored
from bench.learning.fast.ops.compiled import Compiled, compiled_or_reason
from bench.learning.fast.ops.fused import ReluBackward, ReluForward, RowsForward, SumsForward
from bench.learning.fast.ops.product import Bag, Direction, Half
from bench.learning.fast.training import layers, units

Make = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("one_thread")
LACKING = (
    "no C compiler"
    if shutil.which("cc") is None
    else "no AVX2"
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512")
    else ""
)
needs_compiled = pytest.mark.skipif(bool(LACKING), reason=LACKING)


@pytest.fixture
def found() -> Compiled:
    made = compiled_or_reason()
    assert isinstance(made, Compiled), made
    return made


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "LOOK_EVERY", 7)


@needs_compiled
@pytest.mark.usefixtures("found", "looks_often")
@pytest.mark.parametrize("labels", [0, 40])
@pytest.mark.parametrize("readout", ["mean", "max"])
@pytest.mark.parametrize("backbone", ["gcn", "gcn:width=30", "gcn:width=256", "gin", "sage"])
@pytest.mark.parametrize("method", ["none", "dropedge", "dropnode", "softedge", "m-mixup", "gdm-complete"])
def test_a_trial_has_the_same_bits_without(
    problem: Make,
    some_graphs: Make,
    weights: Make,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    backbone: str,
    readout: str,
    labels: int,
) -> None:
    for module in (joined, factored):
        monkeypatch.setattr(module, "SUMS_COST", -(10**9))  # shared sums also where they do not pay

    def trained() -> torch.Tensor:
        task = problem(method, some_graphs(3, one_hot=labels), backbone=backbone, readout=readout, epochs=60)
        return weights(fast.fit_fast(task))

    with_compiled = trained()
    monkeypatch.setattr(layers, "compiled", lambda: None)
    assert torch.equal(with_compiled, trained())


@needs_compiled
@pytest.mark.usefixtures("found")
@pytest.mark.parametrize(("backbone", "share"), [("gcn", 1.0), ("gin", 0.75), ("gcn:dropout=0.5", 0.0)])
def test_trials_use_them_in_every_epoch_but_the_looks(
    problem: Make, monkeypatch: pytest.MonkeyPatch, backbone: str, share: float
) -> None:
    finished: list[bool] = []
    done = ReluForward.done

    def counted(self: ReluForward, used: int) -> bool:
        finished.append(done(self, used))
        return finished[-1]

    monkeypatch.setattr(ReluForward, "done", counted)
    fast.fit_fast(problem("dropedge", backbone=backbone, epochs=9))
    assert all(finished) and len(finished) == 4 * 9 * share  # GIN's first layer has a ReLU in place


@pytest.mark.parametrize("method", ["none", "dropedge", "dropedge:features=recompute"])
def test_a_network_goes_with_its_trial(problem: Make, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    made: list[weakref.ref[layers.Layer]] = []
    begin = layers.Layer.__init__

    def noted(self: layers.Layer, *given: Any) -> None:
        made.append(weakref.ref(self))
        begin(self, *given)

    monkeypatch.setattr(layers.Layer, "__init__", noted)
    gc.disable()  # a cycle would wait for it, with all its buffers
    try:
        fast.fit_fast(problem(method, epochs=3))
        assert made and not any(layer() for layer in made)
    finally:
        gc.enable()


def a_half(rows: int, columns: int, width: int, sums: int = 0) -> Half:
    """A random direction over a random table, with shared sums if asked for."""
    draw = np.random.default_rng(rows + width)
    main = sp.random_array((rows, columns + sums), density=0.2, format="csr", rng=draw)
    gather = Bag(sp.random_array((sums, columns), density=0.5, format="csr", rng=draw)) if sums else None
    source = torch.from_numpy(draw.normal(size=(columns + sums, width))).float()
    return Half(Direction(Bag(sp.csr_array(main)), gather, columns, sums), source)


@needs_compiled
@pytest.mark.parametrize("sums", [0, 3])
@pytest.mark.parametrize("width", [1, 8, 13, 24, 40, 56, 64, 72, 130])
def test_relu_of_a_product_is_torchs(found: Compiled, width: int, sums: int) -> None:
    half, bias = a_half(37, 20, width, sums), torch.randn(width)
    relu = SumsForward(found, half, 37, bias, half.rows[-1])
    assert relu.done(width)
    half.rows[-1] = bias
    assert torch.equal(relu.front, half().relu())
    apart = SumsForward(found, half, 37, bias, None)
    assert apart.done(width)
    assert torch.equal(apart.front, (half() + bias).relu())


@needs_compiled
@pytest.mark.parametrize("sums", [0, 3])
@pytest.mark.parametrize("width", [1, 8, 13, 40, 64, 130])
def test_the_way_back_is_torchs(found: Compiled, width: int, sums: int) -> None:
    half = a_half(21, 30, width, sums)
    gradient, output = torch.randn(30, width + 3)[:, :width], torch.randn(30, width + 5).relu()[:, :width]
    out, bias_gradient = torch.empty(21, width), torch.empty(width)
    ReluBackward(found, half, out, bias_gradient)(gradient, output)
    assert torch.equal(half.rows, gradient * (output > 0))
    assert torch.equal(out, half()) and torch.equal(bias_gradient, out[-1])


@needs_compiled
@pytest.mark.parametrize("keep", [16, 40])
def test_only_the_columns_in_use_are_kept(found: Compiled, keep: int) -> None:
    before_relu = torch.randn(11, 64)
    before_relu[:, keep - 2 :] = -1.0
    before_relu[3, 50] = -0.0
    relu = RowsForward(found, before_relu)
    relu.narrow(keep)
    assert relu.done(used=keep - 2)
    assert torch.equal(relu.front, before_relu[:, :keep].relu())


@needs_compiled
@pytest.mark.parametrize("value", [1e-30, float("nan"), float("inf")])
@pytest.mark.parametrize("column", [38, 41, 63])
def test_a_unit_that_comes_back_is_seen(found: Compiled, column: int, value: float) -> None:
    before_relu = torch.randn(11, 64)
    before_relu[:, 38:] = -1.0
    relu = RowsForward(found, before_relu)
    relu.narrow(40)
    assert relu.done(used=38)
    before_relu[10, column] = value
    assert not relu.done(used=38)

    half = Half(Direction(Bag(sp.csr_array(sp.eye_array(11, format="csr"))), None, 11, 0), before_relu)
    summed = SumsForward(
        found, half, 11, bias := torch.randn(64).index_fill_(0, torch.arange(38, 64), -1.0), before_relu[0]
    )
    summed.narrow(40)
    assert not summed.done(used=38)
    before_relu[10, column] = -1.0
    assert summed.done(used=38)
    assert torch.equal(bias, before_relu[0]) and torch.equal(summed.front, before_relu[:, :40].relu())


@needs_compiled
def test_numbers_that_are_not_finite_pass_as_in_torch(found: Compiled) -> None:
    before_relu = torch.tensor([[float("nan"), float("inf"), -float("inf"), -0.0, 1e-42, -1e-42, 0.0, 1.0]])
    relu = RowsForward(found, before_relu)
    assert relu.done(8)
    torch.testing.assert_close(relu.front, before_relu.relu(), rtol=0, atol=0, equal_nan=True)
