"""Plans: grids, the cells they consist of, and the identity of a cell."""
