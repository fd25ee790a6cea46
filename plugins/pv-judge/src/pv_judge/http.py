"""HTTP client of one endpoint, and its connection pool.

Each request has a connection to itself, and a connection that failed is not used again. A connection of HTTP/1.1 serves
one request: its answers do not say which request they belong to, so stray bytes would be read as the answer to the next
one (`Connection: close`). HTTP/2 numbers its streams, and its connections are used again.

httpcore's pool looks at all its connections for every request that begins or ends: with 64 connections in one pool a
request takes three times the CPU. And where its HTTP/2 has several requests on one connection, one that is cancelled
while it is being sent breaks the others. So every connection is an httpx client with a pool of one.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar
from typing import Any

import anyio
import httpx

from pv_judge.answer import Messages, Usage
from pv_judge.breaker import REFUSED
from pv_judge.completion import (
    Completion,
    RequestFailed,
    error_of,
    estimate_tokens,
    failure_kind,
    read_completion,
)
from pv_judge.config import Endpoint, JudgeConfig
from pv_judge.keys import Key, unlogged
from pv_rl.errors import ConfigError

__all__ = ["ConnectionPool", "EndpointClient", "NoCookies", "retry_after_s"]

KEEP_ALIVE_S = 4.0
"""A connection that was idle for longer is not reused."""
MAX_RETRY_AFTER_S = 300.0
"""Longest wait for a Retry-After."""
MAX_ERROR_BYTES = 16_384
"""Bytes of an error's body that are read."""
MAX_MESSAGE = 300
"""Characters of the server's message in an error."""


class NoCookies(CookieJar):
    """Keeps no cookies: a judge needs none, and a server could fill the memory with them."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        pass


class ConnectionPool:
    """One connection for each request in flight.

    Raises:
        ConfigError: httpx cannot use the proxies or the certificates that the environment names, or lacks a package.
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
            if not given:
                raise ConfigError(f"httpx cannot be used: {said} The judge needs `httpx[http2]`") from None
            raise ConfigError(
                f"httpx cannot use the environment variable {given} ({said}). Correct or unset it; a SOCKS proxy needs "
                "`pip install httpx[socks]`"
            ) from None

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[httpx.AsyncClient]:
        """A client for one request: the one that was used last, so that few connections are kept warm."""
        client = self._free.pop() if self._free else self._new()
        self._taken.add(client)
        try:
            yield client
        except BaseException:  # cancelled too: the connection may be in the middle of anything
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


