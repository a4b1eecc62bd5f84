"""The commands of the harness, one module for each group; heavy imports stay inside the functions."""
