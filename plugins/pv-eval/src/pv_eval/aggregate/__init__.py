"""Aggregation of several votes on a proof, of one verifier or of several, into one verdict; and what it costs."""
