"""What was measured: records, the ledger, archives, and frames of them."""
