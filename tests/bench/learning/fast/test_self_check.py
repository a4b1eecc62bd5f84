"""Faults planted in the compiled sums: the check finds each, so that torch does the sums instead."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from bench.learning.fast.ops import building
from bench.learning.fast.ops.compiled import compiled_or_reason, compiled_status

pytestmark = [
    pytest.mark.usefixtures("one_thread", "cache"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
    pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"), reason="no AVX2"),
]

FAULTS = {
    "another rounding": ("__builtin_ia32_vfmaddps256(a, b, sum)", "a * b + sum"),
    "tails left out": ("__builtin_fmaf(s.values[e], s.table[s.index[e] * s.table_stride + j], sum)", "sum"),
    "no bias": ("sum[n] + load(relu->bias + j + n * LANES)", "sum[n]"),
    "no bias in the tail": ("sum + relu->bias[j]", "sum"),
    "a bias twice": ("relu->bias_row ? sum[n] : sum[n]", "0 ? sum[n] : sum[n]"),
    "a bias twice in the tail": ("relu->bias_row ? sum : sum", "0 ? sum : sum"),
    "no ReLU": ("return (Vector)((Bits)v & ~(Bits)(v < 0));", "return v;"),
    "a ReLU that loses what is no number": ("~(Bits)(v < 0)", "(Bits)(v > 0)"),
    "no ReLU in the tail": ("sum = sum < 0 ? 0 : sum;", ";"),
    "no bias row": ("memcpy(f.bias_row, f.bias, f.sums.width * sizeof(float));", ";"),
    "half a bias row": ("memcpy(f.bias_row, f.bias, f.sums.width", "memcpy(f.bias_row, f.bias, f.sums.width / 2"),
    "no shared sums": ("    if (f.sums.first)\n        row_sums(f.sums.first);", ""),
    "no shared sums on the way back": ("    if (s->first)\n        row_sums(s->first);", ""),
    "what comes back is not seen": ("(Bits)sum[n];\n", "(Bits)sum[n] & 0;\n"),
    "what comes back in the tail is not seen": ("relu->seen[j] |= sum != 0;", ";"),
    "what comes back in rows is not seen": ("seen[j] |= value != 0;", ";"),
    "all comes back": ("if (f->seen[j] & INT32_MAX)", "if (1)"),
    "what was seen stays": ("memset(f.seen, 0, f.sums.width * sizeof(int32_t));\n    if", "if"),
    "rows without ReLU": ("row[j] < 0 ? 0 : row[j]", "row[j]"),
    "rows at another distance": (
        "restrict out = f.sums.out + i * f.sums.out_stride",
        "out = f.sums.out + i * f.sums.width",
    ),
    "sums at another distance": ("s.out + i * s.out_stride", "s.out + i * s.width"),
    "a table at another distance": ("s->index[e] * s->table_stride + j", "s->index[e] * s->width + j"),
    "a gradient through what is 0": ("output[j] <= 0 ? 0", "output[j] < 0 ? 0"),
    "a gradient at another distance": ("gradient += b->gradient_stride;", "gradient += width;"),
    "an output at another distance": ("output += b->output_stride;", "output += width;"),
    "no gradient of the bias": ("    if (b->last)\n", "    if (0)\n"),
    "another row's gradient for the bias": ("(b->sums.rows - 1) *", "(b->sums.rows - 2) *"),
    **{f"{n} vectors as one": (f"j, out, {n}, relu); break", "j, out, 1, relu); break") for n in range(2, 8)},
    "eight vectors as seven": ("part(&s, start, end, j, out, 8, relu)", "part(&s, start, end, j, out, 7, relu)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_sums_that_are_not_torchs_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str) -> None:
    text, (good, other) = building.SOURCE.read_text(), FAULTS[fault]
    assert text.count(good) == 1
    monkeypatch.setattr(building, "SOURCE", tmp_path / "rows.c")
    monkeypatch.setattr(building, "FLAGS", ["-O1", *building.FLAGS[1:], "-ffp-contract=off"])
    building.SOURCE.write_text(text.replace(good, other))
    found = compiled_or_reason()
    assert isinstance(found, str) and found.startswith("sums built by cc differ from torch's: ")
    compiled_or_reason.cache_clear()
    assert compiled_or_reason() == found and compiled_status() == f"compiled sums: not in use: {found}"
