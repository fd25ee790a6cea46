"""Sets that a verifier is evaluated on: a source and rules; each says what it left out and why."""
