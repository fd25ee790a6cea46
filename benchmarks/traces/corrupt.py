"""Spoil a fluent trace in one of the ways in which verifiers collapse. Knows nothing of the rules."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from traces import wording

__all__ = ["KINDS", "STRENGTHS", "corrupt"]

STRENGTHS = ("light", "medium", "heavy")
VERDICT = re.compile(r"\n\n### (?:True|False)\Z")
Range = tuple[int, int]


class Spoiler:
    """One trace in pieces, and the random choices of one corruption."""

    def __init__(
        self, text: str, others: Sequence[str], strength: str, half: int, rng: random.Random
    ) -> None:
        match = VERDICT.search(text)
        assert match is not None, "a trace ends with a verdict"
        self.body, self.verdict = text[: match.start()], match[0]
        self.others, self.half, self.rng = others, half, rng
        self.level = STRENGTHS.index(strength)

    def number(self, *by_strength: Range) -> int:
        return self.rng.randint(*by_strength[self.level])

    def said(self, bank: Sequence[str]) -> str:
        return self.rng.choice(bank[self.half :: 2])

    def sentences(self) -> list[str]:
        found = [s.strip() for s in re.split(r"(?<=[.!?])\s+|\n+", self.body)]
        return [s for s in found if len(s.split()) >= 4] or [self.body]

    def insert(self, piece: str, gap: str = " ") -> str:
        """The body with `piece` at the start, between two words, or at the end."""
        words = [m.start() for m in re.finditer(r"(?<=\s)\S", self.body)]
        place = self.rng.choice([0, *self.rng.sample(words, min(4, len(words))), len(self.body)])
        before, after = self.body[:place].rstrip(" "), self.body[place:].lstrip(" ")
        return gap.join(part for part in (before, piece, after) if part)


def phrase_loop(s: Spoiler) -> str:
    return s.insert(" ".join([_phrase(s)] * s.number((4, 6), (8, 15), (30, 100))))


def drifting_phrase(s: Spoiler) -> str:
    """One word of the phrase changes from round to round."""
    words = _phrase(s, 5, 10).split()
    spot, changing = s.rng.randrange(len(words)), s.rng.sample(s.body.split(), 3)
    rounds = []
    for _ in range(s.number((4, 6), (8, 15), (30, 100))):
        words[spot] = s.rng.choice(changing)
        rounds.append(" ".join(words))
    return s.insert(" ".join(rounds))


def sentence_again(s: Spoiler) -> str:
    gap = s.rng.choice((" ", "\n", "\n\n"))
    return s.insert(gap.join([s.rng.choice(s.sentences())] * s.number((3, 5), (6, 10), (20, 60))), gap)


def sentence_cycle(s: Spoiler) -> str:
    found, gap = s.sentences(), s.rng.choice((" ", "\n"))
    start = s.rng.randrange(len(found))
    cycle = found[start : start + s.rng.randint(2, 5)]
    return s.insert(gap.join(cycle * s.number((3, 4), (5, 8), (12, 30))), gap)


def reworded_sentence(s: Spoiler) -> str:
    """The same intention announced again and again, as in the paper's bad case."""
    said = []
    for _ in range(s.number((4, 6), (8, 12), (20, 40))):
        words = f"{s.said(wording.OPENINGS)} {s.said(wording.SEARCHES)}{s.said(wording.TAILS)}.".strip()
        said.append(words[0].upper() + words[1:])
        if s.rng.random() < 0.3:
            said.append(f"In the proof, in step {s.rng.randint(1, 4)}, {_phrase(s)}, etc.")
    return s.insert("\n".join(said), "\n")


def self_interruption(s: Spoiler) -> str:
    return s.insert(
        " ".join(s.said(wording.INTERRUPTIONS) for _ in range(s.number((4, 6), (8, 15), (30, 60))))
    )


def false_starts(s: Spoiler) -> str:
    """Interruptions with crumbs of a sentence between them."""
    pieces = []
    for _ in range(s.number((4, 6), (8, 15), (30, 60))):
        pieces += [s.said(wording.INTERRUPTIONS), s.said(wording.CRUMBS)]
    return s.insert(" ".join(pieces))


def token_runaway(s: Spoiler) -> str:
    word = s.rng.choice([w for w in s.body.split() if len(w) > 1])
    return s.insert(" ".join([word] * s.number((6, 12), (20, 50), (200, 1000))))


def character_runaway(s: Spoiler) -> str:
    return s.insert(s.rng.choice("aeo!.0#)=") * s.number((40, 80), (150, 400), (1000, 5000)))


def line_runaway(s: Spoiler) -> str:
    line = s.rng.choice([x for x in s.body.splitlines() if x.strip()])[:120]
    if s.rng.random() < 0.5:
        line = s.rng.choice(
            ("## 61", "The answer is 4.", "####", "So the proof is wrong.", "- [ ] Step", "False")
        )
    return s.insert("\n".join([line] * s.number((5, 8), (12, 25), (60, 300))), "\n")


