"""How each fault is done."""

from __future__ import annotations

import asyncio
from typing import Any

from judge_server import replies
from judge_server.script import Fault, Script
from judge_server.wire import Request, encode, reset, send, send_raw, wait

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n"


async def fail(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, script: Script, fault: Fault, request: Request
) -> None:
    """Answer as `fault` says. Raises ConnectionError where the connection is over."""
    kind = fault.kind
    if kind == "status":
        headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
        await send(writer, fault.status, replies.error(fault.text or "as the script says"), headers)
    elif kind == "unauthorized":
        await send(writer, 401, replies.error(f"Incorrect API key provided: {request.key}"))
    elif kind == "hang":
        await wait(reader, None)
    elif kind == "reset_at_once":
        reset(writer)
        raise ConnectionAbortedError
    elif kind == "reset":
        writer.write(HEAD + b'{"id": "chatcmpl-1", ')
        await writer.drain()
        await asyncio.sleep(0.01)  # an RST may overtake what was written
        reset(writer)
        raise ConnectionAbortedError
    elif kind == "drip":
        writer.write(HEAD)
        while True:
            writer.write(b" ")
            await writer.drain()
            await wait(reader, fault.interval_s)
    elif kind == "endless":
        writer.write(HEAD.replace(b"Content-Length: 99999", b"Transfer-Encoding: chunked"))
        while True:
            writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            await writer.drain()
    elif kind == "raw":
        await send_raw(writer, fault.text.encode())
    elif kind == "twice":
        prompt = replies.prompt_of(request.body)
        answer = encode(200, replies.completion(script, prompt, replies.verdict(script, prompt)))
        if fault.interval_s:
            await send_raw(writer, answer)
            await asyncio.sleep(fault.interval_s)
            await send_raw(writer, answer)
        else:
            await send_raw(writer, answer + answer)
    elif kind == "not_http":
        writer.write(b"220 mail.example.org ESMTP\r\n\r\n")
        await writer.drain()
        raise ConnectionAbortedError
    else:
        await send(writer, 200, odd_body(script, fault, replies.prompt_of(request.body)))


def odd_body(script: Script, fault: Fault, prompt: str) -> Any:
    """The body of HTTP 200 that no verdict can be read from."""
    kind, text = fault.kind, fault.text
    if kind == "invalid_json":
        return b'{"id": "chatcmpl-1", "choices": ['
    if kind == "wrong_schema":
        return {"result": "ok"}
    if kind == "huge":
        return b" " * fault.size
    if kind == "content":
        return replies.completion(script, prompt, text)
    if kind == "refusal":
        return replies.completion(script, prompt, None, refusal=text or "I cannot help with that.")
    if kind == "truncated":
        return replies.completion(script, prompt, text or '{"fluent": tr', finish_reason="length")
    answer = replies.completion(script, prompt, None)  # no_content
    return answer | {"choices": []} if kind == "empty_choices" else answer
