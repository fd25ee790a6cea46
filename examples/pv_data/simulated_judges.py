"""An OpenAI-compatible server whose judges err at rates that are given: to try a pipeline before paying for one.

    python examples/pv_data/simulated_judges.py --solutions ../shared/data/gsm8k_solutions/example_model_solutions.jsonl

It knows the right labels, from the source, and is no judge of anything else. Each of its models errs in two ways:
about a proof, each time that it is asked (`--blind`), as a model does that overlooks the same thing again; and by
chance, each time anew (`--slips`). A panel can vote the second away and not the first.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request

from pv_data.plugins import SOURCES
from pv_data.records import Proof

KEYS = (*(f"condition{number}_satisfied" for number in range(1, 5)), "proof_correct")


def labels_of(kind: str, path: Path) -> dict[str, bool]:
    """Whether each proof of a source is right, by its text."""
    rows = SOURCES.named(kind).read(path)
    return {row.text: row.known for row in rows if isinstance(row, Proof) and row.known is not None}


def application(labels: dict[str, bool], *, blind: float, slips: float, seed: int = 0) -> FastAPI:
    """The server. `blind` and `slips` are probabilities."""
    app, chance = FastAPI(), random.Random(seed)

    @app.get("/v1/models")
    def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": "judge", "object": "model", "owned_by": "simulated"}]}

    @app.post("/v1/chat/completions")
    async def complete(request: Request) -> dict[str, Any]:
        body = await request.json()
        prompt = body["messages"][-1]["content"]
        proof = between(prompt, "<proof ", "</proof ").partition("\n")[2].rstrip("\n")
        if proof not in labels:
            raise HTTPException(404, "these judges know only the proofs of their source")
        said = labels[proof]
        for kind, rate in ((body["model"], blind), (str(chance.random()), slips)):
            said ^= random.Random(f"{seed} {kind} {proof}").random() < rate
        text = json.dumps(dict.fromkeys(KEYS, said))
        used = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4}
        return {
            "object": "chat.completion",
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop",
                }
            ],
            "usage": used | {"total_tokens": sum(used.values())},
        }

    return app


def between(text: str, opening: str, closing: str) -> str:
    """What stands between two marks."""
    return text.partition(opening)[2].rpartition(closing)[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", default="gsm8k_solutions", help="a source of pv-data")
    parser.add_argument("--solutions", type=Path, required=True, help="its file")
    parser.add_argument("--blind", type=float, default=0.08)
    parser.add_argument("--slips", type=float, default=0.06)
    parser.add_argument("--port", type=int, default=8001)
    asked = parser.parse_args()
    app = application(labels_of(asked.source, asked.solutions), blind=asked.blind, slips=asked.slips)
    uvicorn.run(app, port=asked.port, log_level="warning")


if __name__ == "__main__":
    main()
