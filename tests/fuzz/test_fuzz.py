"""Each fuzz target on its first inputs and on a few spoiled ones, the same in every run; `make fuzz` looks for more."""

from __future__ import annotations

import ast
import random
import re

import places
import pytest
from fuzz.corpus import first_inputs
from fuzz.targets import TARGETS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES = 8
WHOLE = 8
"""First inputs of each target that are run as they are."""


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_holds_on_inputs_that_are_spoiled(name):
    target = TARGETS[name]
    inputs = first_inputs(target)
    for one in random.Random(name).sample(inputs, min(WHOLE, len(inputs))):
        target.run(one)

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.sampled_from(inputs),
        st.sampled_from(inputs),
        st.floats(0, 1),
        st.floats(0, 1),
        st.binary(max_size=6),
    )
    def spoil(one, other, at, since, between):
        target.run(one[: int(at * len(one))] + between + other[int(since * len(other)) :])

    spoil()


OWN = (
    "yaml_errors",
    "opening",
    "manifest",
    "provenance",
    "trace_cache",
    "files",
    "presets",
    "published",
    "command",
    "server",
)
"""Modules that read what they or a package of ours wrote."""


def test_json_and_yaml_from_outside_have_one_reader_each():
    """`load_json` and `yaml_errors`: the parsers themselves raise more than their documented errors."""
    calls = {
        (path.stem, ast.unparse(node.func))
        for path in places.ROOT.glob("plugins/*/src/**/*.py")
        if re.search(r"(json|yaml|OmegaConf)\.(load|parse|safe)", text := path.read_text(encoding="utf-8"))
        for node in _outside_yaml_errors(ast.parse(text))
        if isinstance(node, ast.Call)
    }
    wrong = {"json.loads", "json.load", "yaml.load", "yaml.safe_load", "yaml.parse", "OmegaConf.load"}
    assert {(stem, call) for stem, call in calls if call in wrong and stem not in OWN} == set()
    assert ("files", "json.loads") in calls


def _outside_yaml_errors(node):
    yield node
    if not (isinstance(node, ast.With) and "yaml_errors()" in map(ast.unparse, node.items)):
        for child in ast.iter_child_nodes(node):
            yield from _outside_yaml_errors(child)
