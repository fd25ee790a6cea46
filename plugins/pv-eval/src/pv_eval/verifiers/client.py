"""The settings of the client that asks a verifier: ours, and the user's over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pv_data.asking.settings import Model
from pv_data.serving.served import LONG_S
from pv_eval.wanted import Wanted
from pv_judge.config import read_config
from pv_judge.scoring.command import read_options
from pv_rl.errors import ConfigError

__all__ = ["client_settings"]

BYTES_A_TOKEN = 1_000
"""Of an answer with log-probabilities: a token with its alternatives takes about 600."""


def client_settings(
    wanted: Wanted,
    url: str,
    name: str,
    *,
    at_once: int,
    own: bool = False,
    revision: str = "",
    fields: Mapping[str, Any] | None = None,
) -> Model:
    """The settings.

    Args:
        at_once: requests together, unless the user says otherwise.
        own: whether the server is one that was started here.
        revision: of the model.
        fields: further ones of a request.

    Raises:
        ConfigError: a setting of the user's is unknown or out of bounds.
    """
    patient = {"timeouts": {"first_byte_s": LONG_S, "total_s": LONG_S}, "deadline_s": LONG_S} if own else {}
    settings: dict[str, Any] = {
        "endpoints": [{"url": url, "model": name, "extra_body": dict(fields or {})}],
        "sampling": wanted.sampling.fields(),
        "limits": {"concurrency": at_once},
        "revision": revision,
        **patient,
    }
    if wanted.sampling.logits:
        settings["max_answer_bytes"] = BYTES_A_TOKEN * wanted.sampling.max_tokens + 1_000_000
    for part, value in read_options(None, wanted.client).items():
        if part == "endpoints":
            raise ConfigError("the endpoint is --verifier and --model; its other fields are endpoint.NAME")
        if part == "endpoint":
            settings["endpoints"][0].update(value)
        elif isinstance(value, dict) and isinstance(settings.get(part), dict):
            settings[part] = {**settings[part], **value}
        else:
            settings[part] = value
    return read_config(settings, Model, "client")
