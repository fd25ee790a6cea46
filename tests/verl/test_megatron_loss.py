"""verl's Megatron engine with our modes, as far as it goes on a CPU: the scaling of the loss, on its own functions.

The engine gives the loss function the micro-batch and multiplies by the number of micro-batches
(verl/workers/engine/megatron/transformer_impl.py:1437); Megatron divides by it. No Megatron model is trained here.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from fork_server import run_fresh

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
MEGATRON = Path(sys.prefix) / "beside" / "megatron-core"
pytestmark = pytest.mark.skipif(
    not (MEGATRON / ".installed").exists(),
    reason=f"megatron-core is not in {MEGATRON}: make test puts it there",
)

LENGTHS = [3, 7, 2, 9, 1, 5]
GROUPS = ["a", "a", "b", "b", "b", "b"]


def gradients(spec: str, cuts: list[list[int]], cp_size: int = 1, per_token: bool = False):
    """d loss / d log-prob of each row, through verl's engine and Megatron's schedule, a micro-batch at a time."""
    import torch
    from megatron.core.pipeline_parallel.schedules import forward_step_calc_loss
    from micro_batch import Step, actor_config, nested
    from verl.utils import tensordict_utils as tu
    from verl.workers.engine.megatron import MegatronEngineWithLMHead
    from verl.workers.utils.losses import ppo_loss

    step = Step(LENGTHS, GROUPS, spec)
    step.log_probs = [old.clone().requires_grad_() for old in step.old_log_probs]
    step.advantages = [torch.full((n,), 2.0) for n in LENGTHS]
    engine = SimpleNamespace(
        prepare_model_outputs=lambda output, data: output,
        get_data_parallel_group=lambda: None,
        engine_config=SimpleNamespace(
            dynamic_context_parallel=False, use_remove_padding=True, context_parallel_size=cp_size
        ),
        tf_config=SimpleNamespace(calculate_per_token_loss=per_token),
        _routed_num_tokens=lambda data: data["input_ids"].offsets()[-1],
    )
    config = actor_config(spec, "vanilla", use_kl_loss=False, entropy_coeff=0.0)
    total_tokens = torch.zeros((), dtype=torch.int)
    for rows in cuts:
        output, data = step.micro_batch(rows, global_batch_size=6, batch_num_tokens=sum(LENGTHS))
        data["input_ids"] = nested([torch.ones(LENGTHS[row] + 2, dtype=torch.long) for row in rows])
        tu.assign_non_tensor(data, num_micro_batch=len(cuts), routed_num_tokens=sum(LENGTHS) + 12)
        loss_of = partial(
            MegatronEngineWithLMHead.postprocess_micro_batch_func,
            engine,
            data=data,
            forward_only=False,
            loss_function=partial(ppo_loss, config=config),
        )
        loss, tokens = forward_step_calc_loss(
            torch.nn.Identity(),
            output,
            loss_of,
            SimpleNamespace(calculate_per_token_loss=per_token, timers=None, num_moe_experts=None),
            vp_stage=None,
            collect_non_loss_data=False,
            num_microbatches=len(cuts),
            forward_data_store=[],
            cp_group_size=cp_size,
            is_last_stage=True,
        )
        loss.backward()
        total_tokens += tokens
    scale = total_tokens if per_token else cp_size  # what Megatron divides the gradients by afterwards
    return [log.grad / scale for log in step.log_probs]


def check() -> None:
    from pv_rl.losses import response_weights

    weights = response_weights("balanced:0.6", LENGTHS, GROUPS).tolist()
    for spec in ("balanced:0.6", "balanced:0.6@batch"):
        of_spec = (
            weights if "@" not in spec else response_weights("balanced:0.6", LENGTHS, ["a"] * 6).tolist()
        )
        for cuts in ([[0, 1, 2, 3, 4, 5]], [[0, 5], [3], [2, 4, 1]]):
            for settings in ({}, {"cp_size": 2}, {"per_token": True}):
                for row, gradient in enumerate(gradients(spec, cuts, **settings)):
                    expected = [-2.0 * of_spec[row]] * LENGTHS[row]
                    assert gradient.tolist() == pytest.approx(expected, rel=1e-5), (spec, cuts, settings, row)


def test_through_the_megatron_engine_each_token_has_its_weight_however_the_rows_are_cut():
    """In a process of its own, where megatron-core can be imported."""
    here = Path(__file__).parent
    code = f"import sys; sys.path[:0] = [{str(here)!r}, {str(MEGATRON)!r}]; import test_megatron_loss as t; t.check()"
    done = run_fresh(code)
    assert done.returncode == 0, done.stderr[-4000:]
