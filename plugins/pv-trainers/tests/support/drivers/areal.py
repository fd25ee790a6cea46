"""AReaL 1.0.4 on the CPU: its FSDP actor from trajectories with advantages to the gradient of each mini-batch.

AReaL's own: `FSDPPPOActor.ppo_update` with the mini-batches of `PPOActor`, `FSDPEngine.train_batch` with its packed and
padded micro-batches and its total loss weight over ranks, `grpo_loss_fn`, and its controller's partition. Ours: ranks
are forked processes of a gloo group, whose gradients are averaged as FSDP does; a GPT-2 that tells packed rows apart by
their positions; padding to 32 tokens and not to 256, for speed. uvloop, numba's compiler, torch.compile and
`areal.experimental` are stubs.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import logging
import multiprocessing
import sys
import tempfile
import traceback
import types
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from grid.cases import Case
from grid.oracle import Row
from trainer_grid import Step, beside
from transformers import PreTrainedModel

from pv_trainers.areal import Weighted

NAME = "AReaL"
VERSION = "1.0.4"
OWN = {"token mean": "dapo@batch", "token mean, M2PO": ""}
DEFAULT = "token mean"

PACKAGES = ("areal", "areal.engine", "areal.infra", "areal.infra.rpc", "areal.trainer", "areal.trainer.ppo")
"""Their __init__ would import servers and clients; the modules inside them are AReaL's."""


class Stub(types.ModuleType):
    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of `areal.experimental`, empty."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if f"{name}.".startswith("areal.experimental."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return Stub(spec.name)

    def exec_module(self, module: types.ModuleType) -> None: ...


def load() -> types.SimpleNamespace:
    """The modules of AReaL that are used."""
    beside("areal-1.0.4")
    folder = Path(sys.prefix) / "beside" / "areal-1.0.4"
    for name in PACKAGES:
        sys.modules[name] = Stub(name)
        sys.modules[name].__path__ = [str(folder.joinpath(*name.split(".")))]
    stubs = {"numba": types.ModuleType("numba"), "uvloop": Stub("uvloop")}
    stubs["numba"].njit = lambda function: function
    stubs = {name: stub for name, stub in stubs.items() if name not in sys.modules}
    sys.modules.update(stubs)
    sys.meta_path.insert(0, Stubs())
    # Its own replaces all loggers of the process, and those of other tests with them.
    importlib.import_module("areal.utils.logging").getLogger = lambda name=None, *_, **__: logging.getLogger(
        name
    )
    with mock.patch.object(torch, "compile", lambda function=None, **_: function or (lambda inner: inner)):
        names = (
            "engine.fsdp_engine",
            "trainer.ppo.actor",
            "api.cli_args",
            "utils.seqpack",
            "utils.stats_tracker",
        )
        modules = [
            importlib.import_module(f"areal.{name}") for name in (*names, "utils.functional.functional")
        ]
    for name in stubs:  # others in this process may look for the real ones
        del sys.modules[name]
    importlib.import_module("areal.utils.data").N_TOKENS_PER_PAGE = 32
    for name in ("PPOActor", "CLIArgs", "PlatformInit"):
        logging.getLogger(name).setLevel("ERROR")
    return types.SimpleNamespace(**{module.__name__.rpartition(".")[2]: module for module in modules})


areal = load()


class Recorded(areal.fsdp_engine.FSDPPPOActor):
    """Keeps the rows and the gradient of each update in place of an optimizer."""

    def train_batch(self, input_: dict[str, Any], loss_fn: Any, loss_weight_fn: Any) -> Any:
        self.rows.append(input_.pop("row_id")[:, 0].tolist())
        return super().train_batch(input_, loss_fn, loss_weight_fn)

    def optimizer_zero_grad(self) -> None:
        self.packed.model.zero_grad()

    def optimizer_step(self) -> dict[str, float]:
        parts = [parameter.grad.reshape(-1).double() for parameter in self.packed.model.parameters()]
        self.gradients.append(torch.cat(parts))
        return {}


class Packed(torch.nn.Module):
    """A transformers model with the keywords that AReaL passes to FlashAttention: positions tell rows apart."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, position_ids: torch.Tensor, **rest: Any) -> Any:
        return self.model(input_ids=input_ids, position_ids=position_ids, use_cache=False)


def configure(case: Case, mode: str, rows: int) -> Any:
    """The case as a user of AReaL would write it; `rows` are those of the rank with the fewest."""
    if case.loss.policy not in ("vanilla", "gspo") or case.loss.kl or case.epochs > 1:
        raise ValueError(f"{case}: AReaL has PPO and GSPO, its KL is in the rewards, and a step is one epoch")
    updates = len(case.lengths) // (case.mini_rows or len(case.lengths))
    micro_rows = case.micro_rows or rows
    return areal.cli_args.PPOActorConfig(
        experiment_name="grid",
        trial_name="grid",
        ppo_n_minibatches=updates,
        mb_spec=areal.cli_args.MicroBatchSpec(
            n_mbs=max(1, rows // updates // micro_rows),
            max_tokens_per_mb=None if case.micro_rows else case.micro_tokens,
        ),
        eps_clip=case.loss.clip_low,
        eps_clip_higher=case.loss.clip_high,
        c_clip=case.loss.clip_c if case.loss.policy == "vanilla" else None,
        importance_sampling_level="sequence" if case.loss.policy == "gspo" else "token",
        use_decoupled_loss="M2PO" in mode,
        m2_threshold=0.04 if "M2PO" in mode else None,
        kl_ctl=0.0,
    )


def trajectory(rows: list[Row], numbers: list[int]) -> dict[str, torch.Tensor]:
    """What AReaL's workflow returns of the samples of a prompt, padded on the right."""
    pad = torch.nn.utils.rnn.pad_sequence
    prompts = [torch.zeros(len(row.prompt)) for row in rows]
    inputs = [torch.cat([row.prompt, row.response]) for row in rows]

    def aligned(name: str) -> torch.Tensor:
        values = [getattr(row, name).float() for row in rows]
        return pad([torch.cat(pair) for pair in zip(prompts, values, strict=True)], batch_first=True)

    input_ids = pad(inputs, batch_first=True)
    return {
        "input_ids": input_ids,
        "attention_mask": pad([torch.ones_like(row) for row in inputs], batch_first=True),
        "loss_mask": aligned("mask").long(),
        "logprobs": aligned("old_log_probs"),
        "behaviour": aligned("ref_log_probs"),
        "given": aligned("advantages"),
        "rewards": torch.stack([row.advantages[0] for row in rows]),
        "row_id": torch.tensor(numbers)[:, None].expand(input_ids.shape),
    }


