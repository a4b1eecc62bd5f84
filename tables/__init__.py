"""The paper's tables and figure as specifications; from the ledger's records to LaTeX, figures and a report."""

__distribution__ = "augbench"  # PyTables has the same import name: the command line looks for this line
