"""Time of a step: generation, training, weight sync, judge."""

from __future__ import annotations

from dataclasses import dataclass

from pv_runs.plan.memory import kv_cache, weight_shard_bytes
from pv_runs.plan.ranges import between
from pv_runs.plan.setup import Setup
from pv_runs.plan.tokens import Counts, lengths_of, padding

__all__ = [
    "Duration",
    "StepTime",
    "forward_operations",
    "generation_times",
    "micro_batches",
    "step_time",
    "training_times",
]


@dataclass(frozen=True)
class Duration:
    """Seconds of a step."""

    name: str
    seconds: float
    how: str
    """The formula with its numbers put in."""

    @property
    def between(self) -> tuple[float, float]:
        """Seconds, as far off as such a part was measured to be."""
        return between(self.name, self.seconds)


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """An estimate, not a measurement."""

    generation: tuple[Duration, ...]
    training: tuple[Duration, ...]
    sync: Duration
    """New weights for the rollout."""
    judge: Duration | None
    """What a step waits for the judge; None where it does not, or there is none."""
    other: Duration
    """What no GPU computes in."""
    seconds: float
    """Of a step. Validation, checkpoints and the start are not in it."""
    how: str
    """What is added up."""
    run_hours: float | None
    """None where the run's steps are not known."""
    gpu_hours: float | None
    """Of the run, over all GPUs."""
    usd: float | None
    """Of the run's GPUs; None where `plan.usd_per_gpu_hour` is not known."""

    @property
    def between(self) -> tuple[float, float]:
        """Seconds of a step, likewise."""
        return between("a step", self.seconds)


def step_time(setup: Setup, counts: Counts, judged: bool) -> StepTime:
    """Add up.

    - sync, colocate_async: `generation + training + sync + other`, one after the other on the same GPUs.
    - separate_async: `max(generation, training) + sync + other`, at the same time on GPUs of their own.

    The judge is asked about a response as soon as that has ended. In sync the step ends with the longest response,
    whose answer is waited for; otherwise a batch in flight ahead hides it.

    Args:
        setup: the run.
        counts: of a step.
        judged: whether there is a judge.
    """
    batch, assumed = setup.batch, setup.assumed
    generation, training = generation_times(setup), training_times(setup, counts)
    sync = _sync(setup)
    judge = None
    if judged and batch.mode == "sync":
        judge = Duration("judge", assumed.judge_latency_s, "the last response's answer, assumed")
    other = Duration("everything else", assumed.step_overhead_s, "assumed")
    generating, updating = _total(generation), _total(training)
    waited = judge.seconds if judge else 0.0
    rest = sync.seconds + other.seconds
    if batch.separate:
        seconds = max(generating, updating) + rest
        how = (
            f"max(generation {generating:.0f}, training {updating:.0f}) + sync and everything else {rest:.0f}"
        )
    else:
        seconds = generating + waited + updating + rest
        said = f" + judge {waited:.0f}" * bool(judge)
        how = f"generation {generating:.0f}{said} + training {updating:.0f} + sync and everything else {rest:.0f}"
    hours = None if counts.steps is None else counts.steps * seconds / 3600
    gpu_hours = None if hours is None else hours * setup.gpus
    price = assumed.usd_per_gpu_hour
    return StepTime(
        generation=generation,
        training=training,
        sync=sync,
        judge=judge,
        other=other,
        seconds=seconds,
        how=how,
        run_hours=hours,
        gpu_hours=gpu_hours,
        usd=None if gpu_hours is None or price is None else gpu_hours * price,
    )


def _sync(setup: Setup) -> Duration:
    """`N b / bandwidth`, once a step; and offloaded weights come to the GPU and go back."""
    size, rate = setup.model.parameters * setup.rollout.weight_bytes, setup.assumed.sync_gb_s
    training, link = setup.training, setup.assumed.host_link_gb_s
    moved = 2 * training.weight_bytes * setup.model.parameters / training.shards * training.param_offload
    how = f"{size:.3g} B / {rate:g} GB/s" + f" + {moved:.3g} B / {link:g} GB/s" * bool(moved)
    return Duration("sync of the weights", size / (rate * 1e9) + moved / (link * 1e9), how)


def _total(durations: tuple[Duration, ...]) -> float:
    return sum(duration.seconds for duration in durations)


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
    return Duration("prompts", seconds, how)


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
    return Duration("decoding", steps * each + keys / bandwidth, how)


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


