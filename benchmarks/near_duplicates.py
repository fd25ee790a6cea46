"""Near-duplicates: how many changed copies of real problems are found, and which different problems are taken for one.

python benchmarks/near_duplicates.py ../shared/data
"""

import re
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from pv_data.duplicates import clusters
from pv_data.duplicates.clusters import Nearby, members, similarity
from pv_data.duplicates.shingles import shingles
from pv_data.plugins import SOURCES, named
from pv_data.records import Problem

FOLDERS = {
    "olympiadbench": "olympiadbench",
    "opc": "opc",
    "proofbench": "imobench",
    "processbench": "processbench",
    "prmbench": "prmbench",
    "gsm8k_solutions": "gsm8k_solutions",
    "dsmathv2": "dsmathv2",
}
REWORDED = {
    "Prove that": "Show that",
    "Determine all": "Find all",
    "Determine": "Find",
    "Find": "Compute",
    "such that": "so that",
    "Let ": "Suppose that ",
    "How many": "What is the number of",
    "for all": "for every",
}


def spacing(text: str) -> str:
    """White space, case, dots, dollar signs and LaTeX spacing."""
    return text.replace("$", " $ ").replace("=", r"\, = \;").replace(".", " .").lower()


def notation(text: str) -> str:
    """Other commands for the same sign."""
    for one, other in {r"\leq": r"\le", r"\geq": r"\ge", r"\frac": r"\dfrac", r"\ldots": r"\dots"}.items():
        text = re.sub(re.escape(one) + r"(?![A-Za-z])", lambda _, other=other: other, text)
    return re.sub(r"\$([^$]+)\$", r"\\(\1\\)", text)


def reworded(text: str) -> str:
    """Usual phrases for usual phrases, and a number in front."""
    for one, other in REWORDED.items():
        text = text.replace(one, other)
    return f"Problem 3. {text}"


def every_tenth_word_lost(text: str) -> str:
    """10% of the words are gone."""
    return " ".join(word for at, word in enumerate(text.split()) if at % 10 != 9)


def variable(text: str) -> str:
    """`n` is called `k`: every formula with it changes."""
    return re.sub(r"(?<![A-Za-z\\])n(?![A-Za-z])", "k", text)


def main(data: Path) -> None:
    """Print tables in Markdown."""
    problems: dict[str, Problem] = {}
    for source, folder in FOLDERS.items():
        for row in named(SOURCES, source).read(data / folder):
            if isinstance(row, Problem):
                problems.setdefault(row.id, row)
    print(f"{len(problems)} problems: {dict(Counter(one.source for one in problems.values()))}\n")
    thresholds = (0.5, 0.6, 0.7, 0.8, 0.9)
    index = {threshold: Nearby(threshold) for threshold in thresholds}
    for one in problems.values():
        for nearby in index.values():
            nearby.add(one.id, one.text)
    print(
        f"| change | copies | {' | '.join(f'found at {one}' for one in thresholds)} | lost by the hashing alone |"
    )
    print("|---|---|" + "---|" * (len(thresholds) + 1))
    for change in (spacing, notation, reworded, every_tenth_word_lost, variable):
        copies = [(one, change(one.text)) for one in problems.values()]
        copies = [(one, text) for one, text in copies if text != one.text]
        found, lost = [], 0
        for threshold, nearby in index.items():
            hits = [any(key == one.id for key, _ in nearby.near(text)) for one, text in copies]
            found.append(sum(hits))
            lost += sum(
                not hit and similarity(shingles(text), shingles(one.text)) >= threshold
                for hit, (one, text) in zip(hits, copies, strict=True)
            )
        print(
            f"| {change.__name__} | {len(copies)} | "
            f"{' | '.join(f'{one / len(copies):.1%}' for one in found)} | {lost} |"
        )
    print("\n| threshold | clusters | in one source | across sources | seconds |\n|---|---|---|---|---|")
    for threshold in thresholds:
        start = time.perf_counter()
        groups = members(clusters(problems.values(), threshold=threshold)).values()
        took = time.perf_counter() - start
        across = sum(len({problems[one].source for one in group}) > 1 for group in groups)
        print(f"| {threshold} | {len(groups)} | {len(groups) - across} | {across} | {took:.1f} |")
    if "--show" in sys.argv:
        for group in members(clusters(problems.values(), threshold=0.5)).values():
            for one in group[1:]:
                near = similarity(shingles(problems[group[0]].text), shingles(problems[one].text))
                print(f"\n{near:.2f}")
                for name in (group[0], one):
                    shown = replace(problems[name], text=" ".join(problems[name].text.split())[:200])
                    print(f"  {shown.source} {shown.native_id}: {shown.text}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
