"""The documentation site builds without a warning: every page is in the navigation, no link or anchor is broken."""

from __future__ import annotations

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
        ("reference/pv-rl.html", "pv-rl lab"),  # a command of another package
        ("reference/pv-data.html", "pv-data audit plan"),
        ("reference/configs.html", "reward=verdict_fluency"),
        ("reference/pv_rl.html", "w_i"),
        ("reference/pv_eval.html", "weighted_best_of_k"),  # a name that is imported when it is used
        ("plugins/pv-judge/index.html", "href=../../index.html"),  # a link to the README of the repository
        ("concepts/weightings.html", "href=../plugins/pv-trainers/index.html"),
    ],
)
def test_site_has_what_is_generated_and_what_is_outside_docs(site: Path, page: str, text: str) -> None:
    assert text in (site / page).read_text().replace('"', "")
