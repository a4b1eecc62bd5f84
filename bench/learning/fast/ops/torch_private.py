"""Operators of torch that are not part of its documented interface, all in one place.

The engine uses them because the documented way costs several calls where they are one. They may change with any
release, so `pyproject.toml` promises no torch older than the one they were tested with, and
`tests/bench/learning/fast/test_torch_private.py` holds each to what is used of it.
"""

from __future__ import annotations

import torch

# Modes of `embedding_bag`.
ADD, LARGEST = 0, 2

# embedding_bag(table, index, offsets, scale_by_frequency, mode, sparse, values, include_last_offset):
# the rows that each bag picks, weighed and added up (or the largest of them); also, for the largest, whose they are.
# The documented function of `torch.nn.functional` does the same behind checks that take longer than small sums.
embedding_bag = torch.embedding_bag

# entry_gradients(gradient, table, index, offsets, bag_of_entry, mode): the gradient of an embedding bag's values.
entry_gradients = torch.ops.aten._embedding_bag_per_sample_weights_backward

# relu_backward(gradient, output, threshold, grad_input=place): the gradient where the output is above the threshold.
relu_backward = torch.ops.aten.threshold_backward.grad_input

# log_softmax_backward(gradient, output, dim, dtype): the gradient before a log softmax that gave `output`.
log_softmax_backward = torch._log_softmax_backward_data

# fused_adam(weights, gradients, means, squares, [], steps, ...): one step of Adam in place, over lists of tensors.
fused_adam = torch._fused_adam_
