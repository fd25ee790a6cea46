"""FSDP2's ``CPUOffloadPolicy`` never pins memory.

Symptom without it: ``RuntimeError: Cannot access accelerator device when none is available`` (or
"Need to provide pin_memory allocator") while the reference model is built:
``workers/engine/fsdp/transformer_impl.py:462`` asks for ``CPUOffloadPolicy(pin_memory=True)`` for
every forward-only engine, and pinning needs an accelerator.

Can go when verl asks the platform whether memory can be pinned.
"""

from __future__ import annotations

from types import ModuleType

from pv_cpu.patches import tools

__all__ = ["MODULE", "NAME", "install", "patch"]

MODULE = "verl.utils.fsdp_utils"
NAME = "CPUOffloadPolicy"


def patch(fsdp_utils: ModuleType) -> None:
    original = tools.attribute(fsdp_utils, NAME)
    if tools.is_patched(original):
        return
    tools.require_parameters(original, "pin_memory")

    class UnpinnedCPUOffloadPolicy(original):
        """Takes ``pin_memory`` and leaves the memory unpinned."""

        def __init__(self, pin_memory: bool = False) -> None:
            super().__init__(pin_memory=False)

    tools.replace_everywhere(fsdp_utils, NAME, tools.mark(UnpinnedCPUOffloadPolicy))


def install() -> None:
    tools.after_import(MODULE, patch)
