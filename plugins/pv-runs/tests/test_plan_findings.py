"""What the plan finds wrong, and whether what it proposes helps."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf
from plan_configs import JUDGE, QWEN3_32B, config

from pv_runs.plan import make_plan
from pv_runs.recipes import compose

ACTOR = "actor_rollout_ref.actor"
FSDP = f"{ACTOR}.fsdp_config"
ROLLOUT = "actor_rollout_ref.rollout"
MODEL = "actor_rollout_ref.model"
KWARGS = "reward.custom_reward_function.reward_kwargs"
NODE = {"trainer.v1.trainer_mode": "sync", "trainer.nnodes": 1, "cluster.nodes": 1}


def found(changes, severity):
    return [one for one in make_plan(config(changes)).findings if one.severity == severity]


def only(changes, severity, text):
    """The one finding of that severity that has the text in it."""
    (finding,) = [one for one in found(changes, severity) if text in one.text]
    return finding


def after(changes, overrides):
    """The plan with overrides put into the config, as the command line does."""
    made = config(changes)
    for override in overrides:
        key, _, value = override.removeprefix("++").partition("=")
        OmegaConf.update(made, key, OmegaConf.create(f"x: {value}").x, force_add=True)
    return make_plan(made)


def test_the_papers_run_is_found_to_run():
    made = make_plan(config())
    assert made.runs
    assert made.remedy is None
    assert {one.severity for one in made.findings} == {"note"}


@pytest.mark.parametrize(
    ("spec", "text"), [("dr_grpo:16000", "is 0.0486 at responses of 778"), ("dr_grpo:77.8@batch", "is 10 at")]
)
def test_an_update_of_another_size_is_a_warning(spec, text):
    assert "It scales losses and gradients" in only({f"{ACTOR}.loss_agg_mode": spec}, "warning", text).text


@pytest.mark.parametrize("spec", ["balanced", "dapo@batch", "dr_grpo:1000", "token-sum"])
def test_an_update_of_the_usual_size_is_no_finding(spec):
    assert not found({f"{ACTOR}.loss_agg_mode": spec}, "warning")


def test_a_row_that_fits_in_no_micro_batch_cannot_be_trained():
    changes = {f"{ACTOR}.ppo_max_token_len_per_gpu": 12_000}  # x 2 = 24,000 of 24,192
    finding = only(changes, "does not run", "cannot be trained")
    assert finding.overrides == (f"{ACTOR}.ppo_max_token_len_per_gpu=12096",)
    assert after(changes, finding.overrides).runs


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({f"{ACTOR}.ppo_mini_batch_size": 30}, "separate_async wants parameter_sync_step"),
        ({f"{ROLLOUT}.checkpoint_engine.backend": "naive"}, "cannot bring weights"),
        ({f"{FSDP}.fsdp_size": 12}, "no multiple of fsdp_size"),
        ({f"{ACTOR}.strategy": "fsdp2", f"{MODEL}.use_fused_kernels": True}, "the first forward fails"),
        (
            {"actor_rollout_ref.ref.log_prob_max_token_len_per_gpu": 12_000},
            "ref.log_prob_max_token_len_per_gpu leaves",
        ),
        ({f"{ROLLOUT}.gpu_memory_utilization": 1.5}, "it is a share"),
        (
            {f"{ROLLOUT}.max_model_len": 24_192, "plan.model.max_position_embeddings": 20_000},
            "is made for 20,000",
        ),
        ({f"{ROLLOUT}.tensor_model_parallel_size": 16, f"{ROLLOUT}.nnodes": 5}, "no multiple of the 16"),
    ],
)
def test_what_stops_a_run_is_told_with_what_helps(changes, text):
    assert not make_plan(config(changes)).runs
    assert [one for one in found(changes, "does not run") if text in one.text]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({f"{ACTOR}.ulysses_sequence_parallel_size": 3}, "cannot be shared by 3 GPUs"),
        ({f"{ROLLOUT}.tensor_model_parallel_size": 3}, "cannot be shared by 3 GPUs"),
        (
            {f"{ACTOR}.ppo_mini_batch_size": 61, "data.train_batch_size": 61},
            "61 x 8 = 488 rows, no multiple of the 16",
        ),
        (
            {f"{ROLLOUT}.tensor_model_parallel_size": 4, f"{ROLLOUT}.n_gpus_per_node": 6},
            "do not fill nodes of 6",
        ),
        ({"cluster.nodes": 9}, "takes 80 GPUs and the cluster has 9 x 8 = 72"),
        ({"cluster.gpus_per_node": 4, "cluster.nodes": 20}, "takes 8 GPUs of a node"),
    ],
)
def test_what_cannot_be_divided_is_told(changes, text):
    assert [one for one in found(changes, "does not run") if text in one.text]


def test_heads_may_be_fewer_than_the_gpus_of_a_row_that_they_are_copied_to():
    changes = {f"{ACTOR}.ulysses_sequence_parallel_size": 16, f"{ACTOR}.ppo_max_token_len_per_gpu": 2048}
    assert make_plan(config(changes)).runs  # 32 heads, 8 key-value heads: 16 is a multiple of 8
    assert only(changes, "note", "copies are not counted")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({f"{ROLLOUT}.max_model_len": 20_000}, "cut short"),
        (
            {f"{ROLLOUT}.enable_chunked_prefill": False, f"{ROLLOUT}.max_num_batched_tokens": 8_192},
            "chunked prefill",
        ),
        ({f"{FSDP}.offload_policy": True}, "offload_policy does nothing"),
        ({"algorithm.adv_estimator": "gae"}, "trains a critic"),
    ],
)
def test_a_warning_goes_away_with_its_override(changes, text):
    finding = only(changes, "warning", text)
    assert finding.overrides
    assert not [one for one in after(changes, finding.overrides).findings if text in one.text]


def test_optimizer_offload_frees_the_log_probs_and_not_the_update():
    phases = {}
    for offload in (False, True):
        made = make_plan(config({f"{FSDP}.optimizer_offload": offload}))
        phases[offload] = {(one.place, one.name): one.gib for one in made.memory.phases}
    adam = 8 * make_plan(config()).setup.model.parameters / 32 / 2**30
    for name, freed in (("update", 0), ("Adam's step", 0), ("log-probs", adam), ("generation", adam)):
        place = ("training GPU", name)
        assert phases[False][place] - phases[True][place] == pytest.approx(freed)


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster.gpu.memory_gib": 24},
        {**NODE, "plan.model": QWEN3_32B, f"{ROLLOUT}.tensor_model_parallel_size": 4},
        {f"{ACTOR}.ppo_max_token_len_per_gpu": 65_536},
        {"actor_rollout_ref.model.enable_gradient_checkpointing": False},
        {**NODE, f"{ROLLOUT}.gpu_memory_utilization": 0.9},
        {**NODE, f"{ROLLOUT}.free_cache_engine": False},
        {"plan.model": QWEN3_32B, f"{ROLLOUT}.gpu_memory_utilization": 0.5},
    ],
)
def test_what_is_proposed_does_make_it_fit(changes):
    made = make_plan(config(changes))
    assert [one for one in made.findings if one.severity == "does not fit"]
    assert made.remedy.fits
    assert after(changes, made.remedy.overrides).memory.fits
    for left_out in made.remedy.overrides:
        fewer = [one for one in made.remedy.overrides if one != left_out]
        if "strategy" not in left_out and len(fewer) > 0:
            assert not after(changes, fewer).memory.fits, f"{left_out} is not needed"


def test_a_cheap_change_comes_before_a_dear_one():
    overrides = make_plan(config({f"{ACTOR}.ppo_max_token_len_per_gpu": 65_536})).remedy.overrides
    assert overrides == (f"{ACTOR}.ppo_max_token_len_per_gpu=12096",)


def test_nothing_is_proposed_that_cannot_be_divided():
    # Weights of 61 GiB and an engine of 0.9 x 40: four GPUs a replica would do, and two are not enough.
    changes = {
        "plan.model": QWEN3_32B,
        "cluster.gpu.memory_gib": 40,
        "actor_rollout_ref.hybrid_engine": False,
    }
    size = f"{ROLLOUT}.tensor_model_parallel_size"
    assert f"{size}=4" in make_plan(config(changes)).remedy.overrides
    on_six = make_plan(config({**changes, f"{ROLLOUT}.n_gpus_per_node": 6})).remedy
    assert not on_six.fits
    assert f"{size}=2" in on_six.overrides


def test_it_is_said_that_no_change_helps():
    made = make_plan(config({"cluster.gpu.memory_gib": 6}))
    assert not made.remedy.fits
    assert made.remedy.over_gib > 0
    assert all(one.overrides == () for one in made.findings if one.severity == "does not fit")


def test_a_longest_row_has_to_fit_in_the_kv_cache():
    changes = {"plan.model": QWEN3_32B, f"{ROLLOUT}.tensor_model_parallel_size": 1}
    assert only(changes, "does not fit", "rollout engine").text.startswith(
        "rollout engine, generation: 72 GiB of 64"
    )


def test_the_host_is_checked_where_its_memory_is_known():
    assert make_plan(config({"cluster.host_memory_gib": 100})).runs
    assert compose("8b", ["cluster.host_memory_gib=128"]).cluster.host_memory_gib == 128
    assert only({"cluster.host_memory_gib": 40}, "does not fit", "host")


def test_a_gpu_that_is_nearly_full_is_a_warning():
    text = only({f"{ROLLOUT}.gpu_memory_utilization": 0.88}, "warning", "training GPU, generation").text
    assert text.endswith("too near to call")


@pytest.mark.parametrize(
    ("budget", "severity", "text"),
    [
        ({"usd_per_step": 0.1}, "warning", "usd_per_step is 0.1 and 0.39"),
        ({"usd_per_run": 50}, "warning", "usd_per_run is 50"),
        ({"calls_per_step": 400}, "warning", "calls_per_step is 400 and 480"),
        ({"calls_per_run": 100_000}, "warning", "calls_per_run is 100000 and 1.44e+05"),
        ({"usd_per_step": 4.0}, "note", "of the longest responses could take 4."),
    ],
)
def test_a_budget_that_would_be_hit_is_told(budget, severity, text):
    finding = only({f"{KWARGS}.judge.budget": budget}, severity, text)
    if severity == "warning":
        made = after({f"{KWARGS}.judge.budget": budget}, finding.overrides)
        assert not [one for one in made.findings if one.severity == "warning"]


def test_a_budget_with_room_is_not_mentioned():
    assert not [one for one in make_plan(config()).findings if "judge" in one.text]


def test_without_a_judge_there_are_no_calls_and_nothing_is_waited_for():
    made = make_plan(config({f"{KWARGS}.judge": None, "trainer.v1.trainer_mode": "sync"}))
    assert made.judge is None
    assert made.time.judge is None


def test_a_judge_without_a_price_has_calls_and_no_cost():
    judge = {"endpoints": [{"url": "http://localhost:8000/v1", "model": "${oc.env:NOBODY_SETS_THIS}"}]}
    made = make_plan(config({f"{KWARGS}.judge": judge}))
    assert (made.judge.calls, made.judge.model, made.judge.step_usd) == (480, None, None)
    assert only({f"{KWARGS}.judge": judge}, "note", "environment variable that is not set")
    assert only(
        {f"{KWARGS}.judge": {**JUDGE, "prices": {}, "budget": {}}}, "note", "no price of the judge's model"
    )
