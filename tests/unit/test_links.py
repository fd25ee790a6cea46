"""Links of the documentation lead to files and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import places

PAGES = [
    page
    for pattern in (
        "*.md",
        "llms.txt",
        "docs/**/*.md",
        "benchmarks/*.md",
        "plugins/*/*.md",
        "examples/*/*.md",
    )
    for page in sorted(places.ROOT.glob(pattern))
]
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|^ {4}.*$", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them: lower case, hyphens for spaces, without punctuation."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#{1,6} (.+?) *$", text, re.MULTILINE)
    shown = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in shown}


def broken(page: Path) -> list[str]:
    found = []
    for link in re.findall(r"\]\(([^()\s]+)\)", CODE.sub("", page.read_text(encoding="utf-8"))):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if re.match("[a-z]+:", link):
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            found.append(f"{page.relative_to(places.ROOT)}: {link}")
    return found


def test_every_link_of_the_documentation_leads_somewhere():
    assert len(PAGES) > 40
    assert [link for page in PAGES for link in broken(page)] == []


def test_a_missing_file_and_a_missing_heading_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "ROOT", tmp_path)
    page = tmp_path / "a.md"
    page.write_text(
        "# A `b` [c](a.md)\n[1](a.md#a-b-c) [2](#a-b-c) [3](#b) [4](b.md) [5](https://x.org#y) `[6](z)`\n"
    )
    assert broken(page) == ["a.md: #b", "a.md: b.md"]
