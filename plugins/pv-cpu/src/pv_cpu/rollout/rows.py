"""The state of the rows that are being decoded: one tensor a quantity, one entry a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import torch

from pv_cpu.rollout.request import Completion, Request

__all__ = ["Rows"]

Tag = TypeVar("Tag")


class Rows(Generic[Tag]):
    """B rows. Adding and removing rows costs Python work for each of them; a step costs none.

    Of each quantity there is an attribute: ``position`` of the last token, ``count`` of generated
    tokens and its ``limit``, ``greedy``, ``temperature``, ``top_k``, ``top_p``, each ``(B,)``;
    ``stop: (B, V)``, the tokens that end the row; ``uniform``, ``tokens`` and ``log_probs``, each
    ``(B, longest limit)``.
    """

    def __init__(self) -> None:
        self.tags: list[Tag] = []
        """Whatever the caller wants back when the row is finished."""
        self.state: dict[str, torch.Tensor] = {}
        self.truncated = False
        """Whether any row has a top-k or top-p."""

    def __len__(self) -> int:
        return len(self.tags)

    def __getattr__(self, name: str) -> torch.Tensor:
        try:
            return self.__dict__["state"][name]
        except KeyError:
            raise AttributeError(name) from None

    @classmethod
    def of(
        cls, requests: Sequence[Request], tags: Sequence[Tag], vocab_size: int, generator: torch.Generator
    ) -> Rows[Tag]:
        """Rows that have no token yet."""
        batch, longest = len(requests), max(request.max_tokens for request in requests)
        uniform = torch.rand(batch, longest, dtype=torch.float64, generator=generator)
        stop = torch.zeros(batch, vocab_size, dtype=torch.bool)
        for row, request in enumerate(requests):
            if request.seed is not None:
                own = torch.Generator().manual_seed(request.seed)
                uniform[row, : request.max_tokens] = torch.rand(
                    request.max_tokens, dtype=torch.float64, generator=own
                )
            stop[row, [token for token in request.stop_token_ids if token < vocab_size]] = True
        greedy = torch.tensor([request.greedy for request in requests])
        temperature = torch.tensor([1.0 if request.greedy else request.temperature for request in requests])
        rows = cls()
        rows.tags = list(tags)
        rows.state = {
            "position": torch.tensor([len(request.prompt) - 1 for request in requests]),
            "count": torch.zeros(batch, dtype=torch.long),
            "limit": torch.tensor([request.max_tokens for request in requests]),
            "greedy": greedy,
            "temperature": temperature,
            "top_k": torch.tensor([0 if request.greedy else request.top_k for request in requests]),
            "top_p": torch.tensor([1.0 if request.greedy else request.top_p for request in requests]),
            "stop": stop,
            "uniform": uniform,
            "tokens": torch.zeros(batch, longest, dtype=torch.long),
            "log_probs": torch.zeros(batch, longest),
        }
        rows._note_truncation()
        return rows

    def extend(self, fresh: Rows[Tag]) -> None:
        """Append other rows."""
        joined = dict(fresh.state)
        for name, old in self.state.items():
            new = joined[name]
            if name in ("uniform", "tokens", "log_probs"):
                width = max(old.shape[1], new.shape[1])
                old, new = (torch.nn.functional.pad(t, (0, width - t.shape[1])) for t in (old, new))
            joined[name] = torch.cat([old, new])
        self.state = joined
        self.tags.extend(fresh.tags)
        self._note_truncation()

    def remaining(self) -> int:
        """The most tokens that any row may still get; 0 without rows."""
        return int((self.limit - self.count).max()) if self.tags else 0

    def next_uniform(self) -> torch.Tensor:
        """``(B,)`` the number in [0, 1) that draws each row's next token."""
        return self.uniform[torch.arange(len(self)), self.count]

    def record(self, token: torch.Tensor, log_prob: torch.Tensor) -> torch.Tensor:
        """Append a token to every row; returns which rows are finished by it."""
        row = torch.arange(len(self))
        self.tokens[row, self.count] = token
        self.log_probs[row, self.count] = log_prob
        self.count.add_(1)
        self.position.add_(1)
        return self.stop[row, token] | (self.count >= self.limit)

    def completion(self, row: int, *, aborted: bool = False) -> Completion:
        count = int(self.count[row])
        return Completion(
            token_ids=self.tokens[row, :count].tolist(),
            log_probs=self.log_probs[row, :count].tolist(),
            aborted=aborted,
        )

    def keep(self, order: torch.Tensor) -> None:
        """Row i becomes what was row ``order[i]``."""
        self.state = {name: tensor[order] for name, tensor in self.state.items()}
        self.tags = [self.tags[row] for row in order.tolist()]
        self._note_truncation()

    def _note_truncation(self) -> None:
        self.truncated = bool(((self.top_k > 0) | (self.top_p < 1)).any())
