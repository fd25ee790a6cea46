"""The key of an endpoint: read from the environment, sent in one header, and shown nowhere."""

from __future__ import annotations

import os
import re

from pv_rl.errors import ConfigError
from pv_rl.judge.config import Endpoint

__all__ = ["Key"]

MIN_SECRET = 8
"""A shorter key, such as EMPTY, is no secret; to blot it out would garble answers."""


class Key:
    """One key; empty for a server that asks for none."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Read it.

        Raises:
            ConfigError: the environment variable is not set, empty, or holds what cannot be a key.
        """
        name = endpoint.api_key_env
        self._key = os.environ.get(name, "").strip() if name else ""
        if name and not self._key:
            raise ConfigError(
                f"the environment variable {name}, which holds the key for {endpoint.url} (api_key_env), is not set "
                "or empty; set it where the run starts, or leave api_key_env out for a server that asks for no key"
            )
        if not re.fullmatch(r"[!-~]*", self._key):
            raise ConfigError(
                f"the environment variable {name} (api_key_env) holds no key: a key has no spaces and only ASCII "
                "characters; what it holds is not shown"
            )

    def __repr__(self) -> str:
        return "Key(***)"

    def headers(self) -> dict[str, str]:
        """The header that it is sent in."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def blot(self, text: str) -> str:
        """Text that came from the server, with the key blotted out."""
        return text.replace(self._key, "***") if len(self._key) >= MIN_SECRET else text
