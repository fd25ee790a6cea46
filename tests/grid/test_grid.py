"""One gradient, however the step is cut: a part of the fixed grid. `benchmarks/exactness.py` runs all of it."""

from __future__ import annotations

import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")

from grid.cases import Case
from grid.compare import TOLERANCE, Grid
from grid.fixed import fixed_grid
from grid.strategy import cases
from hypothesis import given, settings

LOCAL_MODES = ["dapo", "balanced:0.6", "dapo@batch", "balanced:0.3@batch"]


@pytest.fixture(scope="module")
def grid():
    with Grid() as grid:
        yield grid
        started = grid.ranks.processes()
    assert [process for process in started if process.is_running()] == []


def chosen() -> list[Case]:
    """Two of each family and four of everything at once: spread, so that modes and cuts take turns."""
    families: dict[str, list[Case]] = {}
    for case in fixed_grid():
        families.setdefault(case.family, []).append(case)
    taken = []
    for number, (family, members) in enumerate(families.items()):
        wanted = 4 if family == "everything at once" else 2
        step = len(members) // wanted + 1  # not a divisor: every axis of the family moves
        taken += [members[(number + turn * step) % len(members)] for turn in range(wanted)]
    return taken


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", chosen(), ids=str)
def test_the_gradient_is_the_papers_however_the_step_is_cut(grid, case, dtype):
    assert grid.error(case, dtype) <= TOLERANCE[dtype]


@given(case=cases())
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
def test_the_gradient_is_the_papers_for_any_step_and_any_cut(grid, case):
    for dtype, tolerance in TOLERANCE.items():
        assert grid.error(case, dtype) <= tolerance


@pytest.mark.parametrize("spec", LOCAL_MODES)
def test_dividing_by_a_micro_batchs_own_tokens_is_found(grid, spec):
    case = Case(name="cut", groups=((5, 40, 3), (100, 7, 2)), spec=spec, ranks=2, micro_rows=1)
    assert grid.error(case) <= TOLERANCE["float32"]
    assert grid.error(case, local=True) > 1e-2
