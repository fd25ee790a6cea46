"""Verbatim loops: a round of any length in five kinds of text, said again and again, plainly or in disguise."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count

__all__ = ["DISGUISES", "PERIODS", "TEXTS", "looping_trace"]

PERIODS = (50, 100, 200, 400, 600, 700, 1_000, 1_500, 3_000, 6_000, 12_000)
MOST_ROUNDS, MOST_CHARACTERS = 20, 40_000
LATIN, LOOK_ALIKES = "aceopxyABCEHKMOPTX", "асеорхуАВСЕНКМОРТХ"

NOUNS = """assume bound case claim condition constant contradiction degree divisor equality estimate factor function
hypothesis identity inequality integer interval lemma limit matrix maximum modulus point polynomial prime product
quotient radius residue root sequence series set solution sum triangle value variable vector vertex"""
VERBS = "is has gives needs bounds divides exceeds implies satisfies contradicts determines preserves"
LINKS = "and since because while whenever although unless so if therefore hence where"
CHINESE = """证明 假设 不等式 整数 多项式 质数 函数 序列 极限 矩阵 三角形 圆心 引理 条件 结论 成立 矛盾 因此 所以 由于
如果 那么 可以 得到 满足 大于 小于 等于 存在 任意 唯一 连续 收敛 有界 单调 对称 平行 垂直 奇数 偶数"""
TACTICS = "rw simp exact apply have linarith nlinarith intro cases obtain refine constructor norm_num"


def prose(rng: random.Random) -> str:
    parts = [
        f"the {_word(rng, NOUNS)} {_word(rng, VERBS)} a {_word(rng, NOUNS)} {_word(rng, LINKS)}"
        for _ in range(3)
    ]
    return f"{' '.join(parts)} the {_word(rng, NOUNS)} is finite. ".capitalize()


def latex(rng: random.Random) -> str:
    a, b, n = rng.choice("abcduvw"), rng.choice("xyzpqrst"), rng.randint(2, 99)
    return (
        rf"\[ \frac{{{a}_{{{n}}}^{rng.randint(2, 9)} + \sqrt{{{b}}}}}{{{n}{b} - {a}}} \le "
        rf"\sum_{{k=1}}^{{{rng.choice('mnNM')}}} \binom{{{n}}}{{k}} {b}^{{k}} \] "
    )


def chinese(rng: random.Random) -> str:
    return "".join(_word(rng, CHINESE) for _ in range(9)) + "。"


def lean(rng: random.Random) -> str:
    names = [rng.choice("hxyzabfg") + rng.choice(("", "_pos", "_le", "_mem", "_def")) for _ in range(3)]
    lemma = f"{_word(rng, NOUNS)}_{_word(rng, VERBS)}"
    return f"  {_word(rng, TACTICS)} [{names[0]}, {lemma}] at {names[1]} {names[2]}\n"


def made_up(rng: random.Random) -> str:
    words = ("".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(3)) for _ in range(8))
    return " ".join(words) + " "


TEXTS: dict[str, Callable[[random.Random], str]] = {
    "English": prose,
    "LaTeX": latex,
    "Chinese": chinese,
    "Lean": lean,
    "made-up words": made_up,
}


def plain(pieces: list[str], numbers: Iterator[int], rng: random.Random) -> str:
    return "".join(pieces)


def counter(pieces: list[str], numbers: Iterator[int], rng: random.Random) -> str:
    return f"Attempt {next(numbers)}: {''.join(pieces)}\n"


def renumbered(pieces: list[str], numbers: Iterator[int], rng: random.Random) -> str:
    """A running number before about every third sentence."""
    return "".join(f"({next(numbers)}) {piece}" if at % 3 == 0 else piece for at, piece in enumerate(pieces))


def zero_width(pieces: list[str], numbers: Iterator[int], rng: random.Random) -> str:
    return _changed(pieces, rng, lambda letter: letter + rng.choice("\u200b\u200c\u200d\u2060\ufeff"))


def homoglyphs(pieces: list[str], numbers: Iterator[int], rng: random.Random) -> str:
    swap = dict(zip(LATIN, LOOK_ALIKES, strict=True))
    return _changed(pieces, rng, lambda letter: swap.get(letter, letter))


def white_space(pieces: list[str], numbers: Iterator[int], rng: random.Random) -> str:
    return _changed(
        pieces, rng, lambda letter: rng.choice((" ", "  ", "\n", " \n")) if letter == " " else letter, 0.5
    )


def upper_case(pieces: list[str], numbers: Iterator[int], rng: random.Random) -> str:
    return _changed(pieces, rng, str.upper)


DISGUISES = {
    one.__name__: one for one in (plain, counter, renumbered, zero_width, homoglyphs, white_space, upper_case)
}


def looping_trace(text: str, period: int, disguise: str, seed: int) -> str:
    """A fluent beginning, then rounds of `period` characters, 20 or 40,000 characters of them, then a verdict.

    Args:
        text: a name of `TEXTS`.
        period: characters of a round, before its disguise.
        disguise: a name of `DISGUISES`.
        seed: the same gives the same trace.
    """
    rng = random.Random(f"{text}:{period}:{seed}")
    opening = "".join(TEXTS[text](rng) for _ in range(4))
    pieces, left = [], period
    while left > 0:
        pieces.append(TEXTS[text](rng)[:left])
        left -= len(pieces[-1])
    numbers = count(1)
    rounds = min(MOST_ROUNDS, MOST_CHARACTERS // period)
    loop = "".join(DISGUISES[disguise](pieces, numbers, rng) for _ in range(rounds))
    return f"{opening}\n{loop}\n\n### False"


def _changed(pieces: list[str], rng: random.Random, change: Callable[[str], str], share: float = 0.1) -> str:
    return "".join(change(letter) if rng.random() < share else letter for piece in pieces for letter in piece)


def _word(rng: random.Random, words: str) -> str:
    return rng.choice(words.split())
