"""One gradient, however the step is cut: a part of the fixed grid. `benchmarks/exactness.py` runs all of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")

from grid.cases import Case, make_scores
from grid.compare import TOLERANCE, Grid
from grid.fixed import fixed_grid
from grid.oracle import Loss
from grid.strategy import cases
from hypothesis import given, settings
from trainer_grid import Step
from transformers import AutoModelForCausalLM

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


@pytest.mark.parametrize(
    ("spec", "policy", "cuts"),
    [
        ("balanced:0.6", "vanilla", {"ranks": 2, "micro_rows": 1, "abstained": (1, 5)}),
        ("ba", "gspo", {"micro_rows": 3, "mini_rows": 6, "holes": 0.3}),
    ],
)
def test_verls_adapter_and_trls_give_the_same_gradient(grid, spec, policy, cuts):
    """The mean over the updates, because TRL shuffles the rows before it cuts them into updates."""
    from drivers import trl

    groups = ((3, 17, 40, 9), (5, 1, 22, 60), (8, 8, 30, 2))
    case = Case(name="verl and TRL", groups=groups, spec=spec, loss=Loss(policy=policy), **cuts)
    scores = make_scores(case)
    for row in case.abstained:  # the mean of the others: the grid's rows abstain by their mask alone
        others = set(range(row // 4 * 4, row // 4 * 4 + 4)) - {*case.abstained}
        scores[row] = sum(scores[other] for other in others) / len(others)
    updates, advantages = grid.ranks.run(case, grid.rows(case), scores, dtype="float32")
    verls = sum(update.gradient for update in updates) / len(updates)
    rows = [replace(row, advantages=advantages[i]) for i, row in enumerate(grid.rows(case))]
    model = AutoModelForCausalLM.from_pretrained(grid.ranks.model, dtype=torch.float32)
    other_cut = Step(replace(case, ranks=1, micro_rows=2), rows)
    trls = trl.gradients(model, other_cut, spec)
    difference = torch.stack(trls).double().mean(dim=0) - verls
    assert len(trls) == len(updates)
    assert difference.norm() <= TOLERANCE["float32"] * verls.norm()
