"""Near-duplicates: recall on labelled rewordings, and which distinct problems are taken for one.

python benchmarks/near_duplicates.py ../shared/data            # tables in Markdown
python benchmarks/near_duplicates.py ../shared/data --show     # and the pairs of distinct problems, to read
python benchmarks/near_duplicates.py ../shared/data --scale    # seconds for made problems, up to 100,000
"""

import json
import random
import re
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from pv_data.duplicates import clusters, contamination
from pv_data.duplicates.blind import THRESHOLD, WEIGHTS, blind
from pv_data.duplicates.clusters import AS_WRITTEN
from pv_data.duplicates.contamination import BAND
from pv_data.duplicates.pairs import similar_pairs, similarity
from pv_data.duplicates.shingles import shingles
from pv_data.plugins import SOURCES
from pv_data.records import Problem

REWORDINGS = Path(__file__).parents[1] / "plugins/pv-data/tests/support/rewordings.jsonl"
KINDS = {
    "variables": "other names of variables",
    "numbers": "numbers as words, or words as numbers",
    "names": "other people, things, months",
    "order": "clauses in another order",
    "voice": "passive, imperative, question",
    "notation": "formulas written otherwise",
    "paraphrase": "told in other words",
    "translation": "English to Chinese or back",
}
OTHERS = {
    "other_numbers": "same template, other numbers",
    "other_condition": "another condition or question",
    "other_problem": "another problem on the subject",
}
FOLDERS = {
    "olympiadbench": "olympiadbench",
    "gsm8k_solutions": "gsm8k_solutions",
    "opc": "opc",
    "proofbench": "imobench",
    "processbench": "processbench",
    "prmbench": "prmbench",
    "dsmathv2": "dsmathv2",
}
COMPARED = {
    "as written, 0.5": (shingles, (1.0,), 0.5),
    f"as written, {AS_WRITTEN}": (shingles, (1.0,), AS_WRITTEN),
    f"blind, {THRESHOLD}": (blind, WEIGHTS, THRESHOLD),
    f"blind, {THRESHOLD - BAND:.2f}": (blind, WEIGHTS, THRESHOLD - BAND),
}


def rewordings() -> None:
    """Share of the pairs that are found, by kind; the last columns are of the half that chose nothing."""
    rows = [json.loads(line) for line in REWORDINGS.read_text(encoding="utf-8").splitlines()]
    print(
        f"| rewording | n | {' | '.join(COMPARED)} | of the held-out half |\n|---|---|{'---|' * (len(COMPARED) + 1)}"
    )
    found: defaultdict[str, list[tuple[int, list[bool]]]] = defaultdict(list)
    for row in rows:
        for kind in (KINDS | OTHERS).keys() & row.keys():
            hits = [
                similarity(of(row["text"]), of(row[kind]), weights) >= threshold
                for of, weights, threshold in COMPARED.values()
            ]
            found[kind].append((int(row["id"][1:]) % 2, hits))

    def line(name: str, several: list[tuple[int, list[bool]]]) -> None:
        shares = [sum(hits[at] for _, hits in several) / len(several) for at in range(len(COMPARED))]
        held = [hits[2] for odd, hits in several if not odd]
        print(
            f"| {name} | {len(several)} | {' | '.join(f'{one:.0%}' for one in shares)} | "
            f"{sum(held) / len(held):.0%} of {len(held)} |"
        )

    for kind, meaning in (KINDS | OTHERS).items():
        line(meaning, found[kind])
    line("**all but translations**", [one for kind in KINDS if kind != "translation" for one in found[kind]])


def distinct(data: Path, *, show: bool) -> None:
    """Pairs of each set that are taken for one, and of problems of different sets."""
    print("\n| set | problems | pairs | " + " | ".join(COMPARED) + " | largest cluster | seconds, blind |")
    print("|---|---|---|" + "---|" * (len(COMPARED) + 2))
    for name, folder in FOLDERS.items():
        rows = {row.id: row for row in SOURCES.named(name).read(data / folder) if isinstance(row, Problem)}
        problems = list(rows.values())
        counts = [
            sum(1 for _ in similar_pairs([of(one.text) for one in problems], None, threshold, weights))
            for of, weights, threshold in COMPARED.values()
        ]
        start = time.perf_counter()
        pairs = list(similar_pairs([blind(one.text) for one in problems], None, THRESHOLD, WEIGHTS))
        took = time.perf_counter() - start
        number = len(problems)
        largest = max(Counter(clusters(problems, blinded=True).values()).values())
        print(
            f"| {name} | {number} | {number * (number - 1) // 2:,} | {' | '.join(map(str, counts))} | {largest} | "
            f"{took:.1f} |"
        )
        for at, to, value in sorted(pairs, key=lambda pair: -pair[2]) if show else ():
            one, other = problems[at], problems[to]
            written = similarity(shingles(one.text), shingles(other.text))
            print(f"\n{value:.2f}, as written {written:.2f}: {one.native_id}, {other.native_id}")
            for problem in (one, other):
                print("   " + " ".join(problem.text.split())[:300])


def scale(data: Path) -> None:
    """CPU seconds for problems made of sentences of real ones, in which half of the words and all numbers are drawn."""
    texts = [
        row.text
        for name, folder in FOLDERS.items()
        for row in SOURCES.named(name).read(data / folder)
        if isinstance(row, Problem)
    ]
    sentences = [one for text in texts for one in re.split(r"(?<=[.?!])\s+", text) if 20 < len(one) < 400]
    words = sorted({word for text in texts for word in re.findall(r"[a-z]{4,}", text)})
    draw = random.Random(0)

    def made() -> str:
        text = " ".join(draw.sample(sentences, draw.randint(2, 4)))
        text = re.sub(r"\d+", lambda _: str(draw.randint(2, 999)), text)
        word = r"(?<![\\a-zA-Z])[a-z]{4,}"
        return re.sub(word, lambda found: draw.choice(words) if draw.random() < 0.5 else found.group(), text)

    problems = [Problem(source="S", native_id=str(number), text=made()) for number in range(100_000)]
    print(
        "\n| problems | clusters as written | clusters, blind | a twentieth as test set |\n|---|---|---|---|"
    )
    for number in (5_000, 20_000, 100_000):
        some = problems[:number]
        took = []
        for run in (
            lambda some: clusters(some),
            lambda some: clusters(some, blinded=True),
            lambda some: contamination(some[len(some) // 20 :], {"test": some[: len(some) // 20]}),
        ):
            start = time.process_time()
            run(some)
            took.append(time.process_time() - start)
        print(f"| {number:,} | {' | '.join(f'{one:.1f} s' for one in took)} |")


if __name__ == "__main__":
    if "--scale" in sys.argv:
        scale(Path(sys.argv[1]))
    else:
        rewordings()
        distinct(Path(sys.argv[1]), show="--show" in sys.argv)
