"""Sealed rows of Hard2Verify: fields are XORed with the SHA-256 of the row's `canary` and written in base64.

This keeps the texts out of training data that is collected from the web; the key is in each row.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from itertools import cycle
from typing import Any

from pv_judge.files import load_json

__all__ = ["CANARY", "FIELDS", "unsealed"]

CANARY = "canary"
FIELDS = ("question", "model_response_by_step", "human_labels", "human_labels_first_error_idx")


def unsealed(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row in plain text; the same row where it has no canary, and a field that is not sealed as it is."""
    canary = row.get(CANARY)
    if not isinstance(canary, str):
        return row
    key = hashlib.sha256(canary.encode("utf-8", "replace")).digest()
    return {name: _opened(value, key) if name in FIELDS else value for name, value in row.items()}


def _opened(value: Any, key: bytes) -> Any:
    if not isinstance(value, str) or not value:
        return value
    try:
        data = base64.b64decode(value, validate=True)
        text = bytes(one ^ two for one, two in zip(data, cycle(key), strict=False)).decode("utf-8")
    except (binascii.Error, ValueError):  # UnicodeDecodeError is a ValueError
        return value
    try:
        return load_json(text)
    except ValueError:
        return text
