"""API key of an endpoint: read from the environment, sent in one header, kept out of every text and log record."""

from __future__ import annotations

import base64
import html
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pv_judge.config import Endpoint
from pv_rl.errors import ConfigError

__all__ = ["Key", "unlogged"]

MIN_SECRET = 8
"""A shorter key, such as EMPTY, is not secret, and replacing it would garble answers."""
WITHHELD = "*** (this text contains the key in an encoded form and is not shown)"

LOGGERS = tuple(
    [f"httpcore.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")]
    + ["httpx", "hpack.hpack", "hpack.table"]
)
"""Loggers that print headers. Those of the server may echo the key."""
HELD = {
    f"httpcore._{kind}.{part}": "logger"
    for kind in ("async", "sync")
    for part in ("connection", "http11", "http2", "http_proxy", "socks_proxy")
} | {"httpx._client": "logger", "hpack.hpack": "log", "hpack.table": "log"}
"""Module and attribute of each such logger. After a library replaces `logging.Logger.manager`, as AReaL does,
`logging.getLogger` returns new loggers, and these modules keep the old ones."""
_SENDING: ContextVar[bool] = ContextVar("pv_rl_sending", default=False)


class Key:
    """One key; empty for a server without keys."""

    def __init__(self, value: str = "", name: str = "") -> None:
        """`name` is the environment variable that it was read from."""
        self._key, self._name = value, name
        whole = [base64.b64encode(b"\0" * skip + value.encode()).decode() for skip in range(3)]
        cores = [one[-(-8 * skip // 6) : 8 * (skip + len(value)) // 6] for skip, one in enumerate(whole)]
        self._codes = [*map(_bare, [value, _unescaped(value), *cores]), value.encode().hex()]

    @classmethod
    def of(cls, endpoint: Endpoint) -> Key:
        """Read the key of an endpoint.

        Raises:
            ConfigError: the environment variable is not set, empty, or does not contain a valid key.
        """
        name = endpoint.api_key_env
        value = os.environ.get(name, "").strip() if name else ""
        # A name that is not written like a variable may be a key in the wrong place.
        shown = name if re.fullmatch(r"[A-Z][A-Z0-9_]*", name) else "that api_key_env names (not shown)"
        if name and not value:
            raise ConfigError(
                f"the environment variable {shown} with the key for {endpoint.url} (api_key_env) is not set or empty. "
                "Set it where the run starts, or leave out api_key_env for a server without keys"
            )
        if not re.fullmatch(r"[!-~]*", value):
            raise ConfigError(
                f"the environment variable {shown} (api_key_env) does not contain a valid key (value not shown). "
                "Expected printable ASCII without spaces"
            )
        return cls(value, name)

    def __repr__(self) -> str:
        return "Key(***)"

    @property
    def source(self) -> str:
        """Where the key comes from, as part of an error."""
        if self._name:
            return f"the key was read from the environment variable {self._name} (api_key_env)"
        return "no key was sent: set api_key_env to the name of the environment variable that holds one"

    def headers(self) -> dict[str, str]:
        """The header that contains the key."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def blot(self, text: str) -> str:
        """Text from the server with `***` for the key; a text that contains the key encoded is withheld."""
        if len(self._key) < MIN_SECRET:
            return text
        text = text.replace(self._key, "***")
        for length in range(len(self._key) - 1, MIN_SECRET - 1, -1):  # the text was cut within the key
            if text.endswith(self._key[:length]):
                return text[:-length] + "***"
        plain = _unescaped(text)
        bare = _bare(re.sub(r"\\[bfnrt]", "", plain))
        encoded = self._key in plain or any(len(one) >= MIN_SECRET and one in bare for one in self._codes)
        return WITHHELD if encoded else text


def _unescaped(text: str) -> str:
    """A text without its escapes (JSON, Python, URL, HTML)."""
    text = re.sub(r"\\(?:u00|x)([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)
    text = re.sub(r"%(?:25)*([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), html.unescape(text))
    return re.sub(r"\\([\\\"'/])", r"\1", text)


def _bare(text: str) -> str:
    """The letters and digits of a text, in lower case."""
    return re.sub(r"[^A-Za-z0-9]+", "", text).lower()


@contextmanager
def unlogged() -> Iterator[None]:
    """Drop the records of `LOGGERS`, at any level, about requests that are sent within the block."""
    held = [getattr(sys.modules.get(module), name, None) for module, name in HELD.items()]
    for logger in [*filter(None, held), *map(logging.getLogger, LOGGERS)]:
        logger.addFilter(_is_not_ours)  # does nothing the second time
    token = _SENDING.set(True)
    try:
        yield
    finally:
        _SENDING.reset(token)


def _is_not_ours(record: logging.LogRecord) -> bool:
    return not (_SENDING.get() or record.name.startswith("hpack"))  # which logs nothing but headers
