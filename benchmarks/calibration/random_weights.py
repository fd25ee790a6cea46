"""`actor_rollout_ref.model.external_lib=calibration.random_weights`: verl's models get random weights of their config.

They are made on the device, so that a model of 8B is there in seconds. Importing it also registers `unmasked`.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM

from pv_runs.attention import NAME

DEVICE = "cuda" if torch.version.cuda else "cpu"


def from_config(*_: Any, config: Any, torch_dtype: torch.dtype, **__: Any) -> Any:
    with torch.device(DEVICE):
        torch.manual_seed(0)
        return AutoModelForCausalLM.from_config(config, dtype=torch_dtype)


AutoModelForCausalLM.from_pretrained = staticmethod(from_config)  # pyright: ignore[reportAttributeAccessIssue]
__all__ = ["NAME"]
