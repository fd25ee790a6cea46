"""What a model's folder says of how long its texts may be and how they end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pv_rl.errors import ConfigError

__all__ = ["context_of", "ends_of", "settings_in"]


def settings_in(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file of the folder; empty where it is missing or none."""
    try:
        given = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return given if isinstance(given, dict) else {}


def context_of(folder: Path, engine: Mapping[str, Any]) -> int:
    """Tokens of a question with its answer, at most: `max_model_len` of the engine, else what the model was made for.

    Raises:
        ConfigError: neither says.
    """
    config = settings_in(folder, "config.json")
    text = config.get("text_config")  # of models that also see
    made_for = {**config, **(text if isinstance(text, dict) else {})}.get("max_position_embeddings")
    context = engine.get("max_model_len", made_for)
    if type(context) is not int or context < 1:
        raise ConfigError(
            f"{folder}/config.json does not say how long a text may be: give local.engine.max_model_len, in tokens"
        )
    return context


def ends_of(folder: Path) -> frozenset[int]:
    """Tokens that end a text of the model."""
    ends: set[int] = set()
    for name in ("config.json", "generation_config.json"):
        given = settings_in(folder, name).get("eos_token_id")
        ends |= {one for one in (given if isinstance(given, list) else [given]) if type(one) is int}
    return frozenset(ends)
