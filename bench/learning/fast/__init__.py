"""The fast engine: forward and backward by hand over preallocated buffers, one trial at a time on one core."""
