"""Local model: a checkpoint on disk that the run serves itself."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic.dataclasses import dataclass

from pv_judge.config import STRICT

__all__ = ["Local", "check_local"]

FIELDS = frozenset(
    {
        *("max_tokens", "temperature", "top_p", "top_k", "min_p", "min_tokens", "stop", "stop_token_ids"),
        *("presence_penalty", "frequency_penalty", "repetition_penalty", "chat_template_kwargs"),
        "structured_outputs",
    }
)
"""Sampling fields of vLLM's server. It ignores a field that it does not know, and so a misspelt one."""
FORMS = ("regex", "json", "choice", "grammar")
"""Of `structured_outputs`: how the form of every answer is given."""
OURS = {
    "tensor_parallel_size": "gpus",
    "data_parallel_size": "replicas",
    "pipeline_parallel_size": "gpus",
    "model": "checkpoint",
    "tokenizer": "checkpoint",
    "served_model_name": "checkpoint",
    "seed": "the seed of each sample",
}
"""Options of the engine that another setting gives."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Local:
    """See the module."""

    checkpoint: str
    """A folder in Hugging Face's format, or a checkpoint of verl (`global_step_N`), which is converted once."""
    server: Literal["auto", "vllm", "transformers"] = "auto"
    """`auto` is vLLM if it is installed and there is a GPU, else `transformers serve`."""
    engine: dict[str, Any] = Field(default_factory=dict)
    """Options of `vllm serve` by their names in Python, for example `{max_model_len: 16384}`. They are not part of an
    answer's cache key: set a `revision` for one that changes answers, as quantization does."""
    gpus: int = Field(default=1, ge=1)
    """GPUs of one replica (tensor parallel)."""
    replicas: int = Field(default=1, ge=1)
    """Copies of the model that answer side by side (data parallel)."""

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
        return given

    @property
    def name(self) -> str:
        """The folder's."""
        return Path(os.path.abspath(self.checkpoint)).name


def check_local(sampling: Mapping[str, Any], response_format: str, prices: Collection[Any]) -> None:
    """Refuse, by a `ValueError`, settings that a local model does not have."""
    if unknown := sorted(sampling.keys() - FIELDS):
        raise ValueError(
            f"sampling of a local model has no {', '.join(unknown)}; it has {', '.join(sorted(FIELDS))}"
        )
    length = sampling.get("max_tokens")
    if type(length) is not int or length < 1:
        raise ValueError(
            f"sampling.max_tokens of a local model is {length!r}. Expected a whole number of tokens"
        )
    form = sampling.get("structured_outputs", {FORMS[0]: ""})
    if not isinstance(form, dict) or len(form) != 1 or not form.keys() <= set(FORMS):
        raise ValueError(
            f"sampling.structured_outputs of a local model is {form!r}; it has one of {', '.join(FORMS)}"
        )
    if response_format != "none":
        raise ValueError("response_format of a local model must be none. Leave it out")
    if prices:
        raise ValueError("a local model costs no dollars: leave prices out")
