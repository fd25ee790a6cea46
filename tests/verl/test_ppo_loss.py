"""verl's own loss functions with our modes: to the last bit where they are verl's, exact where they are not."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
import torch
from micro_batch import Step, actor_config
from verl.trainer.ppo import core_algos
from verl.workers.utils import losses

from pv_rl.errors import LossModeError, VerlError
from pv_rl.losses import resolve_mode, response_weights
from pv_rl.losses.mode import find_mode
from pv_rl.plugins import VERL_MODES
from pv_rl.verl_adapter.row_weights import row_fields

LENGTHS = [3, 7, 2, 9, 1, 5, 4, 6]
GROUPS = ["a", "a", "a", "b", "b", "b", "b", "b"]
TOKENS = sum(LENGTHS)
WHOLE = [range(8)]
CUTS = [[0, 5], [3, 2, 7], [1], [4, 6]]


def update(spec, loss_mode="vanilla", cuts=WHOLE, entropy_coeff=0.01, **overrides):
    """Loss, gradients and last metrics of one mini-batch, its rows cut into micro-batches."""
    step = Step(LENGTHS, GROUPS, spec)
    config = actor_config(spec, loss_mode, entropy_coeff=entropy_coeff, **overrides)
    total, metrics = 0.0, {}
    for rows in cuts:
        model_output, data = step.micro_batch(list(rows), global_batch_size=8, batch_num_tokens=TOKENS)
        loss, metrics = losses.ppo_loss(config, model_output, data)
        loss.backward()
        total += loss.item()
    return total, step.gradients(), metrics


@pytest.mark.parametrize("loss_mode", ["vanilla", "gspo"])
@pytest.mark.parametrize("cuts", [WHOLE, CUTS], ids=["whole", "cut"])
@pytest.mark.parametrize(
    ("ours", "stock"), [("dapo@batch", "token-mean"), ("grpo@batch", "seq-mean-token-mean")]
)
def test_batch_scope_is_verls_own_mode_to_the_last_bit(ours, stock, cuts, loss_mode):
    our_loss, our_gradients, _ = update(ours, loss_mode, cuts)
    stock_loss, stock_gradients, _ = update(stock, loss_mode, cuts)
    assert our_loss == stock_loss
    assert all(map(torch.equal, our_gradients, stock_gradients))


@pytest.mark.parametrize("mode", sorted(VERL_MODES))
def test_a_mode_of_verls_own_is_computed_by_verl(mode):
    generator = torch.Generator().manual_seed(1)
    loss = torch.randn(4, 6, generator=generator)
    mask = (torch.arange(6) < torch.tensor([6, 2, 5, 1])[:, None]).long()
    original = inspect.unwrap(core_algos.agg_loss)
    assert original is not core_algos.agg_loss
    for totals in ({}, {"dp_size": 2, "batch_num_tokens": 30, "global_batch_size": 8}):
        assert torch.equal(
            core_algos.agg_loss(loss, mask, mode, **totals), original(loss, mask, mode, **totals)
        )


@pytest.mark.parametrize("loss_mode", ["vanilla", "gspo"])
@pytest.mark.parametrize("spec", ["grpo", "dapo", "balanced:0.6", "balanced:0.3@batch"])
def test_the_gradient_does_not_depend_on_micro_batches(spec, loss_mode):
    whole_loss, whole, _ = update(spec, loss_mode)
    cut_loss, cut, _ = update(spec, loss_mode, CUTS)
    assert cut_loss == pytest.approx(whole_loss, abs=1e-6)
    assert max((a - b).abs().max().item() for a, b in zip(whole, cut, strict=True)) < 1e-7


def test_policy_kl_and_entropy_terms_are_all_weighted():
    """One token's gradient is its weight times that token's own derivative, known for each term alone."""
    weights = response_weights("balanced:0.6", LENGTHS, GROUPS)

    def gradients(advantage: float, **coefficients: float) -> tuple[list[torch.Tensor], Step]:
        step = Step(LENGTHS, GROUPS, "balanced:0.6")
        step.advantages = [torch.full((n,), advantage) for n in LENGTHS]
        step.log_probs = [old.clone().requires_grad_() for old in step.old_log_probs]  # ratio 1
        config = actor_config("balanced:0.6", "vanilla", kl_loss_type="k1", **coefficients)
        model_output, data = step.micro_batch(list(range(8)), global_batch_size=8, batch_num_tokens=TOKENS)
        losses.ppo_loss(config, model_output, data)[0].backward()
        return step.gradients(), step

    policy, _ = gradients(2.0, kl_loss_coef=0.0, entropy_coeff=0.0)
    kl, _ = gradients(0.0, kl_loss_coef=0.5, entropy_coeff=0.0)
    entropy, _ = gradients(0.0, kl_loss_coef=0.0, entropy_coeff=0.25)
    for row, n in enumerate(LENGTHS):
        w = weights[row].item()
        assert policy[row].tolist() == pytest.approx([-2.0 * w] * n, rel=1e-5)
        assert kl[row].tolist() == pytest.approx([0.5 * w] * n, rel=1e-5)
        assert entropy[8 + row].tolist() == pytest.approx([-0.25 * w] * n, rel=1e-5)


def test_mini_batches_and_ranks_add_up_to_the_step():
    """Two mini-batches of two ranks each: summed over all, with FSDP's mean over ranks, the whole step's gradient."""
    step = Step(LENGTHS, GROUPS, "balanced")
    config = actor_config("balanced", "vanilla", entropy_coeff=0.01)
    parts = [[0, 4], [2, 6], [7, 1], [5, 3]]
    masses = []
    for rows in parts:
        model_output, data = step.micro_batch(rows, global_batch_size=4, batch_num_tokens=99, dp_size=2)
        loss, metrics = losses.ppo_loss(config, model_output, data)
        (loss / 2).backward()
        masses.append(metrics["pv_rl/update_mass"].aggregate() / 2)
    # Each mini-batch is a mean over itself: two of them make twice the gradient of the step in one.
    _, whole, _ = update("balanced")
    for part, one in zip(step.gradients(), whole, strict=True):
        torch.testing.assert_close(part, 2 * one, rtol=1e-5, atol=1e-8)
    assert sum(masses) == pytest.approx(2.0, rel=1e-6)


def test_the_worker_reports_the_weights_it_used():
    weights = response_weights("balanced:0.6", LENGTHS, GROUPS)
    _, _, metrics = update("balanced:0.6")
    assert metrics["pv_rl/update_mass"].aggregate() == pytest.approx(1.0, rel=1e-6)
    assert metrics["pv_rl/token_weight_max"].aggregate() == pytest.approx(weights.max().item(), rel=1e-6)
    assert metrics["pv_rl/token_weight_min"].aggregate() == pytest.approx(weights.min().item(), rel=1e-6)


def test_a_row_that_the_driver_did_not_count_gets_no_gradient():
    """Its mask is 1 at the worker, as that of an abstained row would be: the weight alone silences it."""
    step = Step(LENGTHS, GROUPS)
    counted = [n if row != 1 else 0 for row, n in enumerate(LENGTHS)]
    step.fields = row_fields([resolve_mode("balanced")], counted, GROUPS)
    model_output, data = step.micro_batch(list(range(8)), global_batch_size=8, batch_num_tokens=TOKENS)
    loss, metrics = losses.ppo_loss(actor_config("balanced", "gspo"), model_output, data)
    loss.backward()
    assert step.gradients()[1].abs().max().item() == 0.0
    assert step.gradients()[0].abs().max().item() > 0.0
    assert metrics["pv_rl/update_mass"].aggregate() == pytest.approx(1.0, rel=1e-6)
    smallest = response_weights("balanced", counted, GROUPS)[[0, *range(2, 8)]].min().item()
    assert metrics["pv_rl/token_weight_min"].aggregate() == pytest.approx(smallest, rel=1e-6)


def test_balanced_at_batch_scope_mixes_verls_two_modes():
    mixed, _, _ = update("balanced:0.3@batch", entropy_coeff=0.0, use_kl_loss=False)
    by_response, _, _ = update("seq-mean-token-mean", entropy_coeff=0.0, use_kl_loss=False)
    by_token, _, _ = update("token-mean", entropy_coeff=0.0, use_kl_loss=False)
    assert mixed == pytest.approx(0.3 * by_response + 0.7 * by_token, rel=1e-6)


def test_rows_that_came_without_weights_stop_the_run():
    step = Step(LENGTHS, GROUPS)
    model_output, data = step.micro_batch(list(range(8)), global_batch_size=8, batch_num_tokens=TOKENS)
    with pytest.raises(
        VerlError, match=r"without the field 'pv_rl_row_weight/balanced:0.6@prompt'.*balanced@batch"
    ):
        losses.ppo_loss(actor_config("balanced", "gspo"), model_output, data)


@pytest.mark.parametrize(
    ("spec", "other"), [("balanced", "balanced@batch"), ("ba", "dapo@batch"), ("ba@batch", "dapo@batch")]
)
def test_a_loss_that_nobody_weighted_stops_the_run(spec, other):
    loss = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(VerlError, match=f"no weights were computed.*Use {other}"):
        core_algos.agg_loss(loss, torch.ones(2, 3), spec)
    with pytest.raises(VerlError, match="no weights were computed"):
        core_algos.agg_loss(loss.detach(), torch.ones(2, 3), spec, global_batch_size=2)


def test_a_loss_of_scope_batch_without_the_totals_of_its_mini_batch_stops_the_run():
    """Normalised by itself, a micro-batch of one row would weigh as much as one of eight."""
    loss, mask = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3)
    for totals in ({}, {"batch_num_tokens": 12}, {"global_batch_size": 4}):
        with pytest.raises(VerlError, match=r"without batch_num_tokens and global_batch_size.*Pass both"):
            core_algos.agg_loss(loss, mask, "dapo@batch", **totals)
    assert core_algos.agg_loss(loss.detach(), mask, "dapo@batch").item() == 1.0  # a metric
    totals = {"batch_num_tokens": 12, "global_batch_size": 4}
    assert core_algos.agg_loss(loss, mask, "dapo@batch", **totals).item() == pytest.approx(6 / 12)


@pytest.mark.parametrize("spec", ["grpo@batch", "dapo@batch", "grpo", "balanced@batch"])
def test_nan_outside_the_mask_is_outside_the_loss(monkeypatch, spec):
    """verl pads log-probs with 0; a loss of somebody's own may divide by them there."""

    def theirs(old_log_prob, log_prob, advantages, response_mask, loss_agg_mode, config, **_):
        loss_mat = (-advantages * log_prob).masked_fill(response_mask == 0, float("nan"))
        return core_algos.agg_loss(loss_mat, response_mask, loss_agg_mode, **config.global_batch_info), {}

    def plain(old_log_prob, log_prob, advantages, response_mask, loss_agg_mode, config, **_):
        loss_mat = -advantages * log_prob
        return core_algos.agg_loss(loss_mat, response_mask, loss_agg_mode, **config.global_batch_info), {}

    monkeypatch.setitem(core_algos.POLICY_LOSS_REGISTRY, "theirs", theirs)
    monkeypatch.setitem(core_algos.POLICY_LOSS_REGISTRY, "plain", plain)
    loss, gradients, _ = update(spec, "theirs")
    expected_loss, expected, _ = update(spec, "plain")
    assert loss == expected_loss
    assert all(map(torch.equal, gradients, expected))


