"""Moving a model between "GPU" and CPU does nothing: it is on the CPU already.

Symptom without it: with ``strategy=fsdp`` saving a checkpoint or syncing weights fails with
``RuntimeError: Invalid device string: 'cpu:cpu'``, because ``utils/fsdp_utils.py:226`` formats the
device as ``f"{name}:{id}"``. With ``strategy=fsdp2`` the moves are copies of a model onto itself.

Can go when verl asks the platform for a ``torch.device``.
"""

from __future__ import annotations

from types import ModuleType

from pv_cpu.patches import tools

__all__ = ["MODULE", "NAMES", "install", "patch"]

MODULE = "verl.utils.fsdp_utils"
NAMES = ("load_fsdp_model_to_gpu", "offload_fsdp_model_to_cpu")


def load_fsdp_model_to_gpu(model: object) -> None:
    """The model is where it has to be."""


def offload_fsdp_model_to_cpu(model: object, empty_cache: bool = True) -> None:
    """The model is where it has to be."""


def patch(fsdp_utils: ModuleType) -> None:
    for replacement in (load_fsdp_model_to_gpu, offload_fsdp_model_to_cpu):
        name = replacement.__name__
        original = tools.attribute(fsdp_utils, name)
        if tools.is_patched(original):
            continue
        tools.require_parameters(original, "model")
        tools.replace_everywhere(fsdp_utils, name, tools.mark(replacement))


def install() -> None:
    tools.after_import(MODULE, patch)
