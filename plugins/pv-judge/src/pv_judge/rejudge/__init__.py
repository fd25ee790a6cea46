"""`pv-rl rejudge`: a ledger, replayed against another judge, prompt or threshold."""
