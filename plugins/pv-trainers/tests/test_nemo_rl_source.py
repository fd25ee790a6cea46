"""NeMo-RL's own estimator, sharding, denominators and loss with pv-rl's weightings: one gradient for every cut."""

from __future__ import annotations

import inspect
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from drivers import nemo_rl as driver
from grid.cases import Case
from grid.compare import as_float64
from grid.oracle import Loss, row_gradient, update_weights
from omegaconf import OmegaConf
from trainer_grid import OURS, Step, make_step

from pv_rl.losses import check_policy_loss
from pv_trainers import nemo_rl

GROUPS = ((3, 9, 20, 5), (1, 7, 30, 2), (12, 4, 6, 40))
CUTS = {
    "one micro-batch": Case(groups=GROUPS),
    "micro-batches": Case(groups=GROUPS, micro_rows=3),
    "three updates": Case(groups=GROUPS, mini_rows=4, micro_rows=2),
    "updates across groups": Case(groups=GROUPS, mini_rows=6, micro_rows=1),
    "two ranks": Case(groups=GROUPS, ranks=2, mini_rows=6, micro_rows=3),
    "rows that do not count": Case(groups=GROUPS, holes=0.3, abstained=(1, 4, 5, 6, 7), micro_rows=1),
    "sequence ratios": Case(groups=GROUPS, loss=Loss(policy="gspo"), micro_rows=2),
    "cispo": Case(groups=GROUPS, loss=Loss(policy="cispo"), mini_rows=6),
}


@pytest.fixture(scope="module")
def expected(models):
    """The oracle's gradient of each update of a step, with the gradients of rows kept between modes."""
    kept: dict[object, tuple[Step, list[torch.Tensor]]] = {}

    def of(case: Case, spec: str) -> tuple[Step, list[torch.Tensor]]:
        if case not in kept:
            step = make_step(case, models[0])
            policy = replace(case.loss, kl=None)
            kept[case] = step, [row_gradient(models[0], as_float64(row), policy) for row in step.rows]
        step, gradients = kept[case]
        rows = case.mini_rows or len(step.rows)
        updates = [range(first, first + rows) for first in range(0, len(step.rows), rows)]
        weights = [update_weights(spec, step.rows, u, len(updates), case.longest) for u in updates]
        return step, [sum(weight[i] * gradients[i] for i in weight) for weight in weights]

    return of


