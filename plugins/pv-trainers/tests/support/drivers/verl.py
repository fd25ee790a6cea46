"""verl: its actor worker (FSDP2, gloo, real processes), through the ranks of verl's own grid."""

from __future__ import annotations

import functools
from dataclasses import replace
from multiprocessing.util import Finalize

import pytest
import torch
from transformers import PreTrainedModel

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")

from grid.ranks import Ranks
from trainer_grid import Step

NAME = "verl"
VERSION = "0.9.1"
FIXED = "seq-mean-token-sum-norm, loss_scale_factor=60"
OWN = {
    "token-mean": "dapo@batch",
    "token-sum": "",
    "seq-mean-token-mean": "grpo@batch",
    "seq-mean-token-sum": "luspo",
    "seq-mean-token-sum-norm": "dr_grpo:60@batch",
    FIXED: "dr_grpo:60@batch",
}
DEFAULT = "token-mean"


@functools.cache
def _ranks() -> Ranks:
    ranks = Ranks().__enter__()  # its model has the weights of the one that `gradients` is given
    Finalize(
        None, ranks.__exit__, (None, None, None), exitpriority=10
    )  # before child processes are waited for
    return ranks


def gradients(model: PreTrainedModel, step: Step, mode: str) -> list[torch.Tensor]:
    """As `trainer_grid.Driver.gradients`. The workers have a model of their own, with the same weights."""
    case = replace(step.case, spec=mode.partition(",")[0], fixed_width=mode == FIXED)
    advantages = [float(row.advantages[0]) for row in step.rows]
    updates, _ = _ranks().run(case, step.rows, advantages, dtype=str(model.dtype).removeprefix("torch."))
    return [update.gradient for update in updates]