MOVED = {
    "dropped": [0, 1, 2, 3, 4, 5, 6],
    "added": [0, 1, 2, 3, 4, 5, 6, 7, 7],
    "reversed": [7, 6, 5, 4, 3, 2, 1, 0],
    "two swapped": [0, 1, 2, 3, 4, 5, 7, 6],
    "one twice in the place of another": [0, 1, 2, 3, 3, 5, 6, 7],
}


@pytest.mark.parametrize("spec", ["balanced", "balanced@batch", "grpo@batch"])
@pytest.mark.parametrize("rows", MOVED.values(), ids=MOVED)
def test_a_loss_that_aggregates_other_rows_stops_the_run(monkeypatch, rows, spec):
    def theirs(old_log_prob, log_prob, advantages, response_mask, loss_agg_mode, config, **_):
        loss_mat = (-advantages * log_prob)[rows]
        return core_algos.agg_loss(
            loss_mat, response_mask[rows], loss_agg_mode, **config.global_batch_info
        ), {}

    monkeypatch.setitem(core_algos.POLICY_LOSS_REGISTRY, "theirs", theirs)
    with pytest.raises(VerlError, match=r"expected the 8 rows.*Keep every row in its place"):
        update(spec, "theirs")


def test_a_loss_may_reject_tokens_and_rows(monkeypatch):
    def theirs(old_log_prob, log_prob, advantages, response_mask, loss_agg_mode, config, **_):
        kept = response_mask.clone()
        kept[0], kept[1, 2:] = False, False
        return core_algos.agg_loss(-log_prob, kept, loss_agg_mode, **config.global_batch_info), {}

    monkeypatch.setitem(core_algos.POLICY_LOSS_REGISTRY, "theirs", theirs)
    _, gradients, _ = update("balanced", "theirs", use_kl_loss=False)
    assert not gradients[0].any()
    assert (gradients[1] != 0).tolist() == [True] * 2 + [False] * 5


