"""Simulated judges: an OpenAI-compatible server that answers from known labels, to try a panel without a model.

    python -m pv_data.simulated_judges --source table --solutions proofs.jsonl

It knows the labels of one source and judges nothing else. Each model name errs in two ways: about a proof, each time
that it is asked (`--blind`), as a model does that overlooks the same thing again; and by chance (`--slips`). More votes
correct the second kind of error, not the first.
"""

from __future__ import annotations

import argparse
import json
import random
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pv_data.plugins import SOURCES, named
from pv_data.records import Proof

__all__ = ["Judges", "labels_of"]

KEYS = (*(f"condition{number}_satisfied" for number in range(1, 5)), "proof_correct")


def labels_of(kind: str, path: Path) -> dict[str, bool]:
    """Whether each proof of a source is right, by its text."""
    rows = named(SOURCES, kind).read(path)
    return {row.text: row.known for row in rows if isinstance(row, Proof) and row.known is not None}


class Judges(ThreadingHTTPServer):
    """The server, on 127.0.0.1. `blind` and `slips` are probabilities; port 0 takes a free one."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, labels: dict[str, bool], blind: float, slips: float, port: int, seed: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.labels, self.blind, self.slips, self.seed = labels, blind, slips, seed
        self.chance = random.Random(seed)

    def answer(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """A chat completion; None for a proof without a known label."""
        prompt = body["messages"][-1]["content"]
        inside = prompt.partition("<proof ")[2].rpartition("</proof ")[0]
        proof = inside.partition("\n")[2].rstrip("\n")
        if proof not in self.labels:
            return None
        said = self.labels[proof]
        for kind, rate in ((body["model"], self.blind), (str(self.chance.random()), self.slips)):
            said ^= random.Random(f"{self.seed} {kind} {proof}").random() < rate
        text = json.dumps(dict.fromkeys(KEYS, said))
        message = {"role": "assistant", "content": text}
        used = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
        return {
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": used | {"total_tokens": sum(used.values())},
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Judges

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": "judge", "object": "model"}]})

    def do_POST(self) -> None:
        answer = self.server.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        if answer is None:
            self._send(
                404, {"error": {"message": "these judges know only the labelled proofs of their source"}}
            )
        else:
            self._send(200, answer)

    def _send(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """One line a request would hide everything else."""


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m pv_data.simulated_judges",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--source", default="gsm8k_solutions", help="a source of pv-data")
    parser.add_argument("--solutions", type=Path, required=True, help="its file")
    parser.add_argument("--blind", type=float, default=0.08)
    parser.add_argument("--slips", type=float, default=0.06)
    parser.add_argument("--port", type=int, default=8001)
    asked = parser.parse_args()
    labels = labels_of(asked.source, asked.solutions)
    with Judges(labels, asked.blind, asked.slips, asked.port) as judges:
        print(f"{len(labels)} labels, http://127.0.0.1:{judges.server_port}/v1", flush=True)  # noqa: T201
        judges.serve_forever()


if __name__ == "__main__":
    main()
