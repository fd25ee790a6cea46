"""tinker-cookbook: its `prepare_minibatch`, `train_step` and streaming step, with a model on the CPU as the service.

The service is not to be had here: `Service` computes its documented losses in torch from the datums that the cookbook
sends. tinker and chz are installed; the stubs below are only imported.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from types import SimpleNamespace
from unittest import mock

import torch
from grid.oracle import Row
from stubs import stubbed
from torch import Tensor
from trainer_grid import Step, beside
from transformers import PreTrainedModel

with stubbed("blobfile", "pyrage", "termcolor", "tiktoken", "tml_renderers"):
    beside("tinker-cookbook-0.6.1")
    import tinker
    from tinker_cookbook.completers import TokensWithLogprobs
    from tinker_cookbook.rl import train
    from tinker_cookbook.rl.types import (
        PARSE_ERROR_MASKED_METRIC_KEY,
        Trajectory,
        TrajectoryGroup,
        Transition,
    )

    from pv_trainers.tinker import weigh

NAME = "tinker-cookbook"
VERSION = "0.6.1"
OWN = {"sum over tokens": ""}
DEFAULT = "sum over tokens"
_SERVICE = "the service cuts the step, and its documented loss is a sum"
CANNOT = {"two ranks": _SERVICE, "packed by tokens": _SERVICE, "all of it": _SERVICE}

LOSSES = {"vanilla": "ppo", "gspo": "gspo", "cispo": "cispo"}
Updates = list[tuple[list[int], Tensor]]
"""Rows of the step and (parameters,) gradient of each update."""


def gradients(model: PreTrainedModel, step: Step, mode: str) -> list[Tensor]:
    """As `trainer_grid.Driver.gradients`, at mass 1 for a spec of ours."""
    return [gradient for _, gradient in run_updates(model, step, mode)]


def run_updates(
    model: PreTrainedModel, step: Step, mode: str, *, mean: bool = True, **settings: object
) -> Updates:
    """As `gradients`, with the rows of each update.

    Args:
        mean: as `pv_trainers.tinker.weigh` takes it.
        settings: of `train.Config`, for example `loss_fn` or `stream_minibatch_config`.
    """
    case, groups = step.case, make_groups(step.rows)
    config = make_config(
        **{
            "num_substeps": len(step.rows) // (case.mini_rows or len(step.rows)),
            "loss_fn": LOSSES[case.loss.policy],
        }
        | settings
    )
    service = Service(model, step)
    with cookbook(service):
        if mode not in OWN:
            weigh(config, mode, mean)
        if config.stream_minibatch_config:
            asyncio.run(_stream(config, service, groups))
        else:
            asyncio.run(_train(config, service, groups))
    return service.updates


def make_config(**settings: object) -> train.Config:
    return train.Config(
        learning_rate=0.0,
        dataset_builder=None,
        model_name="",
        recipe_name="",
        max_tokens=1,
        log_path="",
        **settings,
    )


@contextmanager
def cookbook(service: Service | None = None) -> Iterator[None]:
    """The cookbook without its prints and checkpoints; what `weigh` replaced is put back."""
    publish = mock.AsyncMock(return_value=(None, {}))
    sequence_ratios = service and service.step.case.loss.policy == "gspo"
    with (
        mock.patch.object(train, "compute_advantages", train.compute_advantages),
        mock.patch.object(train, "print_group"),
        mock.patch.object(train, "compute_full_batch_metrics_and_get_sampling_client", publish),
        mock.patch.object(
            train, "_remove_mask", as_sequence_ratio_mask if sequence_ratios else train._remove_mask
        ),
    ):
        yield


def as_sequence_ratio_mask(datum: tinker.Datum) -> tinker.Datum:
    """As recipes/rl_loop.py does for gspo; `rl.train` does not."""
    inputs = dict(datum.loss_fn_inputs)
    return dataclasses.replace(datum, loss_fn_inputs={**inputs, "sequence_ratio_mask": inputs.pop("mask")})


async def _train(config: train.Config, service: Service, groups: list[TrajectoryGroup]) -> None:
    data, _, _ = await train.prepare_minibatch(
        [Builder()] * len(groups), groups, None, None, config.kl_penalty_coef, 0.0, False
    )
    await train.train_step(data, service, 0.0, config.num_substeps, config.loss_fn, config.loss_fn_config)


async def _stream(config: train.Config, service: Service, groups: list[TrajectoryGroup]) -> None:
    queue: asyncio.Queue = asyncio.Queue()
    for group in groups:
        queue.put_nowait(
            train.WrappedTrajectoryGroup(
                trajectory_group=group,
                env_group_builder=Builder(),
                sampling_client_step=0,
                metrics={"time/trajectory_group_worker_loop/total": 0.0},
            )
        )
    await train.do_train_step_streaming_and_get_sampling_client(config, 0, queue, service, None, None, None)


class Builder:
    """What a group's environments are built by, of which only the tags are read."""

    def logging_tags(self) -> list[str]:
        return []


