"""Each fuzz target on its first inputs and on a few spoiled ones, the same in every run; `make fuzz` looks for more."""

from __future__ import annotations

import random

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
