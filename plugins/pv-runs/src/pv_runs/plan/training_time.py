"""How long a step's log-probs and updates take."""

from __future__ import annotations

from pv_runs.plan.duration import Duration
from pv_runs.plan.setup import Setup
from pv_runs.plan.tokens import Counts, lengths_of

__all__ = ["forward_operations", "micro_batches", "training_times"]


def forward_operations(setup: Setup) -> float:
    """`2 N D + 2 L A sum s^2`, floating-point operations of one forward over all rows of a step.

    N are the parameters that a token is multiplied with, D the tokens of prompts and responses. The second term is the
    attention over half of the s x s pairs of a row, with A values a token, in each of the L layers. (arXiv 2001.08361;
    verl/utils/flops_counter.py has three times this for an update, with the input's matrix counted in N.)
    """
    assumed, batch, model, lengths = setup.assumed, setup.batch, setup.model, lengths_of(setup)
    prompt, response = assumed.prompt_tokens, lengths.mean
    squares = batch.rollouts * (prompt**2 + 2 * prompt * response + lengths.second_moment)
    tokens = batch.rollouts * (prompt + response)
    return 2 * model.matmul_parameters * tokens + 2 * model.num_hidden_layers * model.query_width * squares


def micro_batches(setup: Setup, rows: float, tokens: int) -> int:
    """Micro-batches that a data parallel group makes of its part of `rows`.

    Args:
        setup: the run.
        rows: of all groups, of mean length.
        tokens: of a micro-batch on one GPU, at most.
    """
    training = setup.training
    own, room = rows / training.data_parallel, tokens * training.ulysses
    if training.dynamic:
        own *= setup.assumed.prompt_tokens + setup.assumed.response_tokens
    else:
        room = max(1, room // setup.batch.longest)
    return max(1, -int(-own // room))


def training_times(setup: Setup, counts: Counts) -> tuple[Duration, ...]:
    """Old log-probs, reference log-probs, updates, and what offloading moves.

    A forward is one pass over the rows; an update is a forward and a backward of twice its work, and one forward more
    with gradient checkpointing.
    """
    training, batch, parameters = setup.training, setup.batch, setup.model.parameters
    gather, scatter = 2 * parameters, 4 * parameters
    asked = batch.sync_step * micro_batches(setup, batch.rollouts / batch.sync_step, training.log_prob_tokens)
    rows = batch.n * min(batch.mini_batch, batch.prompts)
    updates = counts.updates * micro_batches(setup, rows, training.update_tokens)
    backward = gather * (1 + training.reshard)
    scattered = counts.updates if training.no_sync else updates
    times: list[Duration] = []
    if training.old_log_prob:
        times.append(_passes(setup, "old log-probs", 1, asked * gather, asked))
    if training.reference:
        times.append(_passes(setup, "reference log-probs", 1, asked * gather, asked))
    passes = (4 if training.checkpointing else 3) * batch.ppo_epochs
    times.append(_passes(setup, "update", passes, updates * backward + scattered * scatter, updates))
    moved = _moved(setup)
    return (*times, moved) if moved.seconds else tuple(times)


def _passes(setup: Setup, name: str, passes: int, gathered: float, count: int) -> Duration:
    """The longer of `passes x operations / (GPUs peak MFU)` and of what FSDP moves meanwhile."""
    training, peak, mfu = setup.training, setup.cluster.gpu.bf16_tflops, setup.assumed.train_mfu
    operations = passes * forward_operations(setup)
    compute = operations / (training.gpus * peak * 1e12 * mfu)
    rate = setup.assumed.gather_gb_s
    moving = gathered / (rate * 1e9) if training.gpus > 1 else 0.0
    if moving > compute:
        how = f"{gathered:.3g} B of weights and gradients in {count} micro-batches / {rate:g} GB/s"
        return Duration(name=name, seconds=moving, how=f"{how} (computing: {compute:.1f} s)")
    how = (
        f"{passes} pass{'es' * (passes > 1)}, {operations:.3g} operations / ({training.gpus} GPUs x {peak:g}e12 x "
        f"{mfu:g}) (FSDP's traffic: {moving:.1f} s)"
    )
    return Duration(name=name, seconds=compute, how=how)


def _moved(setup: Setup) -> Duration:
    """Bytes between a GPU and its host: in and out for every phase, and the reference's weights for its forward."""
    training, rate = setup.training, setup.assumed.host_link_gb_s
    shard = setup.model.parameters / training.shards
    phases = 1 + training.old_log_prob + 1  # update, old log-probs, sync of the weights
    moved = (
        2 * training.weight_bytes * shard * (phases * training.param_offload + 2 * training.optimizer_offload)
    )
    moved += training.reference_bytes * shard if training.reference else 0
    return Duration(
        name="to and from the host", seconds=moved / (rate * 1e9), how=f"{moved:.3g} B / {rate:g} GB/s"
    )
