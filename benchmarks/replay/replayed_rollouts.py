"""An agent loop for verl whose responses are known beforehand, so that two runs train on the same rows.

A response depends on its prompt and on its number among the responses of the prompt, and on nothing else. The
rollout engine is started as in any run, and not asked.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop
from verl.workers.rollout.replica import TokenOutput

from pv_lab.tokenizer import EOS, VOCABULARY

WORDS = [word for word in VOCABULARY if not word.startswith("<")]
LONGEST = 120


def response(prompt_ids: Sequence[int], number: int) -> list[int]:
    """Words drawn at random, few or many (3 to `LONGEST` tokens, heavy tail), a verdict and the end."""
    draw = random.Random(f"{list(prompt_ids)}/{number}")
    words = draw.choices(WORDS, k=min(int(draw.paretovariate(0.7)), LONGEST - 3))
    return [VOCABULARY[word] for word in (*words, "###", draw.choice(["True", "False"]), EOS)]


class ReplayAgentLoop(SingleTurnAgentLoop):
    """verl's single-turn loop with a server that answers from memory."""

    async def run(self, sampling_params, priority=0, **kwargs):
        self.server_manager = Memory(int(kwargs["session_id"]))
        return await super().run(sampling_params, priority=priority, **kwargs)


class Memory:
    """Stands where verl's client of the rollout engine stands."""

    def __init__(self, number: int) -> None:
        self.number = number

    async def generate(self, prompt_ids: Sequence[int], **_) -> TokenOutput:
        ids = response(prompt_ids, self.number)
        extra = {"min_global_steps": 0, "max_global_steps": 0}
        return TokenOutput(token_ids=ids, stop_reason="completed", extra_fields=extra)
