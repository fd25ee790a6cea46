"""Leaderboard: verifiers by sets, as static files that are made from votes alone."""
