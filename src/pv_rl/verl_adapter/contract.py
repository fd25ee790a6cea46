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
from typing import TYPE_CHECKING

from pv_rl.errors import VerlError

if TYPE_CHECKING:
    from pv_rl.losses import LossMode

__all__ = ["SEAMS", "SUPPORTED", "Seam", "problems", "record", "require"]

SUPPORTED = "0.9"
"""The verl release series that this adapter serves; tests/verl/test_versions.py holds it to each release."""


@dataclass(frozen=True, kw_only=True)
class Seam:
    """One attribute of verl and the parameter names, in order, that it must begin with."""

    module: str
    attribute: str
    parameters: tuple[str, ...] = ()
    trainer: bool = False
    """Belongs to one of verl's trainers, which only scope `prompt` needs."""

    def problem(self, module: ModuleType) -> str | None:
        """What is wrong with this seam in the imported `module`, or None."""
        target: object = module
        for name in self.attribute.split("."):
            target = getattr(target, name, None)
            if target is None:
                return f"{self.module} has no {self.attribute}"
        if not self.parameters:
            return None
        found = tuple(inspect.signature(inspect.unwrap(target)).parameters)  # pyright: ignore[reportArgumentType]
        if found[: len(self.parameters)] != self.parameters:
            wanted = ", ".join(self.parameters)
            return f"{self.module}.{self.attribute}({', '.join(found)}) does not begin with ({wanted})"
        return None


_OF_BOTH = """
    fit(self); _save_checkpoint(self); _load_checkpoint(self);
    _maybe_log_val_generations(self, inputs, outputs, scores);
    _val_metrics_update(self, data_sources, sample_uids, reward_extra_infos_dict, sample_turns)"""
_WORKERS = {
    "verl.utils.config": "validate_config(config)",
    "verl.trainer.ppo.core_algos": """agg_loss(loss_mat, loss_mask, loss_agg_mode, dp_size, batch_num_tokens,
        global_batch_size, loss_scale_factor)""",
    "verl.workers.utils.losses": """
        ppo_loss(config, model_output, data, dp_group); value_loss(config, model_output, data, dp_group);
        Metric(aggregation, value); AggregationType.SUM; AggregationType.MAX; AggregationType.MIN""",
    "verl.trainer.distillation.losses": "distillation_loss(config, distillation_config, model_output, data)",
    "verl.workers.engine_workers": """
        TrainingWorker.train_batch(self, data); tu.assign_non_tensor; register; Dispatch.ONE_TO_ALL;
        ActorRolloutRefWorker.load_checkpoint(self, local_path, hdfs_path, del_local_after_load)""",
    "verl.workers.config.actor": "ActorConfig.__post_init__(self)",
    "verl.workers.config.critic": "CriticConfig.__post_init__(self)",
}
_TRAINERS = {
    "verl.utils.tracking": """
        Tracking.__init__(self, project_name, experiment_name, default_backend, config);
        Tracking.log(self, data, step, backend)""",
    "verl.trainer.ppo.v1.trainer_base": """
        PPOTrainer._compute_advantage(self, batch, metrics); PPOTrainer.step(self, metrics, timing_raw);
        PPOTrainer._update_actor(self, batch, metrics); PPOTrainer._update_critic(self, batch, metrics);
        tq.kv_batch_get; tq.kv_batch_put; tu.get_tensordict;"""
    + _OF_BOTH.replace(" _", " PPOTrainer._").replace("fit", "PPOTrainer.fit"),
    "verl.trainer.ppo.ray_trainer": """
        compute_advantage(data); DataProto;
        RayPPOTrainer._update_actor(self, batch); RayPPOTrainer._update_critic(self, batch);"""
    + _OF_BOTH.replace(" _", " RayPPOTrainer._").replace("fit", "RayPPOTrainer.fit"),
    "verl.experimental.separation.ray_trainer": "SeparateRayPPOTrainer.fit(self)",
    "verl.experimental.one_step_off_policy.ray_trainer": "OneStepOffRayTrainer.fit(self)",
    "verl.experimental.reward_loop.reward_loop": """
        RewardLoopManager._init_reward_loop_workers(self); RewardLoopWorker.compute_score(self, data); ray.remote""",
}


def _seam(module: str, text: str, trainer: bool) -> Seam:
    attribute, _, parameters = text.strip().rstrip(")").partition("(")
    names = tuple(name.strip() for name in parameters.split(",") if name.strip())
    return Seam(module=module, attribute=attribute, parameters=names, trainer=trainer)


SEAMS = tuple(
    _seam(module, text, trainer)
    for trainer, modules in ((False, _WORKERS), (True, _TRAINERS))
    for module, texts in modules.items()
    for text in texts.split(";")
)

_recorded: dict[str, bool] = {}
"""Problem to whether it is a trainer's, in the order in which they were met."""


def problems(module: ModuleType) -> list[str]:
    """What is wrong with the seams of one imported module."""
    return [text for seam in SEAMS if seam.module == module.__name__ and (text := seam.problem(module))]


def record(problem: str, *, module: str | None = None) -> None:
    """Keep a problem until somebody needs the adapter, and the module that it is about if it is about one."""
    _recorded.setdefault(problem, any(seam.trainer for seam in SEAMS if seam.module == module))


def version_problem() -> str | None:
    """Why the installed verl is not one of `SUPPORTED`, or None."""
    installed = verl_version()
    if f"{installed}.".startswith(f"{SUPPORTED}."):
        return None
    return f"verl {installed} is installed and the adapter serves verl {SUPPORTED}.x"


def verl_version() -> str:
    """The installed verl's version; `?` where it carries none."""
    try:
        return version("verl")
    except PackageNotFoundError:
        return "?"


def require(mode: LossMode) -> None:
    """Make sure that a config may name this mode, in this process; a `VerlError` names every problem if not."""
    what = f"loss_agg_mode={mode.spec}"
    _require(what, trainers=mode.scope == "prompt", instead="use one of verl's own modes")


def require_rewards() -> None:
    """The same for a reward of ours."""
    _require("a reward of pv_rl.rewards", trainers=True, instead="use a reward function of your own")


def _require(what: str, *, trainers: bool, instead: str) -> None:
    # A trainer that cannot be imported (it lacks a package, or verl has dropped it) cannot run either, so it is no
    # problem; one that has changed is.
    seams = () if version_problem() else SEAMS  # a verl that is not ours to serve has seams of its own
    needed = {seam.module: seam.trainer for seam in seams if trainers or not seam.trainer}
    for name, trainer in needed.items():
        try:
            importlib.import_module(name)  # runs our hook of that module, which records its problems
        except ImportError as error:
            if not trainer:
                record(f"{name} cannot be imported: {error}", module=name)
    found = [problem for problem, trainer in _recorded.items() if trainers or not trainer]
    if found:
        raise VerlError(
            f"{what} needs pv-rl's adapter, which cannot serve this verl ({verl_version()}): "
            + "; ".join(found)
            + f". Install verl {SUPPORTED}.x, or a pv-rl that knows this one, or {instead}."
        )
