"""Time of a step: generation, training, weight sync, judge."""

from __future__ import annotations

from dataclasses import dataclass

from pv_runs.plan.memory import kv_cache, weight_shard_bytes
from pv_runs.plan.ranges import between
from pv_runs.plan.setup import Setup
from pv_runs.plan.tokens import Counts, lengths_of, micro_batch_rows, padding

__all__ = [
    "Duration",
    "StepTime",
    "forward_work",
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
    one_gpu: bool = False
    """It is a part of training on one GPU."""

    @property
    def between(self) -> tuple[float, float]:
        """Seconds, as far off as such a part was measured to be."""
        return between(self.name, self.seconds, self.one_gpu)


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
    first: Duration | None
    """What the first step takes longer; None without a reference model."""
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
        return between("a step", self.seconds, one_gpu=False)


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
        first=first_step(setup),
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


@dataclass(frozen=True, kw_only=True)
class Forward:
    """One forward over all rows of a step."""

    tokens: float
    """D, padding included."""
    matrices: float
    """`2 N D` operations; N are the parameters that a token is multiplied with."""
    attention: float
    """`2 L A sum s^2` operations, half of the s x s pairs of a row with A values a token, in each of L layers."""
    masked: bool
    """The attention takes a mask, and so no flash kernel."""


def forward_work(setup: Setup, tokens: int) -> Forward:
    """Operations of a forward (arXiv 2001.08361; verl/utils/flops_counter.py has three times this for an update).

    Where rows are padded, D and s are those of the padded rows. An attention that takes a mask computes a packed
    micro-batch as one row. A micro-batch of one row needs no mask.

    Args:
        setup: the run.
        tokens: of a micro-batch, at most; longer ones have more padding.
    """
    assumed, batch, model, lengths = setup.assumed, setup.batch, setup.model, lengths_of(setup)
    prompt, response, padded = assumed.prompt_tokens, lengths.mean, padding(setup, tokens)
    computed = batch.rollouts * (prompt + response) * padded
    masked = setup.training.masks and micro_batch_rows(setup, tokens) >= 2
    squares = batch.rollouts * (prompt**2 + 2 * prompt * response + lengths.second_moment)
    if masked and setup.training.remove_padding:
        count = setup.training.data_parallel * micro_batches(setup, batch.rollouts, tokens)
        squares = computed**2 / count
    elif padded > 1:
        squares = computed**2 / batch.rollouts
    return Forward(
        tokens=computed,
        matrices=2 * model.matmul_parameters * computed,
        attention=2 * model.num_hidden_layers * model.query_width * squares,
        masked=masked,
    )


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
    model come for each micro-batch while the one before computes, because its offloading is FSDP's own; with
    `offload_policy` so do the policy's, for the forward and the backward, and its gradients go back, which is waited
    for.
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
        streamed = training.reference_bytes * shard * reference
        tokens = training.reference_tokens
        gathered = reference * gather
        times.append(_passes(setup, "reference log-probs", 1, tokens, reference, gathered, 0, streamed))
    passes = (4 if training.checkpointing else 3) * batch.ppo_epochs
    moved = 2 * weights * (training.param_offload + 2 * training.optimizer_offload)
    moved += 3 * weights * updates * training.stays_on_host
    gathered = updates * backward + scattered * scatter
    times.append(_passes(setup, "update", passes, training.update_tokens, updates, gathered, moved))
    return tuple(times)


def _passes(
    setup: Setup,
    name: str,
    passes: int,
    tokens: int,
    count: int,
    gathered: float,
    moved: float,
    streamed: float = 0.0,
) -> Duration:
    """The longest of computing, what FSDP gathers meanwhile and what it streams from the host; then what waits.

    A forward computes for `2 N D / (GPUs peak MFU) + 2 L A sum s^2 / (GPUs peak MFU of attention) + t L D / GPUs`
    seconds; t is `layer_token_us`.
    """
    training, assumed, peak = setup.training, setup.assumed, setup.cluster.gpu.bf16_tflops * 1e12
    work, gpus, layers = forward_work(setup, tokens), training.gpus, setup.model.num_hidden_layers
    speed = assumed.masked_attention_mfu if work.masked else assumed.attention_mfu
    matrices, attention, rest = (
        passes * work.matrices / (gpus * peak * assumed.train_mfu),
        passes * work.attention / (gpus * peak * speed),
        passes * work.tokens * layers * assumed.layer_token_us / 1e6 / gpus,
    )
    compute = matrices + attention + rest
    rate, link = assumed.gather_gb_s * 1e9, assumed.host_link_gb_s * 1e9
    gathering = gathered / rate if gpus > 1 else 0.0
    longest = max(compute, gathering, streamed / link)
    if longest == compute:
        how = f"{passes} pass{'es' * (passes > 1)} of {work.tokens:,.0f} tokens: matrices {matrices:.1f} + attention "
        how += f"{attention:.1f}{' (with a mask)' * work.masked} + the rest of the layers {rest:.1f}"
    elif longest == gathering:
        how = f"{gathered:.3g} B of weights and gradients in {count} micro-batches / {assumed.gather_gb_s:g} GB/s"
        how += f" (computing: {compute:.1f} s)"
    else:
        how = f"{streamed:.3g} B from the host in {count} micro-batches / {assumed.host_link_gb_s:g} GB/s"
        how += f" (computing: {compute:.1f} s)"
    if moved:
        how += f" + {moved:.3g} B to and from the host / {assumed.host_link_gb_s:g} GB/s"
    return Duration(name, longest + moved / link, how, one_gpu=gpus == 1)


def first_step(setup: Setup) -> Duration | None:
    """`reference_bytes N / S / rate`: what the first step takes longer, because it pins the reference model's weights.

    None without a reference model.
    """
    training, rate = setup.training, setup.assumed.pin_gb_s
    if not training.reference:
        return None
    size = training.reference_bytes * setup.model.parameters / training.shards
    how = f"{size:.3g} B of the reference model, pinned at {rate:g} GB/s"
    return Duration("the first step, longer by", size / (rate * 1e9), how, one_gpu=training.gpus == 1)