class EndpointClient:
    """Sends requests to one endpoint. The key is in no repr, log, error or answer."""

    def __init__(self, endpoint: Endpoint, config: JudgeConfig) -> None:
        if endpoint.url == "router":
            raise ConfigError(
                "the judge's url is `router`, which only a running trainer can replace by an address. Give an address"
            )
        self._key = Key.of(endpoint)
        self._timeouts = times = config.timeouts
        self._max_bytes = config.max_answer_bytes
        try:
            self._url = httpx.URL(endpoint.url + "/chat/completions")
        except httpx.InvalidURL as error:
            raise ConfigError(f"the judge's url {endpoint.url} is not a URL: {error}") from None
        self._headers = httpx.Headers(  # whose repr hides the key
            {
                "Accept": "application/json",
                "Accept-Encoding": "identity",  # an answer is small, and a compressed one can be a bomb
                "Connection": "close",  # see the module; HTTP/2 leaves it out
                "Content-Type": "application/json",
                "User-Agent": "pv-rl",
                **self._key.headers(),
            }
        )
        self._fields: dict[str, Any] = {"model": endpoint.model, **config.sampling}
        if config.response_format == "json_object":
            self._fields["response_format"] = {"type": "json_object"}
        self._fields |= endpoint.extra_body
        seconds = {"connect": times.connect_s, "read": times.first_byte_s, "write": times.first_byte_s}
        self._extensions = {"timeout": seconds}
        self._pool = ConnectionPool()

    def body(self, messages: Messages, seed: int | None = None) -> bytes:
        """The request's body."""
        fields = {**self._fields, "messages": [dict(message) for message in messages]}
        if seed is not None:
            fields["seed"] = seed
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")

    async def send(self, body: bytes) -> Completion:
        """Send one request and read its answer.

        Raises:
            RequestFailed: there is no completion, for any reason.
        """
        sent = Usage(prompt_tokens=estimate_tokens(body))
        try:
            status, headers, raw = await self._exchange(body, sent)
            if not 200 <= status < 300:
                raise _refused(status, headers, raw)
            completion = read_completion(raw, sent.prompt_tokens)
        except RequestFailed as failure:
            source = f"; {self._key.source}" if failure.kind in REFUSED else ""
            failure.args = (self.tidy(str(failure)) + source,)
            failure.text = self._key.blot(failure.text)
            raise
        return replace(completion, text=self._key.blot(completion.text))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    def tidy(self, text: str) -> str:
        """Text from outside, made fit for an error: without the key, printable, not long."""
        text = self._key.blot(text)
        text = text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "..."
        return "".join(one if one.isprintable() or one in "\n\t" else "?" for one in text)

    async def _exchange(self, body: bytes, sent: Usage) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers, body. httpx limits the times to connect and between bytes; we limit the total time."""
        times, clock = self._timeouts, asyncio.get_running_loop().time
        request = httpx.Request(
            "POST", self._url, headers=self._headers, content=body, extensions=self._extensions
        )
        begin = clock()
        first_byte_s = min(times.connect_s + times.first_byte_s, times.total_s)
        with anyio.CancelScope(deadline=begin + first_byte_s) as scope:
            try:
                with unlogged():
                    async with self._pool.connection() as client:
                        response = await client.send(request, stream=True)
                        scope.deadline = begin + times.total_s
                        try:
                            return response.status_code, response.headers, await self._read(response, sent)
                        finally:
                            await response.aclose()
            except httpx.ConnectTimeout:
                raise RequestFailed("timeout", f"no connection within {times.connect_s:g} s") from None
            except httpx.TimeoutException:
                raise RequestFailed(
                    "timeout", f"silence for {times.first_byte_s:g} s", usage=sent, unsettled=True
                ) from None
            except RequestFailed:
                raise
            except Exception as error:  # noqa: BLE001 - also of anyio, ssl, h2, idna: the row fails, not the run
                raise _broken(error, sent) from None
        raise RequestFailed(
            "timeout", f"no whole answer after {clock() - begin:.1f} s", usage=sent, unsettled=True
        )

    async def _read(self, response: httpx.Response, sent: Usage) -> bytes:
        """The body, up to its limit."""
        ok = response.status_code < 300
        most = self._max_bytes if ok else MAX_ERROR_BYTES
        if ok and response.headers.get("content-encoding", "identity") != "identity":
            said = "the body is compressed, though identity was asked for"
            raise RequestFailed("bad_response", said, usage=sent, unsettled=True)
        received = bytearray()
        async for chunk in response.aiter_raw():
            received += chunk
            if len(received) > most:
                break
        if ok and len(received) > most:
            raise RequestFailed(
                "too_large", f"the answer is longer than max_answer_bytes, {most}", usage=sent, unsettled=True
            )
        return bytes(received)


def _refused(status: int, headers: Mapping[str, str], raw: bytes) -> RequestFailed:
    """The failure of an HTTP status of 300 or more. Servers do not bill it."""
    codes, message = error_of(raw)
    kind = failure_kind(status, codes, message)
    said = f"{message} ({codes})" if codes else message
    if status < 400:
        said = f"redirects are not followed; this one leads to {headers.get('location', 'nowhere')}"
    wait = retry_after_s(headers.get("retry-after"), time.time())
    return RequestFailed(kind, f"HTTP {status}: {said}", usage=Usage(), status=status, retry_after_s=wait)


def _broken(error: BaseException, sent: Usage) -> RequestFailed:
    """The failure of a transport error."""
    said, root = f"{type(error).__name__}: {error}", error
    while (deeper := root.__cause__ or root.__context__) is not None:
        root = deeper
    if isinstance(root, OSError) and str(root) not in said:  # `Too many open files`, `Connection refused`
        said += f" ({root})"
    if isinstance(error, httpx.ConnectError | httpx.ProxyError | httpx.UnsupportedProtocol):
        return RequestFailed("connect", said)
    cut = str(error).startswith(
        ("Server disconnected", "peer closed connection", "<")
    )  # `<`: an event of HTTP/2
    if isinstance(error, httpx.RemoteProtocolError) and not cut:
        return RequestFailed("server_error", f"the answer is not HTTP: {error}", usage=sent, unsettled=True)
    return RequestFailed("reset", said, usage=sent, unsettled=True)


def retry_after_s(value: str | None, now: float) -> float | None:
    """Seconds from a Retry-After header, which has seconds or a date; None where it has neither. `now` is Unix time."""
    if value is None:
        return None
    value = value.strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value, re.ASCII):
        return min(float(value), MAX_RETRY_AFTER_S)
    try:
        return min(max(0.0, parsedate_to_datetime(value).timestamp() - now), MAX_RETRY_AFTER_S)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