def test_the_drivers_entropy_metric_takes_the_batch_as_one_group():
    entropy, mask = torch.tensor([[1.0, 9.0], [2.0, 4.0]]), torch.tensor([[1, 0], [1, 1]])
    assert core_algos.agg_loss(entropy, mask, "dapo").item() == pytest.approx(7 / 3)
    assert core_algos.agg_loss(entropy, mask, "grpo").item() == pytest.approx(2.0)
    assert core_algos.agg_loss(entropy, mask, "balanced:0.6").item() == pytest.approx(0.6 * 2.0 + 0.4 * 7 / 3)
    for spec in ("ba", "ba@batch"):  # the driver has no advantages yet
        assert core_algos.agg_loss(entropy, mask, spec).item() == pytest.approx(7 / 3)


@pytest.mark.parametrize("spec", ["balanced", "balanced:0.6@batch", "dapo@batch"])
@pytest.mark.parametrize("loss_mode", ["sapo", "geo_mean"])
def test_a_policy_loss_of_verl_that_aggregates_its_own_way_is_refused_at_start(loss_mode, spec):
    """verl's sapo always takes seq-mean-token-mean and its geo_mean a plain mean, whatever the config says."""
    with pytest.raises(VerlError, match=f"policy loss {loss_mode} aggregates in a way of its own"):
        actor_config(spec, loss_mode)
    update("token-mean", loss_mode)


