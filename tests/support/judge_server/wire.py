"""HTTP/1.1 by hand, because no framework resets a connection in the middle of an answer."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REASONS = {200: "OK", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request."""

    target: str
    """Method and path: `POST /v1/chat/completions`."""
    headers: Mapping[str, str]
    """By lower-case name, without Authorization."""
    key: str
    """What came as bearer token."""
    body: Any
    """Parsed JSON; None where there is none."""


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Read one request. Raises IncompleteReadError when the client has closed the connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    key = headers.pop("authorization", "").removeprefix("Bearer ")
    return Request(
        target=head[0].rpartition(" ")[0], headers=headers, key=key, body=json.loads(raw) if raw else None
    )


async def send(
    writer: asyncio.StreamWriter, status: int, body: Any, headers: Mapping[str, str] | None = None
) -> None:
    """Write a whole answer; `body` is bytes, or goes as JSON."""
    await send_raw(writer, encode(status, body, headers))


async def send_raw(writer: asyncio.StreamWriter, raw: bytes) -> None:
    """Write bytes as they stand."""
    writer.write(raw)
    await writer.drain()


def encode(status: int, body: Any, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole answer as it goes over the wire."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}", "Content-Type: application/json"]
    lines += [f"Content-Length: {len(raw)}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


async def wait(reader: asyncio.StreamReader, seconds: float | None) -> None:
    """Wait; raises ConnectionResetError as soon as the client closes the connection. None: for ever."""
    if seconds == 0:
        return
    try:
        await asyncio.wait_for(reader.read(1), seconds)
    except TimeoutError:
        return
    raise ConnectionResetError("the client closed the connection")


def reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection so that the client sees RST."""
    raw = writer.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0:  # else it is closed already
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
