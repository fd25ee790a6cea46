"""prime-rl's own batches, packing and losses with pv-rl's weightings: one gradient for every cut."""

from __future__ import annotations

import inspect
import subprocess
from dataclasses import replace

import pytest
import torch
from drivers import prime_rl as driver
from grid.cases import Case
from grid.compare import as_float64
from grid.oracle import Loss, Row, predict, row_gradient, update_weights
from trainer_grid import OURS, Step, make_step

from pv_rl.losses import check_policy_loss

GROUPS = ((3, 9, 20, 5), (1, 7, 30, 2), (12, 4, 6, 40))
UNCLIPPED = Loss(clip_low=1.0, clip_high=1e6, clip_c=1e6)
CUTS = {
    "one rank": Case(groups=GROUPS),
    "two batches, a group in both": Case(groups=GROUPS, mini_rows=6),
    "three ranks": Case(groups=GROUPS, ranks=3),
    "rows that do not count": Case(groups=GROUPS, holes=0.3, abstained=(1, 4, 5, 6, 7), ranks=2),
    "sequence ratios": Case(groups=GROUPS, loss=Loss(policy="gspo"), ranks=2),
    "cispo": Case(groups=GROUPS, loss=Loss(policy="cispo")),
}


@pytest.fixture(scope="module")
def oracle(models):
    """The oracle's gradient of each batch of a step; a batch is a step of its own."""
    kept: dict[object, torch.Tensor] = {}

    def gradient(row: Row, loss: Loss) -> torch.Tensor:
        parts = (row.response, row.mask, row.advantages, row.is_weights)
        key = (loss, *(part.numpy().tobytes() for part in parts))
        if key not in kept:
            kept[key] = row_gradient(models[0], as_float64(row), loss)
        return kept[key]

    def of(step: Step, spec: str, loss: Loss | None = None) -> list[torch.Tensor]:
        counting = [row for row in step.rows if row.mask.any()]
        size = step.case.mini_rows or len(counting)
        batches = [counting[first : first + size] for first in range(0, len(counting), size)]
        weights = [update_weights(spec, batch, range(len(batch)), 1, step.case.longest) for batch in batches]
        loss = loss or replace(step.case.loss, kl=None)
        return [sum(w[i] * gradient(b[i], loss) for i in w) for w, b in zip(weights, batches, strict=True)]

    return of


