"""The plan's numbers, each worked by hand."""

from __future__ import annotations

import random

import pytest
from plan_configs import QWEN3_8B, QWEN3_32B, QWEN25_14B, TINY, config

from pv_runs.model_shape import ModelShape
from pv_runs.plan import make_plan
from pv_runs.plan.step_time import forward_work, micro_batches
from pv_runs.plan.tokens import Lengths

GIB = 2**30
ACTOR = "actor_rollout_ref.actor"
FSDP = f"{ACTOR}.fsdp_config"
ROLLOUT = "actor_rollout_ref.rollout"
MODEL = "actor_rollout_ref.model"
TINY_RUN = {
    "plan.model": TINY,
    f"{ACTOR}.ulysses_sequence_parallel_size": 1,
    f"{ACTOR}.ppo_max_token_len_per_gpu": 24192,
}


def plan(**changes):
    return make_plan(config({key.replace("__", "."): value for key, value in changes.items()}))


def phase(made, name, place="training GPU"):
    return next(one for one in made.memory.phases if (one.place, one.name) == (place, name))


def part(made, name, of="update", place="training GPU"):
    """Bytes; 0 where there is no such part."""
    return sum(one.gib for one in phase(made, of, place).parts if one.name == name) * GIB


def host(made, name):
    return sum(one.gib for one in made.memory.host if one.name == name) * GIB


@pytest.mark.parametrize(("shape", "billions"), [(QWEN3_8B, 8.19), (QWEN3_32B, 32.76), (QWEN25_14B, 14.77)])
def test_parameters_are_those_of_the_published_models(shape, billions):
    assert ModelShape(**shape).parameters / 1e9 == pytest.approx(billions, rel=1e-3)


def test_parameters_of_a_tiny_model_by_hand():
    assert ModelShape(**TINY).layer_parameters == 3620
    assert ModelShape(**TINY).parameters == 3 * 3620 + 20_000 + 10
    assert ModelShape(**{**TINY, "tie_word_embeddings": True}).parameters == 3 * 3620 + 10_000 + 10
    assert ModelShape(**{**TINY, "tie_word_embeddings": True}).matmul_parameters == 3 * 3620 + 10_000


def test_weights_gradients_and_adam_are_shared_by_all_training_gpus():
    made = make_plan(config(TINY_RUN))
    assert part(made, "weights") == pytest.approx(4 * 30_870 / 32)
    assert part(made, "gradients") == pytest.approx(4 * 30_870 / 32)
    assert part(made, "Adam") == pytest.approx(8 * 30_870 / 32)
    assert part(made, "Adam's temporaries", of="Adam's step") == pytest.approx(4 * 30_870 / 32)


def test_an_fsdp_size_shares_them_by_fewer():
    made = make_plan(config({**TINY_RUN, f"{FSDP}.fsdp_size": 8}))
    assert part(made, "Adam") == pytest.approx(8 * 30_870 / 8)


def test_a_bf16_model_has_bf16_gradients_and_states():
    made = make_plan(config({**TINY_RUN, f"{FSDP}.model_dtype": "bf16"}))
    assert part(made, "Adam") == pytest.approx(4 * 30_870 / 32)


def test_gathered_is_the_root_and_two_layers_with_gradients():
    made = make_plan(config(TINY_RUN))
    expected = 2 * (20_000 + 2 * 3620) + 2 * 20_000 + 6 * 3620
    assert part(made, "gathered weights and gradients") == pytest.approx(expected)
    assert part(made, "gathered weights", of="log-probs") == pytest.approx(2 * (20_000 + 2 * 3620))


def test_without_resharding_all_weights_stay_and_without_sync_all_gradients():
    kept = make_plan(config({**TINY_RUN, f"{FSDP}.reshard_after_forward": False}))
    assert part(kept, "gathered weights and gradients") == pytest.approx(2 * 30_870 + 2 * 20_000 + 6 * 3620)
    changes = {f"{FSDP}.use_no_sync_for_gradient_accumulation": True, f"{ACTOR}.strategy": "fsdp2"}
    whole = make_plan(config({**TINY_RUN, **changes}))
    assert part(whole, "gathered weights and gradients") == pytest.approx(2 * 27_240 + 4 * 30_870)


