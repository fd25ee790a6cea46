"""Simulated judges: an OpenAI-compatible server that answers from known labels, to try a panel without a model.

    python -m pv_data.simulated_judges --source table --solutions proofs.jsonl
    python -m pv_data.simulated_judges --source table --solutions own.jsonl --column problem=question

It knows the labels of one source and judges nothing else. Each model name errs in two ways: about a proof, each time
that it is asked (`--blind`), as a model does that overlooks the same thing again; and by chance (`--slips`). More votes
correct the second kind of error, not the first.
"""

from __future__ import annotations

import argparse
import errno
import json
import random
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pv_data.prompt import cleaned
from pv_data.records import Proof
from pv_data.sources.command import source_options
from pv_data.sources.opening import open_source
from pv_judge.files import load_json
from pv_judge.pages.text import plural
from pv_rl.errors import DataError, PvRlError

__all__ = ["Judges", "labels_of"]

KEYS = (*(f"condition{number}_satisfied" for number in range(1, 5)), "proof_correct")


def labels_of(kind: str, path: Path, options: Mapping[str, Any] | None = None) -> dict[str, bool]:
    """Whether each proof of a source is right, by its text as a prompt shows it (marks of chat templates broken up)."""
    rows = open_source(kind, path, options)
    return {cleaned(row.text): row.known for row in rows if isinstance(row, Proof) and row.known is not None}


def proof_in(prompt: str) -> str | None:
    """The proof in a prompt of pv-data, between two lines with its mark; None if there is none."""
    mark = prompt.rpartition("\n</proof ")[2].partition(">")[0]
    _, found, rest = prompt.partition(f"<proof {mark}>\n")
    return rest.rpartition(f"\n</proof {mark}>")[0] if found else None


class Judges(ThreadingHTTPServer):
    """The server, on 127.0.0.1. `labels` are by text, see `labels_of`. `blind` and `slips` are probabilities; port 0
    takes a free one."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(
        self,
        labels: dict[str, bool],
        blind: float,
        slips: float,
        port: int,
        seed: int = 0,
        *,
        origin: str = "their source",
    ) -> None:
        """`origin` is where the labels are from, for the message about an unknown proof."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.labels, self.blind, self.slips, self.seed, self.origin = labels, blind, slips, seed, origin
        self.chance = random.Random(seed)

    def answer(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """A chat completion; None for a proof without a known label. A prompt without a proof is answered with OK."""
        prompt = body["messages"][-1]["content"]
        proof = proof_in(prompt)
        if proof is None:
            text = "OK"
        elif proof in self.labels:
            said = self.labels[proof]
            for kind, rate in ((body["model"], self.blind), (str(self.chance.random()), self.slips)):
                said ^= random.Random(f"{self.seed} {kind} {proof}").random() < rate
            text = json.dumps(dict.fromkeys(KEYS, said))
        else:
            return None
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
        body = load_json(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.server.answer(body)
        if answer is None:
            start = (proof_in(body["messages"][-1]["content"]) or "")[:60]
            why = f"no labelled proof of {self.server.origin} is {start!r}...; give its file with --solutions"
            self._send(404, {"error": {"message": why}})
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
    for name, kind, default, what in (
        ("--source", str, "gsm8k_solutions", "a source of pv-data (pv-data sources)"),
        ("--blind", float, 0.08, "share of the proofs about which a model errs each time"),
        ("--slips", float, 0.06, "share of the answers that are wrong by chance"),
        ("--port", int, 8001, "port on 127.0.0.1; 0: a free one"),
    ):
        parser.add_argument(name, type=kind, default=default, help=f"{what} (default: %(default)s)")
    parser.add_argument("--solutions", type=Path, required=True, help="file with the proofs and their labels")
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="MEANING=PATH",
        help="a column of --source table, as problem=question; repeatable",
    )
    parser.add_argument(
        "--options", default="", metavar="YAML", help="the source's options in a config, as YAML or as @FILE"
    )
    asked = parser.parse_args()
    try:
        labels = labels_of(asked.source, asked.solutions, source_options(asked.options, asked.column))
        if not labels:
            raise DataError(
                f"no proof of {asked.solutions} has a label. If it has labels, name their column with "
                "--source table --column"
            )
        judges = Judges(labels, asked.blind, asked.slips, asked.port, origin=str(asked.solutions))
    except (PvRlError, OSError, OverflowError) as error:
        in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = f"port {asked.port} is in use (another simulated_judges?); stop it, or give --port"
        parser.exit(1, f"error {why if in_use else error}\n")
    with judges:
        url = f"http://127.0.0.1:{judges.server_port}/v1"
        print(f"{plural(len(labels), 'label')} (equal proofs count once), {url}", flush=True)  # noqa: T201
        judges.serve_forever()


if __name__ == "__main__":
    main()