def error(found: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    return max(float((f - e).norm() / e.norm()) for f, e in zip(found, expected, strict=True))


def without_advantage(step: Step) -> Step:
    """A step whose first prompt has equal rewards."""
    return Step(
        step.case,
        [replace(row, advantages=row.advantages * 0) if row.group == "p0" else row for row in step.rows],
    )


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("mode", OURS)
def test_gradient_is_the_oracles(models, oracle, mode, cut):
    step = make_step(CUTS[cut], models[0])
    assert error(driver.gradients(models[1], step, mode), oracle(step, mode)) <= 5e-6


@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize("mode", OURS)
def test_a_group_without_advantages_counts_also_where_its_tokens_are_removed(models, oracle, mode, filtered):
    step = without_advantage(make_step(CUTS["three ranks"], models[0]))
    assert error(driver.gradients(models[1], step, mode, filtered=filtered), oracle(step, mode)) <= 5e-6


@pytest.mark.parametrize("mode", ["grpo", "ba"])
def test_the_branches_of_a_trace_are_one_response(models, oracle, mode):
    step = make_step(CUTS["three ranks"], models[0])
    assert error(driver.gradients(models[1], step, mode, turns=2), oracle(step, mode)) <= 5e-6


@pytest.mark.parametrize("mode", ["grpo", "balanced:0.6"])
def test_tokens_beyond_seq_len_do_not_count(models, oracle, mode):
    step = make_step(CUTS["one rank"], models[0])
    short = [
        replace(row, mask=row.mask * (torch.arange(len(row.mask)) < 20 - len(row.prompt)))
        for row in step.rows
    ]
    found = driver.gradients(models[1], step, mode, seq_len=20)
    assert error(found, oracle(Step(step.case, short), mode)) <= 5e-6
    assert error(found, oracle(step, mode)) > 1e-2


@pytest.mark.parametrize("kind", ["default", "ipo"])
@pytest.mark.parametrize("mode", ["ba", "balanced:0.6"])
def test_gradient_of_their_own_losses_is_the_oracles(models, oracle, mode, kind):
    """DPPO and IPO drop tokens whose probability moved too far: factors of 0 in the oracle's loss."""
    step = make_step(CUTS["three ranks"], models[0])
    limit = 0.01  # of a probability; the defaults, 0.2 and 0.1, drop few tokens of so small a model
    rows = []
    for row in step.rows:
        with torch.no_grad():
            moved = predict(models[0], row.prompt, row.response)[1].exp() - row.old_log_probs.exp()
        dropped = torch.where(row.advantages > 0, moved > limit, moved < -limit)
        rows.append(
            replace(row, is_weights=(~(dropped if kind == "default" else moved.abs() > limit)).float())
        )
    kept = torch.cat([row.is_weights for row in rows])
    assert 0.1 < kept.mean() < 0.95
    limits = {"dppo_mask_low": limit, "dppo_mask_high": limit, "ipo_threshold": limit}
    loss_fn = driver.make_loss(kind, adv_tau=1.0, kl_tau=0.0, **limits)
    found = driver.gradients(models[1], step, mode, loss_fn=loss_fn)
    assert error(found, oracle(Step(step.case, rows), mode, UNCLIPPED)) <= 5e-6


@pytest.mark.parametrize("mode", driver.OWN)
@pytest.mark.parametrize("cut", ["two batches, a group in both", "three ranks", "rows that do not count"])
def test_own_aggregation_is_a_mean_over_tokens_of_the_batch(models, oracle, mode, cut):
    step = make_step(CUTS[cut], models[0])
    assert error(driver.gradients(models[1], step, mode), oracle(step, "dapo@batch")) <= 5e-6


def test_own_default_divides_by_the_tokens_with_an_advantage(models, oracle):
    """Lengths 37 + 40 + 62, of which 37 without an advantage: 139 / 102 times the gradient of `dapo@batch`."""
    step = without_advantage(make_step(CUTS["three ranks"], models[0]))
    expected = oracle(step, "dapo@batch")
    assert error(driver.gradients(models[1], step, "filter_zero_advantages=false"), expected) <= 5e-6
    found = driver.gradients(models[1], step, "filter_zero_advantages=true")
    assert error(found, expected) == pytest.approx(37 / 102, rel=1e-4)
    assert error([found[0] * 102 / 139], expected) <= 5e-6


def test_kl_to_the_sampling_policy_keeps_prime_rls_aggregation(models):
    step = make_step(CUTS["one rank"], models[0])

    def kl(mode: str) -> torch.Tensor:
        settings = {"dppo_mask_low": 1.0, "dppo_mask_high": 1.0, "adv_tau": 1.0}
        losses = [driver.make_loss("default", kl_tau=tau, **settings) for tau in (1.0, 0.0)]
        on, off = (driver.gradients(models[1], step, mode, loss_fn=loss)[0] for loss in losses)
        return on - off

    assert kl("ba").norm() > 1e-2
    assert error([kl("ba")], [kl("filter_zero_advantages=true")]) <= 5e-5


@pytest.mark.parametrize("kind", ["default", "ipo", "custom"])
def test_their_policy_loss_is_proportional_to_advantages(kind):
    settings = {
        "dppo_mask_low": 0.2,
        "dppo_mask_high": 0.2,
        "ipo_threshold": 0.1,
        "adv_tau": 1.0,
        "kl_tau": 0.0,
    }
    loss_fn = driver.make_loss(kind, **({"loss": Loss()} if kind == "custom" else settings))
    old = torch.tensor([[-1.0, -2.0], [-0.5, -3.0]])

    def policy_loss(log_probs: torch.Tensor, advantages: torch.Tensor) -> torch.Tensor:
        masks, empty = [torch.ones(2, dtype=torch.bool)] * 2, None
        return driver.rl_loss.compute_loss(
            list(log_probs), list(old), empty, list(advantages), masks, empty, empty, empty, loss_fn, 4, 1, 1
        )[0]

    check_policy_loss(policy_loss, old + 0.3, torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))


def test_contract():
    """What the module, the driver and the page rely on, at the commit that they name."""
    commit = subprocess.run(
        ["git", "-C", str(driver.ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    assert commit in (driver.VERSION, ""), "the clone is at another commit than the one that the page names"
    parameters = list(inspect.signature(driver.rl_loss.compute_loss).parameters)
    assert parameters[3:6] == ["advantages", "loss_mask", "rl_weights"]
    assert parameters[-4:] == ["rl_loss_fn", "rl_scale", "ce_scale", "ref_kl_scale"]
    assert "rl_loss / rl_scale" in inspect.getsource(driver.rl_loss.compute_loss)
    train = (driver.ROOT / "src/prime_rl/trainer/rl/train.py").read_text()
    assert "int((mask & (rl_w != 0)).sum()) if rl_w is not None else int(mask.sum())" in train
    assert "dist.all_reduce(global_scales, op=dist.ReduceOp.SUM, group=dp_cp_group)" in train
    assert "scale_gradients_(None, model, parallel_dims.fsdp_gradient_divide_factor)" in train
    packing = (driver.ROOT / "src/prime_rl/orchestrator/packing.py").read_text()
    assert "self.seq_len = config.seq_len" in packing
    launcher, orchestrator = driver.LAUNCHERS
    assert {"Popen", "rl_slurm", "main"} <= set(vars(launcher))
    assert 'orchestrator_cmd = ["orchestrator", "@",' in inspect.getsource(launcher.rl_local)
    assert "rl_slurm(config)" in inspect.getsource(launcher.rl)
    assert hasattr(orchestrator, "main")
    grpo = (driver.ROOT / "src/prime_rl/orchestrator/algo/grpo.py").read_text()
    assert "advantages = rewards - rewards.mean()" in grpo  # no whitening after or before the seam