@pytest.mark.parametrize("spec", ["balanced", "balanced:0.6@batch", "dapo@batch"])
def test_a_strangers_policy_loss_that_aggregates_its_own_way_is_refused_at_the_first_update(
    monkeypatch, spec
):
    def plain_mean(old_log_prob, log_prob, advantages, **_):
        return (-advantages * log_prob).mean(), {}

    monkeypatch.setitem(core_algos.POLICY_LOSS_REGISTRY, "theirs", plain_mean)
    with pytest.raises(VerlError, match=r"3 loss terms were computed and 2 of them.*no effect"):
        update(spec, "theirs")
    update("token-mean", "theirs")


def test_a_mode_that_is_neither_ours_nor_verls_is_verls_to_refuse(monkeypatch):
    """Another package may have taught verl a mode; with us installed it works as without."""
    loss, mask = torch.ones(2, 3), torch.ones(2, 3)
    with pytest.raises(ValueError, match="Invalid loss_agg_mode: theirs"):
        core_algos.agg_loss(loss, mask, "theirs")
    assert find_mode("theirs") is None
    assert find_mode(["balanced"]) is None
    assert find_mode(None) is None


def test_the_critics_value_loss_is_weighted_too():
    from types import SimpleNamespace

    from micro_batch import nested

    weights = response_weights("grpo", LENGTHS, GROUPS)
    step = Step(LENGTHS, GROUPS, "grpo")
    _, data = step.micro_batch(list(range(8)), global_batch_size=8, batch_num_tokens=TOKENS)
    values = [torch.zeros(n) for n in LENGTHS]
    data["values"] = nested(values)
    data["returns"] = nested([torch.full((n,), 2.0) for n in LENGTHS])
    predicted = [torch.zeros(n + 2).requires_grad_() for n in LENGTHS]
    config = SimpleNamespace(loss_agg_mode="grpo", cliprange_value=0.5, loss_scale_factor=None)
    loss, _ = losses.value_loss(config, {"values": nested(predicted)}, data)
    loss.backward()
    for row, n in enumerate(LENGTHS):  # d/dv of 0.5 (v - 2)^2 at 0 is -2
        assert predicted[row].grad is not None
        assert predicted[row].grad[1 : n + 1].tolist() == pytest.approx(
            [-2.0 * weights[row].item()] * n, rel=1e-5
        )


