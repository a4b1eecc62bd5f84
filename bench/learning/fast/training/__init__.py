"""What the engine does each epoch: layers, the network, the loop."""
