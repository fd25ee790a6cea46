"""AReaL's own FSDP actor on the CPU against the oracle: our modes through the mixin, and its mean over tokens."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
import torch
from drivers import areal as driver
from drivers.areal import areal
from grid.cases import Case
from grid.compare import TOLERANCE
from grid.oracle import Loss
from trainer_errors import Measure, worst
from trainer_grid import OURS

from pv_rl.errors import ConfigError, LossModeError
from pv_rl.losses import check_policy_loss
from pv_trainers.areal import SEAM, TESTED, Weighted

STEP = ((1, 9, 3, 17), (12, 2, 2, 25), (6, 20, 1, 4), (8, 3, 11, 5))
FEW = ("balanced:0.6", "ba", "balanced:0.6@batch")
CUTS = [
    (OURS, Case(name="packed micro-batches", groups=STEP, micro_rows=3)),
    (OURS, Case(name="two mini-batches", groups=STEP, mini_rows=8, micro_tokens=70, holes=0.3)),
    (FEW, Case(name="uneven groups, one row each", groups=((1, 9, 2), (30,), (5, 5)), micro_rows=1)),
    (
        FEW,
        Case(
            name="rows and a prompt that do not count", groups=STEP, micro_rows=4, abstained=(1, 4, 5, 6, 7)
        ),
    ),
    (FEW, Case(name="sequence ratios", groups=STEP, micro_rows=4, loss=Loss(policy="gspo"))),
    (FEW, Case(name="two ranks", groups=STEP, micro_rows=2, mini_rows=8, ranks=2, abstained=(2, 9))),
]
PLAIN = CUTS[0][1]


def error(measure: Measure, case: Case, mode: str, spec: str = "") -> float:
    """AReaL chooses the rows of a mini-batch by their tokens."""
    found = driver.updates(measure.model(torch.float32), measure.step(case), mode)
    assert len(found) == len(case.lengths) // (case.mini_rows or len(case.lengths))
    assert sorted(row for rows, _ in found for row in rows) == list(range(len(case.lengths)))
    expected = measure.expected(case, spec or mode, [rows for rows, _ in found])
    return worst([gradient for _, gradient in found], expected)


@pytest.mark.parametrize(("modes", "case"), CUTS, ids=[str(case) for _, case in CUTS])
def test_our_modes_give_the_gradient_of_the_formula(measure, modes, case):
    errors = {mode: error(measure, case, mode) for mode in modes}
    assert max(errors.values()) <= TOLERANCE["float32"], errors


@pytest.mark.parametrize("case", [case for _, case in CUTS], ids=str)
def test_the_token_mean_of_areal_equals_dapo_over_the_mini_batch(measure, case):
    assert error(measure, case, "token mean", "dapo@batch") <= TOLERANCE["float32"]


def test_m2po_divides_by_the_tokens_that_it_keeps_of_a_micro_batch(measure):
    assert error(measure, PLAIN, "token mean, M2PO", "dapo@batch") > 1e-2


def test_a_denominator_of_one_rank_would_be_seen(measure, monkeypatch):
    """The mistake: advantages are multiplied by the tokens of the step and not of the mini-batch."""
    weigh = Weighted._weigh

    def local(self, items):
        weights, tokens = weigh(self, items)
        return weights, 129 if len(items) == 1 else tokens

    monkeypatch.setattr(Weighted, "_weigh", local)
    assert error(measure, CUTS[1][1], "balanced:0.6") > 1e-2


def test_the_policy_loss_of_areal_is_proportional_to_each_advantage():
    logprobs = torch.linspace(-3.0, -0.1, 8).view(4, 2)
    advantages = torch.tensor([[4.0, 2.0], [-3.0, -5.0], [1.0, 3.0], [-2.0, -6.0]])
    rest = {"proximal_logprobs": logprobs * 0.9, "old_logprobs": logprobs, "loss_mask": logprobs < 0}
    for settings in ({"c_clip": 3.0}, {"importance_sampling_level": "sequence"}):
        check_policy_loss(
            lambda given, advantages, settings=settings: areal.functional.ppo_actor_loss_fn(
                given, advantages=advantages, eps_clip=0.2, **rest, **settings
            )[0],
            logprobs,
            advantages,
        )


def actor_class(mode: str = "balanced", base: type = driver.Recorded) -> type:
    return type("Actor", (Weighted, base), {"mode": mode})


class Changed:
    def train_batch(self, batch, loss): ...


@pytest.mark.parametrize("base", [Changed, object])
def test_an_actor_with_another_seam_is_refused_with_the_class(base):
    with pytest.raises(ConfigError, match=r"AReaL 1\.0\.4"):
        actor_class(base=base)


def test_a_mode_that_cannot_be_read_is_refused_with_the_class():
    with pytest.raises(LossModeError, match="balancd"):
        actor_class("balancd:0.6")


def test_m2po_is_refused_before_the_engine_is_built():
    with pytest.raises(ConfigError, match=r"m2_threshold=0\.04"):
        actor_class()(SimpleNamespace(m2_threshold=0.04))


def test_areal_104_has_the_seam_that_the_mixin_takes():
    """The loss of a micro-batch is a mean over its tokens, weighed by them over the tokens of all ranks."""
    engine, actor = areal.fsdp_engine.FSDPEngine, areal.actor
    assert TESTED == driver.VERSION == "1.0.4"
    assert list(inspect.signature(engine.train_batch).parameters) == SEAM
    assert "self.engine.train_batch(" in inspect.getsource(actor.PPOActor._ppo_update)
    assert 'loss_weight_fn=lambda x: x["loss_mask"].count_nonzero()' in inspect.getsource(
        actor.PPOActor._ppo_update
    )
    assert (
        "compute_total_loss_weight(\n            mb_list, loss_weight_fn, self.dp_group"
        in inspect.getsource(engine.train_batch)
    )
    scale = "loss_scale = local_weight / total_loss_weight * loss_multiplier"
    assert scale in inspect.getsource(engine._compute_logprobs_and_loss)
    loss = inspect.getsource(areal.functional.ppo_actor_loss_fn)
    assert "torch.where(loss_mask, pg_loss, 0).sum() / loss_mask_count" in loss
