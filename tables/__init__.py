"""The paper's tables and figure as specifications; from the ledger's records to LaTeX, figures and a report."""