def error(found: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    return max(float((f - e).norm() / e.norm()) for f, e in zip(found, expected, strict=True))


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("mode", OURS)
def test_gradient_is_the_oracles(models, expected, mode, cut):
    step, gradients = expected(CUTS[cut], mode)
    assert error(driver.gradients(models[1], step, mode), gradients) <= 5e-6


@pytest.mark.parametrize("mode", ["ba", "dapo@batch"])
def test_gradient_is_the_oracles_when_sequences_are_packed(models, expected, mode):
    step, gradients = expected(CUTS["two ranks"], mode)
    assert error(driver.gradients(models[1], step, mode, packed=True), gradients) <= 5e-6


@pytest.mark.parametrize("mode", ["ba", "dapo@batch", "token_level_loss=false"])
def test_gradient_is_the_oracles_in_two_processes(models, expected, mode):
    step, gradients = expected(CUTS["two ranks"], driver.OWN.get(mode, mode))
    assert error(driver.gradients(models[1], step, mode, gloo=True), gradients) <= 5e-6


@pytest.mark.parametrize("mode", OURS)
def test_gradient_is_the_oracles_at_the_sequence_level(models, expected, mode):
    step, gradients = expected(CUTS["updates across groups"], mode)
    assert error(driver.gradients(models[1], step, mode, by_token=False), gradients) <= 5e-6


@pytest.mark.parametrize(
    ("mode", "cut", "packed"),
    [
        *((mode, cut, False) for mode in driver.OWN for cut in list(CUTS)[:6]),
        *((mode, "two ranks", True) for mode in driver.OWN),
        ("token_level_loss=false", "sequence ratios", False),
        ("token_level_loss=true", "cispo", False),
    ],
)
def test_own_aggregation_equals_a_spec_of_ours(models, expected, mode, cut, packed):
    step, gradients = expected(CUTS[cut], driver.OWN[mode])
    assert error(driver.gradients(models[1], step, mode, packed=packed), gradients) <= 5e-6


def test_kl_keeps_nemo_rls_aggregation(models, expected):
    step, _ = expected(CUTS["micro-batches"], "ba")
    with_kl = Step(replace(step.case, loss=Loss(kl="k3", kl_coef=0.1)), step.rows)

    def kl(mode: str) -> torch.Tensor:
        return driver.gradients(models[1], with_kl, mode)[0] - driver.gradients(models[1], step, mode)[0]

    assert kl("ba").norm() > 1e-2
    assert error([kl("ba")], [kl("token_level_loss=true")]) <= 5e-5


def test_the_denominator_of_each_rank_alone_is_seen(models, expected, monkeypatch):
    """The mistake of a mean over ranks of means over their tokens."""
    step, gradients = expected(CUTS["two ranks"], "balanced:0.6")
    process = driver.Worker.process

    def local(self, shard, update):
        part = process(self, shard, update)
        mask = part["batch"]["token_mask"][:, 1:] * part["batch"]["sample_mask"][:, None]
        return part | {"global_valid_toks": mask.sum() * self.ranks}

    monkeypatch.setattr(driver.Worker, "process", local)
    assert error(driver.gradients(models[1], step, "balanced:0.6"), gradients) > 1e-2


def test_an_override_weighs_the_estimator(monkeypatch):
    from nemo_rl.utils.config import load_config, parse_hydra_overrides

    monkeypatch.setattr(driver.grpo, "_create_advantage_estimator", driver.grpo._create_advantage_estimator)
    nemo_rl.install()
    file = load_config(str(driver.ROOT / "examples/configs/grpo_math_1B.yaml"))
    file = parse_hydra_overrides(
        file, ["++grpo.adv_estimator.weighting=dapo", "grpo.normalize_rewards=false"]
    )
    given = OmegaConf.to_container(file.grpo, resolve=True)
    config = SimpleNamespace(
        grpo=driver.grpo.GRPOConfig(**given),
        loss_fn=driver.ClippedPGLossConfig(**OmegaConf.to_container(file.loss_fn, resolve=True)),
        policy={"train_global_batch_size": 4},
    )
    mask = torch.tensor([[0.0, 1, 0, 0], [0, 1, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]])
    advantages = driver.grpo._create_advantage_estimator(config).compute_advantage(
        prompt_ids=torch.tensor([[1], [1], [2], [2]]), rewards=torch.tensor([1.0, 0, 1, 0]), mask=mask
    )
    weights = [1 / 8, 1 / 8, 1 / 4, 1 / 4]  # 1 / (2 * 4) and 1 / (2 * 2), with 6 tokens
    assert advantages[:, 1].tolist() == pytest.approx(
        [6 * w * a for w, a in zip(weights, [1, -1, 1, -1], strict=True)]
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ratio_clip_c": 3.0},
        {"use_cispo": True},
        {"disable_ppo_ratio": True},
        {"force_on_policy_ratio": True},
        {"token_level_loss": False, "sequence_level_importance_ratios": True},
        {"use_importance_sampling_correction": True},
    ],
)
def test_their_policy_loss_is_proportional_to_advantages(settings):
    config = driver.ClippedPGLossConfig(reference_policy_kl_penalty=0.0, **settings)
    logprobs = torch.tensor([[0.0, -1.0, -2.0], [0.0, -0.5, -3.0]])
    data = {name: torch.ones(2, 3) for name in ("token_mask", "advantages")}
    data |= {"sample_mask": torch.ones(2), "prev_logprobs": logprobs, "generation_logprobs": logprobs - 0.1}
    rows, tokens, loss = torch.tensor(2.0), torch.tensor(4.0), driver.ClippedPGLossFn(config)
    check_policy_loss(
        lambda given, advantages: loss(given, {**data, "advantages": advantages}, rows, tokens)[0],
        logprobs[:, 1:] + 0.3,
        torch.tensor([[1.0] * 3, [-1.0] * 3]),
    )


def test_contract():
    """What the module and the page rely on, at the commit that they name."""
    commit = subprocess.run(
        ["git", "-C", str(driver.ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    assert commit in (driver.VERSION, ""), "the clone is at another commit than the one that the page names"
    calls = (driver.ROOT / "nemo_rl/algorithms/grpo.py").read_text()
    # grpo_train and async_grpo_train; the third mask is that of log-prob errors
    assert calls.count("adv_estimator = _create_advantage_estimator(master_config)") == 2
    assert calls.count("mask = token_mask * sample_mask.unsqueeze(-1)") == 3
    assert "_clip_grpo_advantages" in calls
    estimate = driver.grpo.GRPOAdvantageEstimator.compute_advantage
    assert list(inspect.signature(estimate).parameters)[1:4] == ["prompt_ids", "rewards", "mask"]
    loss = inspect.getsource(driver.ClippedPGLossFn.__call__)
    assert loss.count("global_normalization_factor=global_valid_seqs,") >= 2
    assert 'advantages = data["advantages"][:, 1:]' in loss
    denominators = inspect.getsource(driver.automodel_data.process_global_batch)
    assert 'batch["token_mask"][:, 1:] * batch["sample_mask"].unsqueeze(-1)' in denominators
    assert "loss = result * dp_size * cp_size" in inspect.getsource(driver.automodel_forward_backward)
