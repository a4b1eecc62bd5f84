"""The engine's operations: sparse products, pooling, dense maps, compiled sums."""
