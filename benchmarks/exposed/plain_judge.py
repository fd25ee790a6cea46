"""A reward that asks a judge as a user of verl would write it, for verl's `rate_limited` manager: one POST a row.

The prompt is that of `verdict_fluency`, so that both sides put the same questions.
"""

from __future__ import annotations

import json

import aiohttp

from pv_judge.fluency import FluencyPrompt
from pv_rl.verdict import parse_verdict

PROMPT = FluencyPrompt.load()


async def compute_score(data_source, solution_str, ground_truth, extra_info=None, url="", **_):
    """1 for the right verdict in a fluent trace, else 0."""
    body = {"model": "judge", "temperature": 0.0, "messages": list(PROMPT.messages(solution_str))}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/chat/completions", json=body) as reply,
    ):
        reply.raise_for_status()
        answer = await reply.json()
    fluent = json.loads(answer["choices"][0]["message"]["content"])["fluent"]
    right = str(parse_verdict(solution_str)) == str(ground_truth)
    return {"score": float(fluent and right), "acc": float(right)}
