"""Check of `pv-rl doctor`: whether the judge of the environment variables answers."""

from __future__ import annotations

import os
import time

import httpx

from pv_judge.files import load_json
from pv_judge.keys import Key, unlogged
from pv_rl.hookspecs import Finding

__all__ = ["JUDGE_KEY", "JUDGE_URL", "check_endpoint"]

JUDGE_URL, JUDGE_KEY = "PV_RL_JUDGE_URL", "PV_RL_JUDGE_API_KEY"


def check_endpoint() -> Finding:
    """List the models of the judge at `PV_RL_JUDGE_URL`."""
    address, key = os.environ.get(JUDGE_URL), os.environ.get(JUDGE_KEY, "").strip()
    if not address:
        return Finding(state="ok", text=f"none configured ({JUDGE_URL} is not set)")
    if not (key.isascii() and key.isprintable()):
        text = f"{JUDGE_KEY} contains characters that no key has, such as a line break"
        return Finding(state="wrong", text=text, remedy=f"set {JUDGE_KEY} again")
    try:
        url = httpx.URL(address.rstrip("/") + "/models")
        shown = str(url.copy_with(userinfo=b"", query=None))
        secret = Key(key)
        with unlogged():
            models = [secret.blot(one)[:80] for one in _list_models(url, secret.headers())[:3]]
    except httpx.HTTPStatusError as error:
        problem = f"HTTP {error.response.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        problem = type(error).__name__  # its text may quote what was sent, the key included
    else:
        return Finding(state="ok", text=f"{secret.blot(shown)} lists {', '.join(models) or 'no model'}")
    return Finding(
        state="wrong",
        text=f"the server at {JUDGE_URL} does not answer like an OpenAI-compatible endpoint: {problem}",
        remedy=f"start it, or correct {JUDGE_URL} (it ends in /v1) or {JUDGE_KEY}",
    )


def _list_models(url: httpx.URL, headers: dict[str, str]) -> list[str]:
    """The ids that `GET /models` gives, within ten seconds and a megabyte in all."""
    deadline, body = time.monotonic() + 10, b""
    with httpx.stream("GET", url, headers=headers, timeout=10) as answer:
        answer.raise_for_status()
        for chunk in answer.iter_bytes():
            body += chunk
            if time.monotonic() > deadline:
                raise httpx.ReadTimeout("ten seconds in all")
            if len(body) > 1_000_000:
                raise ValueError("the list of models is longer than a megabyte")
    return [str(model["id"]) for model in load_json(body)["data"]]
