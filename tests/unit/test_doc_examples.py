"""Examples of the pages on rewards and rules give what the pages show."""

from __future__ import annotations

import pytest
from doc_examples import run_examples
from places import ROOT


@pytest.mark.parametrize(("page", "values"), [("concepts/rules.md", 4), ("guides/write_reward.md", 0)])
def test_the_examples_of_a_page_give_what_it_shows(page: str, values: int):
    assert run_examples(ROOT / "docs" / page) == values
