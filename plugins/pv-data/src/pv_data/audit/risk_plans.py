"""Audit plans for two stated risks: the smallest fixed sample, and Wald's sequential probability ratio test.

After n proofs with k agreements, `r = k log(bad/good) + (n - k) log((1 - bad)/(1 - good))`: the test discards at `r
>= log((1 - beta)/alpha)` and accepts at `r <= log(beta/(1 - alpha))` (Wald, Ann. Math. Statist. 16 (1945) 117). It is
cut off so that it ends, and its true risks are kept: Wald's limits are approximate, and one risk may come out a
little above what was asked for. Where it does, the limits move towards `log(1/alpha)` and `log(beta)`, which keep
both risks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log

from pv_data.audit.counts import share, whole
from pv_data.audit.operating import draw
from pv_data.audit.plan import Plan, Stage
from pv_rl.errors import ConfigError

__all__ = ["Risks", "fixed_plan", "sequential_plan"]


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


CAUTION = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far the limits are moved: 0 Wald's, 1 the ones that keep both risks."""


def sequential_plan(risks: Risks, name: str = "sprt", *, most: int | None = None) -> Plan:
    """The test as a plan with a stage a proof.

    Args:
        risks: as for a fixed plan.
        name: of the plan.
        most: proofs after which it is decided by the sign of r, by Wald's limits until then, whatever that does to the
            risks (`operating_characteristic` says). None: the smallest number for which some cut keeps both, exactly.

    Raises:
        ConfigError: no number up to 5,000 does.
    """
    if most is not None:
        end = whole("most", most, least=1)
        cut = min(end, max(1, ceil(_zero(risks, end))))
        stages = [stage for n in range(1, end) if (stage := _stage(risks, n, 0.0))]
        return Plan(name=name, stages=(*stages, Stage(checked=end, accept=cut, reject=cut - 1)))
    for caution in CAUTION:
        if found := _shortest(risks, caution):
            return Plan(name=name, stages=found)
    raise ConfigError(
        f"the sequential test keeps its risks with no cut up to {LIMIT:,} proofs; move good and bad apart, allow more "
        "risk, or give the most proofs to read"
    )


def _shortest(risks: Risks, caution: float) -> tuple[Stage, ...] | None:
    """The stages up to the first cut that keeps both risks; None where these limits have already spent one."""
    import numpy as np

    good, bad = np.ones(1), np.ones(1)
    refused = passed = 0.0  # of alpha and of beta, spent at earlier stages
    stages: list[Stage] = []
    for n in range(1, LIMIT + 1):
        good, bad = draw(good, risks.good), draw(bad, risks.bad)
        above = passed + np.append(np.cumsum(bad[::-1])[::-1], 0.0)  # the bad one's risk with a cut at k
        cut = max(1, int(np.flatnonzero(above <= risks.beta)[0]))
        if cut <= n and refused + good[:cut].sum() <= risks.alpha:
            return (*stages, Stage(checked=n, accept=cut, reject=cut - 1))
        if stage := _stage(risks, n, caution):
            stages.append(stage)
            if stage.accept is not None:
                passed += float(bad[stage.accept :].sum())
                good[stage.accept :] = bad[stage.accept :] = 0.0
            if stage.reject is not None:
                refused += float(good[: stage.reject + 1].sum())
                good[: stage.reject + 1] = bad[: stage.reject + 1] = 0.0
            if passed > risks.beta or refused > risks.alpha:
                return None
    return None


def _stage(risks: Risks, n: int, caution: float) -> Stage | None:
    """The look after n proofs; None where no number of agreements stops."""
    slope = log(risks.good / risks.bad) + log((1 - risks.bad) / (1 - risks.good))
    up = -log(risks.beta) + (1 - caution) * log(1 - risks.alpha)
    down = -log(risks.alpha) + (1 - caution) * log(1 - risks.beta)
    accept, reject = ceil(_zero(risks, n) + up / slope), floor(_zero(risks, n) - down / slope)
    if accept > n and reject < 0:
        return None
    return Stage(checked=n, accept=accept if accept <= n else None, reject=reject if reject >= 0 else None)


def _zero(risks: Risks, n: int) -> float:
    """Agreements at which r is 0."""
    agree, differ = log(risks.good / risks.bad), log((1 - risks.bad) / (1 - risks.good))
    return n * differ / (agree + differ)
