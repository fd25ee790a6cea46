"""Driver of prime-rl: its batch of the orchestrator, packing, distribution over ranks and loss, on the CPU.

Of a clone at the commit of `VERSION`, named by PV_TRAINERS_PRIME_RL. What is not prime-rl's own:

- stubs of the packages in STUBS, which the called functions do not use;
- episodes and traces are plain objects, and a row's advantages are given as samples, not scored;
- `train()` is one function for a GPU, so its count of tokens, its log-probs and its sum over ranks are written again;
  ranks are called one after the other;
- packed sequences go through the model one at a time in the place of flash attention.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from clones import clone
from grid.oracle import Loss
from trainer_grid import Step
from transformers import PreTrainedModel

NAME = "prime-rl"
VERSION = "559b44772e471d1538537b8805cc77f3824a5e64"
OWN = {"filter_zero_advantages=false": "dapo@batch", "filter_zero_advantages=true": ""}
"""By the setting of `orchestrator.train`. The default, true, divides by the tokens with an advantage other than 0."""
DEFAULT = "filter_zero_advantages=true"

STUBS = (
    "beartype",
    "jaxtyping",
    "openai",
    "pydantic_config",
    "renderers",
    "setproctitle",
    "tenacity",
    "verifiers",
)
with clone("PV_TRAINERS_PRIME_RL", "src", "packages/prime-rl-configs/src", stubs=STUBS) as ROOT:
    from prime_rl.configs.trainer import CustomLossConfig, DefaultLossConfig, IPOLossConfig
    from prime_rl.entrypoints import orchestrator, rl
    from prime_rl.orchestrator import train_sink
    from prime_rl.trainer.batch import build_bin_cost, prepare_batch
    from prime_rl.trainer.rl import loss as rl_loss
    from prime_rl.trainer.rl.data import DataLoader
    from prime_rl.transports.rollouts.types import MicroBatch, TrainingSample

LAUNCHERS = (rl, orchestrator)
COLLECT = train_sink.TrainSink.process_batch
"""As it comes, before a weighting is installed."""
SEQ_LEN = 4096


def surrogate(inputs: Any, loss: Loss) -> Any:
    """A custom loss, as a user writes one: clipped surrogates of `grid.oracle.policy_loss`."""
    log_ratio, advantages = inputs.trainer_logprobs - inputs.inference_logprobs, inputs.advantages
    low, high = 1 - loss.clip_low, 1 + loss.clip_high
    if loss.policy == "gspo":
        log_ratio = (log_ratio * inputs.loss_mask).sum() / inputs.loss_mask.sum().clamp(min=1)
    ratio = log_ratio.exp()
    if loss.policy == "cispo":
        losses = -ratio.clamp(low, high).detach() * advantages * inputs.trainer_logprobs
    else:
        losses = -torch.minimum(ratio * advantages, ratio.clamp(low, high) * advantages)
        if loss.policy == "vanilla":
            losses = torch.where(advantages < 0, losses.minimum(-loss.clip_c * advantages), losses)
    return rl_loss.LossOutputs(loss=losses[inputs.loss_mask].sum(), metrics={})


def make_loss(kind: str = "custom", **settings: Any) -> Callable[..., Any]:
    """`setup_rl_loss_fn` of `[trainer.loss] type = kind`."""
    config = object.__new__(
        {"custom": CustomLossConfig, "default": DefaultLossConfig, "ipo": IPOLossConfig}[kind]
    )
    if kind == "custom":
        settings = {"import_path": "drivers.prime_rl.surrogate", "kwargs": settings}
    vars(config).update(settings)
    return rl_loss.setup_rl_loss_fn(config)


def make_samples(step: Step, turns: int = 1) -> list[list[TrainingSample]]:
    """One trace a row, of `turns` samples (branches), each of which trains its share of the response."""
    traces = []
    for row in step.rows:
        prompt, length = len(row.prompt), len(row.response)
        samples = []
        for turn in range(turns):
            share = [bool(m) and t * turns // length == turn for t, m in enumerate(row.mask)]
            samples.append(
                TrainingSample(
                    token_ids=[*row.prompt.tolist(), *row.response.tolist()],
                    mask=[False] * prompt + share,
                    logprobs=[0.0] * prompt + row.old_log_probs.tolist(),
                    temperatures=[1.0] * (prompt + length),
                    env_name="env",
                    advantages=[0.0] * prompt + row.advantages.tolist(),
                )
            )
        traces.append(samples)
    return traces


def make_sink(
    step: Step, traces: list[list[TrainingSample]], *, filtered: bool, seq_len: int = SEQ_LEN
) -> Any:
    """A TrainSink with the rows of a step collected, and `mini_rows` a batch."""
    sink = object.__new__(train_sink.TrainSink)
    sink.config = SimpleNamespace(seq_len=seq_len, train=SimpleNamespace(filter_zero_advantages=filtered))
    sink.batch_size, sink.token_batch_size, sink.pending_tokens = (
        step.case.mini_rows or len(step.rows),
        None,
        0,
    )
    sink.pending_episodes = train_sink.TrainEpisodes()
    sink.pending_batch, sink.episode_by_trace = {}, {}
    for number, (row, samples) in enumerate(zip(step.rows, traces, strict=True)):
        if row.mask.any():  # an errored trace never comes to the batch
            episode = SimpleNamespace(id=str(number), group=SimpleNamespace(id=row.group), traces=[])
            episode.model_copy = lambda update, episode=episode: episode
            sink.pending_batch[str(number)], sink.episode_by_trace[str(number)] = samples, episode
    return sink


def gradients(
    model: PreTrainedModel,
    step: Step,
    mode: str,
    *,
    loss_fn: Callable[..., Any] | None = None,
    filtered: bool = True,
    seq_len: int = SEQ_LEN,
    turns: int = 1,
) -> list[torch.Tensor]:
    """See `trainer_grid.Driver`. prime-rl makes one update of each batch; `mini_rows` are the traces of a batch."""
    if mode in OWN:
        filtered = mode.endswith("=true")
        train_sink.TrainSink.process_batch = COLLECT
    else:
        from pv_trainers.prime_rl import install

        train_sink.TrainSink.process_batch = COLLECT
        install(mode)
    sink = make_sink(step, make_samples(step, turns), filtered=filtered, seq_len=seq_len)
    loss_fn = loss_fn or make_loss(loss=step.case.loss)
    updates = []
    try:
        while sink.pending_batch:
            batch = sink.process_batch()
            grid = prepare_batch(
                batch.samples, seq_len, step.case.ranks, build_bin_cost(None), pad_to_multiple_of=8
            )
            updates.append(train(model, grid, loss_fn))
    finally:
        train_sink.TrainSink.process_batch = COLLECT
    return updates


def train(model: PreTrainedModel, grid: list[list[MicroBatch]], loss_fn: Callable[..., Any]) -> torch.Tensor:
    """A step of `train()` on all ranks: its count of members, and its sum of gradients over ranks."""
    ranks = [[DataLoader._micro_batch_to_tensor(object(), micro) for micro in rank] for rank in grid]  # pyright: ignore[reportArgumentType]
    members = 0
    for micro in (micro for rank in ranks for micro in rank):
        mask, weights = micro["loss_mask"], micro["rl_weights"]
        members += int((mask & (weights != 0)).sum()) if weights is not None else int(mask.sum())
    model.zero_grad()
    for micro in (micro for rank in ranks for micro in rank):
        tokens, sizes = micro["input_ids"], micro["sequence_lengths"]
        logits = torch.cat([model(input_ids=part).logits for part in tokens.split(sizes, dim=1)], dim=1)
        log_probs = torch.log_softmax(logits.float(), dim=-1)
        labels = rl_loss.shift_tensor_left(tokens)
        log_probs = rl_loss.shift_tensor_right(log_probs.gather(-1, labels[..., None])[..., 0])
        weights = micro["rl_weights"]
        loss, _ = rl_loss.compute_loss(
            trainer_logprobs=log_probs[0].split(sizes),
            inference_logprobs=micro["inference_logprobs"][0].split(sizes),
            ref_logprobs=None,
            advantages=micro["advantages"][0].split(sizes),
            loss_mask=micro["loss_mask"][0].split(sizes),
            rl_weights=None if weights is None else weights[0].split(sizes),
            ce_weights=None,
            ref_kl_weights=None,
            rl_loss_fn=loss_fn,
            rl_scale=max(members, 1),
            ce_scale=1,
            ref_kl_scale=1,
        )
        loss.backward()
    return torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()])
