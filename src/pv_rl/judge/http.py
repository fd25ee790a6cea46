"""One HTTP exchange with one endpoint: a request out, a completion or the reason for none back."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import anyio
import httpx

from pv_rl.errors import ConfigError
from pv_rl.judge.answer import FailureKind, Messages, Usage
from pv_rl.judge.completion import Completion, RequestFailed, estimate_tokens, read_completion
from pv_rl.judge.config import Endpoint, JudgeConfig
from pv_rl.judge.pools import Pools

__all__ = ["Exchange", "read_key", "retry_after_s"]

MAX_RETRY_AFTER_S = 300.0
"""A server that asks for more is asked again after this."""
MAX_ERROR_BYTES = 16_384
"""More of an error's body is not read."""
MAX_SAID = 300
"""Characters of the server's own words in an error."""
MIN_SECRET = 8
"""A shorter key, such as EMPTY, is no secret; to blot it out would garble answers."""


class Exchange:
    """The connections to one endpoint. The key is in no repr, log or error."""

    def __init__(self, endpoint: Endpoint, config: JudgeConfig) -> None:
        if endpoint.url == "router":
            raise ConfigError(
                "the endpoint's url is `router`, whose address only a running trainer knows; give a URL"
            )
        key = read_key(endpoint)
        self.endpoint = endpoint
        self._timeouts = config.timeouts
        self._max_bytes = config.max_answer_bytes
        self._secrets = [key, json.dumps(key)[1:-1]] if len(key) >= MIN_SECRET else []
        self._url = httpx.URL(endpoint.url + "/chat/completions")
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # an answer is small, and a compressed one can be a bomb
            "Content-Type": "application/json",
            "User-Agent": "pv-rl",
        }
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._fields = {"model": endpoint.model, **config.sampling}
        if config.response_format == "json_object":
            self._fields["response_format"] = {"type": "json_object"}
        self._fields |= endpoint.extra_body
        times = self._timeouts
        self._extensions: dict[str, Any] = {
            "timeout": {"connect": times.connect_s, "read": times.first_byte_s, "write": times.first_byte_s}
        }
        self._pools = Pools(config.limits.concurrency)

    def body(self, messages: Messages) -> bytes:
        """The request's body."""
        fields = {**self._fields, "messages": [dict(message) for message in messages]}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")

    async def send(self, body: bytes) -> Completion:
        """Send one request and read its answer.

        Raises:
            RequestFailed: for whatever reason there is no completion.
        """
        sent = Usage(prompt_tokens=estimate_tokens(body))
        try:
            status, headers, raw = await self._exchange(body, sent)
            if 200 <= status < 300:
                return read_completion(self._blot(raw), sent.prompt_tokens)
            raise self._refused(status, headers, raw)
        except RequestFailed as failure:
            failure.args = (self.tidy(str(failure)),)
            failure.text = self.tidy(failure.text, len(failure.text))
            raise

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pools.aclose()

    def tidy(self, text: str, most: int = MAX_SAID) -> str:
        """Text that came from outside, fit for an error: without the key, short, printable."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = text if len(text) <= most else text[:most] + "..."
        return "".join(one if one.isprintable() or one in "\n\t" else "?" for one in text)

    def _blot(self, raw: bytes) -> bytes:
        for secret in self._secrets:
            raw = raw.replace(secret.encode(), b"***")
        return raw

    async def _exchange(self, body: bytes, sent: Usage) -> tuple[int, Mapping[str, str], bytes]:
        times, clock = self._timeouts, asyncio.get_running_loop().time
        request = httpx.Request(
            "POST", self._url, headers=self._headers, content=body, extensions=self._extensions
        )
        begin = clock()
        first_byte_s = min(times.connect_s + times.first_byte_s, times.total_s)
        with anyio.CancelScope(deadline=begin + first_byte_s) as scope:
            try:
                with self._pools.client() as client:
                    response = await client.send(request, stream=True)
                    scope.deadline = begin + times.total_s
                    try:
                        return response.status_code, response.headers, await self._read(response, sent)
                    finally:
                        await response.aclose()
            except (httpx.ConnectTimeout, httpx.PoolTimeout):
                raise RequestFailed("timeout", f"no connection within {times.connect_s:g} s") from None
            except httpx.TimeoutException:
                raise RequestFailed("timeout", f"silence for {times.first_byte_s:g} s", usage=sent) from None
            except httpx.RequestError as error:
                raise _broken(error, sent) from None
        took = clock() - begin
        raise RequestFailed("timeout", f"the answer was not there after {took:.1f} s", usage=sent)

    async def _read(self, response: httpx.Response, sent: Usage) -> bytes:
        ok = response.status_code < 300
        if ok and response.headers.get("content-encoding", "identity") != "identity":
            raise RequestFailed(
                "bad_response", "the body is compressed, though identity was asked for", usage=sent
            )
        received, size = [], 0
        async for chunk in response.aiter_raw():
            received.append(chunk)
            size += len(chunk)
            if size > self._max_bytes and ok:
                message = f"the answer is longer than max_answer_bytes, {self._max_bytes}"
                raise RequestFailed("too_large", message, usage=sent)
            if size > MAX_ERROR_BYTES and not ok:
                break
        return b"".join(received)

    def _refused(self, status: int, headers: Mapping[str, str], raw: bytes) -> RequestFailed:
        """An HTTP status that is no success. Servers do not bill it."""
        kind: FailureKind = "client_error"
        if status == 429:
            kind = "rate_limited"
        elif status >= 500:
            kind = "server_error"
        elif status == 408:
            kind = "timeout"
        said = raw[: 4 * MAX_SAID].decode("utf-8", "replace")
        if 300 <= status < 400:
            said = f"redirects are not followed; it points to {headers.get('location', 'nowhere')}"
        wait = retry_after_s(headers.get("retry-after"), time.time())
        return RequestFailed(kind, f"HTTP {status}: {said}", usage=Usage(), status=status, retry_after_s=wait)


def read_key(endpoint: Endpoint) -> str:
    """The endpoint's key; empty for one that asks for none.

    Raises:
        ConfigError: the environment variable is not set, empty, or holds what cannot be a key. It is not shown.
    """
    name = endpoint.api_key_env
    if not name:
        return ""
    key = os.environ.get(name, "").strip()
    if not key:
        raise ConfigError(
            f"the environment variable {name}, which holds the key for {endpoint.url} (api_key_env), is not set or "
            "empty; set it where the run starts, or leave api_key_env out for a server that asks for no key"
        )
    if not re.fullmatch(r"[!-~]+", key):
        raise ConfigError(
            f"the environment variable {name} does not hold a key: keys have no spaces and only ASCII characters"
        )
    return key


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


def _broken(error: httpx.RequestError, sent: Usage) -> RequestFailed:
    """A transport's error as one of ours."""
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, httpx.ConnectError | httpx.ProxyError | httpx.UnsupportedProtocol):
        return RequestFailed("connect", said)
    cut = str(error).startswith(
        ("Server disconnected", "peer closed connection", "<")
    )  # `<`: HTTP/2's StreamReset
    if isinstance(error, httpx.RemoteProtocolError) and not cut:
        return RequestFailed("server_error", f"the answer is not HTTP: {error}", usage=sent)
    return RequestFailed("reset", said, usage=sent)
