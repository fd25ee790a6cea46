"""Summary of modes: token weights, and shares of the update by response and by group of responses."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pv_judge.extras import needs
from pv_rl.errors import DataError, LossModeError
from pv_rl.plugins import STOCK_EQUIVALENT
from pv_runs.weights.rollouts import Rollouts

if TYPE_CHECKING:
    from torch import Tensor

    from pv_rl.losses import LossMode

__all__ = ["DEFAULT_MODES", "ModeSummary", "Part", "Summary", "summarise"]

DEFAULT_MODES = ("grpo", "dapo", "balanced")
VERL_NAMES = {stock: f"{ours}@batch" for ours, stock in STOCK_EQUIVALENT.items()}
"""Modes of verl's own that one of ours is the formula of."""


@dataclass(frozen=True, kw_only=True)
class ModeSummary:
    """One mode on all responses."""

    spec: str
    """With nothing left to a default, for example `balanced:0.6@prompt`."""
    weights: Sequence[float]
    """(B,) `w_i`, weight of each token of response i; 0 for a row that does not count."""
    shares: Sequence[float]
    """(B,) `w_i |o_i| / mass`, share of the update; they add up to 1."""
    mass: float
    """`sum_i w_i |o_i|`. 1 for grpo, dapo and balanced."""
    effective_responses: float
    """`exp(-sum_i s_i ln s_i)` over the shares: as many responses of equal share would be as uneven. 1 to N."""
    largest_share: float
    """The largest of the shares, in [0, 1]."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some of the responses that count: a quarter by length, a verdict, a score."""

    kind: Literal["length", "verdict", "score"]
    name: str
    responses: int
    tokens: int
    weight: Mapping[str, float]
    """By spec: mean weight of a token, over the part's tokens. `weight * tokens / mass` is the share."""
    share: Mapping[str, float]
    """By spec: sum of the responses' shares, in [0, 1]."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the modes do to `rollouts`."""

    rollouts: Rollouts
    prompts: int
    """`P`, prompts with a response that counts."""
    responses: int
    """`N`, responses that count."""
    tokens: int
    """`T`, in the unit of `rollouts`."""
    modes: tuple[ModeSummary, ...]
    parts: tuple[Part, ...]
    notes: tuple[str, ...]
    """The rollouts' and our own."""


def summarise(rollouts: Rollouts, specs: Sequence[str] = DEFAULT_MODES) -> Summary:
    """Compute the weights of `rollouts` as one step.

    Example: lengths 1, 2, 5 of one prompt under `balanced:0.6` have weights 0.25, 0.15, 0.09 and shares
    0.25, 0.30, 0.45.

    Args:
        rollouts: B responses.
        specs: modes, `NAME[:NUMBER][@SCOPE]`, or verl's `token-mean` and `seq-mean-token-mean`. One that is
            given twice is taken once.

    Raises:
        DataError: no response has a token, or a mode uses signs and a response that counts has no score.
        LossModeError: a mode cannot be read, or gives every response weight 0.
        SetupError: torch is missing.
    """
    with needs("torch", "pv-rl weights", "pip install torch"):
        import torch

        from pv_rl.losses import resolve_mode

    resolved = {spec: resolve_mode(VERL_NAMES.get(spec, spec)) for spec in specs}
    signed = [mode.spec for mode in resolved.values() if mode.signs]
    if not any(rollouts.lengths):
        raise DataError(
            f"{rollouts.source}: no response has any {rollouts.unit}, so there is nothing to weigh. Give responses "
            "of length 1 or more"
        )
    lengths = torch.tensor(rollouts.lengths, dtype=torch.float64)
    signs = _signs(rollouts, signed[0]) if signed else None
    modes = tuple(_mode(mode, rollouts, lengths, signs) for mode in dict.fromkeys(resolved.values()))
    counts = lengths > 0
    return Summary(
        rollouts=rollouts,
        prompts=len(
            {group for group, length in zip(rollouts.groups, rollouts.lengths, strict=True) if length}
        ),
        responses=int(counts.sum()),
        tokens=sum(rollouts.lengths),
        modes=modes,
        parts=tuple(
            _part(kind, name, rows & counts, lengths, modes)
            for kind, name, rows in (
                *_quarters(lengths, rollouts.unit),
                *_verdicts(rollouts),
                *_scores(rollouts),
            )
            if (rows & counts).any()
        ),
        notes=rollouts.notes
        + tuple(_verl_note(spec, counts) for spec in resolved if spec in VERL_NAMES)
        + tuple(
            f"{spec} is given the sign of the score minus its prompt's mean."
            for spec in dict.fromkeys(signed)
        ),
    )


