"""Language models: the contract, adapters, the budget and the ledger."""
