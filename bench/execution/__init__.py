"""Running trials: in this process, in worker processes, or on a cluster. The results are the same."""
