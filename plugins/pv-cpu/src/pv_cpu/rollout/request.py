"""One request: a prompt and how to continue it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pv_cpu.errors import UnsupportedOnCpuError

__all__ = ["Completion", "Request", "parse"]

GREEDY_BELOW = 1e-5
"""A temperature below this means greedy decoding, as in vLLM."""

SUPPORTED = (
    "temperature", "top_p", "top_k", "max_tokens", "max_new_tokens", "ignore_eos", "logprobs", "seed",
    "stop_token_ids",
)  # fmt: skip

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "repetition_penalty": (None, 1, 1.0),
    "presence_penalty": (None, 0, 0.0),
    "frequency_penalty": (None, 0, 0.0),
    "min_p": (None, 0, 0.0),
    "min_tokens": (None, 0),
    "n": (None, 1),
    "prompt_logprobs": (None,),
    "stop": (None, "", [], ()),
}
"""Parameters that verl or a user may pass, with the values at which they change nothing."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the engine needs to know about one continuation."""

    prompt: tuple[int, ...]
    """Token ids, at least one."""
    max_tokens: int
    """Upper bound on the tokens to generate, at least 1."""
    temperature: float = 1.0
    """0 means greedy; the log-probabilities are then those at temperature 1."""
    top_p: float = 1.0
    """In (0, 1]; 1 keeps every token."""
    top_k: int = 0
    """Number of tokens to sample from; 0 keeps every token."""
    seed: int | None = None
    """Makes the continuation independent of every other request. None draws from the engine."""
    stop_token_ids: frozenset[int] = frozenset()
    """Tokens that end the response, which keeps them."""

    @property
    def greedy(self) -> bool:
        return self.temperature < GREEDY_BELOW


@dataclass(frozen=True, kw_only=True)
class Completion:
    """The answer to a request."""

    token_ids: list[int]
    log_probs: list[float]
    """log p(token) under the distribution that it was sampled from, as long as ``token_ids``."""
    aborted: bool = False
    """True if the engine was told to stop before the response was complete."""


def _reject_unknown(params: Mapping[str, Any]) -> None:
    for name, value in params.items():
        if name in SUPPORTED or (name in NEUTRAL and value in NEUTRAL[name]):
            continue
        allowed = f"only {NEUTRAL[name][-1]!r}" if name in NEUTRAL else f"none but {', '.join(SUPPORTED)}"
        raise UnsupportedOnCpuError(
            f"sampling parameter {name}={value!r} is not supported by rollout.name=pv_cpu ({allowed}); "
            "leave it out, or run on a GPU with rollout.name=vllm"
        )


def _check_range(name: str, value: float, ok: bool, allowed: str) -> None:
    if not ok:
        raise UnsupportedOnCpuError(f"sampling parameter {name}={value!r} is not allowed; use {allowed}")


def parse(
    prompt: Sequence[int],
    params: Mapping[str, Any],
    *,
    default_max_tokens: int,
    max_model_len: int,
    vocab_size: int,
    eos_token_ids: frozenset[int],
    ignore_eos: bool = False,
    seed: int | None = None,
) -> Request:
    """Turn verl's sampling parameters into a ``Request``, with vLLM's meaning of each."""
    _reject_unknown(params)
    prompt = tuple(int(token) for token in prompt)
    room = max_model_len - len(prompt)
    if not prompt or room < 1:
        raise UnsupportedOnCpuError(
            f"a prompt of {len(prompt)} tokens does not fit: it needs at least one token and, with "
            f"max_model_len={max_model_len}, room for one more; shorten it or raise "
            "actor_rollout_ref.rollout.max_model_len"
        )
    outside = [token for token in prompt if not 0 <= token < vocab_size]
    if outside:
        raise UnsupportedOnCpuError(
            f"prompt token {outside[0]} is outside the model's vocabulary of {vocab_size}; "
            "is the tokenizer that of the model?"
        )
    temperature = float(params.get("temperature", 1.0))
    top_p = 1.0 if params.get("top_p") is None else float(params["top_p"])
    top_k = int(params.get("top_k") or 0)
    _check_range("temperature", temperature, 0 <= temperature < float("inf"), "0 (greedy) or more")
    _check_range("top_p", top_p, 0 < top_p <= 1, "a number in (0, 1]")
    _check_range("top_k", top_k, top_k >= -1, "-1 or 0 for all tokens, or a positive number")
    asked = params.get("max_tokens", params.get("max_new_tokens"))
    max_tokens = default_max_tokens if asked is None else int(asked)
    stop = frozenset(int(token) for token in params.get("stop_token_ids") or ())
    if not params.get("ignore_eos", ignore_eos):
        stop |= eos_token_ids
    asked_seed = params.get("seed")
    return Request(
        prompt=prompt,
        max_tokens=max(1, min(max_tokens, room)),
        temperature=temperature,
        top_p=top_p,
        top_k=max(top_k, 0),
        seed=seed if asked_seed is None else int(asked_seed),
        stop_token_ids=stop,
    )
