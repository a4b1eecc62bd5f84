"""Ways to run trials: in this process, in several, or on a Dask cluster. The numbers are the same."""