def forward_operations(setup: Setup, tokens: int) -> float:
    """`2 N D + 2 L A sum s^2`, floating-point operations of one forward over all rows of a step.

    N are the parameters that a token is multiplied with, D the tokens of prompts and responses. The second term is the
    attention over half of the s x s pairs of a row, with A values a token, in each of the L layers. Where rows are
    padded D and s are those of the padded rows. (arXiv 2001.08361; verl/utils/flops_counter.py has three times this
    for an update, with the input's matrix counted in N.)

    Args:
        setup: the run.
        tokens: of a micro-batch, at most; longer ones have more padding.
    """
    assumed, batch, model, lengths = setup.assumed, setup.batch, setup.model, lengths_of(setup)
    prompt, response, padded = assumed.prompt_tokens, lengths.mean, padding(setup, tokens)
    squares = batch.rollouts * (prompt**2 + 2 * prompt * response + lengths.second_moment)
    if padded > 1:
        squares = batch.rollouts * (padded * (prompt + response)) ** 2
    each = 2 * model.matmul_parameters * batch.rollouts * (prompt + response) * padded
    return each + 2 * model.num_hidden_layers * model.query_width * squares


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
    """Old log-probs, reference log-probs and updates, each with what it moves between a GPU and its host.

    A forward is one pass over the rows; an update is a forward and a backward of twice its work, and one forward more
    with gradient checkpointing. Offloaded weights come and go once a phase (`BaseEngineCtx`). Those of the reference
    model come for each micro-batch, because its offloading is FSDP's own; with `offload_policy` so do the policy's, for
    the forward and the backward, and its gradients go back.
    """
    training, batch, parameters = setup.training, setup.batch, setup.model.parameters
    gather, scatter = 2 * parameters, 4 * parameters
    shard = parameters / training.shards
    weights = training.weight_bytes * shard

    def asked(tokens: int) -> int:
        return batch.sync_step * micro_batches(setup, batch.rollouts / batch.sync_step, tokens)

    old, reference = asked(training.log_prob_tokens), asked(training.reference_tokens)
    rows = batch.n * min(batch.mini_batch, batch.prompts)
    updates = counts.updates * micro_batches(setup, rows, training.update_tokens)
    backward = gather * (1 + training.reshard)
    scattered = counts.updates if training.no_sync else updates
    times: list[Duration] = []
    if training.old_log_prob:
        moved = 2 * weights * training.param_offload + weights * old * training.stays_on_host
        times.append(_passes(setup, "old log-probs", 1, training.log_prob_tokens, old, old * gather, moved))
    if training.reference:
        moved = training.reference_bytes * shard * reference
        tokens = training.reference_tokens
        times.append(_passes(setup, "reference log-probs", 1, tokens, reference, reference * gather, moved))
    passes = (4 if training.checkpointing else 3) * batch.ppo_epochs
    moved = 2 * weights * (training.param_offload + 2 * training.optimizer_offload)
    moved += 3 * weights * updates * training.stays_on_host
    gathered = updates * backward + scattered * scatter
    times.append(_passes(setup, "update", passes, training.update_tokens, updates, gathered, moved))
    return tuple(times)


def _passes(
    setup: Setup, name: str, passes: int, tokens: int, count: int, gathered: float, moved: float
) -> Duration:
    """The longer of `passes x operations / (GPUs peak MFU)` and what FSDP moves meanwhile; then the host's link."""
    training, peak, mfu = setup.training, setup.cluster.gpu.bf16_tflops, setup.assumed.train_mfu
    operations = passes * forward_operations(setup, tokens)
    compute = operations / (training.gpus * peak * 1e12 * mfu)
    rate, link = setup.assumed.gather_gb_s, setup.assumed.host_link_gb_s
    moving = gathered / (rate * 1e9) if training.gpus > 1 else 0.0
    if moving > compute:
        how = f"{gathered:.3g} B of weights and gradients in {count} micro-batches / {rate:g} GB/s"
        how += f" (computing: {compute:.1f} s)"
    else:
        how = (
            f"{passes} pass{'es' * (passes > 1)}, {operations:.3g} operations / ({training.gpus} GPUs x {peak:g}e12 x "
            f"{mfu:g}) (FSDP's traffic: {moving:.1f} s)"
        )
    if moved:
        how += f" + {moved:.3g} B to and from the host / {link:g} GB/s"
    return Duration(name, max(moving, compute) + moved / (link * 1e9), how)
