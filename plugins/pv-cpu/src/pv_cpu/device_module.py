"""The namespace that verl gets where it expects ``torch.cuda``."""

import types

import psutil
import torch

__all__ = ["cpu_module"]


class CpuDeviceModule(types.ModuleType):
    """``torch.cuda`` as far as verl uses it: queries answer for the host, the rest does nothing.

    ``torch.cpu`` itself will not do: it has no ``memory_allocated``, ``empty_cache`` or RNG state,
    which ``utils/profiler/performance.py:49``, ``utils/checkpoint/checkpoint_manager.py:208`` and
    others call on it. A name that is not here is looked up in ``torch.cpu``.
    """

    def __getattr__(self, name: str):
        return getattr(torch.cpu, name)

    def is_available(self) -> bool:
        """False, so that ``utils/memory_utils.py:42`` and its like return at once."""
        return False

    def _nothing(self, *args: object, **kwargs: object) -> None:
        return None

    def _zero(self, *args: object, **kwargs: object) -> int:
        return 0

    empty_cache = synchronize = set_device = ipc_collect = reset_peak_memory_stats = _nothing
    memory_allocated = memory_reserved = max_memory_allocated = max_memory_reserved = _zero

    def mem_get_info(self, *args: object) -> tuple[int, int]:
        """(free, total) bytes of the host's memory."""
        memory = psutil.virtual_memory()
        return memory.available, memory.total

    def get_device_name(self, *args: object) -> str:
        """The key of a CPU in ``utils/flops_counter.py``."""
        return "CPU"

    def current_device(self) -> str:
        return "cpu"

    def device_count(self) -> int:
        return 1

    def get_rng_state(self, *args: object) -> torch.Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, *args: object) -> None:
        torch.set_rng_state(state)

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    manual_seed_all = manual_seed


cpu_module = CpuDeviceModule("pv_cpu.cpu_module")
