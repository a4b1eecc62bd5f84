"""Results: records, the ledger, archives, and frames of them."""
