"""Continuous batching on one thread: admit requests, prefill them, decode all rows a token a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

import torch
from transformers import PreTrainedModel

from pv_cpu.rollout.cache import ColumnCache
from pv_cpu.rollout.request import Completion, Request
from pv_cpu.rollout.rows import Rows, Tag
from pv_cpu.rollout.sampling import choose, processed_log_probs

__all__ = ["Engine", "split"]


def split(pairs: Sequence[tuple[Request, Tag]], max_tokens: int) -> list[list[tuple[Request, Tag]]]:
    """Cut what is to be admitted so that one prefill has at most so many tokens, padding included.

    Shorter prompts first, which keeps the padding small; the same prompt counts once.
    """
    chunks: list[list[tuple[Request, Tag]]] = []
    distinct: set[tuple[int, ...]] = set()
    for pair in sorted(pairs, key=lambda pair: (len(pair[0].prompt), pair[0].prompt)):
        prompt = pair[0].prompt
        grows = prompt not in distinct
        if not chunks or (grows and (len(distinct) + 1) * len(prompt) > max_tokens):
            chunks.append([])
            distinct = set()
        distinct.add(prompt)
        chunks[-1].append(pair)
    return chunks


def _left_padded(prompts: Sequence[tuple[int, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
    """``(U, L)`` token ids, prompts at the right end, and ``(U,)`` the column where each begins."""
    width = max(map(len, prompts))
    ids = torch.zeros(len(prompts), width, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
    return ids, torch.tensor([width - len(prompt) for prompt in prompts])


def _causal_mask(start: torch.Tensor, width: int) -> torch.Tensor:
    """``(U, 1, L, L)``, True where a query may look. Padding looks at itself, or it would become NaN."""
    column = torch.arange(width)
    causal = column[None, :] <= column[:, None]
    real = column[None, None, :] >= start[:, None, None]
    return (causal & (real | torch.eye(width, dtype=torch.bool))).unsqueeze(1)


def _fill_gaps(done: torch.Tensor) -> torch.Tensor:
    """An order of the rows that are not done in which as few as possible change their place.

    >>> _fill_gaps(torch.tensor([False, True, False, False])).tolist()
    [0, 3, 2]
    """
    left = int((~done).sum())
    order = torch.arange(left)
    order[done[:left]] = (~done[left:]).nonzero().squeeze(-1) + left
    return order


class Engine(Generic[Tag]):
    """Rows in flight, their cache and the model. Not thread-safe: one thread owns it."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        max_rows: int,
        max_prefill_tokens: int = 8192,
        sampled_vocab: int | None = None,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.max_rows = max_rows
        self.max_prefill_tokens = max_prefill_tokens
        self.sampled_vocab = sampled_vocab
        """Tokens from this id on are padding of the embedding, and are never sampled."""
        self.generator = torch.Generator().manual_seed(seed)
        self.vocab_size: int = model.config.get_text_config().vocab_size
        self.reset()

    def reset(self) -> None:
        """Forget every row."""
        self.rows: Rows[Tag] = Rows()
        self.cache = ColumnCache(row_capacity=self.max_rows)
        self.last = torch.empty(0, dtype=torch.long)

    @property
    def free(self) -> int:
        return self.max_rows - len(self.rows)

    @torch.inference_mode()
    def admit(self, requests: Sequence[Request], tags: Sequence[Tag]) -> list[tuple[Tag, Completion]]:
        """Prefill the prompts, each distinct one once, and sample a first token for every request.

        Returns the requests that this token finishes. If the model fails, nothing has changed.
        """
        distinct = {prompt: row for row, prompt in enumerate({request.prompt: None for request in requests})}
        ids, start = _left_padded(list(distinct))
        width = ids.shape[1]
        prompts = ColumnCache()
        prompts.rows, prompts.start = len(ids), start
        prompts.advance(width)
        position = (torch.arange(width) - start.unsqueeze(-1)).clamp(min=0)
        logits = self._forward(ids, position, _causal_mask(start, width), prompts)
        source = torch.tensor([distinct[request.prompt] for request in requests])
        fresh: Rows[Tag] = Rows.of(requests, tags, self.vocab_size, self.generator)
        last, finished, kept = self._sample(fresh, logits[source])
        if kept is not None:
            source = source[kept]
        if len(fresh):
            self.cache.admit(prompts, source, columns=max(fresh.remaining(), self.rows.remaining()))
            self.rows.extend(fresh)
            self.last = torch.cat([self.last, last])
        return finished

    @torch.inference_mode()
    def step(self) -> list[tuple[Tag, Completion]]:
        """Decode one token for every row; returns the rows that it finished."""
        self.cache.advance(1)
        position = self.rows.position.unsqueeze(-1)
        logits = self._forward(self.last.unsqueeze(-1), position, self.cache.mask(), self.cache)
        self.last, finished, kept = self._sample(self.rows, logits)
        if kept is not None:
            self.cache.keep(kept)
        return finished

    def abort(self) -> list[tuple[Tag, Completion]]:
        """Stop every row where it is."""
        partial = [(tag, self.rows.completion(i, aborted=True)) for i, tag in enumerate(self.rows.tags)]
        self.reset()
        return partial

    def _forward(
        self, ids: torch.Tensor, position: torch.Tensor, mask: torch.Tensor | None, cache: ColumnCache
    ) -> torch.Tensor:
        """``(B, V)`` logits of the last column."""
        out = self.model(
            input_ids=ids,
            position_ids=position,
            attention_mask=mask,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits = out.logits[:, -1].float()
        if self.sampled_vocab is not None and self.sampled_vocab < logits.shape[-1]:
            logits[:, self.sampled_vocab :] = -torch.inf
        return logits

    def _sample(
        self, rows: Rows[Tag], logits: torch.Tensor
    ) -> tuple[torch.Tensor, list[tuple[Tag, Completion]], torch.Tensor | None]:
        """Add a token to each row and drop those that it finishes.

        Returns the tokens of the rows that stay, the finished rows, and the order in which
        ``Rows.keep`` left the others (None if all stayed).
        """
        log_probs = processed_log_probs(
            logits, rows.temperature, rows.top_k, rows.top_p, truncated=rows.truncated
        )
        token = choose(log_probs, rows.greedy, rows.next_uniform())
        done = rows.record(token, log_probs.gather(-1, token.unsqueeze(-1)).squeeze(-1))
        if not done.any():
            return token, [], None
        finished = [(rows.tags[i], rows.completion(i)) for i in done.nonzero().squeeze(-1).tolist()]
        order = _fill_gaps(done)
        rows.keep(order)
        return token[order], finished, order
