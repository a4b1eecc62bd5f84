"""From a problem to a predictor: a readable reference engine and a fast one behind the same interface."""
