"""The table of refused settings in docs/guides/trainers/others.md, against the errors of the modules."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODULES = {
    "TRL": ("trl", "trl_rewards"),
    "SkyRL": ("skyrl",),
    "AReaL": ("areal",),
    "OpenRLHF": ("openrlhf",),
    "tinker-cookbook": ("tinker",),
    "NeMo-RL": ("nemo_rl",),
    "prime-rl": ("prime_rl",),
}
NO_SETTING = ("install ", "Install that", "as at commit", "weighting is", "has no column")
"""In errors about a version, a missing mode or the data."""


def sources(trainer: str) -> list[str]:
    return [
        (ROOT / f"plugins/pv-trainers/src/pv_trainers/{name}.py").read_text() for name in MODULES[trainer]
    ]


def settings_of_the_page() -> dict[str, list[str]]:
    """By trainer, the names in its row, `mean=True` and `UNSLOTH_GRPO_*` without what follows the name."""
    page = (ROOT / "docs/guides/trainers/others.md").read_text().split("## Settings that are refused")[1]
    rows = (row.split("|")[1:3] for row in page.splitlines() if row.startswith("| ") and "---" not in row)
    found = {
        name.strip(): [re.sub(r"[=*].*", "", one) for one in re.findall("`(.*?)`", of)] for name, of in rows
    }
    del found["trainer"]
    return found


@pytest.mark.parametrize("trainer", MODULES)
def test_the_page_lists_the_settings_that_a_module_refuses(trainer):
    """Each error of a setting has a name of the trainer's row, and each name of the row is in the module."""
    listed = settings_of_the_page()[trainer]
    text = "\n".join(sources(trainer))
    parts = {"advantage_clip_low": "advantage_clip"}
    assert [one for one in listed if parts.get(one, one) not in text] == []
    errors = [
        ast.unparse(node)
        for source in sources(trainer)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Raise) and re.match(r"raise (ConfigError|LossModeError)\(", ast.unparse(node))
    ]
    named = [*listed, "grpo.{name}", "the loss {loss"]  # names that the module fills in
    settings = [one for one in errors if not any(word in one for word in NO_SETTING)]
    assert settings
    assert [one for one in settings if not any(name in one for name in named)] == []


def test_the_page_has_a_row_for_each_module():
    names = {path.stem for path in (ROOT / "plugins/pv-trainers/src/pv_trainers").glob("*.py")}
    assert names - {"__init__", "launch", "train_openrlhf"} == {one for of in MODULES.values() for one in of}
    assert settings_of_the_page().keys() == MODULES.keys()