def test_activations_are_one_input_a_layer_and_one_layer_that_computes():
    made = make_plan(config({**TINY_RUN, f"{ACTOR}.ppo_max_token_len_per_gpu": 30_000}))
    layer = 2 * (8 * 10 + 3 * (20 + 10) + 4 * 100)
    assert part(made, "activations") == pytest.approx(30_000 * (3 * 2 * 10 + layer + 4 * 100))
    assert part(made, "activations", of="log-probs") == 0  # the logits are larger, and come after them
    forward = make_plan(config({**TINY_RUN, f"{MODEL}.use_fused_kernels": True}))
    assert part(forward, "activations", of="log-probs") == pytest.approx(24_192 * 2 * (4 * 100 + 10))
    kept = make_plan(
        config(
            {
                **TINY_RUN,
                f"{ACTOR}.ppo_max_token_len_per_gpu": 30_000,
                f"{MODEL}.enable_gradient_checkpointing": False,
            }
        )
    )
    assert part(kept, "activations") == pytest.approx(30_000 * 3 * layer)


def test_logits_are_bf16_and_a_copy_over_the_temperature():
    assert part(plan(), "logits") == 12_288 * 151_936 * 4
    assert part(make_plan(config({f"{ROLLOUT}.temperature": 1.0})), "logits") == 12_288 * 151_936 * 2
    assert part(make_plan(config({f"{ACTOR}.entropy_coeff": 0.01})), "logits") == 12_288 * 151_936 * 10


def test_logits_without_flash_attention_are_kept_in_fp32_too():
    changes = {f"{MODEL}.use_remove_padding": False, f"{ACTOR}.ulysses_sequence_parallel_size": 1}
    changes |= {
        f"{ACTOR}.ppo_max_token_len_per_gpu": 24_192,
        "plan.length_sigma": 1e-3,
    }  # no padding to speak of
    made = make_plan(config(changes))
    assert part(made, "logits") == pytest.approx(24_192 * 151_936 * 8, rel=1e-2)
    assert part(made, "logits", of="log-probs") == pytest.approx(24_192 * 151_936 * 4, rel=1e-2)


def test_a_padded_row_is_as_long_as_the_longest_of_its_micro_batch():
    # Rows of 1,500 + 778 tokens on average: 24,192 tokens are 10.62 of them.
    changes = {f"{ACTOR}.ulysses_sequence_parallel_size": 1, f"{ACTOR}.ppo_max_token_len_per_gpu": 24_192}
    packed, padded = (
        make_plan(config({**changes, f"{MODEL}.use_remove_padding": packs})) for packs in (True, False)
    )
    longest = Lengths(mean=778, sigma=1.0, cut=16_000).expected_longest(24_192 / 2278)
    factor = (1500 + longest) / 2278
    assert 1.5 < factor < 2.0
    assert part(padded, "activations") == pytest.approx(factor * part(packed, "activations"), rel=1e-4)
    work = forward_work(padded.setup, 24_192)
    assert work.matrices == pytest.approx(480 * 2 * 7_568_625_664 * 2278 * factor, rel=1e-3)
    assert work.attention == pytest.approx(480 * 2 * 36 * 4096 * (2278 * factor) ** 2, rel=1e-3)
    assert any("times the tokens" in one.text for one in padded.findings)


@pytest.mark.parametrize(("tokens", "times"), [(40_000, 1), (24_192, 2)])
def test_the_reference_model_comes_from_the_host_for_each_micro_batch_while_others_compute(tokens, times):
    # A GPU has 15 rows of 2,278 tokens, 34,170.
    key = "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu"
    time = make_plan(config({**TINY_RUN, "plan.host_link_gb_s": 1e-6, key: tokens})).time
    seconds = {one.name: one.seconds for one in time.training}
    assert seconds["reference log-probs"] == pytest.approx(times * 4 * 30_870 / 32 / 1e3)
    fast = {one.name: one.seconds for one in make_plan(config({**TINY_RUN, key: tokens})).time.training}
    assert fast["reference log-probs"] == pytest.approx(fast["old log-probs"])


