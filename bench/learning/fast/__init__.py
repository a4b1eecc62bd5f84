"""The fast engine: handwritten forward and backward passes over preallocated buffers, one trial at a time."""
