"""What one case of the grid is, and the numbers that its rows hold."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from grid.model import VOCABULARY
from grid.oracle import Loss, Row, predict

VANILLA = Loss()


@dataclass(frozen=True, kw_only=True)
class Case:
    """One step, and one way to cut it. The defaults are a step that is not cut at all."""

    family: str = ""
    name: str = ""
    groups: tuple[tuple[int, ...], ...]
    """Response lengths, one tuple a prompt."""
    spec: str = "balanced:0.6"
    """loss_agg_mode: one of ours or one of verl's."""
    fixed_width: bool = False
    """Whether verl's loss_scale_factor is set to `longest`; else verl takes a micro-batch's padded width."""
    loss: Loss = VANILLA
    is_weights: bool = False
    """Whether rows carry `rollout_is_weights`."""
    abstained: tuple[int, ...] = ()
    """Rows whose response mask is cut to zero; their tokens and verl's loss_mask stay."""
    holes: float = 0.0
    """Share of response tokens that are not the model's (a tool's answer, say): outside both masks."""
    ranks: int = 1
    mini_rows: int | None = None
    """Rows of a mini-batch; None: all of them. verl pads the step to a multiple of it."""
    micro_rows: int | None = None
    """Rows of a micro-batch; None: by tokens."""
    micro_tokens: int = 100_000
    """Tokens of a micro-batch where micro_rows is None."""
    balance: bool = False
    shuffle: bool = False
    epochs: int = 1
    seed: int = 0

    @property
    def lengths(self) -> list[int]:
        return [length for group in self.groups for length in group]

    @property
    def longest(self) -> int:
        """What stands for data.max_response_length."""
        return max(self.lengths)

    @property
    def rows_of_a_mini_batch(self) -> int:
        unit = self.ranks * (self.micro_rows or 1)
        wanted = self.mini_rows or len(self.lengths)
        return math.ceil(wanted / unit) * unit

    def __str__(self) -> str:
        return f"{self.family}: {self.name}" if self.family else self.name


@dataclass(frozen=True)
class Update:
    """One optimizer step."""

    gradient: torch.Tensor
    """(parameters,) float64, of all ranks together, before clipping."""
    rows: list[int]
    """Rows of the step that were in it, over all ranks; padding rows are left out."""
    cuts: list[list[list[int]]]
    """[rank][micro-batch] rows, -1 for padding."""


def make_rows(case: Case, model: torch.nn.Module) -> list[Row]:
    """The rows of a case, drawn from its seed, in float32; advantages are left to verl.

    Each response has words of its own, so that responses pull the model in different directions: a step in
    which they cancel would show rounding and not aggregation. The old policy is near the model, so that most
    tokens are within the clip range and some are not.
    """
    generator = torch.Generator().manual_seed(1000 + case.seed)

    def normal(size: int, scale: float) -> torch.Tensor:
        return torch.randn(size, generator=generator) * scale

    rows: list[Row] = []
    for group, lengths in enumerate(case.groups):
        prompt_length = int(torch.randint(1, 9, (), generator=generator))
        prompt = torch.randint(2, VOCABULARY, (prompt_length,), generator=generator)
        for length in lengths:
            taste = torch.softmax(normal(VOCABULARY, 2.0), dim=0)
            response = torch.multinomial(taste, length, replacement=True, generator=generator)
            counts = torch.rand(length, generator=generator) >= case.holes
            counts[0] = True
            if len(rows) in case.abstained:
                counts[:] = False
            with torch.no_grad():
                log_probs = predict(model, prompt, response)[1].float()
            rows.append(
                Row(
                    group=f"p{group}",
                    prompt=prompt,
                    response=response,
                    mask=counts.long(),
                    old_log_probs=log_probs + normal(length, 0.15),
                    ref_log_probs=log_probs + normal(length, 0.3),
                    advantages=torch.full((length,), math.nan),
                    is_weights=normal(length, 0.3).exp() if case.is_weights else torch.ones(length),
                )
            )
    return rows


def make_scores(case: Case) -> list[float]:
    """A reward a row."""
    generator = torch.Generator().manual_seed(2000 + case.seed)
    return torch.randn(len(case.lengths), generator=generator).tolist()
