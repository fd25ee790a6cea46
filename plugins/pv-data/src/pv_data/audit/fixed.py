"""The smallest plan of one look that keeps two stated risks. Exact."""

from __future__ import annotations

from dataclasses import dataclass

from pv_data.audit.counts import share
from pv_data.audit.operating import draw
from pv_data.audit.plan import Plan, Stage
from pv_rl.errors import ConfigError

__all__ = ["Risks", "fixed_plan"]

LIMIT = 5_000
"""Proofs; a plan that needs more is refused."""


@dataclass(frozen=True, kw_only=True)
class Risks:
    """What a plan should do to a good slice and to a bad one."""

    good: float = 0.95
    """Agreement of a slice that should be accepted; above `bad`, below 1."""
    bad: float = 0.80
    """Agreement of a slice that should be discarded."""
    alpha: float = 0.10
    """The most probability to discard the good one."""
    beta: float = 0.10
    """The most probability to accept the bad one."""

    def __post_init__(self) -> None:
        for name in ("good", "bad", "alpha", "beta"):
            share(name, getattr(self, name))
        if self.bad >= self.good:
            raise ConfigError(f"bad is {self.bad:g} and good {self.good:g}; give bad below good")
        if self.alpha + self.beta >= 1:
            raise ConfigError(
                f"alpha is {self.alpha:g} and beta {self.beta:g}; together they must be below 1, or a coin would do"
            )


def fixed_plan(risks: Risks, name: str = "fixed") -> Plan:
    """Accept with c of n or more: the smallest n for which some c keeps both risks, and the smallest such c.

    `P(Bin(n, bad) >= c) <= beta` and `P(Bin(n, good) < c) <= alpha`. Example: good 0.95, bad 0.80 and risks of 0.10
    give 29 of 32, which accepts the good one with 0.926 and the bad one with 0.093.

    Raises:
        ConfigError: it would take more than 5,000 proofs.
    """
    import numpy as np

    good, bad = np.ones(1), np.ones(1)
    for n in range(1, LIMIT + 1):
        good, bad = draw(good, risks.good), draw(bad, risks.bad)
        above = np.cumsum(bad[::-1])[::-1]  # P(X >= c) of the bad one
        enough = np.flatnonzero(above <= risks.beta)
        if len(enough) and good[: (c := int(enough[0]))].sum() <= risks.alpha:
            return Plan(name=name, stages=(Stage(checked=n, accept=c, reject=c - 1),))
    raise ConfigError(
        f"telling {risks.good:g} from {risks.bad:g} takes more than {LIMIT:,} proofs at these risks; "
        "move them apart, or allow more risk"
    )
