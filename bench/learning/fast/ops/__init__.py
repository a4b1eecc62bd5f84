"""What the engine computes with: sparse products, pooling, dense maps, compiled sums."""