def _verl_note(spec: str, counts: Tensor) -> str:
    note = f"{spec} is verl's name for {VERL_NAMES[spec]}"
    return note + ("." if counts.all() else " where every row counts; verl has the others in its totals.")


def _signs(rollouts: Rollouts, spec: str) -> list[float]:
    """(B,) the score minus the mean over the rows of its prompt that count; of those that do not, any number."""
    scores = rollouts.scores or [None] * len(rollouts.lengths)
    of_prompt: dict[int, list[float]] = {}
    for group, length, score in zip(rollouts.groups, rollouts.lengths, scores, strict=True):
        if length and score is None:
            raise DataError(
                f"{rollouts.source}: {spec} uses the signs of the advantages, and not every response has a score. Give "
                "--rollouts with a column 'score' that has numbers only, or leave this mode out"
            )
        if length and score is not None:
            of_prompt.setdefault(group, []).append(score)
    # `statistics` adds exactly: none of equal scores is above their mean.
    means = {group: statistics.mean(known) for group, known in of_prompt.items()}
    return [
        (score or 0.0) - means.get(group, 0.0) for group, score in zip(rollouts.groups, scores, strict=True)
    ]


def _mode(mode: LossMode, rollouts: Rollouts, lengths: Tensor, signs: Sequence[float] | None) -> ModeSummary:
    from pv_rl.losses import response_weights
    from pv_runs.weight_shares import effective_number

    weights = response_weights(mode, rollouts.lengths, rollouts.groups, signs if mode.signs else None)
    masses = weights * lengths
    mass = float(masses.sum())
    if mass <= 0:
        raise LossModeError(f"{mode.spec} gives every response weight 0 here: no token would be trained on")
    shares = masses / mass
    return ModeSummary(
        spec=mode.spec,
        weights=weights.tolist(),
        shares=shares.tolist(),
        mass=mass,
        effective_responses=effective_number(shares),
        largest_share=float(shares.max()),
    )


Rows = tuple[Literal["length", "verdict", "score"], str, "Tensor"]
"""Kind, name, and (B,) True for the rows of the part."""


def _part(
    kind: Literal["length", "verdict", "score"],
    name: str,
    rows: Tensor,
    lengths: Tensor,
    modes: Sequence[ModeSummary],
) -> Part:
    tokens = int(lengths[rows].sum())
    share = {mode.spec: float(lengths.new_tensor(mode.shares)[rows].sum()) for mode in modes}
    return Part(
        kind=kind,
        name=name,
        responses=int(rows.sum()),
        tokens=tokens,
        weight={mode.spec: share[mode.spec] * mode.mass / tokens for mode in modes},
        share=share,
    )


def _quarters(lengths: Tensor, unit: str) -> list[Rows]:
    """Four parts of about as many responses, from short to long. Equal lengths are in the same part."""
    from pv_runs.weight_shares import length_quartiles

    parts: list[Rows] = []
    for rows in length_quartiles(lengths):
        if rows.any():
            shortest, longest = int(lengths[rows].min()), int(lengths[rows].max())
            name = f"{shortest}" if shortest == longest else f"{shortest} to {longest}"
            parts.append(("length", f"{name} {unit}", rows))
    return parts


def _verdicts(rollouts: Rollouts) -> list[Rows]:
    if rollouts.verdicts is None:
        return []
    names = {True: "verdict True", False: "verdict False", None: "no verdict"}
    return [("verdict", names[value], _equal(rollouts.verdicts, value)) for value in names]


def _scores(rollouts: Rollouts) -> list[Rows]:
    """A part for each score if there are few of them, as with a binary reward; else by sign."""
    import torch

    if rollouts.scores is None:
        return []
    known = sorted({score for score in rollouts.scores if score is not None}, reverse=True)
    if len(known) <= 4:
        parts: list[Rows] = [("score", f"score {score:g}", _equal(rollouts.scores, score)) for score in known]
    else:
        values = torch.tensor([math.nan if score is None else score for score in rollouts.scores])
        parts = [("score", "score > 0", values > 0), ("score", "score <= 0", values <= 0)]
    return [*parts, ("score", "no score", _equal(rollouts.scores, None))]


def _equal(values: Sequence[object], value: object) -> Tensor:
    """(B,) True where the value is `value`."""
    import torch

    return torch.tensor([item == value for item in values])
