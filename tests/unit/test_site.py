"""The documentation site builds without a warning: every page is in the navigation, no link or anchor is broken."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

pytest.importorskip("mkdocs", reason="the site needs the extra docs: pip install '.[docs]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    return folder


def test_site_loads_nothing_from_another_host(site: Path) -> None:
    loads = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?(?:src|href)=["']?(?:https?:)?//[^"' >]+""")
    assert {found for page in site.rglob("*.html") for found in loads.findall(page.read_text())} == set()


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("reference/pv-rl.html", "pv-rl quickstart"),  # a command of another package
        ("reference/pv-data.html", "pv-data audit plan"),
        ("reference/configs.html", "reward=verdict_fluency"),
        ("reference/sets.html", "hard2verify:FILE"),
        ("reference/rules.html", "interruptions in a row"),
        ("reference/signs.html", "Read the last vetoed traces"),
        ("reference/pv_runs.html", "Prompts of the training set"),
        ("reference/pv_rl.html", "w_i"),
        ("reference/pv_eval.html", "weighted_best_of_k"),  # a name that is imported when it is used
        ("plugins/pv-judge/index.html", "href=../../index.html"),  # a link to the README of the repository
        ("concepts/weightings.html", "href=../plugins/pv-trainers/index.html"),
    ],
)
def test_site_has_what_is_generated_and_what_is_outside_docs(site: Path, page: str, text: str) -> None:
    assert text in (site / page).read_text().replace('"', "")


def _texts() -> str:
    """All texts of the packages' sources; where an f-string has a value, a text ends."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")]
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    return "\n".join(
        node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def test_messages_of_the_troubleshooting_page_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text().partition("## During a run")[0]
    messages = set(re.findall(r"^\| `([^`]+)` \|", page, re.M))
    foreign = {
        "Invalid loss_agg_mode",
        "Could not override 'judge'",
        "Available options in 'reward'",
    }  # verl, Hydra
    assert foreign < messages
    assert len(messages) > 7
    texts = _texts()
    parts = {part for message in messages - foreign for part in message.split("...") if part.strip()}
    assert {part for part in parts if part not in texts} == set()