def format_chatter(s: Spoiler) -> str:
    count = s.number((3, 4), (6, 8), (15, 30))
    return s.insert(" ".join(s.said(wording.FORMAT_CHATTER) for _ in range(count)), "\n")


def chat_marks(s: Spoiler) -> str:
    text = s.body
    for _ in range(s.number((1, 1), (2, 2), (4, 4))):
        words = [m.start() for m in re.finditer(r"(?<=\s)\S", text)]
        place = s.rng.choice(words)
        text = text[:place] + s.said(wording.CHAT_MARKS) + text[place:]
    return text


def bare_verdict(s: Spoiler) -> str:
    return s.rng.choice(("", "", "Answer:", "**Final verdict:**", "<think>\n\n</think>", "\n\n\n", "Verdict"))


def text_after_verdict(s: Spoiler) -> str:
    more = [s.said(wording.AFTERTHOUGHTS)]
    more += s.rng.sample(s.sentences(), min(len(s.sentences()), s.number((0, 0), (2, 3), (5, 12))))
    return s.body + s.verdict + s.rng.choice(("\n", "\n\n")) + " ".join(more)


def broken_encoding(s: Spoiler) -> str:
    """Characters that were decoded wrongly, lost, or are no text."""
    words = s.body.split(" ")
    kind = s.rng.choice(("lost", "latin", "windows", "control", "surrogate"))
    for _ in range(s.number((1, 2), (4, 10), (40, 80))):
        spot = s.rng.randrange(len(words))
        words[spot] += _garbage(kind, s.rng)
    return " ".join(words)


def script_soup(s: Spoiler) -> str:
    """Words of many scripts where a sentence should go on."""
    bank = wording.FOREIGN[s.half]
    return s.insert(" ".join(s.rng.choice(bank) for _ in range(s.number((3, 5), (10, 20), (40, 100)))))


def irrelevant_insertion(s: Spoiler) -> str:
    if s.rng.random() < 0.5:
        return s.insert(" ".join(s.said(wording.OFF_TOPIC) for _ in range(s.number((1, 1), (2, 3), (4, 4)))))
    other = s.rng.choice(s.others)
    return s.insert(VERDICT.sub("", other)[: s.number((100, 200), (300, 600), (1000, 2000))], "\n\n")


def abrupt_conclusion(s: Spoiler) -> str:
    """Cut in the middle of a sentence; the verdict follows."""
    words = re.split(r"(\s+)", s.body)
    kept = s.number((60, 90), (30, 60), (8, 30)) * len(words) // 100
    return "".join(words[: max(kept, 9)]).rstrip(" .\n")


def _phrase(s: Spoiler, low: int = 3, high: int = 10) -> str:
    words = s.body.split()
    size = s.rng.randint(low, high)
    start = s.rng.randrange(max(1, len(words) - size))
    return " ".join(words[start : start + size])


def _garbage(kind: str, rng: random.Random) -> str:
    sign = rng.choice("é≤√απ→’–")
    if kind == "lost":
        return "\ufffd" * rng.randint(1, 3)
    if kind == "latin":
        return sign.encode().decode("latin-1")
    if kind == "windows":
        return sign.encode().decode("cp1252", errors="replace")
    if kind == "control":
        return chr(rng.choice((0, 1, 2, 3, 7, 8, 14, 27, 127)))
    return chr(rng.randint(0xD800, 0xDFFF))


KINDS: dict[str, Callable[[Spoiler], str]] = {
    kind.__name__: kind
    for kind in (
        phrase_loop,
        drifting_phrase,
        sentence_again,
        sentence_cycle,
        reworded_sentence,
        self_interruption,
        false_starts,
        token_runaway,
        character_runaway,
        line_runaway,
        format_chatter,
        chat_marks,
        bare_verdict,
        text_after_verdict,
        broken_encoding,
        script_soup,
        irrelevant_insertion,
        abrupt_conclusion,
    )
}


def corrupt(text: str, others: Sequence[str], *, kind: str, strength: str, half: int, seed: str) -> str:
    """Return `text` spoiled, with its verdict at the end; the same for the same arguments.

    Args:
        text: a trace that ends with a verdict line.
        others: traces to take irrelevant pieces from.
        kind: a name of `KINDS`.
        strength: a name of `STRENGTHS`.
        half: 0 or 1, which half of `wording` is used.
        seed: any text.
    """
    spoiler = Spoiler(text, others, strength, half, random.Random(f"{seed}:{kind}:{strength}"))
    spoiled = KINDS[kind](spoiler)
    return spoiled if kind == "text_after_verdict" else spoiled.rstrip() + spoiler.verdict
