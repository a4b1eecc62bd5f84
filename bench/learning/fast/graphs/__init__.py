"""What the engine prepares once: a training set as matrices."""
