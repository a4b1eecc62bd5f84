"""`bench inspect`: compares generated graphs with the originals."""
