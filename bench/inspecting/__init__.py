"""`bench inspect`: what generated graphs look like beside the originals."""