def test_the_actor_config_takes_every_spec_and_keeps_it():
    for spec in ("grpo", "dapo@batch", "balanced", "balanced:0.4@prompt", *VERL_MODES):
        assert actor_config(spec).loss_agg_mode == spec


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("balancd", "Did you mean balanced"),
        ("token mean", "verl says: Invalid loss_agg_mode"),
        ("balanced:2", "has the eta"),
    ],
)
def test_the_actor_config_refuses_what_nobody_knows(spec, text):
    with pytest.raises(LossModeError, match=text):
        actor_config(spec)


def test_verls_other_checks_of_the_actor_config_still_run():
    with pytest.raises(AssertionError, match="ppo_micro_batch_size"):
        actor_config("balanced", ppo_micro_batch_size_per_gpu=None)


CRITIC = {"strategy": "fsdp2", "rollout_n": 2, "ppo_micro_batch_size_per_gpu": 1}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("balanced:2", "has the eta"),
        ("balancd", r"critic.loss_agg_mode: .*Did you mean balanced\?.*verl's own modes also work"),
        ("token mean", "verl's own modes also work"),
        (["balanced"], "is not a string"),
    ],
)
def test_the_critic_config_refuses_at_start_what_nobody_knows(spec, text):
    from verl.workers.config import CriticConfig

    with pytest.raises(LossModeError, match=text):
        CriticConfig(loss_agg_mode=spec, **CRITIC)


def test_the_critic_config_takes_what_agg_loss_takes(monkeypatch):
    from verl.workers.config import CriticConfig

    for spec in ("balanced:0.4", "dapo@batch", *VERL_MODES):
        assert CriticConfig(loss_agg_mode=spec, **CRITIC).loss_agg_mode == spec
    # Another package may have taught verl a mode.
    monkeypatch.setattr(core_algos, "agg_loss", lambda *_, **__: torch.zeros(()))
    assert CriticConfig(loss_agg_mode="theirs", **CRITIC).loss_agg_mode == "theirs"


def test_a_scale_factor_that_a_mode_does_not_read_is_refused():
    with pytest.raises(
        VerlError, match=r"actor.loss_scale_factor=100 has no effect with .*balanced:0.6@prompt"
    ):
        actor_config("balanced", loss_scale_factor=100)
    actor_config("seq-mean-token-sum-norm", loss_scale_factor=100)
