"""The registries of metrics and splitters. The code that computes them is not imported, since planning needs only
names.
"""

from __future__ import annotations

from bench.registry import Registry

METRICS = Registry("metric", "augbench.metrics", "bench.protocol.metrics:Metric")
METRICS.add("accuracy", "bench.protocol.metrics:Accuracy", "share of the graphs that are classified rightly")
METRICS.add("balanced_accuracy", "bench.protocol.metrics:BalancedAccuracy", "mean recall over the classes")
METRICS.add("macro_f1", "bench.protocol.metrics:MacroF1", "mean F1 over the classes")
METRICS.add("roc_auc", "bench.protocol.metrics:RocAuc", "area under the ROC curve, mean over classes if there are more")
METRICS.add("average_precision", "bench.protocol.metrics:AveragePrecision", "area under the precision-recall curve")

SPLITTERS = Registry("splitter", "augbench.splitters", "bench.protocol.splitters:Splitter")
SPLITTERS.add("given", "bench.protocol.splitters:Given", "the folds that the dataset itself gives")
SPLITTERS.add("holdout", "bench.protocol.splitters:Holdout", "one stratified train, validation and test part")

USUAL_METRIC = "accuracy"
