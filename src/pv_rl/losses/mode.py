"""Loss-aggregation mode: a weighting, its numbers and its scope, and the spec string that names them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import zip_longest
from typing import Literal, cast, get_args

import torch
from torch import Tensor

from pv_rl.errors import LossModeError
from pv_rl.hookspecs import LossModeEntry
from pv_rl.losses.stats import BatchStats, ResponseStats
from pv_rl.plugins import LOSS_MODES, VERL_MODES, left_out, nearest

__all__ = ["LossMode", "Scope", "Weighting", "find_mode", "resolve_mode"]

Weighting = Callable[..., Tensor]
"""`weighting(responses, batch, **parameters) -> (B,)`, for rows of length > 0. See `pv_rl.losses.balanced`."""

Scope = Literal["prompt", "batch"]

EXAMPLES = "balanced, balanced:0.4, dapo@batch or balanced:0.6@batch"
SPEC = re.compile(r"(?P<name>[^:@]+)(?P<numbers>(?::[^:@]*)*)(?:@(?P<scope>[^:@]*))?")
DECIMAL = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?|\.[0-9]+([eE][-+]?[0-9]+)?")
LOSS_TYPE = "a loss_type of TRL. Set that, and loss_agg_mode to its aggregation, "
OTHER_NAMES = {
    **{name: f"verl's, and means {spec or 'a sum'}" for name, spec in VERL_MODES.items()},
    "bnpo": "a loss_type of TRL. Use dapo@batch, which does not depend on micro-batches",
    "sapo": f"{LOSS_TYPE}grpo@batch",
    **dict.fromkeys(("cispo", "vespo"), f"{LOSS_TYPE}dapo@batch"),
    "seq_mean_token_sum_norm": "SkyRL's, and means dr_grpo:MAX_LENGTH@batch",
}
"""Names of other trainers, whose nearest name of ours means something else."""


@dataclass(frozen=True, kw_only=True)
class LossMode:
    """A function from lengths to weights. Two modes of the same spec compare equal."""

    name: str
    """The weighting's name, as registered."""
    parameters: tuple[tuple[str, float], ...] = ()
    """Name and value of each of its numbers, in the order of the spec."""
    scope: Scope = "prompt"
    """`prompt`: the paper's formula, one group a prompt. `batch`: verl's convention, one group in all."""
    weighting: Weighting = field(compare=False, repr=False)
    """The formula."""
    signs: bool = field(default=False, compare=False, repr=False)
    """Whether the formula uses the signs of the advantages."""

    @property
    def eta(self) -> float | None:
        """Share of mass that goes by response, in [0, 1]; None for a weighting that takes no eta."""
        return dict(self.parameters).get("eta")

    @property
    def spec(self) -> str:
        """The string that resolves to this mode, with nothing left to a default."""
        return f"{self.name}{_written(self.parameters)}@{self.scope}"

    def weights(self, responses: ResponseStats, batch: BatchStats) -> Tensor:
        """Weight of each token of each response.

        Args:
            responses: statistics of shape (B,), counted per prompt whatever the scope.
            batch: totals over every row that counts.

        Returns:
            (B,) `w_i`, in the dtype of `responses.length`; 0 where the length is 0. For `grpo`, `dapo` and
            `balanced`, `sum_i w_i |o_i| = 1` over all the rows that `batch` counts.

        Raises:
            LossModeError: the weighting (a plugin's) fails, or gives something else than one finite number >= 0 a row,
                or it uses signs and `responses` has none.
        """
        if self.signs and responses.sign is None:
            raise LossModeError(
                f"loss_agg_mode={self.spec} uses the signs of the advantages, and none were given. Pass advantages to "
                "response_weights or step_stats, or use a mode of lengths alone, such as dapo."
            )
        counts = responses.length > 0
        weights = torch.zeros_like(responses.length)
        if not counts.any():
            return weights
        if self.scope == "batch":
            everything = torch.ones_like(responses.length)
            responses = replace(
                responses,
                group_size=everything * batch.num_responses,
                group_tokens=everything * batch.num_tokens,
                group=None if responses.group is None else torch.zeros_like(responses.group),
            )
            batch = replace(batch, num_prompts=1)
        weights[counts] = self._checked(responses.rows(counts), batch).to(weights.dtype)
        return weights

    def _checked(self, responses: ResponseStats, batch: BatchStats) -> Tensor:
        """(B,) what the weighting gives; it may be a stranger's."""
        try:
            given = self.weighting(responses, batch, **dict(self.parameters))
        except LossModeError:
            raise
        except Exception as error:
            raise LossModeError(
                f"loss_agg_mode={self.spec}: its weighting failed with {error!r}; {self._to_its_author()}"
            ) from error
        rows = responses.length.shape
        if isinstance(given, Tensor) and given.shape == rows and (torch.isfinite(given) & (given >= 0)).all():
            return given
        raise LossModeError(
            f"loss_agg_mode={self.spec} gives {given} for {rows[0]} responses; weights are one finite number >= 0 for "
            f"each: {self._to_its_author()}"
        )

    def _to_its_author(self) -> str:
        return f"report it to the author of {LOSS_MODES.owner(self.name)}, or use another mode"


