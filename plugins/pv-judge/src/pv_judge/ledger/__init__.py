"""Ledger of every judged trace: a folder of Parquet files, and of journals that become Parquet files."""

from pv_judge.ledger.ledger import Ledger, LedgerUnavailable, read_ledger
from pv_judge.ledger.row import DecidedBy, Decision, LedgerRow, RuleHit

__all__ = ["DecidedBy", "Decision", "Ledger", "LedgerRow", "LedgerUnavailable", "RuleHit", "read_ledger"]
