"""Undocumented operators of torch, all in one place.

The engine uses them because the documented interface needs several calls for the same work. They may change in any
release. `pyproject.toml` therefore requires at least the version of torch that they were tested with, and
`tests/bench/learning/fast/test_torch_private.py` tests every use of them.
"""

from __future__ import annotations

import torch

# Modes of `embedding_bag`.
ADD, LARGEST = 0, 2

# embedding_bag(table, index, offsets, scale_by_frequency, mode, sparse, values, include_last_offset):
# the rows that each bag selects, weighted and summed (or their maximum, with the row it comes from).
# The function of `torch.nn.functional` does the same after checks that take longer than small sums.
embedding_bag = torch.embedding_bag

# entry_gradients(gradient, table, index, offsets, bag_of_entry, mode): the gradient of an embedding bag's values.
entry_gradients = torch.ops.aten._embedding_bag_per_sample_weights_backward

# relu_backward(gradient, output, threshold, grad_input=place): the gradient where the output is above the threshold.
relu_backward = torch.ops.aten.threshold_backward.grad_input

# log_softmax_backward(gradient, output, dim, dtype): the gradient before a log softmax that gave `output`.
log_softmax_backward = torch._log_softmax_backward_data

# fused_adam(weights, gradients, means, squares, [], steps, ...): one step of Adam in place, over lists of tensors.
fused_adam = torch._fused_adam_
