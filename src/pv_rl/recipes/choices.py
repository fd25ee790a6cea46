"""Config checks for settings that silently undo another one, and for groups that Hydra took for keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pv_rl import recipes
from pv_rl.errors import ConfigError
from pv_rl.plugins import REWARDS
from pv_rl.step_state import StepState

__all__ = [
    "MODE",
    "NAMED",
    "RESPONSES",
    "check_choices",
    "check_groups",
    "check_recipes",
    "command_line",
    "value",
]

MODE = "actor_rollout_ref.actor.loss_agg_mode"
RESPONSES = "actor_rollout_ref.rollout.n"
NAMED = "pkg://pv_rl.rewards.named"


def check_recipes(state: StepState) -> None:
    """Hook: refuse groups that Hydra took for keys, and settings that undo each other."""
    check_groups(state.config)
    check_choices(state.config)


def check_groups(config: Mapping[str, object]) -> None:
    """Refuse `recipe: dapo` at the top of a config, where it would be a word that nobody reads.

    Raises:
        ConfigError: a key named as one of our groups holds the name of one of its options.
    """
    # A config of somebody else may have such a key for its own use.
    added = [one.lstrip("+") for one in command_line() or () if one.startswith("+")]
    for group in recipes.GROUPS:
        value = config.get(group)
        if isinstance(value, str) and value in recipes.options(group) and f"{group}={value}" in added:
            raise ConfigError(
                f"{group}={value} was added to the config as a plain key, so that it does nothing: Hydra does not know "
                f"the group. Add hydra.searchpath=[pkg://pv_rl.hydra_configs]"
                f"{' (and pkg://pv_cpu.hydra_configs)' if value == 'cpu' else ''} to the command line"
            )


def check_choices(config: DictConfig, overrides: Sequence[str] | None = None) -> None:
    """Refuse a config in which one setting undoes another.

    Args:
        config: verl's composed config, of a run of ours or not.
        overrides: Hydra's, with which it was composed; None: those of the command line, where Hydra runs.

    Raises:
        ConfigError: a `loss_agg_mode` that overrides the recipe's, a mode of scope `prompt` with one response a
            prompt, or group filtering by a metric without the veto.
        LossModeError: the recipe's values make no weighting.
    """
    _check_recipe(config, overrides)
    _check_groups_of_one(config)
    _check_group_filter(config)


def command_line() -> Sequence[str] | None:
    """The overrides that the user gave to Hydra, or None where Hydra does not run."""
    from hydra.core.hydra_config import HydraConfig

    return HydraConfig.get().overrides.task if HydraConfig.initialized() else None


def _check_recipe(config: DictConfig, overrides: Sequence[str] | None) -> None:
    """A recipe sets `loss_agg_mode` from its own keys, unless somebody else sets it after that.

    A `loss_agg_mode` on the command line alone is no contradiction: it takes the place of the recipe that a run has by
    default. A config without the group (one that Hydra saved) was checked when it was composed.
    """
    from hydra.core.hydra_config import HydraConfig

    from pv_rl.losses.mode import find_mode, resolve_mode

    recipe, composed = config.get("recipe"), overrides is not None
    if overrides is None:
        overrides = command_line()
        composed = overrides is not None and "recipe" in HydraConfig.get().runtime.choices
    if overrides is None or not isinstance(recipe, Mapping):
        return
    keys = {override.lstrip("+").partition("=")[0] for override in overrides}
    chosen = any(key.split(".")[0] == "recipe" for key in keys)
    asked = _asked(recipe)
    if asked is None or not (chosen or (composed and MODE not in keys)):
        return
    wanted, given = resolve_mode(asked.format(**recipe)), value(config, MODE)
    if find_mode(given) != wanted:
        raise ConfigError(
            f"{MODE}={given} undoes the recipe, which asks for {wanted.spec}: every run of a sweep over the recipe "
            f"would train with {given}. Remove {MODE}, or the recipe. Where a script sets {MODE}, append "
            f"'{MODE}={asked.replace('{', '${recipe.')}'"
        )


def _asked(recipe: Mapping[str, object]) -> str | None:
    """The `loss_agg_mode` of one of our recipes, in which its own keys are to be put; None for a stranger's."""
    name = str(recipe.get("name"))
    if name in ("dapo", "grpo"):
        if "eta" in recipe:
            raise ConfigError(
                f"recipe.eta={recipe['eta']} has no effect with recipe={name}. Set recipe=balanced or remove it"
            )
        return f"{name}@{{scope}}"
    return "balanced:{eta}@{scope}" if name.startswith("balanced-") else None


def _check_groups_of_one(config: DictConfig) -> None:
    """A mode that compares the responses of a prompt has nothing to compare if there is one."""
    if value(config, RESPONSES) != 1 or value(config, "trainer.val_only"):
        return
    import torch

    from pv_rl.losses.mode import find_mode
    from pv_rl.losses.stats import step_stats

    for key in (MODE, "critic.loss_agg_mode"):
        mode = find_mode(value(config, key))
        if mode is None or mode.scope == "batch":
            continue
        alone = step_stats(torch.tensor([1, 2, 5]), "abc", torch.ones(3))
        if not torch.allclose(mode.weights(*alone), replace(mode, scope="batch").weights(*alone)):
            raise ConfigError(
                f"{RESPONSES}=1 leaves {key}={mode.spec} without effect: it compares the responses of a prompt, "
                f"and there is one (dapo and balanced then weigh as grpo, whatever eta is). Set {RESPONSES} to 2 or "
                f"more, or {key}={replace(mode, scope='batch').spec}"
            )


def _check_group_filter(config: DictConfig) -> None:
    """verl drops a group whose metric is the same in all its responses (trainer/ppo/v1/replay_buffer.py:261)."""
    filtering = "algorithm.filter_groups"
    if not value(config, f"{filtering}.enable") or value(config, f"{filtering}.metric") != "acc":
        return
    function = value(config, "reward.custom_reward_function")
    if not isinstance(function, Mapping) or function.get("path") != NAMED:
        return
    names = [str(function.get("name")), *((function.get("reward_kwargs") or {}).get("rewards") or ())]
    if vetoing := [name for name in names if getattr(REWARDS.find(name), "vetoes", False)]:
        raise ConfigError(
            f"{filtering}.metric=acc ignores the veto of {vetoing[0]}: verl drops a prompt whose verdicts are all "
            f"right, although some of its responses were vetoed. Set {filtering}.metric=score"
        )


def value(config: DictConfig, key: str) -> object:
    """One value, its interpolations resolved; None where there is none.

    Raises:
        ConfigError: it needs a variable or a key that is not there.
    """
    try:
        return OmegaConf.select(config, key, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise ConfigError(f"{key} cannot be read: {str(error).splitlines()[0]}") from error