def test_what_is_offloaded_moves_in_and_out_once_a_phase():
    link = {**TINY_RUN, "plan.host_link_gb_s": 1e-6}
    stays = make_plan(config(link)).time
    goes = make_plan(config({**link, f"{FSDP}.param_offload": True, f"{FSDP}.optimizer_offload": True})).time
    before, after = ({one.name: one.seconds for one in time.training} for time in (stays, goes))
    weights = 4 * 30_870 / 32 / 1e3
    assert after["old log-probs"] - before["old log-probs"] == pytest.approx(2 * weights)
    assert after["update"] - before["update"] == pytest.approx(2 * 3 * weights)
    assert goes.sync.seconds - stays.sync.seconds == pytest.approx(2 * weights)


def test_fused_kernels_make_a_chunk_of_logits_at_a_time():
    made = make_plan(config({f"{MODEL}.use_fused_kernels": True}))
    assert part(made, "logits") == 512 * 151_936 * 14


def test_an_entropy_that_is_not_compiled_copies_the_logits_twice_in_fp32():
    made = make_plan(config({f"{FSDP}.use_torch_compile": False}))
    assert part(made, "logits", of="log-probs") == 12_288 * 151_936 * 12
    assert part(made, "logits") == 12_288 * 151_936 * 4


@pytest.mark.parametrize(
    ("shape", "size", "expected"), [(QWEN3_8B, 1, 147_456), (QWEN3_32B, 4, 65_536), (QWEN3_32B, 16, 32_768)]
)
def test_bytes_of_a_token_in_the_kv_cache(shape, size, expected):
    changes = {"plan.model": shape, f"{ROLLOUT}.tensor_model_parallel_size": size}
    assert make_plan(config(changes)).memory.kv_cache.token_bytes == expected


def test_rows_that_fit_in_the_kv_cache():
    cache = plan().memory.kv_cache
    room = 0.8 * 80 - 5 - 2 * ModelShape(**QWEN3_8B).parameters / GIB
    assert cache.gib == pytest.approx(room)
    assert cache.tokens == int(room * GIB / 147_456)
    assert cache.mean_rows == int(cache.tokens / 2278)
    assert cache.longest_rows == cache.tokens // 24_192
    few = make_plan(config({f"{ROLLOUT}.max_num_seqs": 10})).memory.kv_cache
    assert few.concurrent == 10


def test_a_rollout_shares_the_training_gpu_in_sync():
    made = make_plan(config({"trainer.v1.trainer_mode": "sync"}))
    assert part(made, "rollout engine's share", of="generation") == 0.8 * 80 * GIB
    assert part(made, "Adam", of="generation") == pytest.approx(8 * ModelShape(**QWEN3_8B).parameters / 32)
    assert part(made, "gradients", of="generation") == 0
    assert made.layout.total_gpus == 32


def test_the_host_keeps_the_reference_what_is_offloaded_and_the_old_policy():
    made = make_plan(config({**TINY_RUN, f"{FSDP}.optimizer_offload": True}))
    assert host(made, "reference model") == pytest.approx(2 * 4 * 30_870 * 8 / 32)  # fsdp: with its gradients
    assert host(made, "Adam") == pytest.approx(8 * 30_870 * 8 / 32)
    assert host(made, "copies of the policy") == pytest.approx(4 * 30_870 * 8 / 32)
    assert host(made, "weights") == 0
    rules = make_plan(config({**TINY_RUN, f"{ACTOR}.use_kl_loss": False}))
    assert host(rules, "reference model") == 0


def test_offload_policy_leaves_only_what_comes_and_goes_on_the_gpu():
    made = make_plan(config({**TINY_RUN, f"{FSDP}.offload_policy": True, f"{ACTOR}.strategy": "fsdp2"}))
    assert [part(made, name) for name in ("weights", "gradients", "Adam")] == [0, 0, 0]
    assert host(made, "Adam") == pytest.approx(8 * 30_870 * 8 / 32)


