"""Language models: contract, client, services, command-line clients, budget and ledger."""
