"""Effective weights are found from gradients, and a row of docs/concepts/conversion.md says which formula they are."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import conversion
import drivers
import pytest
import torch
from effective_weights import FORMULAS, Update, solve_weights
from formula_names import Finding, fit_formulas, name_formulas
from grid.cases import Case
from grid.oracle import Row, token_losses
from places import ROOT
from trainer_bench import Report, driver_names, measure_driver
from trainer_cases import CUTS

LENGTHS = (1, 2, 5, 7, 3, 11)


def drawn(seed: int = 0, abstained: tuple[int, ...] = ()) -> tuple[list[Row], torch.Tensor]:
    """Six rows of two prompts, of two and four, advantages of both signs, and a random gradient for each."""
    generator = torch.Generator().manual_seed(seed)
    rows, row_gradients = [], torch.randn(6, 400, generator=generator).double()
    for i, length in enumerate(LENGTHS):
        empty = torch.zeros(length)
        row = Row(
            group="ab"[i // 2 > 0],
            prompt=empty,
            response=empty,
            mask=torch.full((length + seed,), int(i not in abstained)),
            old_log_probs=empty,
            ref_log_probs=empty,
            advantages=torch.full((length + seed,), (-1.0) ** i),
            is_weights=empty,
        )
        rows.append(replace(row, response=torch.zeros(length + seed)))
        row_gradients[i] *= 1.0 if row.mask.any() else 0.0
    return rows, row_gradients


def update(scale: float, formula: str, **changes) -> Update:
    """An update of those rows, cut into four micro-batches on two ranks, whose weights are a formula times a scale."""
    rows, row_gradients = drawn(changes.pop("seed", 0), changes.pop("abstained", ()))
    settings = {"updates": 5, "ranks": 2, "micro_batches": [[0], [1, 2], [3, 4], [5]], **changes}
    made = Update(rows, list(range(6)), row_gradients=row_gradients, gradient=torch.zeros(400), **settings)
    weights = made.weights(formula)
    assert weights is not None
    return replace(made, gradient=scale * weights @ row_gradients)


def name_formula(updates: list[Update], meant: str = "") -> Finding:
    return name_formulas({"a cut": fit_formulas(updates, meant)})["a cut"]


def test_weights_are_solved_from_gradients_and_a_row_without_one_is_unknown():
    row_gradients = torch.randn(4, 50, generator=torch.Generator().manual_seed(0)).double()
    row_gradients[2] = 0.0
    weights = torch.tensor([0.5, 0.0, 9.0, 2e-3]).double()
    found, residual = solve_weights(row_gradients, weights @ row_gradients)
    assert found[2].isnan()
    torch.testing.assert_close(found[[0, 1, 3]], weights[[0, 1, 3]])
    assert residual < 1e-12
    strange = weights @ row_gradients + torch.randn(50, generator=torch.Generator().manual_seed(1))
    assert solve_weights(row_gradients, strange)[1] > 0.1


@pytest.mark.parametrize("formula", FORMULAS)
def test_each_formula_is_told_from_the_others(formula):
    found = name_formula([update(1.0, formula), update(1.0, formula, seed=1)])
    assert (found.formula, found.scale) == (formula, "1")
    assert found.error < 1e-12


SINGLE = [[0], [1], [2], [3], [4], [5]]


@pytest.mark.parametrize(
    ("formula", "scales", "changes", "expected"),
    [
        ("dapo@batch", (1 / 3, 1 / 3), {"micro_batches": SINGLE}, "1 / A"),
        ("dapo@batch", (1 / 2, 1 / 2), {"micro_batches": SINGLE}, "1 / R"),
        ("dapo@batch", (1 / 6, 1 / 6), {"micro_batches": SINGLE, "abstained": (1,)}, "1 / (A R)"),
        ("dapo", (5 / 3, 5 / 3), {"micro_batches": SINGLE}, "M / A"),
        ("grpo@batch", (29, 35), {}, "T"),
        ("dapo@batch", (1.7, 1.7), {}, "1.7"),
        ("dapo@batch", (0.4, 1.7), {}, "0.4 to 1.7"),
    ],
)
def test_a_wrong_scale_is_found_and_written_in_the_numbers_of_the_cut(formula, scales, changes, expected):
    found = name_formula([update(scale, formula, seed=i, **changes) for i, scale in enumerate(scales)])
    assert (found.formula, found.scale) == (formula, expected)


def test_rows_that_a_trainer_counts_though_they_do_not_are_found():
    found = name_formula([update(4 / 6, "grpo@batch", abstained=(1, 4), updates=1, seed=i) for i in (0, 1)])
    assert (found.formula, found.scale) == ("grpo@batch", "(N / all rows)")


def test_weights_of_no_formula_are_given_as_a_range_around_the_one_that_was_meant():
    made = update(1.0, "dapo@batch")
    weights = torch.tensor([1, 2, 1, 1, 1, 0.5]).double() / 29
    found = name_formula([replace(made, gradient=weights @ made.row_gradients)], "dapo@batch")
    assert (found.formula, found.scale, found.error) == ("dapo@batch", "0.5 to 2", float("inf"))


def test_cuts_are_named_by_the_formula_that_most_of_them_have():
    """grpo and grpo@batch are the same in even groups, and not where a row of one group does not count."""
    fits = {
        "even": {
            "grpo": (0.0, Finding("grpo", "1", 0.0)),
            "grpo@batch": (0.0, Finding("grpo@batch", "1", 0.0)),
        },
        "uneven": {"grpo@batch": (0.0, Finding("grpo@batch", "1", 0.0))},
        "local": {
            "micro row mean": (2.0, Finding("micro row mean", "1", 0.0)),
            "grpo@batch": (1.0, Finding("grpo@batch", "1 / A", 0.0)),
        },
        "no formula": {
            "dapo": (18.0, Finding("dapo", "1 to 3", float("inf"))),
            "grpo@batch": (18.0, Finding("grpo@batch", "2 to 5", float("inf"))),
        },
        "other": {
            "dapo": (0.0, Finding("dapo", "1", 0.0)),
            "grpo@batch": (9.0, Finding("grpo@batch", "1 to 2", 0.0)),
        },
    }
    found = {cut: (finding.formula, finding.scale) for cut, finding in name_formulas(fits).items()}
    assert found == {
        "even": ("grpo@batch", "1"),
        "uneven": ("grpo@batch", "1"),
        "local": ("grpo@batch", "1 / A"),
        "no formula": ("grpo@batch", "2 to 5"),
        "other": ("dapo", "1"),
    }


class LocalMean:
    """A trainer that shuffles rows, and takes the mean over micro-batches of the mean over their tokens."""

    NAME, VERSION, DEFAULT = "Local", "1.0", "mean"
    OWN = {"mean": "dapo@batch", "sum": ""}  # noqa: RUF012
    CANNOT = {"two ranks": "it has one"}  # noqa: RUF012

    def gradients(self, model, step, mode):
        if mode == "sum":
            raise ValueError("mean | is all there is")
        size, rows = step.case.micro_rows, [*step.rows[1::2], *step.rows[::2]]
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        model.zero_grad()
        for part in parts:
            total = sum((token_losses(model, row, step.case.loss) * row.mask).sum() for row in part)
            (total / sum(int(row.mask.sum()) for row in part) / len(parts)).backward()
        return [torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()])]


def test_a_row_of_the_page_names_the_spec_and_where_it_stops():
    case = Case(family="not cut", groups=((3, 9, 4), (5, 2, 7)), micro_rows=6)
    cases = [case, replace(case, family="micro-batches", micro_rows=2), replace(case, family="two ranks")]
    report = measure_driver(LocalMean(), cases, ours=False)
    cells = conversion.row(report, "mean")
    assert cells[:4] == ["Local 1.0", "`mean` (default)", "`1/T`", "`dapo@batch`"]
    assert 0 < float(cells[4]) < 5e-6
    assert cells[5] == "micro-batches: `1/(K T_k)`"
    assert conversion.not_run(report) == "Local (two ranks, not cut with `sum`, micro-batches with `sum`)"
    assert report.own_errors["mean"]["micro-batches"] > 1e-2


def trainers() -> list[str]:
    folder = Path(drivers.__path__[0])
    names = [
        re.search(r'^NAME\b.*?= "([^"]+)"', (folder / f"{name}.py").read_text(), re.M)
        for name in driver_names()
    ]
    return [name[1] for name in names if name]


@pytest.mark.parametrize("page", ["concepts/conversion.md", "internals/exactness.md"])
def test_the_pages_have_a_row_for_every_driver(page):
    text = (ROOT / "docs" / page).read_text()
    assert len(trainers()) == len(driver_names())
    assert [name for name in trainers() if f"\n| {name} " not in text] == []


def test_cuts_with_uncounted_rows_have_one_name_only_together():
    cuts = ["rows that do not count", "two ranks", "a group that does not count", "all of it"]
    assert conversion.name_cuts(cuts) == "two ranks, uncounted rows"
    assert conversion.name_cuts(cuts[:3]) == "rows that do not count, two ranks, a group that does not count"


def test_many_cuts_that_differ_alike_are_not_listed():
    uncut = Finding(formula="dapo@batch", scale="1", error=1e-7)
    findings = dict.fromkeys(CUTS, replace(uncut, formula="micro token mean")) | {"not cut": uncut}
    findings["all of it"] = replace(uncut, scale="M")
    report = Report(name="Local", findings={"mean": findings})
    assert conversion.row(report, "mean")[5] == "all of it: times M; every other cut: `1/(K T_k)`"
    findings["two ranks"] = uncut
    assert conversion.row(report, "mean")[5].startswith("micro-batches, several updates, packed by tokens")


def test_drivers_decline_only_cuts_that_there_are():
    for name in driver_names():
        source = (Path(drivers.__path__[0]) / f"{name}.py").read_text()
        declared = re.search(r"^CANNOT\b.*?\{(.*?)\}", source, re.M | re.S)
        cuts = re.findall(r'"([^"]+)":', declared[1]) if declared else []
        assert set(cuts) <= set(CUTS), name
