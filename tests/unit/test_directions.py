"""Who may import whom, read from the source: packages, rooms, names and circles. A second test sees each rule fail."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from places import ROOT

LAYERS: Mapping[str, tuple[str, ...]] = {
    "pv_cpu": (),
    "pv_rl": (),
    "pv_judge": ("pv_rl",),
    "pv_runs": ("pv_rl", "pv_doctor", "pv_judge"),
    "pv_data": ("pv_rl", "pv_judge"),
    "pv_verdicts": ("pv_rl", "pv_judge"),
    "pv_eval": ("pv_rl", "pv_judge", "pv_data", "pv_verdicts"),
    "pv_rules": ("pv_rl",),
    "pv_doctor": ("pv_rl",),
    "pv_trainers": ("pv_rl",),
    "pv_lab": ("pv_rl", "pv_judge", "pv_runs", "pv_data", "pv_eval", "pv_cpu", "pv_trainers", "pv_verdicts"),
}
"""Packages that a package may import."""
ROOMS = ("plan", "weights", "report", "watch", "sentinel", "train")
"""Rooms of pv_runs that import nothing of each other."""
ONLY: Mapping[str, tuple[str, ...]] = {
    "pv_rl.losses": ("pv_rl.losses", "pv_rl.errors", "pv_rl.hookspecs", "pv_rl.plugins"),
    "pv_rl.rewards": (
        "pv_rl.rewards",
        "pv_rl.errors",
        "pv_rl.hookspecs",
        "pv_rl.installing",
        "pv_rl.plugins",
        "pv_rl.verdict",
    ),
}
"""What a part of the core may import of the core."""
FOREIGN: Mapping[str, tuple[str, ...]] = {
    "pv_rl.losses": ("verl", "ray", "transformers"),
    "pv_rl.rewards": ("torch", "verl", "ray", "transformers", "httpx"),
    "pv_rl": ("httpx", "anyio", "pyarrow", "pydantic"),
}
"""Libraries that a part may not import."""

DOTTED = re.compile(r"pv_(?!cpu)\w+(\.\w+)+")
"""The core names the configs of pv-cpu."""


@dataclass
class Module:
    path: Path
    package: bool
    imports: set[tuple[str, str]] = field(default_factory=set)
    """Module, and the name that is imported from it, or ''. Those of type checking and of functions count."""
    attributes: set[tuple[str, str]] = field(default_factory=set)
    """Module, and the attribute that the code reads of it."""
    texts: set[str] = field(default_factory=set)
    """Strings that are the dotted name of something, for `importlib.import_module`."""


def read_tree(*roots: Path) -> dict[str, Module]:
    """The modules of the packages in some `src` folders, by name."""
    modules = {}
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            modules[name] = Module(path, package=parts[-1] == "__init__")
    for name, module in modules.items():
        _read(name, module)
    return modules


def _read(name: str, module: Module) -> None:
    tree = ast.parse(module.path.read_text(encoding="utf-8"))
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                module.imports.add((one.name, ""))
                bound[one.asname or one.name.partition(".")[0]] = (
                    one.name if one.asname else one.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            parents = name.split(".")[: -node.level + module.package or None] if node.level else []
            source = ".".join([*parents, *filter(None, [node.module])])
            for one in node.names:
                module.imports.add((source, one.name))
                bound[one.asname or one.name] = f"{source}.{one.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound:
            module.attributes.add((bound[node.value.id], node.attr))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED.fullmatch(node.value):
            module.texts.add(node.value)


def violations(modules: Mapping[str, Module]) -> Iterator[str]:
    """Everything that the rules forbid, one line each."""
    for name, module in modules.items():
        package = name.partition(".")[0]
        for source, imported in module.imports:
            target = f"{source}.{imported}" if f"{source}.{imported}" in modules else source
            other = target.partition(".")[0]
            if other in LAYERS and other not in (package, *LAYERS[package]):
                yield f"{name} imports {target}: {package} may not import {other}"
            yield from _in_the_core(name, target)
            yield from _in_a_room(name, target)
            if other in LAYERS and other != package and imported.startswith("_") and imported[:2] != "__":
                yield f"{name} imports {source}.{imported}, a private name"
        for text in module.texts:
            other = text.partition(".")[0]
            if other in LAYERS and other not in (package, *LAYERS[package]):
                yield f"{name} names {text}: {package} may not import {other}"
        for source, attribute in module.attributes:
            other = source.partition(".")[0]
            if other in LAYERS and other != package and attribute.startswith("_") and attribute[:2] != "__":
                yield f"{name} reads {source}.{attribute}, a private name"
    yield from (f"a circle: {' -> '.join(circle)}" for circle in circles(modules))


def _in_the_core(name: str, target: str) -> Iterator[str]:
    library = target.partition(".")[0]
    for part, forbidden in FOREIGN.items():
        if _within(name, part) and library in forbidden:
            yield f"{name} imports {library}: {part} may not"
    for part, allowed in ONLY.items():
        if _within(name, part) and library == "pv_rl" and not any(_within(target, one) for one in allowed):
            yield f"{name} imports {target}: {part} may not"
    if library == "verl" and _within(name, "pv_rl") and not _within(name, "pv_rl.verl_adapter"):
        yield f"{name} imports verl: only pv_rl.verl_adapter may"


def _in_a_room(name: str, target: str) -> Iterator[str]:
    ours, theirs = ([room for room in ROOMS if _within(one, f"pv_runs.{room}")] for one in (name, target))
    if ours and theirs and ours != theirs:
        yield f"{name} imports {target}: a room of pv_runs imports no other"


def _within(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


def circles(modules: Mapping[str, Module]) -> Iterator[list[str]]:
    """Circles of imports between files, one for each file that closes one."""
    follows = {
        name: sorted(
            target
            for source, imported in module.imports
            for target in [f"{source}.{imported}" if f"{source}.{imported}" in modules else source]
            if target in modules and target != name
        )
        for name, module in modules.items()
    }
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> Iterator[list[str]]:
        if name in path:
            yield [*path[path.index(name) :], name]
        elif name not in done:
            for target in follows[name]:
                yield from visit(target, [*path, name])
            done.add(name)

    for name in follows:
        yield from visit(name, [])


def test_the_core_can_be_read_in_an_afternoon():
    lines = sum(len(path.read_text().splitlines()) for path in (ROOT / "src" / "pv_rl").rglob("*.py"))
    assert lines < 5_000, "move what a run of verl with pv-rl alone does not need into a plugin"


def test_a_trainer_of_another_project_needs_a_small_module():
    lengths = {
        path.name: len(path.read_text().splitlines()) for path in ROOT.glob("plugins/pv-trainers/src/*/*.py")
    }
    assert max(lengths.values()) <= 80, lengths


def test_imports_go_one_way():
    roots = [ROOT / "src", ROOT / "examples/lab/src", *sorted((ROOT / "plugins").glob("*/src"))]
    modules = read_tree(*roots)
    assert {name.partition(".")[0] for name in modules} == set(LAYERS)
    found = set(violations(modules))
    assert found == set()


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"pv_rl/a.py": "def f():\n    import pv_judge.b"}, "pv_rl may not import pv_judge"),
        ({"pv_rl/a.py": "import_module('pv_runs.watch')"}, "names pv_runs.watch: pv_rl may not"),
        ({"pv_judge/a.py": "from pv_runs.train import x"}, "pv_judge may not import pv_runs"),
        ({"pv_data/a.py": "if TYPE_CHECKING:\n    import pv_eval"}, "pv_data may not import pv_eval"),
        ({"pv_rl/losses/a.py": "from pv_rl.rewards.base import x"}, "pv_rl.losses may not"),
        ({"pv_rl/rewards/a.py": "import torch.nn"}, "imports torch: pv_rl.rewards may not"),
        ({"pv_rl/recipes/a.py": "from verl.utils import x"}, "only pv_rl.verl_adapter may"),
        ({"pv_rl/verl_adapter/a.py": "import httpx"}, "imports httpx: pv_rl may not"),
        ({"pv_runs/plan/a.py": "from pv_runs.weights.b import x"}, "a room of pv_runs imports no other"),
        ({"pv_runs/plan/a.py": "from pv_runs import train"}, "pv_runs.train: a room of pv_runs"),
        ({"pv_runs/a.py": "from pv_rl.plugins import _x"}, "pv_rl.plugins._x, a private name"),
        (
            {"pv_runs/a.py": "from pv_rl import plugins\nplugins._x()"},
            "reads pv_rl.plugins._x, a private name",
        ),
        (
            {"pv_rl/a.py": "import pv_rl.b", "pv_rl/b.py": "if TYPE_CHECKING:\n    from .a import x"},
            "a circle: pv_rl.a -> pv_rl.b -> pv_rl.a",
        ),
    ],
)
def test_each_rule_can_fail(files, text, tmp_path):
    for name in ("pv_runs/train/__init__.py", "pv_runs/weights/b.py"):
        files = {name: "", **files}
    for name, source in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    (found,) = violations(read_tree(tmp_path))
    assert text in found
