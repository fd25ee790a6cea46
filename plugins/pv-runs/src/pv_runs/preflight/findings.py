"""Findings of a check, in the form of `pv-rl doctor`."""

from __future__ import annotations

from pv_rl.hookspecs import Finding

__all__ = ["note", "right", "wrong"]


def right(text: str) -> Finding:
    """Something that was checked and is as it should be."""
    return Finding(state="ok", text=text)


def note(text: str, remedy: str = "") -> Finding:
    """Something that the user should know, or that could not be checked."""
    return Finding(state="note", text=text, remedy=remedy)


def wrong(text: str, remedy: str) -> Finding:
    """Something that would make the run fail, or train on what nobody wants."""
    return Finding(state="wrong", text=text, remedy=remedy)
