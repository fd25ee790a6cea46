"""A change of the config, and what it makes of a setup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from pv_runs.plan.setup import Setup

__all__ = ["Change", "Changer", "change_rollout", "change_training"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """A setup with something changed."""

    setup: Setup
    overrides: dict[str, str]
    """Key and value, as on the command line."""


Changer: TypeAlias = Callable[[Setup], "Change | None"]
"""None: there is nothing to change."""


def change_training(setup: Setup, overrides: dict[str, str], **values: object) -> Change:
    """With other values of `Setup.training`."""
    return Change(setup=replace(setup, training=replace(setup.training, **values)), overrides=overrides)


def change_rollout(setup: Setup, overrides: dict[str, str], **values: object) -> Change:
    """With other values of `Setup.rollout`."""
    return Change(setup=replace(setup, rollout=replace(setup.rollout, **values)), overrides=overrides)
