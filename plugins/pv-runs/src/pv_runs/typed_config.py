"""Typed access to a composed config by dotted keys. Only the keys that are read are resolved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pv_judge.hydra_errors import unreadable
from pv_rl.errors import ConfigError

__all__ = ["Settings"]

T = TypeVar("T")
ABSENT: Any = object()
LARGEST = 10**15
"""For whole numbers: products of two still fit into a float."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A config with typed getters.

    Each takes a default for a key that is absent or null, and raises a ConfigError that names the key where there is
    none, where the value cannot be resolved, or where it is not of the type.
    """

    config: DictConfig

    def value(self, key: str, default: Any = ABSENT) -> Any:
        """The value as it is; a node is resolved with everything in it."""
        try:
            found = OmegaConf.select(self.config, key)
            found = OmegaConf.to_container(found, resolve=True) if OmegaConf.is_config(found) else found
        except OmegaConfBaseException as error:
            raise ConfigError(f"{key} cannot be read: {unreadable(error)}") from None
        if found is not None:
            return found
        if default is ABSENT:
            raise ConfigError(
                f"the config has no {key}, which the plan needs; set it, for example by {key}=VALUE"
            )
        return default

    def node(self, key: str, hint: str) -> dict[str, Any]:
        """A mapping. `hint` says how to get one."""
        found = self.value(key, {})
        if not isinstance(found, dict) or not found:
            raise ConfigError(f"the config has no {key}, which the plan needs; {hint}")
        return found

    def integer(self, key: str, default: Any = ABSENT, least: int | None = None) -> int:
        """A whole number, not below `least` if that is given."""
        found = self._of(key, default, int, "a whole number")
        if least is not None and found < least:
            raise ConfigError(f"{key} is {found}; it has to be {least} or more")
        return found

    def optional_integer(self, key: str, least: int = 1) -> int | None:
        """The same; None where the key is absent or null."""
        return None if self.value(key, None) is None else self.integer(key, least=least)

    def number(self, key: str, default: Any = ABSENT) -> float:
        """A finite number."""
        found = float(self._of(key, default, (int, float), "a number"))
        if not math.isfinite(found):
            raise ConfigError(f"{key} is {found}; it has to be finite")
        return found

    def flag(self, key: str, default: Any = ABSENT) -> bool:
        """True or false."""
        return self._of(key, default, bool, "true or false")

    def choice(self, key: str, allowed: tuple[str, ...], default: Any = ABSENT) -> str:
        """One of the texts in `allowed`."""
        found = self.value(key, default)
        if found not in allowed:
            raise ConfigError(
                f"{key} is {found!r}, which pv-rl plan does not support. Supported are {', '.join(allowed)}"
            )
        return found

    def _of(self, key: str, default: Any, kind: type[T] | tuple[type[T], ...], said: str) -> T:
        found = self.value(key, default)
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise ConfigError(f"{key} is {found!r}; it has to be {said}")
        if isinstance(found, int) and abs(found) > LARGEST:
            raise ConfigError(f"{key} is larger than {LARGEST:.0e} in size; no run has that many")
        return found
