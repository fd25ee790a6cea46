"""What the adapter relies on in verl, and the error when it is not so.

Each seam names an attribute and the parameters that we pass or read. tests/verl/test_contract.py pins them
against the installed verl; at run time they are checked before anything is patched.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from pv_rl.errors import VerlError

__all__ = ["SEAMS", "SUPPORTED", "Seam", "problems", "record", "require"]

SUPPORTED = "0.9"
"""The verl release series that this adapter was tried on (0.9.1)."""


@dataclass(frozen=True, kw_only=True)
class Seam:
    """One attribute of verl and the parameter names, in order, that it must begin with."""

    module: str
    attribute: str
    parameters: tuple[str, ...]

    def problem(self, module: ModuleType) -> str | None:
        """What is wrong with this seam in the imported `module`, or None."""
        target: object = module
        for name in self.attribute.split("."):
            target = getattr(target, name, None)
            if target is None:
                return f"{self.module} has no {self.attribute}"
        found = tuple(inspect.signature(inspect.unwrap(target)).parameters)  # pyright: ignore[reportArgumentType]
        if found[: len(self.parameters)] != self.parameters:
            wanted = ", ".join(self.parameters)
            return f"{self.module}.{self.attribute}({', '.join(found)}) does not begin with ({wanted})"
        return None


SEAMS = (
    Seam(
        module="verl.trainer.ppo.core_algos",
        attribute="agg_loss",
        parameters=(
            "loss_mat",
            "loss_mask",
            "loss_agg_mode",
            "dp_size",
            "batch_num_tokens",
            "global_batch_size",
            "loss_scale_factor",
        ),
    ),
    Seam(
        module="verl.workers.utils.losses",
        attribute="ppo_loss",
        parameters=("config", "model_output", "data", "dp_group"),
    ),
    Seam(
        module="verl.workers.utils.losses",
        attribute="value_loss",
        parameters=("config", "model_output", "data", "dp_group"),
    ),
    Seam(module="verl.workers.config.actor", attribute="ActorConfig.__post_init__", parameters=("self",)),
    Seam(
        module="verl.trainer.ppo.v1.trainer_base",
        attribute="PPOTrainer._compute_advantage",
        parameters=("self", "batch", "metrics"),
    ),
    Seam(module="verl.trainer.ppo.v1.trainer_base", attribute="tq.kv_batch_get", parameters=()),
    Seam(module="verl.trainer.ppo.v1.trainer_base", attribute="tq.kv_batch_put", parameters=()),
    Seam(
        module="verl.trainer.ppo.ray_trainer",
        attribute="RayPPOTrainer._update_actor",
        parameters=("self", "batch"),
    ),
)

_recorded: list[str] = []


def problems(module: ModuleType) -> list[str]:
    """What is wrong with the seams of one imported module."""
    return [text for seam in SEAMS if seam.module == module.__name__ and (text := seam.problem(module))]


def record(problem: str) -> None:
    """Keep a problem until somebody needs the adapter."""
    if problem not in _recorded:
        _recorded.append(problem)


def version_problem() -> str | None:
    """Why the installed verl is not one of `SUPPORTED`, or None."""
    installed = verl_version()
    if installed == SUPPORTED or installed.startswith(SUPPORTED + "."):
        return None
    return f"verl {installed} is installed and the adapter serves verl {SUPPORTED}.x"


def verl_version() -> str:
    """The installed verl's version; `?` where it carries none."""
    try:
        return version("verl")
    except PackageNotFoundError:
        return "?"


def require(spec: str) -> None:
    """Make sure that a config may name one of our modes, in this process.

    Raises:
        VerlError: (a RuntimeError) with every problem, if the adapter cannot serve this verl.
    """
    if not _recorded:
        for name in dict.fromkeys(seam.module for seam in SEAMS):
            try:
                importlib.import_module(name)  # runs our hook of that module, which records its problems
            except ImportError as error:
                record(f"{name} cannot be imported: {error}")
    if _recorded:
        raise VerlError(
            f"loss_agg_mode={spec} needs pv-rl's adapter, which cannot serve this verl ({verl_version()}): "
            + "; ".join(_recorded)
            + f". Install verl {SUPPORTED}.x, or a pv-rl that knows this one, or use one of verl's own modes."
        )
