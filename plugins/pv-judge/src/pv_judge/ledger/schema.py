"""The ledger's columns in Parquet, taken from the fields of `LedgerRow`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from pv_judge.ledger.row import LedgerRow
from pv_rl import __version__
from pv_rl.errors import SetupError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ADDED", "METADATA_KEY", "VERSION", "need_pyarrow", "schema"]

VERSION = 2
"""Of the columns. A reader refuses a newer one; a new column makes a new version."""
ADDED = frozenset({"failure_text"})
"""Columns that files of an older version lack; they are null there."""
METADATA_KEY = b"pv_rl.ledger"


def schema() -> pa.Schema:
    """`row_id` and the fields of `LedgerRow`; the version stands in the metadata under `pv_rl.ledger`."""
    import pyarrow as pa

    hit = pa.struct([("rule", pa.string()), ("start", pa.int64()), ("end", pa.int64())])
    types = {
        "str": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "datetime": pa.timestamp("us", "UTC"),
        "Sequence[Hit]": pa.list_(hit),
        "Decision": pa.string(),
        "DecidedBy": pa.string(),
    }
    fields = [pa.field("row_id", pa.string(), nullable=False)]
    for one in dataclasses.fields(LedgerRow):
        base, _, optional = str(one.type).partition(" | ")
        fields.append(pa.field(one.name, types[base], nullable=bool(optional)))
    return pa.schema(fields, metadata={METADATA_KEY: str(VERSION), "pv_rl.version": __version__})


def need_pyarrow() -> None:
    """Say so where pyarrow is missing.

    Raises:
        SetupError: it is.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise SetupError(
            f"a ledger is kept in Parquet, for which pyarrow cannot be imported ({error}): "
            "pip install 'pyarrow>=15', or leave the option ledger out"
        ) from error
