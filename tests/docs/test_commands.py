"""Every block of every page is run or marked, in order: `make test-docs`, which prints a table of them."""

from __future__ import annotations

import time

import pytest
from doc_pages import pages
from doc_runner import Machine, PageRun

pytestmark = [pytest.mark.paths, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


@pytest.mark.parametrize("page", pages())
def test_the_commands_of_a_page_run(page: str, machine: Machine, tmp_path, record_property) -> None:
    begun, failures, results = time.monotonic(), [], []
    with PageRun(page, machine, tmp_path) as run:
        for block in run.blocks:
            try:
                results.append(run.run(block))
            except (AssertionError, OSError) as failure:
                failures.append(str(failure))
    record_property("page", [page, results, time.monotonic() - begun])
    assert not failures, "\n\n".join(failures)
