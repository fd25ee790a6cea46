"""Table of test durations by group, in Markdown: `python tests/support/durations.py tests.xml [FILES]`.

`make test ARGS=--junitxml=tests.xml` writes the file. A group is a folder of tests; FILES is how many of the slowest
files are listed below them (default 20).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from xml.etree import ElementTree


def main(report: str, files: str = "20") -> None:
    cost: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        cost[case.get("classname", "")].append(float(case.get("time", 0)))
    groups: dict[str, list[float]] = defaultdict(list)
    for file, seconds in cost.items():
        groups[file.rpartition(".")[0]] += seconds
    slowest = sorted(cost, key=lambda file: -sum(cost[file]))[: int(files)]
    everything = {"all": [second for seconds in cost.values() for second in seconds]}
    for title, table in (("group", groups | everything), ("file", {file: cost[file] for file in slowest})):
        rows = [
            f"| {name.replace('.', '/')} | {len(table[name])} | {sum(table[name]):.0f} |" for name in table
        ]
        sys.stdout.write("\n".join([f"| {title} | tests | seconds |", "|---|---|---|", *rows]) + "\n\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
