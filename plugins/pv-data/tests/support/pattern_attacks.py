"""Generator of texts on which a regular expression may backtrack.

For each repeat of a pattern it builds a text that leads to the repeat, then rounds of its body, then a character that
does not match. Characters stand for classes: two that no part of the pattern tells apart are tried once.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from types import ModuleType
from typing import Any, NamedTuple

__all__ = ["Used", "attacks", "patterns"]

ALPHABET = "aZ0_ \n\t\xa0.,-+*#$\\{}[]()<>|/:=`~'\"é中\x01"
REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}
LONG_REPEAT = 8
"""A repeat of at most so many rounds is short."""
SCANNING = {"search", "finditer", "findall", "sub", "subn", "split"}


class Used(NamedTuple):
    """A pattern, and whether the package looks for it at every place of a text or at one."""

    pattern: re.Pattern[Any]
    scans: bool


def patterns(*packages: ModuleType) -> dict[str, Used]:
    """The patterns that packages compile in their modules or write into a call, by `MODULE.NAME` or `MODULE:LINE`."""
    found: dict[str, Used] = {}
    for package in packages:
        root = Path(package.__path__[0])
        for file in sorted(root.rglob("*.py")):
            source = file.read_text(encoding="utf-8")
            if "import re\n" not in source:
                continue
            parts = (package.__name__, *file.relative_to(root).with_suffix("").parts)
            module = ".".join(parts).removesuffix(".__init__")
            if "re.compile(" in source:
                for name, value in vars(importlib.import_module(module)).items():
                    used = set(re.findall(rf"\b{name}\.(\w+)\(", source)) & {*SCANNING, "match", "fullmatch"}
                    scans = bool(used & SCANNING) or not used
                    for number, one in enumerate(_patterns_in(value)):
                        found[f"{module}.{name}[{number}]"] = Used(one, scans)
            for node in ast.walk(ast.parse(source)):
                match node:
                    case ast.Call(
                        func=ast.Attribute(value=ast.Name(id="re"), attr=attr),
                        args=[ast.Constant(value=str(pattern)), *_],
                    ) if attr != "compile":
                        found[f"{module}:{node.lineno}"] = Used(re.compile(pattern), attr in SCANNING)
    return found


def _patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _patterns_in(one)


def attacks(pattern: re.Pattern[Any]) -> set[tuple[str, str]]:
    """Pairs of a beginning and a body; the attack is the beginning and many rounds of the body."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    parsed: Any = parser.parse(text, pattern.flags & (re.VERBOSE | re.IGNORECASE | re.DOTALL))
    tree = list(parsed)
    kinds = {tuple(one(character) for one in _tests(tree)): character for character in reversed(ALPHABET)}
    found: set[tuple[str, str]] = set()
    for character in kinds.values():
        whole = _example(tree, character)
        for before, body in [*_repeats(tree, character, ""), ("", whole)]:
            found |= {(before, body), ("", before), ("", before + body), ("", body), ("", whole + body)}
    return {(before, body) for before, body in found if body}


def _inside(op: str, arg: Any) -> list[list[Any]]:
    """The sequences within a node; each but that of a branch is the only one."""
    if op in REPEATS:
        return [list(arg[2])]
    if op == "SUBPATTERN":
        return [list(arg[3])]
    if op == "ATOMIC_GROUP":
        return [list(arg)]
    if op in ("ASSERT", "ASSERT_NOT"):
        return [list(arg[1])]
    return [list(one) for one in arg[1]] if op == "BRANCH" else []


def _tests(nodes: list[Any]) -> Iterator[Any]:
    """For each single character of a pattern, whether another one matches it."""
    for op, arg in nodes:
        if str(op) in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            yield lambda character, op=str(op), arg=arg: _matches(op, arg, character)
        for inside in _inside(str(op), arg):
            yield from _tests(inside)


def _matches(op: str, arg: Any, character: str) -> bool:
    if op == "ANY":
        return character != "\n"
    if op != "IN":
        return (ord(character) == arg) is (op == "LITERAL")
    items: Mapping[str, list[Any]] = {str(kind): [a for k, a in arg if k == kind] for kind, _ in arg}
    categories = {
        "SPACE": character.isspace(),
        "DIGIT": character.isdigit(),
        "WORD": character.isalnum() or character == "_",
    }
    hit = (
        ord(character) in items.get("LITERAL", [])
        or any(low <= ord(character) <= high for low, high in items.get("RANGE", []))
        or any(
            is_in is ("NOT" not in str(one))
            for one in items.get("CATEGORY", [])
            for name, is_in in categories.items()
            if name in str(one)
        )
    )
    return hit is ("NEGATE" not in items)


def _example(nodes: list[Any], character: str) -> str:
    """A text that the nodes match, or nearly; where they leave a choice, of this character."""
    return "".join(_example_of(str(op), arg, character) for op, arg in nodes)


def _example_of(op: str, arg: Any, character: str) -> str:
    if op == "LITERAL":
        return chr(arg)
    if op in ("NOT_LITERAL", "ANY", "IN"):
        listed = (
            [
                chr(a if str(kind) == "LITERAL" else a[0])
                for kind, a in arg
                if str(kind) in ("LITERAL", "RANGE")
            ]
            if (op == "IN")
            else []
        )
        return next((one for one in [character, *ALPHABET, *listed] if _matches(op, arg, one)), "")
    if op.startswith("ASSERT"):
        return ""
    return "".join(_example(inside, character) for inside in _inside(op, arg)[:1]) * (
        arg[0] if op in REPEATS else 1
    )


def _repeats(nodes: list[Any], character: str, before: str) -> Iterator[tuple[str, str]]:
    """For each long repeat and each branch, what leads to it and one round of it."""
    for place, (op, arg) in enumerate(nodes):
        here = before + _example(nodes[:place], character)
        for inside in _inside(str(op), arg):
            if (str(op) in REPEATS and arg[1] > LONG_REPEAT) or str(op) == "BRANCH":
                yield here, _example(inside, character)
            yield from _repeats(inside, character, here)
