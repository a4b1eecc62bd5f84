"""What a trial means: splits, label budgets, seeds, features and training."""
