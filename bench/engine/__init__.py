"""Training engines: a readable reference and a fast one behind the same interface."""

DEFAULT_ENGINE = "fast"
