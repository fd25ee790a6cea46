"""A local model for the tests: its answers depend on prompt and seed alone.

As a program it is a server, in the place of vLLM's. It writes what it was asked to the file that the environment names.
"""

from __future__ import annotations

import http.server
import json
import os
import re
import sys
import time
from pathlib import Path

__all__ = ["LOG", "asked", "make_model", "own_server"]

LOG = "PV_TEST_LOCAL_MODEL"


def answered(prompt: str, seed: int, form: str | None = None) -> tuple[str, bool]:
    """The text, and whether it was cut. Held to a form (a regular expression) it mumbles nothing."""
    if "REFUSED" in prompt:
        raise ValueError("the engine does not take this")
    if "CUT" in prompt:
        return "and so on " * 100, True
    if form is None and ("DEAF" in prompt or ("MUMBLED" in prompt and seed % 3 != 0)):
        return f"hm {seed}", False
    right = seed % 2 == 0 if "TORN" in prompt else "SOUND" in prompt
    keys = [*(f"condition{n}_satisfied" for n in range(1, 5)), "proof_correct"]
    said = json.dumps(dict.fromkeys(keys, right))
    if form is not None:
        assert re.fullmatch(form, said)
        return said, False
    return f"Thought {seed}.\n{said}", False


def log(prompt: str, seed: int) -> None:
    """Write down what was asked."""
    with Path(os.environ[LOG]).open("a") as file:
        file.write(json.dumps([prompt, seed]) + "\n")


def asked(path: Path) -> list[list]:
    """What was written down: prompt and seed."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def make_model(folder: Path) -> Path:
    """What a checkpoint is known by. The server does not read it."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "llama", "eos_token_id": 256}')
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def own_server(server: str, folder: Path, name: str, port: int) -> list[str]:
    """In the place of `served._command`."""
    return [sys.executable, __file__, str(port)]


class Handler(http.server.BaseHTTPRequestHandler):
    """Of chat completions."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def _say(self, status: int, body: object) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def do_GET(self) -> None:
        """Well."""
        self._say(200, {})

    def do_POST(self) -> None:
        """A completion."""
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = given["messages"][-1]["content"]
        log(prompt, given["seed"])
        time.sleep(float(os.environ.get("PV_TEST_DELAY_S", "0")))
        try:
            form = given.get("structured_outputs", {}).get("regex")
            text, cut = answered(prompt, given["seed"], form)
        except ValueError as error:
            self._say(400, {"error": str(error)})
            return
        choice = {"message": {"content": text}, "finish_reason": "length" if cut else "stop"}
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(text)}
        self._say(200, {"choices": [choice], "usage": usage})


class Server(http.server.ThreadingHTTPServer):
    """For many connections at a time."""

    request_queue_size = 512


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
