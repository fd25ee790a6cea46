"""From logits to tokens, for all rows at once.

Shapes: B rows, V tokens of the vocabulary. ``logits: (B, V)``; every other argument is ``(B,)``.
"""

from __future__ import annotations

import torch

__all__ = ["choose", "processed_log_probs", "truncate"]


def truncate(logits: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Set to -inf what top-k and then top-p leave out: the same as in vLLM and transformers.

    top-k keeps the k largest (0 keeps all). top-p keeps the smallest set of largest tokens whose
    probabilities, after top-k, sum to at least p. The largest token is always kept.
    """
    vocab = logits.shape[-1]
    ordered, index = logits.sort(dim=-1, descending=True)
    rank = torch.arange(vocab)
    beyond_k = rank >= torch.where(top_k > 0, top_k, vocab).unsqueeze(-1)
    ordered = ordered.masked_fill(beyond_k, -torch.inf)
    probability = ordered.softmax(dim=-1)
    before = probability.cumsum(dim=-1) - probability
    dropped = beyond_k | ((before >= top_p.unsqueeze(-1)) & (top_p < 1).unsqueeze(-1))
    dropped[:, 0] = False
    return logits.masked_fill(torch.zeros_like(dropped).scatter(-1, index, dropped), -torch.inf)


def processed_log_probs(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    *,
    truncated: bool,
) -> torch.Tensor:
    """``(B, V)`` log-probabilities of the distribution that is sampled from.

    ``temperature`` is 1 for a greedy row. ``truncated`` says whether any row has a top-k or top-p;
    if none has, no sorting is needed.
    """
    logits = logits.float() / temperature.unsqueeze(-1)
    if truncated:
        logits = truncate(logits, top_k, top_p)
    return logits.log_softmax(dim=-1)


def choose(log_probs: torch.Tensor, greedy: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """One token a row: the largest if greedy, else the one at ``uniform`` of the distribution function.

    Drawing by one number in [0, 1) a row, which belongs to the row alone, is what makes a response
    independent of the rows that happen to be in the batch with it. The sums are in float64, so that
    a token of probability 0 is never hit.
    """
    cumulative = log_probs.double().exp().cumsum(dim=-1)
    target = (uniform * cumulative[:, -1]).unsqueeze(-1)
    token = torch.searchsorted(cumulative, target, right=True).squeeze(-1)
    token = token.clamp_(max=log_probs.shape[-1] - 1)
    return torch.where(greedy, log_probs.argmax(dim=-1), token)
