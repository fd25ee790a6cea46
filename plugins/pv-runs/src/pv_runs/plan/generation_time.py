"""How long a step's responses take to generate."""

from __future__ import annotations

from pv_runs.plan.duration import Duration
from pv_runs.plan.rollout_memory import kv_cache, weight_shard_bytes
from pv_runs.plan.setup import Setup
from pv_runs.plan.tokens import lengths_of

__all__ = ["generation_times"]


def generation_times(setup: Setup) -> tuple[Duration, ...]:
    """Reading prompts, then decoding, on all replicas at once."""
    return (_prefill(setup), _decode(setup))


def _prefill(setup: Setup) -> Duration:
    """`B p 2 N / (GPUs peak MFU)`: each response reads its prompt, as if no prefix were cached."""
    assumed, batch, gpus = setup.assumed, setup.batch, setup.rollout.replicas * setup.rollout.replica_gpus
    operations = 2 * setup.model.matmul_parameters
    tokens = batch.rollouts * assumed.prompt_tokens
    peak = setup.cluster.gpu.bf16_tflops
    seconds = tokens * operations / (max(1, gpus) * peak * 1e12 * assumed.prefill_mfu)
    how = f"{tokens:,.0f} tokens x {operations:.3g} / ({gpus} GPUs x {peak:g}e12 x {assumed.prefill_mfu:g})"
    return Duration(name="prompts", seconds=seconds, how=how)


def _decode(setup: Setup) -> Duration:
    """`J max(w / c, least) + k / c`: decoding is bound by the memory's bandwidth, of which it reaches c.

    Each of the J decoding steps reads w, an engine's weights on one GPU, and takes `decode_step_s` at least. Keys and
    values are read of the responses that are not finished: k in all, `b (p m + E[x^2] / 2)` tokens for the b responses
    of a replica, of mean length m, to prompts of p.
    """
    assumed, batch, rollout = setup.assumed, setup.batch, setup.rollout
    cache, lengths = kv_cache(setup), lengths_of(setup)
    responses = batch.rollouts / max(1, rollout.replicas)
    steps, said = decoding_steps(setup)
    context = assumed.prompt_tokens * lengths.mean + lengths.second_moment / 2
    keys = responses / rollout.data_parallel * context * cache.token_bytes * rollout.pipeline_parallel
    bandwidth = setup.cluster.gpu.bandwidth_tb_s * 1e12 * assumed.decode_bandwidth_fraction
    weights = weight_shard_bytes(setup) * rollout.pipeline_parallel
    each = max(weights / bandwidth, assumed.decode_step_s)
    share = f"({setup.cluster.gpu.bandwidth_tb_s:g}e12 x {assumed.decode_bandwidth_fraction:g})"
    slow = f"{weights:.3g} B of weights / {share}"
    how = (
        f"{steps:,.0f} steps x {f'{each:g} s' if each == assumed.decode_step_s else slow} + {keys:.3g} B of keys and "
        f"values / {share}; {said}"
    )
    return Duration(name="decoding", seconds=steps * each + keys / bandwidth, how=how)


def decoding_steps(setup: Setup) -> tuple[float, str]:
    """J, decoding steps of a replica for a step of training, and how it is found.

    - sync: the step waits for the longest of all B responses. Of a replica's b responses k fit at a time; those that
      wait start when others end: `E[max of B] + max(0, b / k - 1) m`.
    - Otherwise unfinished responses go on through the next step. With w batches in flight ahead, a prompt takes
      `E[max of its n]` steps, while `1 + w` batches are under way (Little's law): `E[max of n] / (1 + w)`; at least
      `b m / k` where not all fit. Where a response may span v versions and is then waited for
      (`max_off_policy_strategy: wait`), at least `E[max of B] / v`.
    """
    batch, rollout, lengths = setup.batch, setup.rollout, lengths_of(setup)
    fit = max(1, kv_cache(setup).concurrent)
    waves = batch.rollouts / max(1, rollout.replicas) / fit
    longest = lengths.expected_longest(batch.rollouts)
    if batch.mode == "sync":
        queued = max(0.0, waves - 1) * lengths.mean
        waited = "queue, then the longest" if queued else "the longest"
        return longest + queued, f"{waited} of {batch.rollouts} responses"
    flow = lengths.expected_longest(batch.n) / (1 + batch.warmup)
    bounds = {
        f"the longest of {batch.n} / (1 + {batch.warmup:g}) batches in flight": flow,
        "all responses, as many at a time as fit": waves * lengths.mean,
    }
    if batch.waits_for_old is not None:
        said = f"the longest of {batch.rollouts} / {batch.waits_for_old} versions that it may span"
        bounds[said] = longest / batch.waits_for_old
    said, steps = max(bounds.items(), key=lambda bound: bound[1])
    return steps, said
