"""Every block of every page is run or marked, in order: `make test-docs`, which prints a table of them."""

from __future__ import annotations

import os

import pytest
from doc_pages import pages
from doc_runner import Machine, PageRun

pytestmark = [pytest.mark.paths, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


def seconds() -> tuple[float, float]:
    """Time of the clock, and processor time of the commands that have ended."""
    times = os.times()
    return times.elapsed, times.children_user + times.children_system


@pytest.mark.parametrize("page", pages())
def test_the_commands_of_a_page_run(page: str, machine: Machine, tmp_path, record_property) -> None:
    begun, failures, results = seconds(), [], []
    with PageRun(page, machine, tmp_path) as run:
        for block in run.blocks:
            try:
                results.append(run.run(block))
            except (AssertionError, OSError) as failure:
                failures.append(str(failure))
    record_property("page", [page, results, [now - then for now, then in zip(seconds(), begun, strict=True)]])
    assert not failures, "\n\n".join(failures)
