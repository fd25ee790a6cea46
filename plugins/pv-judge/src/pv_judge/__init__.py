"""An LLM that is asked about text: client, limits, budget, cache and ledger. Knows neither torch nor verl."""
