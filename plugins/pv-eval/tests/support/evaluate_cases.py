"""Small sets of pairs and votes for the tests of the evaluation."""

from __future__ import annotations

import random
from typing import Any

from pv_eval import Pair, Vote, check
from pv_eval.counts import VoteCounts, count_votes

SAID = {"T": True, "F": False, "N": None}


def pair(name: str, label: bool | None, question: str = "q", **more: Any) -> Pair:
    return Pair(pair_id=name, question_id=question, label=label, **more)


def votes(name: str, said: str, question: str = "q", **more: Any) -> list[Vote]:
    """A vote a letter: T, F, or N for none."""
    return [
        Vote(pair_id=name, question_id=question, sample=number, verdict=SAID[letter], **more)
        for number, letter in enumerate(said)
    ]


def made(*rows: tuple[str, bool, str, str]) -> tuple[list[Pair], list[Vote]]:
    """From (name, label, question, votes)."""
    pairs = [pair(name, label, question) for name, label, question, _ in rows]
    return pairs, [vote for name, _, question, said in rows for vote in votes(name, said, question)]


def counted(*rows: tuple[str, bool, str, str]) -> VoteCounts:
    return count_votes(check(*made(*rows)))


def drawn(
    questions: int, each: int, samples: int, seed: int = 0, skills: tuple[float, float] = (0.4, 0.95)
) -> tuple[list[Pair], list[Vote]]:
    """A noisy verifier that is right more often than not, on questions of unlike difficulty. Labels are of the pair."""
    rng = random.Random(seed)
    rows = []
    for q in range(questions):
        skill = rng.uniform(*skills)
        for p in range(each):
            label = (q * 7 + p * 3) % 5 < 3
            said = "".join(
                "N" if rng.random() < 0.05 else "FT"[(rng.random() < skill) == label] for _ in range(samples)
            )
            rows.append((f"q{q}-{p}", label, f"q{q}", said))
    return made(*rows)
