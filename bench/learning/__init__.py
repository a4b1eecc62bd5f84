"""Training engines: a readable reference and a fast one behind the same interface."""

DEFAULT_ENGINE = "fast"

# Part of every cell's key. Raise an engine's number when it gives other last digits for any trial than before:
# training is chaotic, so other digits are other accuracies, and the two must not stand in one cell.
ENGINE_VERSIONS = {"fast": 1, "reference": 1}
