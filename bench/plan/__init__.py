"""From words to cells: grids, what a cell is, and what identifies it."""