def make_groups(rows: list[Row]) -> list[TrajectoryGroup]:
    """The rows as trajectories, the reward being the advantage.

    Tokens of a tool are the observation of a later turn, and a row that does not count is a turn that the environment
    masked for a parse error.
    """
    return [
        TrajectoryGroup(
            trajectories_G=[make_trajectory(row) for row in members],
            final_rewards_G=[float(row.advantages[0]) for row in members],
            metrics_G=[{} for _ in members],
        )
        for members in (list(rows) for _, rows in groupby(rows, key=lambda row: row.group))
    ]


def make_trajectory(row: Row) -> Trajectory:
    counts = bool(row.mask.any())
    turns, seen = [], row.prompt.tolist()
    for acts, run in groupby(range(len(row.response)), key=lambda t: bool(row.mask[t]) or not counts):
        run = list(run)
        tokens = row.response[run[0] : run[-1] + 1].tolist()
        if acts:
            turns.append(
                Transition(
                    ob=tinker.ModelInput.from_ints(list(seen)),
                    ac=TokensWithLogprobs(tokens, row.old_log_probs[run[0] : run[-1] + 1].tolist()),
                    reward=0.0,
                    episode_done=run[-1] + 1 == len(row.response),
                    metrics={} if counts else {PARSE_ERROR_MASKED_METRIC_KEY: 1.0},
                )
            )
        seen += tokens
    return Trajectory(turns, tinker.ModelInput.from_ints(seen))


class Service:
    """A training client with the losses of https://tinker-docs.thinkingmachines.ai/tinker/losses (read August 2026)."""

    def __init__(self, model: PreTrainedModel, step: Step) -> None:
        self.model, self.step = model, step
        self.sent, self.in_update = 0, 0
        self.updates: Updates = []
        model.zero_grad()

    def forward_backward(
        self, data: list[tinker.Datum], loss_fn: str, loss_fn_config: object
    ) -> asyncio.Future:
        outputs = []
        for datum in data:
            log_probs = self.log_probs(datum)
            self.loss(
                loss_fn, log_probs, {k: v.to_torch() for k, v in datum.loss_fn_inputs.items()}
            ).backward()
            outputs.append({"logprobs": tinker.TensorData.from_torch(log_probs.detach())})
        self.sent += len(data)
        return _done(SimpleNamespace(loss_fn_outputs=outputs))

    def optim_step(self, adam_params: tinker.AdamParams) -> asyncio.Future:
        gradient = torch.cat([parameter.grad.reshape(-1).clone() for parameter in self.model.parameters()])
        self.updates.append((list(range(self.in_update, self.sent)), gradient))
        self.in_update = self.sent
        self.model.zero_grad()
        return _done(SimpleNamespace(metrics=None))

    def log_probs(self, datum: tinker.Datum) -> Tensor:
        logits = self.model(input_ids=torch.tensor([datum.model_input.to_ints()])).logits[0]
        targets = datum.loss_fn_inputs["target_tokens"].to_torch().long()
        return torch.log_softmax(logits, dim=-1).gather(1, targets[:, None])[:, 0]

    def loss(self, name: str, log_probs: Tensor, inputs: dict[str, Tensor]) -> Tensor:
        advantages, low, high = (
            inputs["advantages"],
            1 - self.step.case.loss.clip_low,
            1 + self.step.case.loss.clip_high,
        )
        log_ratios = log_probs - inputs["logprobs"]
        if name == "importance_sampling":
            return -(log_ratios.exp() * advantages).sum()
        if name == "cispo":
            return -(log_ratios.exp().clamp(low, high).detach() * log_probs * advantages).sum()
        if name == "gspo":
            mean = log_ratios.detach()[inputs["sequence_ratio_mask"] != 0].mean()
            log_ratios = mean + log_probs - log_probs.detach()
        ratio = log_ratios.exp()
        return -torch.minimum(ratio * advantages, ratio.clamp(low, high) * advantages).sum()


def _done(result: object) -> asyncio.Future:
    future = asyncio.get_running_loop().create_future()
    future.set_result(result)
    return future
