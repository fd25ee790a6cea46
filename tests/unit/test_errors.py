"""Every error has our root, a standard co-base, and survives a trip between processes."""

from __future__ import annotations

import pickle

import pytest

from pv_rl import errors

OURS = [getattr(errors, name) for name in errors.__all__ if name != "PvRlError"]


@pytest.mark.parametrize("kind", OURS)
def test_errors_have_two_bases_and_pickle(kind):
    assert issubclass(kind, errors.PvRlError)
    assert issubclass(kind, ValueError | RuntimeError)
    copy = pickle.loads(pickle.dumps(kind("given x; allowed y; do z")))
    assert type(copy) is kind
    assert str(copy) == "given x; allowed y; do z"