def shares(step: Step) -> list[list[list[int]]]:
    """Rows of each trajectory of each rank: whole trajectories, by AReaL's partition where their number divides."""
    groups: dict[Any, list[int]] = {}
    for i, row in enumerate(step.rows):
        groups.setdefault(row.group, []).append(i)
    members, ranks = list(groups.values()), step.case.ranks
    tokens = [sum(len(step.rows[i].prompt) + len(step.rows[i].response) for i in group) for group in members]
    parts = [list(range(rank, len(members), ranks)) for rank in range(ranks)]
    if len(members) % ranks == 0:
        parts = areal.seqpack.balanced_greedy_partition(tokens, ranks)
    return [[members[group] for group in part] for part in parts]


def run_rank(
    model: PreTrainedModel, step: Step, mode: str, share: list[list[int]]
) -> list[tuple[list[int], Any]]:
    """Rows and gradient of each update, on one rank."""
    kind = Recorded if mode in OWN else type("Actor", (Weighted, Recorded), {"mode": mode})
    config = configure(step.case, mode, min(sum(map(len, part)) for part in shares(step)))
    with mock.patch.object(areal.fsdp_engine.AutoConfig, "from_pretrained", return_value=model.config):
        actor = kind(config)
    actor.rows, actor.gradients, actor.packed = [], [], Packed(model)
    actor.model, actor.optimizer, actor._version = actor.packed, None, 0
    actor.device, actor.dp_group = torch.device("cpu"), None
    actor.logger = types.SimpleNamespace(info=lambda text: None)
    actor.parallel_helper = types.SimpleNamespace(sp_size=1, tp_size=1, dp_size=step.case.ranks)
    data = actor.compute_advantages([trajectory([step.rows[i] for i in item], item) for item in share])
    for item in data:  # its own are the reward at each token
        item["advantages"] = torch.roll(item.pop("given"), -1, dims=-1)
        behaviour = torch.roll(item.pop("behaviour"), -1, dims=-1)
        if config.use_decoupled_loss:
            item["prox_logp"], item["logprobs"] = item["logprobs"], behaviour
    actor.ppo_update(data)
    areal.stats_tracker.export_all()
    return list(zip(actor.rows, actor.gradients, strict=True))


def updates(model: PreTrainedModel, step: Step, mode: str) -> list[tuple[list[int], torch.Tensor]]:
    """Rows and gradient of each update, all ranks together."""
    parts = shares(step)
    if len(parts) == 1:
        with (
            mock.patch.object(dist, "get_rank", return_value=0),
            mock.patch.object(dist, "get_world_size", return_value=1),
            mock.patch.object(dist, "all_reduce"),
            mock.patch.object(
                dist, "all_gather_object", lambda out, mine, group=None: out.__setitem__(0, mine)
            ),
        ):
            return run_rank(model, step, mode, parts[0])
    context, pipes = multiprocessing.get_context("fork"), []
    with tempfile.NamedTemporaryFile() as file:
        for rank, part in enumerate(parts):
            ours, theirs = context.Pipe()
            arguments = (theirs, file.name, rank, len(parts), (model, step, mode, part))
            context.Process(target=run_process, args=arguments, daemon=True).start()
            pipes.append(ours)
        found = [pipe.recv() for pipe in pipes]
    if errors := [part for part in found if isinstance(part, str)]:
        raise RuntimeError("\n".join(errors))
    return [
        (
            [i for rows, _ in ranks for i in rows],
            torch.from_numpy(sum(part for _, part in ranks)) / len(ranks),
        )
        for ranks in zip(*found, strict=True)
    ]


def run_process(pipe: Any, file: str, rank: int, ranks: int, arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=ranks)
    try:
        pipe.send([(rows, gradient.numpy()) for rows, gradient in run_rank(*arguments)])
    except BaseException:  # noqa: BLE001 - goes to the test, whatever it is
        pipe.send(traceback.format_exc())


def gradients(model: PreTrainedModel, step: Step, mode: str) -> list[torch.Tensor]:
    """As `trainer_grid.Driver`."""
    return [gradient for _, gradient in updates(model, step, mode)]
