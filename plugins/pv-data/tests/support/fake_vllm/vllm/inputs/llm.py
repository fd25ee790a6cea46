"""See the package."""

from __future__ import annotations

from typing import Any, TypedDict


class TokensPrompt(TypedDict):
    prompt_token_ids: list[int]
    multi_modal_data: Any
    mm_processor_kwargs: Any
    multi_modal_uuids: Any


class TextPrompt(TypedDict):
    prompt: str
