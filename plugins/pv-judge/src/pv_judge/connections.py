"""Connection pool of one endpoint: each request has a connection to itself, and one that failed is not used again.

A connection of HTTP/1.1 serves one request: its answers carry nothing that says which request they belong to, so that
stray bytes would be read as the answer to the next one (`Exchange` sends `Connection: close`). Streams of HTTP/2 have
numbers, and their connections are used again.

httpcore's pool looks at all its connections for every request that begins or ends: with 64 connections in one pool a
request takes three times the CPU. And where its HTTP/2 has several requests on one connection, one that is cancelled
while it is being sent breaks the others. So every lane is a client with a pool of one.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar
from typing import Any

import anyio
import httpx

from pv_rl.errors import ConfigError

__all__ = ["Lanes"]

KEEP_ALIVE_S = 4.0
"""A connection that was idle for longer is not used again."""


class NoCookies(CookieJar):
    """Keeps none: a judge needs none, and whoever answers could fill the memory with them."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        pass


class Lanes:
    """One connection for each request in flight.

    Raises:
        ConfigError: httpx cannot use the proxies or the certificates that the environment names.
    """

    def __init__(self) -> None:
        self._taken: set[httpx.AsyncClient] = set()
        names = ("SSL_CERT_FILE", "SSL_CERT_DIR")
        try:
            self._trusted = httpx.create_ssl_context()
            names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
            self._free = [self._new()]
        except Exception as error:  # noqa: BLE001 - from ImportError to ssl.SSLError
            given = ", ".join(name for name in os.environ if name.upper() in names)
            # The text of an InvalidURL may quote a part of a proxy's password.
            said = str(error) if isinstance(error, ImportError) else type(error).__name__
            raise ConfigError(
                f"httpx cannot use the environment variable {given} ({said}). Correct or unset it; a SOCKS proxy needs "
                "`pip install httpx[socks]`"
            ) from None

    @asynccontextmanager
    async def lane(self) -> AsyncIterator[httpx.AsyncClient]:
        """A client for one request: the one that was used last, so that few connections are kept warm."""
        client = self._free.pop() if self._free else self._new()
        self._taken.add(client)
        try:
            yield client
        except BaseException:  # cancelled too: what the connection is in the middle of, nobody knows
            with anyio.CancelScope(shield=True):
                await client.aclose()
            raise
        else:
            self._free.append(client)
        finally:
            self._taken.discard(client)

    async def aclose(self) -> None:
        """Close all connections."""
        for client in [*self._free, *self._taken]:
            await client.aclose()
        self._free = []

    def _new(self) -> httpx.AsyncClient:
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEEP_ALIVE_S)
        return httpx.AsyncClient(http2=True, verify=self._trusted, limits=limits, cookies=NoCookies())
