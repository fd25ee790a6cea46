"""Verdict logit: log odds of True over False at the token that begins the verdict of a trace."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from pv_judge.answer import TokenLogprobs
from pv_rl.verdict import parse_verdict

__all__ = ["verdict_logit"]

NEAR = 50
"""The verdict begins within this many tokens from the end: only marks and white space follow it."""
WORD = re.compile(r"true|false", re.IGNORECASE)


def verdict_logit(text: str, tokens: Sequence[TokenLogprobs]) -> float | None:
    """Log of the odds of True over False at the token that begins the verdict.

        logit = log sum_{t begins True} p(t) - log sum_{t begins False} p(t)

    A word that is not among the alternatives is taken to be as likely as the least likely of them, which is the most
    that it can be: the logit is then nearer to 0 than the true one.

    Example: a trace that ends with the tokens `###`, ` True`, where ` False` has probability .1 and ` True` .9, has
    logit log 9 = 2.197.

    Args:
        text: the trace.
        tokens: of all of it, in order; empty where the server gave none.

    Returns:
        None for a trace without a verdict, or where the tokens do not have it.
    """
    verdict = parse_verdict(text)
    token = None if verdict is None else _token_of(str(verdict).lower(), tokens)
    if token is None:
        return None
    least = min(token.top.values())
    accepts, rejects = (_log_mass(token.top, name) for name in ("true", "false"))
    if accepts == rejects == -math.inf:
        return None  # the word begins inside the token, behind other letters
    logit = max(accepts, least) - max(rejects, least)
    return logit if math.isfinite(logit) else None


def _token_of(word: str, tokens: Sequence[TokenLogprobs]) -> TokenLogprobs | None:
    """The token in which the last true or false begins, where it is the word; looked for from the end, where marks and
    white space may stand, since the bytes of other letters can be cut among tokens."""
    tail = ""
    for token in reversed(tokens[-NEAR:]):
        tail = token.token + tail
        if found := list(WORD.finditer(tail)):
            return token if found[-1].group().lower() == word else None
    return None


def _log_mass(top: Mapping[str, float], word: str) -> float:
    """Log of the probability of all tokens that begin the word, or hold it; -inf for none."""
    found = []
    for text, logprob in top.items():
        letters = re.sub(r"[^a-z]", "", text.lower())
        if letters and (word.startswith(letters) or letters.startswith(word)):
            found.append(logprob)
    return float(np.logaddexp.reduce(found))
