"""Statistics that a weighting may use: lengths and signs of the responses, and the totals of their step.

Letters as in the paper and in CONTRIBUTING: `|o_i|` response tokens that count, `G` responses of the same
prompt, `P` prompts, `N` responses, `T` tokens.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pv_rl.errors import LossModeError

__all__ = ["BatchStats", "ResponseStats", "step_stats"]


@dataclass(frozen=True)
class ResponseStats:
    """One number a response; a row that does not count (padding, abstained) has length 0."""

    length: Tensor
    """(B,) response tokens that count, `|o_i|`."""
    group_size: Tensor
    """(B,) responses of the same prompt that count, `G`."""
    group_tokens: Tensor
    """(B,) tokens of the same prompt that count, `sum_j |o_j|`."""
    group: Tensor | None = None
    """(B,) int64, a number for the prompt of each response, 0 and up; only the sums below need it."""
    sign: Tensor | None = None
    """(B,) sign of the advantage, -1, 0 or 1; None where the caller gave no advantages."""

    def rows(self, chosen: Tensor) -> ResponseStats:
        """The same numbers for some rows only; `chosen` is a mask or an index."""
        return ResponseStats(
            length=self.length[chosen],
            group_size=self.group_size[chosen],
            group_tokens=self.group_tokens[chosen],
            group=None if self.group is None else self.group[chosen],
            sign=None if self.sign is None else self.sign[chosen],
        )

    def group_sum(self, values: Tensor) -> Tensor:
        """(B,) for each response, the sum of `values` (B,) over the responses of its prompt that are in `self`.

        Raises:
            LossModeError: the groups are not known. `step_stats` gives them.
        """
        return self._sum(values, self.group, "the prompt of each response; use step_stats")

    def sign_sum(self, values: Tensor) -> Tensor:
        """As `group_sum`, over the responses of its prompt whose advantage has the same sign (-, 0 or +).

        Raises:
            LossModeError: the groups or the signs are not known. `step_stats` gives them, from the advantages.
        """
        groups = (
            self.group if self.sign is None or self.group is None else self.group * 3 + self.sign.long() + 1
        )
        missing = "the signs of the advantages; pass advantages to step_stats or response_weights"
        return self._sum(values, None if self.sign is None else groups, missing)

    def _sum(self, values: Tensor, index: Tensor | None, missing: str) -> Tensor:
        if index is None:
            raise LossModeError(f"these statistics do not have {missing}")
        sums = values.new_zeros(int(index.max()) + 1 if len(index) else 0)
        return sums.index_add_(0, index, values)[index]


@dataclass(frozen=True)
class BatchStats:
    """Totals over every row that counts, whichever rank or micro-batch holds it."""

    num_prompts: int | Tensor
    """`P`, prompts with at least one response that counts."""
    num_responses: int | Tensor
    """`N`, responses that count."""
    num_tokens: int | Tensor
    """`T`, response tokens that count."""


def step_stats(
    lengths: Tensor, groups: Sequence[Hashable], advantages: Tensor | Sequence[float] | None = None
) -> tuple[ResponseStats, BatchStats]:
    """Count a whole step.

    Args:
        lengths: (B,) response tokens that count, whole numbers >= 0; 0 marks a row that does not count.
        groups: B hashable ids, equal for responses of the same prompt (verl's `uid`).
        advantages: (B,) one number a response, of which the sign counts; its sum over the tokens where each token has
            its own. Only weightings that use signs need it.

    Returns:
        Statistics in float64, (B,) each, and the step's totals. Rows of length 0 are outside all of them.

    Raises:
        LossModeError: `lengths` is not one-dimensional, has a negative, fractional or non-finite entry, or
            differs from `groups` or `advantages` in size, a group id is not one that can be compared by hash, or the
            advantage of a row that counts is NaN.
    """
    if isinstance(groups, torch.Tensor):  # its items hash by identity
        groups = groups.tolist()
    lengths = torch.as_tensor(lengths)
    if lengths.dim() != 1 or len(groups) != lengths.shape[0]:
        raise LossModeError(
            f"lengths has shape {tuple(lengths.shape)} and there are {len(groups)} group ids; "
            "give one length and one group id a response: shapes (B,) and B"
        )
    lengths = lengths.detach().to(torch.float64)
    bad = ~torch.isfinite(lengths) | (lengths < 0) | (lengths != lengths.round())
    if bad.any():
        row = int(bad.nonzero()[0])
        raise LossModeError(
            f"the length of response {row} is {lengths[row].item()}; a length is a number of tokens, "
            "a whole number >= 0, with 0 for a row that does not count"
        )

    ids: dict[Hashable, int] = {}
    index = torch.tensor(
        [ids.setdefault(_checked(group), len(ids)) for group in groups],
        dtype=torch.long,
        device=lengths.device,
    )
    counts = (lengths > 0).to(torch.float64)
    sign = None if advantages is None else _signs(advantages, counts)
    sizes = torch.zeros(len(ids), dtype=torch.float64, device=lengths.device).index_add_(0, index, counts)
    tokens = torch.zeros_like(sizes).index_add_(0, index, lengths)
    responses = ResponseStats(
        length=lengths, group_size=sizes[index], group_tokens=tokens[index], group=index, sign=sign
    )
    totals = BatchStats(
        num_prompts=int((sizes > 0).sum()), num_responses=int(counts.sum()), num_tokens=int(lengths.sum())
    )
    return responses, totals


def _signs(advantages: Tensor | Sequence[float], counts: Tensor) -> Tensor:
    try:
        # A list of Python's floats would else be rounded to float32, where a small number has no sign.
        values = torch.as_tensor(advantages, dtype=counts.dtype, device=counts.device).detach()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise LossModeError(f"the advantages are not one number a response: {error}") from error
    if values.shape != counts.shape:
        raise LossModeError(
            f"advantages has shape {tuple(values.shape)} and there are {len(counts)} responses. Give one number for "
            "each: if tokens have advantages of their own, their sum"
        )
    if (bad := values.isnan() & (counts > 0)).any():
        raise LossModeError(f"the advantage of response {int(bad.nonzero()[0])} is NaN, which has no sign")
    return values.nan_to_num().sign()


def _checked(group: Hashable) -> Hashable:
    if isinstance(group, torch.Tensor) or not isinstance(group, Hashable) or group != group:
        raise LossModeError(
            f"the group id {group!r} cannot tell prompts apart: use a string or a whole number, as verl's uid"
        )
    return group