def resolve_mode(spec: str) -> LossMode:
    """Read a spec string `NAME[:NUMBER ...][@SCOPE]`.

    Args:
        spec: for example `balanced`, `balanced:0.4`, `dapo@batch`. Numbers are plain decimals, and only as many as
            the weighting takes (`balanced` takes eta in [0, 1], 0.6 if none is given); scope is `prompt` (default)
            or `batch`.

    Returns:
        The mode.

    Raises:
        LossModeError: (a ValueError) the spec cannot be read. The text names the spec, what is allowed and,
            for an unknown name, the nearest one.
        PluginError: two plugins claim the name.
    """
    if not isinstance(spec, str):  # a config may hold anything, also what cannot be hashed
        raise _error(spec, "is not a string.")
    return _resolve(spec)


def find_mode(loss_agg_mode: object) -> LossMode | None:
    """The mode that a config names, or None if the name is not one of ours: then it is verl's to take or refuse.

    verl's own names are asked first, so that a stock run never loads a plugin.

    Raises:
        LossModeError: the name is ours and the rest of the spec cannot be read.
        PluginError: two plugins claim the name.
    """
    if not isinstance(loss_agg_mode, str) or loss_agg_mode in VERL_MODES:
        return None
    name = re.split("[:@]", loss_agg_mode, maxsplit=1)[0]
    return resolve_mode(loss_agg_mode) if LOSS_MODES.find(name) is not None else None


@lru_cache(maxsize=256)
def _resolve(spec: str) -> LossMode:
    match = SPEC.fullmatch(spec)
    if match is None:
        raise _error(spec, "cannot be read.")
    name, scope = match["name"], "prompt" if match["scope"] is None else match["scope"]
    entry: LossModeEntry | None = LOSS_MODES.find(name)
    if entry is None:
        theirs, broken = OTHER_NAMES.get(name), left_out(LOSS_MODES)
        hint = f" It is {theirs}." if theirs else nearest(name, LOSS_MODES.entries())
        missing = f" Left out of the plugins: {'; '.join(broken)}." if broken else ""
        raise _error(spec, f"names no mode that pv-rl knows.{hint}", missing)
    scopes = get_args(Scope)
    if entry.same_as and match["scope"] is not None:
        raise _error(spec, f"has a scope, and {name} means {entry.same_as}: write it without one.")
    if scope not in scopes:
        raise _error(spec, f"has the scope {scope!r}.{nearest(scope, scopes)}")
    parameters = _read_numbers(spec, entry, match["numbers"].split(":")[1:])
    if entry.same_as:
        base, at, scope = entry.same_as.partition("@")
        meant = LOSS_MODES.find(base.partition(":")[0])
        if meant is None or meant.same_as:
            raise _error(spec, f"is an alias of {entry.same_as}, which is not a mode.")
        return _resolve(base + _written(parameters) + at + scope)
    return LossMode(
        name=name,
        parameters=parameters,
        scope=cast(Scope, scope),
        weighting=entry.weighting,
        signs=entry.signs,
    )


def _read_numbers(spec: str, entry: LossModeEntry, texts: list[str]) -> tuple[tuple[str, float], ...]:
    if len(texts) > len(entry.parameters):
        takes = ", ".join(parameter.name for parameter in entry.parameters) or "none"
        given = f"gives {len(texts)} numbers, but {entry.name} takes {takes}"
        raise _error(spec, f"{given}: write {_usage(entry)}.")
    read = []
    for parameter, text in zip_longest(entry.parameters, texts):
        meaning = f" ({parameter.meaning})" if parameter.meaning else ""
        if text is None and parameter.default is None:
            missing = f"does not give the {parameter.name} of {entry.name}{meaning}"
            raise _error(spec, f"{missing}: write {_usage(entry)}.")
        # float() alone would let through nan, inf, signs, blanks, underscores and digits of other scripts.
        value = cast(float, parameter.default)
        if text is not None:
            value = float(text) if DECIMAL.fullmatch(text) else math.nan
        if not parameter.low <= value <= parameter.high or value == math.inf:
            low, high = f"{parameter.low:g}", f"{parameter.high:g}"
            bounds = f"of at least {low}{meaning}" if high == "inf" else f"in [{low}, {high}]{meaning}"
            raise _error(spec, f"has the {parameter.name} {text!r}; it is a decimal number {bounds}.")
        read.append((parameter.name, float(value)))
    return tuple(read)


def _error(spec: str, problem: str, more: str = "") -> LossModeError:
    """The problem, then what is allowed."""
    names = ", ".join(_usage(entry) for entry in LOSS_MODES.entries().values())
    return LossModeError(
        f"loss_agg_mode {spec!r} {problem} Write NAME[:NUMBER ...][@SCOPE], for example {EXAMPLES}. Names: {names}. "
        f"Scopes: {', '.join(get_args(Scope))}.{more}"
    )


def _usage(entry: LossModeEntry) -> str:
    """For example `balanced[:ETA]`, `dr_grpo:MAX_LENGTH`."""
    numbers = ""
    for parameter in reversed(entry.parameters):
        number = f":{parameter.name.upper()}{numbers}"
        numbers = number if parameter.default is None else f"[{number}]"
    return entry.name + numbers


def _written(parameters: tuple[tuple[str, float], ...]) -> str:
    """For example `:0.75:8`."""
    values = [value for _, value in parameters]
    return "".join(f":{int(v) if v.is_integer() and v < 1e15 else v!r}" for v in values)
