"""What the engine does in each epoch: layers, the network, the loop."""
