"""Language models: the contract, adapters, the budget, the ledger and remembered answers."""
