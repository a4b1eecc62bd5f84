"""Tuning: one Optuna study per method and fold, the same number of trials for each, and no access to test indices."""
