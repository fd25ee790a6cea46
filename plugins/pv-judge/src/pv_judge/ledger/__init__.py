"""The ledger of every judged trace: a folder of Parquet files, and of journals that are on their way there."""

from pv_judge.ledger.reading import read_ledger
from pv_judge.ledger.row import DecidedBy, Decision, LedgerRow, RuleHit
from pv_judge.ledger.writer import Ledger, LedgerUnavailable

__all__ = ["DecidedBy", "Decision", "Ledger", "LedgerRow", "LedgerUnavailable", "RuleHit", "read_ledger"]
