"""SkyRL's own trainer and worker on the CPU against the oracle: our modes, and its `loss_reduction`s."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from drivers import skyrl as driver
from drivers.skyrl import OWN, skyrl
from grid.cases import Case
from grid.compare import TOLERANCE
from grid.oracle import Loss
from trainer_errors import worst
from trainer_grid import OURS

from pv_rl.errors import ConfigError, LossModeError
from pv_trainers.skyrl import SEAM, TESTED, Weighted

STEP = ((1, 9, 3, 17), (12, 2, 2, 25), (6, 20, 1, 4))
CUTS = [
    Case(name="micro-batches of unequal sizes", groups=STEP, micro_rows=5),
    Case(name="micro-batches by tokens", groups=STEP, micro_tokens=60),
    Case(name="an update a prompt, two epochs", groups=STEP, mini_rows=4, micro_rows=3, epochs=2),
    Case(
        name="uneven groups on ranks that need padding",
        groups=((1, 9, 2), (30,), (5, 5)),
        micro_rows=2,
        ranks=4,
    ),
    Case(name="rows and a prompt that do not count", groups=STEP, micro_rows=2, abstained=(1, 4, 5, 6, 7)),
    Case(name="GSPO", groups=STEP, micro_rows=2, loss=Loss(policy="gspo")),
    Case(name="CISPO", groups=STEP, micro_rows=2, loss=Loss(policy="cispo")),
    Case(name="all", groups=STEP, mini_rows=4, micro_rows=1, ranks=2, holes=0.3, abstained=(2, 4, 5, 6, 7)),
]
PLAIN, ABSTAINED = CUTS[0], CUTS[4]
ALL_MODES = (PLAIN, ABSTAINED, CUTS[2], CUTS[-1])


@pytest.mark.parametrize("case", CUTS, ids=str)
def test_our_modes_give_the_gradient_of_the_formula(measure, case):
    modes = [*OURS, "balanced:0.6@batch"] if case in ALL_MODES else ["balanced:0.6", "ba"]
    errors = {mode: measure.error(driver, case, mode) for mode in modes}
    assert max(errors.values()) <= TOLERANCE["float32"], errors


def test_packed_rows_give_the_gradient_of_the_formula(measure):
    case = replace(PLAIN, holes=0.3)
    errors = {mode: measure.error(driver, case, mode, pack=True) for mode in OURS}
    assert max(errors.values()) <= TOLERANCE["float32"], errors


def test_a_worker_in_float64_gives_the_gradient_to_float64(measure):
    """GSPO: SkyRL takes a token's ratio in float32 whatever the model's dtype."""
    case = replace(CUTS[5], ranks=2, mini_rows=4)
    assert measure.error(driver, case, "balanced:0.6", dtype=torch.float64) <= TOLERANCE["float64"]


def test_the_kl_term_keeps_the_sequence_mean_of_skyrl(measure):
    loss = Loss(kl="low_var_kl", kl_coef=0.05)
    case = replace(CUTS[2], loss=loss, mini_rows=None, epochs=1, abstained=(1,))
    found = driver.gradients(measure.model(torch.float32), measure.step(case), "balanced:0.6")
    lengths = [int(row.mask.sum()) for row in measure.step(case).rows]
    shares = {i: 1 / (len(lengths) * length) for i, length in enumerate(lengths) if length}
    terms = measure.weighted(case, shares, loss) - measure.weighted(case, shares, Loss())
    assert worst(found, [measure.expected(case, "balanced:0.6")[0] + terms]) <= TOLERANCE["float32"]


def test_normalised_advantages_are_weighed_after_skyrl_normalised_them(measure, monkeypatch):
    configure = driver.configure

    def normalise(*arguments):
        cfg = configure(*arguments)
        cfg.trainer.algorithm.advantage_batch_normalize = True
        return cfg

    monkeypatch.setattr(driver, "configure", normalise)
    model, step = measure.model(torch.float32), measure.step(PLAIN)
    theirs = driver.gradients(model, step, "token_mean")
    assert worst(driver.gradients(model, step, "dapo@batch"), theirs) <= TOLERANCE["float32"]
    assert worst(theirs, measure.expected(PLAIN, "dapo@batch")) > 1e-2


@pytest.mark.parametrize("case", [CUTS[1], CUTS[2], CUTS[3]], ids=str)
@pytest.mark.parametrize("name", [name for name in OWN if OWN[name]])
def test_own_reductions_equal_specs_of_ours_where_every_row_counts(measure, name, case):
    assert measure.error(driver, case, name, OWN[name]) <= TOLERANCE["float32"]


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("token_mean", 1),
        ("prompt_mean", 3 / 2),
        ("sequence_mean", 12 / 7),
        ("seq_mean_token_sum_norm", 12 / 7),
    ],
)
def test_own_reductions_also_divide_by_rows_and_prompts_that_do_not_count(measure, name, scale):
    """7 of 12 rows and 2 of 3 prompts count."""
    model, step = measure.model(torch.float32), measure.step(ABSTAINED)
    found = driver.gradients(model, step, name)[0] * scale
    assert worst([found], measure.expected(ABSTAINED, OWN[name])) <= TOLERANCE["float32"]


def test_the_legacy_token_mean_depends_on_micro_batches_and_leaves_rows_out(measure):
    """Micro-batches of 5: it takes two of them, and the last two of twelve rows get no gradient."""
    step = measure.step(PLAIN)
    lengths = [int(row.mask.sum()) for row in step.rows]
    weights = {i: 1 / (2 * sum(lengths[i // 5 * 5 : i // 5 * 5 + 5])) for i in range(10)}
    found = driver.gradients(measure.model(torch.float32), step, "token_mean_legacy")
    assert worst(found, [measure.weighted(PLAIN, weights, Loss())]) <= TOLERANCE["float32"]
    assert worst(found, measure.expected(PLAIN, "dapo@batch")) > 1e-2


def test_a_denominator_of_the_step_in_place_of_the_mini_batch_would_be_seen(measure, monkeypatch):
    """The mistake: each mini-batch is divided by the tokens of the step, without the number of mini-batches."""
    real = skyrl.trainer.apply_loss_reduction_to_advantages_minibatch

    def local(advantages, loss_mask, **rest):
        return real(advantages=advantages, loss_mask=loss_mask, **rest) * loss_mask.sum() / 102 * 3

    monkeypatch.setattr(skyrl.trainer, "apply_loss_reduction_to_advantages_minibatch", local)
    assert measure.error(driver, CUTS[2], "balanced:0.6") > 1e-2


def settings(**algorithm) -> SimpleNamespace:
    cfg = skyrl.config.SkyRLTrainConfig()
    for name, value in algorithm.items():
        setattr(cfg.trainer.algorithm, name, value)
    return cfg


def trainer_class(mode: str = "balanced", base: type = skyrl.trainer.RayPPOTrainer) -> type:
    return type("Trainer", (Weighted, base), {"mode": mode})


@pytest.mark.parametrize(
    ("algorithm", "text"),
    [
        ({"loss_reduction": "prompt_mean"}, "loss_reduction=token_mean .* they are prompt_mean"),
        ({"policy_loss_type": "clip_cov"}, "unlike clip_cov"),
        ({"policy_loss_type": "kl_cov"}, "where all advantages are 0"),
        ({"policy_loss_type": "cross_entropy"}, "where all advantages are 0"),
    ],
)
def test_settings_that_are_not_served_are_refused_before_the_trainer_is_built(algorithm, text):
    with pytest.raises((ConfigError, LossModeError), match=text):
        trainer_class()(settings(**algorithm), None, None, None, None, None)


def divided(log_probs, old_log_probs, advantages, config, loss_mask=None, rollout_logprobs=None):
    return -(log_probs * advantages * loss_mask).sum() / loss_mask.sum(), {}


def centred(log_probs, old_log_probs, advantages, config, loss_mask=None, rollout_logprobs=None):
    return -(log_probs * (advantages - advantages.mean()) * loss_mask).sum(), {}


@pytest.mark.parametrize(
    ("loss", "text"), [(divided, "they are token_mean and divided"), (centred, "each row's own advantage")]
)
def test_a_loss_of_a_users_own_that_does_not_add_up_is_refused(loss, text):
    registry = skyrl.ppo_utils.PolicyLossRegistry
    registry.register(loss.__name__, loss)
    try:
        with pytest.raises((ConfigError, LossModeError), match=text):
            trainer_class()(settings(policy_loss_type=loss.__name__), None, None, None, None, None)
    finally:
        registry.unregister(loss.__name__)


@pytest.mark.parametrize(
    "name", ["regular", "dual_clip", "gspo", "cispo", "sapo", "rollout_is", "dppo", "importance_sampling"]
)
def test_clipped_surrogates_of_skyrl_are_served(name):
    cfg = settings(policy_loss_type=name)
    cfg.generator.inference_engine.enable_ray_prometheus_stats = False
    trainer_class()(cfg, None, None, None, None, None)


def test_a_mode_that_cannot_be_read_is_refused_with_the_class():
    with pytest.raises(LossModeError, match="balancd"):
        trainer_class("balancd:0.6")


class Changed:
    def _normalize_advantages(self, data, weights): ...


@pytest.mark.parametrize("base", [Changed, object])
def test_a_trainer_with_another_seam_is_refused_with_the_class(base):
    with pytest.raises(ConfigError, match=r"SkyRL 0\.3\.0"):
        trainer_class(base=base)


def test_an_advantage_that_is_not_finite_stops_the_step(measure):
    step = measure.step(PLAIN)
    rows = [replace(step.rows[0], advantages=step.rows[0].advantages * torch.nan), *step.rows[1:]]
    with pytest.raises(LossModeError, match="row 0"):
        driver.gradients(measure.model(torch.float32), replace(step, rows=rows), "balanced")


def test_the_example_of_the_page_builds_its_trainer():
    page = (Path(__file__).parents[3] / "docs/guides/trainers/others.md").read_text(encoding="utf-8")
    names = {"__name__": "page"}
    exec(page.split("\n## SkyRL\n")[1].split("```python\n")[1].split("```")[0], names)
    cfg = names["SkyRLTrainConfig"].from_cli_overrides(
        ["generator.inference_engine.enable_ray_prometheus_stats=false"]
    )
    others = ("tracker", "tokenizer", "train_dataset", "eval_dataset", "inference_engine_client", "generator")
    trainer = object.__new__(names["Experiment"]).get_trainer(
        cfg=cfg, colocate_pg=None, **dict.fromkeys(others)
    )
    assert isinstance(trainer, Weighted)
    assert trainer.mode == "balanced:0.6"


def test_skyrl_030_has_the_seam_that_the_mixin_takes():
    """Scaled once a step on the driver, for both trainers, and only added up in the workers."""
    trainer, worker = skyrl.trainer.RayPPOTrainer, skyrl.worker.PolicyWorkerBase
    assert TESTED == driver.VERSION == "0.3.0"
    assert list(inspect.signature(trainer._normalize_advantages).parameters) == SEAM
    reduce = skyrl.ppo_utils.apply_loss_reduction_to_advantages_minibatch
    assert list(inspect.signature(reduce).parameters) == [
        "advantages",
        "loss_mask",
        "loss_reduction",
        "micro_batch_size",
        "max_seq_len",
        "prompt_boundaries",
    ]
    step = inspect.getsource(trainer._execute_training_step)
    assert "self._normalize_advantages(data, boundaries, prompt_boundaries)" in step
    assert "policy_loss * grad_sum_correction_factor" in inspect.getsource(worker._forward_backward_micro)
    assert set(skyrl.ppo_utils.PolicyLossRegistry.list_available()) == {
        "regular", "dual_clip", "gspo", "cispo", "rollout_is", "clip_cov", "kl_cov", "sapo", "cross_entropy",
        "importance_sampling", "dppo",
    }  # fmt: skip
