"""MLflow: cells, studies and inspections mirrored for comparison in a browser."""
