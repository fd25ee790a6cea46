"""Parser of the documentation's pages: their blocks in order, what each is, and the marks above them.

A mark is an HTML comment, on a line of its own above a block:

    <!-- not run: REASON -->     the block is parsed, and its commands are checked, but it is not run
    <!-- setup: NAME NAME -->    functions of doc_setups that prepare the page's folder before the block
    <!-- file: NAME -->          what stands before the block's first command is saved as this file
    <!-- append: NAME -->        the same, at the end of the file
    <!-- then: COMMAND -->       a command of the text behind the block, run after the block's own
    <!-- output -->              the block shows what the page's last command prints
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from places import ROOT

__all__ = ["Block", "pages", "read_blocks", "statements"]

MARK = re.compile(r"^\s*<!-- (not run|setup|file|append|then|output)(?:: (.+?))? -->$")
FENCE = re.compile(r"^(\s*)(```+|~~~+)\s*([\w-]*)")
PROMPT = re.compile(r"^(?:\w*\$ +)")
PROGRAMS = (
    "pip|pipx|uv|python3?|pv-rl|pv-data|pv-eval|make|bash|sh|export|source|cat|cd|mkdir|cp|mv|rm|ls|touch|curl|wget|git|"
    "docker|kubectl|conda|ray|ssh|scp|sbatch|srun|torchrun|vllm|transformers|hf|lm_eval|inspect|pytest|tensorboard|ruff|"
    "mkdocs|twine|jupyter|gh|eval|echo|tmux|nvidia-smi"
)
COMMAND = re.compile(rf"^(?:\w+=\S* +)*(?:\.venv/bin/)?(?:{PROGRAMS})(?: |$|;)")
OVERRIDE = re.compile(r"""^['"]?[+~]*[a-z_0-9]+(?:\.[a-z_0-9]+)*=\S""")
HEREDOC = re.compile(r"<<-?'?(\w+)'?")


def pages() -> list[str]:
    """Paths of the pages that have blocks, relative to the repository."""
    patterns = ("*.md", "docs/**/*.md", "benchmarks/*.md", "plugins/*/*.md", "examples/**/*.md")
    found = sorted({str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern)})
    return [page for page in found if page != "CHANGELOG.md" and read_blocks(ROOT / page)]


@dataclass(kw_only=True)
class Block:
    """An indented or fenced block."""

    page: str
    line: int
    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def kind(self) -> str:
        """`shell`, `overrides` (of Hydra), `doctest`, `python`, `yaml`, or `text`: nothing that can be run."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        if self.language in ("bash", "sh", "shell", "console"):
            return "shell"
        if any(line.startswith(">>> ") for line in lines):
            return "doctest"
        if self.language in ("python", "yaml"):
            return self.language
        if any(PROMPT.match(line) or COMMAND.match(line) for line in lines):
            return "shell"
        if lines and all(OVERRIDE.match(line.strip()) for line in lines):
            return "overrides"
        if is_program(self.text):
            return "python"
        return "yaml" if re.match(r"\w+:( .*)?\n", self.text) else "text"

    @property
    def parts(self) -> tuple[str, list[tuple[str, list[str]]]]:
        """What stands before the first command, and each run of commands with the lines that it is shown to print."""
        before, commands = [], []
        for paragraph in re.split(r"\n(?=\s*\n)|\n(?=\w*\$ )", self.text):
            first = paragraph.lstrip("\n").partition("\n")[0]
            if self.language in ("bash", "sh", "shell") or PROMPT.match(first) or COMMAND.match(first):
                prompted, code, printed = bool(PROMPT.match(first)), [], []
                for line in paragraph.splitlines():
                    if prompted and not PROMPT.match(line) and not (code and code[-1].endswith("\\")):
                        printed.append(line)
                    else:
                        code.append(PROMPT.sub("", line))
                commands.append(("\n".join(code).strip("\n"), printed))
            elif commands:
                commands[-1][1].extend(paragraph.splitlines())
            else:
                before.append(paragraph)
        return "\n".join(before).strip("\n"), commands

    @property
    def commands(self) -> list[str]:
        """Its shell commands, one string each, however many lines."""
        return [one for code, _ in self.parts[1] for one in statements(code)] if self.kind == "shell" else []


def is_program(text: str) -> bool:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    return any(
        isinstance(node, ast.Import | ast.ImportFrom | ast.Call | ast.FunctionDef) for node in ast.walk(tree)
    )


def statements(code: str) -> Iterator[str]:
    """Commands of a script: a line, with the lines that a backslash or a here-document adds. No comments."""
    lines = iter(code.splitlines())
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        while line.endswith("\\"):
            line += "\n" + next(lines, "")
        if found := HEREDOC.search(line):
            for more in lines:
                line += "\n" + more
                if more.strip() == found[1]:
                    break
        yield line


def read_blocks(page: Path) -> list[Block]:
    """Blocks of a page in order. A mark without a block behind it is a block without text."""
    name = str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name
    lines, blocks, marks, at = page.read_text(encoding="utf-8").splitlines(), [], {}, 0
    while at < len(lines):
        line, start = lines[at], at
        if found := MARK.match(line):
            marks[found[1]] = found[2] or ""
            at += 1
            continue
        if not line.strip():
            at += 1
            continue
        language = ""
        if found := FENCE.match(line):
            at += 1
            while at < len(lines) and not lines[at].strip().startswith(found[2]):
                at += 1
            body, language, at = lines[start + 1 : at], found[3], at + 1
        elif line.startswith("    ") and not (
            start and lines[start - 1].strip() and not MARK.match(lines[start - 1])
        ):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            body = lines[start:at]
        else:
            body, at = [], at + 1
        text = textwrap.dedent("\n".join(body)).strip("\n")
        if text or marks:
            blocks.append(Block(page=name, line=start + 1, language=language, text=text, marks=marks))
            marks = {}
    return blocks
