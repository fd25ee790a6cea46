"""A set of proofs, a verifier that judges them by a mark, and a server that is one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from typer.testing import CliRunner

from pv_eval.cli import app

SERVER = """
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, body):
        raw = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
    def do_GET(self):
        self.answer({})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = "Read.\\n### " + str("SOUND" in asked["messages"][0]["content"])
        self.answer({"choices": [{"message": {"content": text}, "finish_reason": "stop"}],
                     "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
print("serving", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def own_server(server: str, folder: Path, name: str, port: int) -> list[str]:
    """In the place of `served._command`."""
    return [sys.executable, "-c", SERVER, str(port)]


def model(folder: Path, weights: bytes = b"weights") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def by_mark(prompt: str, _: str) -> str:
    """Finds every proof right that says SOUND, and one wrong one too."""
    return f"I read it.\n### {'SOUND' in prompt or 'guess 3' in prompt}"


def small_set(folder: Path, number: int = 8) -> Path:
    path = folder / "set.jsonl"
    rows = [
        {
            "id": f"p{n}",
            "question_id": f"q{n // 4}",
            "problem": f"Prove {n // 4}.",
            "proof": f"A SOUND proof, {n}." if n % 2 == 0 else f"A guess {n}.",
            "label": n % 2 == 0,
        }
        for n in range(number)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(*arguments: object):
    return CliRunner().invoke(app, [str(one) for one in arguments])
