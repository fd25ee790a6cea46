"""Settings of a local model, which the run serves itself from a checkpoint on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass

from pv_judge.config import STRICT

__all__ = ["FIELDS", "Local", "check_local"]

FIELDS = frozenset(
    {
        *("max_tokens", "temperature", "top_p", "top_k", "min_p", "min_tokens", "stop", "stop_token_ids"),
        *("presence_penalty", "frequency_penalty", "repetition_penalty", "chat_template_kwargs"),
        "structured_outputs",
    }
)
"""Sampling parameters with the same name in a request to vLLM's server and in its `SamplingParams`."""
FORMS: dict[str, type | tuple[type, ...]] = {
    "regex": str,
    "json": (str, dict),
    "choice": list,
    "grammar": str,
}
"""Forms of `structured_outputs`, which every answer then has."""
OURS = {
    "tensor_parallel_size": "gpus",
    "data_parallel_size": "replicas",
    "pipeline_parallel_size": "gpus",
    "model": "checkpoint",
    "tokenizer": "checkpoint",
    "served_model_name": "checkpoint",
    "seed": "the seed of each sample",
}
"""Options of the engine that other settings set."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Local:
    """See the module."""

    checkpoint: str
    """A folder in Hugging Face's format, or a checkpoint of verl (`global_step_N`), which is converted once."""
    server: Literal["auto", "vllm", "transformers"] = "auto"
    """Of executor=local: `auto` is vLLM where it is installed and there is a GPU. executor=ray always takes vLLM."""
    engine: dict[str, Any] = Field(default_factory=dict)
    """Options of vLLM's engine (`AsyncEngineArgs`), for example `{max_model_len: 16384}`. They are no part of the key
    of an answer: give a `revision` to one that changes answers, as quantization does."""
    gpus: int = Field(default=1, ge=1)
    """Of one replica, over which the model is cut (tensor parallel)."""
    replicas: int = Field(default=1, ge=1)
    """Copies of the model that answer side by side."""

    @field_validator("checkpoint")
    @classmethod
    def _is_a_path(cls, given: str) -> str:
        if not given.strip():
            raise ValueError("expected the path of a folder")
        return given

    @field_validator("engine")
    @classmethod
    def _is_of_the_engine(cls, given: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(OURS.keys() & given.keys()):
            raise ValueError(", ".join(f"{name} is set by {OURS[name]}" for name in taken))
        length = given.get("max_model_len", 1)
        if type(length) is not int or length < 1:
            raise ValueError(f"max_model_len is {length!r}. Expected a whole number of tokens")
        return given

    @property
    def name(self) -> str:
        """The folder's."""
        return Path(os.path.abspath(self.checkpoint)).name


def check_local(sampling: Mapping[str, Any], response_format: str, prices: Collection[Any]) -> None:
    """Refuse, by a `ValueError`, settings that the executors would send to a local model in different ways."""
    if strange := sorted(sampling.keys() - FIELDS):
        raise ValueError(
            f"sampling of a local model has no {', '.join(strange)}. It has {', '.join(sorted(FIELDS))}"
        )
    length = sampling.get("max_tokens")
    if type(length) is not int or length < 1:
        raise ValueError(
            f"sampling.max_tokens of a local model is {length!r}. Expected a whole number of tokens"
        )
    ends = sampling.get("stop_token_ids", [])
    if not isinstance(ends, list) or any(type(one) is not int for one in ends):
        raise ValueError(
            f"sampling.stop_token_ids of a local model is {ends!r}. Expected a list of token numbers"
        )
    if "structured_outputs" in sampling:
        _check_form(sampling["structured_outputs"])
    if response_format != "none":
        raise ValueError("response_format of a local model must be none. Leave it out")
    if prices:
        raise ValueError("a local model has no price. Leave out prices")


def _check_form(given: object) -> None:
    if not isinstance(given, dict) or len(given) != 1 or not given.keys() <= FORMS.keys():
        raise ValueError(
            f"sampling.structured_outputs of a local model is {given!r}. Expected one of {', '.join(FORMS)}"
        )
    ((way, form),) = given.items()
    ok = bool(form) and isinstance(form, FORMS[way])
    if way == "choice":
        ok = ok and all(isinstance(one, str) for one in form)
    elif way == "json" and isinstance(form, str):
        try:
            ok = isinstance(json.loads(form), dict)
        except ValueError:
            ok = False
    if not ok:  # a regular expression and a grammar are the engine's to read
        raise ValueError(
            f"sampling.structured_outputs.{way} of a local model is {form!r}. Expected "
            + {"json": "a JSON schema", "choice": "a list of texts"}.get(way, "a text")
        )
