"""Bodies of answers, as an OpenAI-compatible server writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from judge_server.script import Script


def prompt_of(body: Any) -> str:
    """All text of the messages; empty where there are none."""
    messages = body.get("messages", []) if isinstance(body, Mapping) else []
    return "\n".join(str(one.get("content", "")) for one in messages if isinstance(one, Mapping))


def verdict(script: Script, prompt: str) -> str:
    """What the judge writes about a prompt: not fluent if the marker is in it."""
    if script.marker not in prompt:
        return json.dumps({"fluent": True, "anomalies": [], "confidence": 1.0})
    anomaly = {"kind": script.kind, "quote": script.marker}
    return json.dumps({"fluent": False, "anomalies": [anomaly], "confidence": 0.95})


def completion(script: Script, prompt: str, content: str | None, **message: Any) -> dict[str, Any]:
    """A chat completion in which the model wrote `content`. `finish_reason` and fields of the message go by name."""
    finish = message.pop("finish_reason", "stop")
    logprobs = {"content": script.logprobs(content)} if script.logprobs and isinstance(content, str) else None
    message = {"role": "assistant", "content": content, **message}
    answer: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": script.model,
        "choices": [{"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish}],
    }
    if script.usage:
        prompt_tokens, completion_tokens = len(prompt) // 4, len(content or "") // 4
        usage: dict[str, Any] = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        }
        if script.cached_tokens is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": script.cached_tokens}
        answer["usage"] = usage | script.usage if isinstance(script.usage, Mapping) else usage
    return answer


def models(script: Script) -> dict[str, Any]:
    """What GET /v1/models gives."""
    return {
        "object": "list",
        "data": [{"id": script.model, "object": "model", "created": 1, "owned_by": "tests"}],
    }


def error(text: str, kind: str = "server_error") -> dict[str, Any]:
    """An error in the form of OpenAI."""
    return {"error": {"message": text, "type": kind, "code": None}}
