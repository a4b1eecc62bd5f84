"""Tuning: one Optuna study a method, the same number of trials for each, and no test index in reach."""