@pytest.mark.parametrize("draws", [1, 8, 480])
def test_the_expected_longest_is_that_of_a_simulation(draws):
    lengths = Lengths(mean=778, sigma=1.0, cut=16_000)
    dice = random.Random(0)
    rounds = 96_000 // draws
    longest = [
        max(min(dice.lognormvariate(lengths.mu, 1.0), 16_000) for _ in range(draws)) for _ in range(rounds)
    ]
    assert lengths.expected_longest(draws) == pytest.approx(sum(longest) / rounds, rel=0.04)


def test_the_cut_lengths_have_the_mean_that_was_asked_for():
    lengths = Lengths(mean=778, sigma=1.0, cut=2_000)
    dice = random.Random(0)
    drawn = [min(dice.lognormvariate(lengths.mu, 1.0), 2_000) for _ in range(100_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(778, rel=0.01)
    assert sum(length**2 for length in drawn) / len(drawn) == pytest.approx(lengths.second_moment, rel=0.02)
    assert lengths.expected_longest(1) == pytest.approx(778, rel=1e-3)


def test_a_step_counts_what_the_paper_counts():
    counts = plan().counts
    assert (counts.prompts, counts.rollouts, counts.updates) == (60, 480, 1)
    assert counts.generated_tokens == 480 * 778
    assert counts.trained_tokens == 480 * 2278
    assert counts.samples == 18_000
    assert counts.run_generated_tokens == pytest.approx(112e6, rel=1e-3)


def test_steps_follow_from_the_data_where_none_are_given():
    changes = {"trainer.total_training_steps": None, "trainer.total_epochs": 2, "plan.dataset_size": 250}
    counts = make_plan(config(changes)).counts
    assert (counts.steps, counts.samples) == (8, 480)
    assert counts.epochs == pytest.approx(1.92)


def test_operations_of_a_forward_by_hand():
    # Equal lengths of 4 and prompts of 6: 480 rows of 10 tokens; 3 x 3,620 + 10,000 weights; 3 layers of 20 values.
    made = make_plan(
        config({**TINY_RUN, "plan.prompt_tokens": 6, "plan.response_tokens": 4, "plan.length_sigma": 1e-3})
    )
    work = forward_work(made.setup, 24_192)
    assert work.tokens == pytest.approx(480 * 10, rel=1e-4)
    assert work.matrices == pytest.approx(480 * 2 * 20_860 * 10, rel=1e-4)
    assert work.attention == pytest.approx(480 * 2 * 3 * 20 * 100, rel=1e-4)


@pytest.mark.parametrize(
    ("attention", "packed", "tokens", "row", "masked"),
    [
        ("flash_attention_2", True, 100, 10, False),
        ("sdpa", False, 100, 10, True),
        ("sdpa", False, 19, 10, False),  # one row a micro-batch
        ("sdpa", True, 100, 75, True),  # 32 groups of 15 rows: 150 tokens in 2 micro-batches of 75
    ],
)
def test_an_attention_with_a_mask_is_slow_and_joins_packed_rows(attention, packed, tokens, row, masked):
    changes = {**TINY_RUN, "plan.prompt_tokens": 6, "plan.response_tokens": 4, "plan.length_sigma": 1e-3}
    changes |= {
        f"{MODEL}.override_config.attn_implementation": attention,
        f"{MODEL}.use_remove_padding": packed,
    }
    work = forward_work(make_plan(config(changes)).setup, tokens)
    assert work.masked == masked
    assert work.attention == pytest.approx(4800 * row * 2 * 3 * 20, rel=2e-3)


def test_seconds_of_a_forward_are_matrices_attention_and_the_rest_of_the_layers():
    # One GPU: 4,800 tokens, 3 layers. 2.003e8 operations of matrices, 5.76e6 of attention, 14,400 x 0.25 microseconds.
    one = {"trainer.n_gpus_per_node": 1, "trainer.nnodes": 1, "trainer.v1.trainer_mode": "sync"}
    rows = {"plan.prompt_tokens": 6, "plan.response_tokens": 4, "plan.length_sigma": 1e-3}
    sdpa = {f"{MODEL}.override_config.attn_implementation": "sdpa", f"{MODEL}.use_remove_padding": False}
    slow = {"cluster.gpu.bf16_tflops": 1e-6}
    made = make_plan(config({**TINY_RUN, **one, **rows, **sdpa, **slow}))
    old = next(one for one in made.time.training if one.name == "old log-probs")
    expected = 2 * 20_860 * 4800 / (1e6 * 0.55) + 5.76e6 / (1e6 * 0.06) + 3 * 4800 * 0.25e-6
    assert old.seconds == pytest.approx(expected, rel=2e-3)  # lengths vary a little
    (found,) = (one for one in made.findings if "mask keeps torch's flash kernel out" in one.text)
    assert f"{MODEL}.external_lib=pv_runs.attention" in found.overrides


def test_the_first_step_pins_the_reference_model():
    assert plan().time.first.seconds == pytest.approx(4 * ModelShape(**QWEN3_8B).parameters / 32 / 0.7e9)
    assert make_plan(config({f"{ACTOR}.use_kl_loss": False})).time.first is None


@pytest.mark.parametrize(("gpus", "dtype", "times"), [(1, "bf16", 2), (1, "fp32", 0), (8, "bf16", 0)])
def test_a_reference_in_bf16_stays_on_the_only_gpu(gpus, dtype, times):
    changes = {"trainer.n_gpus_per_node": gpus, "trainer.nnodes": 1, "trainer.v1.trainer_mode": "sync"}
    changes["actor_rollout_ref.ref.fsdp_config.model_dtype"] = dtype
    made = make_plan(config({**TINY_RUN, **changes}))
    for name in ("update", "Adam's step", "log-probs", "generation"):
        assert part(made, "reference model", of=name) == pytest.approx(times * 30_870)


def test_an_update_is_four_forwards_with_checkpointing_and_three_without():
    kept = make_plan(config({f"{MODEL}.enable_gradient_checkpointing": False}))
    for made, passes in ((plan(), 4), (kept, 3)):
        seconds = {duration.name: duration.seconds for duration in made.time.training}
        assert seconds["update"] == pytest.approx(passes * seconds["old log-probs"])
        work = forward_work(made.setup, 12_288)
        each = work.matrices / 0.55 / 989e12 + work.attention / 0.33 / 989e12 + 480 * 2278 * 36 * 0.25e-6
        assert seconds["update"] == pytest.approx(passes * each / 32)


def test_small_micro_batches_wait_for_the_weights():
    # 16 groups of 30 rows, 68,340 tokens: 34 micro-batches of 2 x 1,024. Each gathers twice 2 bytes, scatters 4.
    made = make_plan(config({f"{ACTOR}.ppo_max_token_len_per_gpu": 1024}))
    assert micro_batches(made.setup, 480, 1024) == 34
    update = next(one for one in made.time.training if one.name == "update")
    assert update.seconds == pytest.approx(34 * 8 * ModelShape(**QWEN3_8B).parameters / 200e9)


def test_decoding_reads_the_weights_once_a_token_and_the_cache_as_it_grows():
    # One response a replica, all of 100 tokens after a prompt of 50. A token in the cache: 2 x 3 x 10 x 2 = 120 bytes.
    changes = {
        **TINY_RUN,
        "plan.decode_step_s": 0,
        "trainer.v1.trainer_mode": "sync",
        "trainer.nnodes": 10,
        "actor_rollout_ref.rollout.n": 1,
        "data.train_batch_size": 80,
        f"{ACTOR}.ppo_mini_batch_size": 80,
        "plan.prompt_tokens": 50,
        "plan.response_tokens": 100,
        "plan.length_sigma": 1e-3,
    }
    decoding = make_plan(config(changes)).time.generation[1]
    weights, keys = 2 * 30_870, (50 * 100 + 100**2 / 2) * 120
    assert decoding.seconds == pytest.approx((100 * weights + keys) / (3.35e12 * 0.6), rel=0.01)


def test_sync_waits_for_the_longest_and_async_shares_the_wait():
    lengths = Lengths(mean=778, sigma=1.0, cut=16_000)
    sync = make_plan(config({"trainer.v1.trainer_mode": "sync"})).time.generation[1]
    assert f"{lengths.expected_longest(480):,.0f} steps" in sync.how
    free = plan().time.generation[1]
    assert f"{lengths.expected_longest(8) / 2:,.0f} steps" in free.how
    sampler = "trainer.v1.sampler.max_off_policy"
    waits = make_plan(config({f"{sampler}_strategy": "wait", f"{sampler}_threshold": 2})).time.generation[1]
    assert f"{lengths.expected_longest(480) / 2:,.0f} steps" in waits.how


def test_a_small_model_decodes_no_faster_than_it_is_scheduled():
    decoding = make_plan(config(TINY_RUN)).time.generation[1]
    steps = Lengths(mean=778, sigma=1.0, cut=16_000).expected_longest(8) / 2
    assert decoding.how.startswith(f"{steps:,.0f} steps x 0.004 s")
    assert decoding.seconds == pytest.approx(steps * 0.004, rel=0.01)


@pytest.mark.parametrize("mode", ["sync", "colocate_async", "separate_async"])
def test_a_step_is_a_sum_or_the_longer_of_two(mode):
    time = make_plan(config({"trainer.v1.trainer_mode": mode})).time
    generation = sum(one.seconds for one in time.generation)
    training = sum(one.seconds for one in time.training)
    rest = 2 * ModelShape(**QWEN3_8B).parameters / 10e9 + 5
    if mode == "separate_async":
        assert time.seconds == pytest.approx(max(generation, training) + rest)
    else:
        assert time.seconds == pytest.approx(generation + training + rest + (5 if mode == "sync" else 0))


@pytest.mark.parametrize("gpus", [1, 8])
def test_a_range_is_what_was_measured_and_a_factor_of_two_where_nothing_was(gpus):
    changes = {"trainer.n_gpus_per_node": gpus, "trainer.nnodes": 1, "trainer.v1.trainer_mode": "sync"}
    time = make_plan(config({**TINY_RUN, **changes})).time
    update, decoding = time.training[-1], time.generation[1]
    low, high = (0.86, 1.12) if gpus == 1 else (0.5, 2)
    assert update.between == pytest.approx((low * update.seconds, high * update.seconds))
    assert decoding.between == (decoding.seconds / 2, 2 * decoding.seconds)


def test_a_run_is_priced_by_all_gpus():
    time = make_plan(config({"plan.usd_per_gpu_hour": 2.0})).time
    assert time.gpu_hours == pytest.approx(300 * time.seconds / 3600 * 80)
    assert time.usd == pytest.approx(2 * time.gpu_hours)


def test_the_judge_costs_what_the_paper_says_within_a_factor_of_two():
    cost = plan().judge
    assert cost.calls == 480
    assert cost.run_calls == 144_000
    assert 0.25 < cost.step_usd < 1.0
    assert 0.25 < cost.step_usd_cached < cost.step_usd


def test_the_judge_by_hand(tmp_path):
    (tmp_path / "prompt.txt").write_text("x" * 4000)
    kwargs = "reward.custom_reward_function.reward_kwargs"
    cost = make_plan(config({f"{kwargs}.prompt": str(tmp_path / "prompt.txt")})).judge
    frame = cost.input_tokens - 1000 - 778
    assert 20 < frame < 60
    assert cost.instruction_tokens == 1000
    assert cost.step_usd == pytest.approx(480 * ((1778 + frame) * 0.56 + 60 * 1.68) / 1e6, rel=1e-4)
    cached = 480 * ((778 + frame) * 0.56 + 1000 * 0.07 + 60 * 1.68) / 1e6
    assert cost.step_usd_cached == pytest.approx(cached, rel=1e-4)
    longest = 480 * ((17_000 + frame) * 0.56 + 400 * 1.68) / 1e6
    assert cost.longest_step_usd == pytest.approx(longest, rel=1e-4)
    assert cost.run_usd == pytest.approx(300 * cost.step_usd)
