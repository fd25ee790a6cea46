"""Accuracy of the LaTeX source on real files: which pairs it reads, against pairs that a person listed by line.

    python benchmarks/latex_files.py FOLDER benchmarks/latex_pairs.json

FOLDER has the public repositories as `owner/name`, at the commits of the JSON file. That lists by path `pairs`
([line of the statement, line of its solution] of each pair there), `texts` (how many texts are set as solutions), and
the options of the source. The script prints a table in Markdown; a pair that is read and not listed is wrong, and is
printed behind its row.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pv_data.sources.reading.tex_marks import Names
from pv_data.sources.reading.tex_match import parts
from pv_data.sources.reading.tex_parts import Part
from pv_data.sources.reading.tex_source import parse


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("pairs", type=Path)
    given = parser.parse_args()
    print("| file | solutions | pairs there | read | unmatched | wrong |\n|---|---|---|---|---|---|")
    total = [0] * 5
    for name, one in json.loads(given.pairs.read_text()).items():
        names = Names(
            problems=frozenset(one.get("problems", ["problem", "exercise", "question"])),
            solutions=frozenset(one.get("solutions", ["solution", "soln", "proof", "answer"])),
            boxes=frozenset({"mdframed"}),
        )
        found = [part for part in parts(parse(given.folder / name), names) if isinstance(part, Part)]
        read = [(part.line, text.line) for part in found for text in part.solutions if text.text]
        there = {tuple(pair) for pair in one["pairs"]}
        wrong = [pair for pair in read if pair not in there]
        row = [one["texts"], len(there), len(read), one["texts"] - len(read), len(wrong)]
        print(f"| `{name}` |", " | ".join(map(str, row)), "|", *wrong)
        total = [a + b for a, b in zip(total, row, strict=True)]
    print("| all |", " | ".join(map(str, total)), "|")


if __name__ == "__main__":
    main()
