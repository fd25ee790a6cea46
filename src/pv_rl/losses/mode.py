"""A loss-aggregation mode: a weighting, its scope, and the spec string that names both."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Literal, cast, get_args

import torch
from torch import Tensor

from pv_rl.errors import LossModeError
from pv_rl.losses.stats import BatchStats, ResponseStats
from pv_rl.plugins import loss_modes, nearest

__all__ = ["LossMode", "Scope", "Weighting", "resolve_mode"]

Weighting = Callable[..., Tensor]
"""`weighting(responses, batch[, eta=...]) -> (B,)`, for rows of length > 0. See `pv_rl.losses.balanced`."""

Scope = Literal["prompt", "batch"]

EXAMPLES = "balanced, balanced:0.4, dapo@batch or balanced:0.6@batch"
SPEC = re.compile(r"(?P<name>[^:@]+)(?::(?P<eta>[^:@]*))?(?:@(?P<scope>[^:@]*))?")
DECIMAL = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?|\.[0-9]+([eE][-+]?[0-9]+)?")


@dataclass(frozen=True, kw_only=True)
class LossMode:
    """A function from lengths to weights. Two modes of the same spec compare equal."""

    name: str
    """The weighting's name, as registered."""
    eta: float | None = None
    """Share of mass that goes by response, in [0, 1]; None for a weighting that takes no eta."""
    scope: Scope = "prompt"
    """`prompt`: the paper's formula, one group a prompt. `batch`: verl's convention, one group in all."""
    weighting: Weighting = field(compare=False, repr=False)
    """The formula, eta already in it."""

    @property
    def spec(self) -> str:
        """The string that resolves to this mode, with nothing left to a default."""
        return self.name + (f":{self.eta!r}" if self.eta is not None else "") + f"@{self.scope}"

    def weights(self, responses: ResponseStats, batch: BatchStats) -> Tensor:
        """Weight of each token of each response.

        Args:
            responses: statistics of shape (B,), counted per prompt whatever the scope.
            batch: totals over every row that counts.

        Returns:
            (B,) `w_i`, in the dtype of `responses.length`'s statistics; 0 where the length is 0. Over all the
            rows that `batch` counts, `sum_i w_i |o_i| = 1`.
        """
        counts = responses.length > 0
        if self.scope == "batch":
            everything = torch.ones_like(responses.length)
            responses = replace(
                responses,
                group_size=everything * batch.num_responses,
                group_tokens=everything * batch.num_tokens,
            )
            batch = replace(batch, num_prompts=1)
        # A row that does not count is given 1 everywhere, so that no formula divides by zero, and masked after.
        responses = ResponseStats(
            length=torch.where(counts, responses.length, 1),
            group_size=torch.where(counts, responses.group_size, 1),
            group_tokens=torch.where(counts, responses.group_tokens, 1),
        )
        weights = self.weighting(responses, batch)
        return torch.where(counts, weights, torch.zeros_like(weights))


def resolve_mode(spec: str) -> LossMode:
    """Read a spec string `NAME[:ETA][@SCOPE]`.

    Args:
        spec: for example `balanced`, `balanced:0.4`, `dapo@batch`. Eta is a plain decimal in [0, 1] and only
            for a weighting that takes one (`balanced`, default 0.6); scope is `prompt` (default) or `batch`.

    Returns:
        The mode.

    Raises:
        LossModeError: (a ValueError) the spec cannot be read. The text names the spec, what is allowed and,
            for an unknown name, the nearest one.
    """
    if not isinstance(spec, str):  # a config may hold anything, also what cannot be hashed
        raise LossModeError(f"loss_agg_mode {spec!r} is not a string. {_allowed()}")
    return _resolve(spec)


@lru_cache(maxsize=256)
def _resolve(spec: str) -> LossMode:
    match = SPEC.fullmatch(spec)
    if match is None:
        raise LossModeError(f"loss_agg_mode {spec!r} cannot be read. {_allowed()}")
    name, eta_text, scope = match["name"], match["eta"], match["scope"]

    if name not in loss_modes():
        hint = nearest(name, loss_modes())
        raise LossModeError(
            f"loss_agg_mode {spec!r} names no mode that pv-rl knows: {name!r}.{hint} {_allowed()}"
        )
    entry = loss_modes()[name]
    scopes = get_args(Scope)
    scope = "prompt" if scope is None else scope
    if scope not in scopes:
        hint = nearest(scope, scopes)
        raise LossModeError(f"loss_agg_mode {spec!r} has the scope {scope!r}.{hint} {_allowed()}")
    eta = entry.default_eta
    if eta_text is not None:
        if eta is None:
            raise LossModeError(
                f"loss_agg_mode {spec!r} gives an eta, but {name} takes none: write {name}@{scope}. {_allowed()}"
            )
        eta = _read_eta(spec, eta_text)
    weighting = entry.weighting if eta is None else partial(entry.weighting, eta=eta)
    return LossMode(name=name, eta=eta, scope=cast(Scope, scope), weighting=weighting)


def _allowed() -> str:
    return (
        f"Write NAME[:ETA][@SCOPE], for example {EXAMPLES}. Names: {', '.join(loss_modes())}. Eta: a decimal number "
        f"in [0, 1], 0 weighs by token (dapo), 1 by response (grpo). Scopes: {', '.join(get_args(Scope))}."
    )


def _read_eta(spec: str, text: str) -> float:
    # float() alone would let through nan, inf, signs, blanks, underscores and digits of other scripts.
    eta = float(text) if DECIMAL.fullmatch(text) else float("nan")
    if not 0.0 <= eta <= 1.0:
        raise LossModeError(f"loss_agg_mode {spec!r} has the eta {text!r}. {_allowed()}")
    return eta
