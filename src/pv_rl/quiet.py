"""Silence for the log messages and warnings that verl and Ray print while they are imported."""

from __future__ import annotations

import logging
import warnings

__all__ = ["quiet"]


def quiet() -> None:
    """Drop warnings and log messages up to WARNING in this process, for commands that print findings."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
