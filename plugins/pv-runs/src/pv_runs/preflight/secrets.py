"""API keys that the run reads from its environment: of the judge, and of loggers that log in. No value is printed."""

from __future__ import annotations

import netrc
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from omegaconf import DictConfig, OmegaConf

from pv_judge.config import Endpoint
from pv_judge.keys import Key
from pv_rl.errors import ConfigError
from pv_rl.hookspecs import Finding
from pv_rl.recipes.choices import value
from pv_runs.preflight.findings import right, wrong
from pv_runs.preflight.machine import Machine

__all__ = ["check_secrets", "loggers"]

OFFLINE = ("offline", "disabled", "dryrun", "local")
"""Modes of wandb and swanlab that send nothing."""
NEEDS = {
    "wandb": ("WANDB_API_KEY",),
    "swanlab": ("SWANLAB_API_KEY",),
    "vemlp_wandb": ("VOLC_ACCESS_KEY_ID", "VOLC_SECRET_ACCESS_KEY", "MLP_TRACKING_REGION"),
}
MODES = {"wandb": "WANDB_MODE", "swanlab": "SWANLAB_MODE"}


def check_secrets(config: DictConfig, machine: Machine) -> Iterator[Finding]:
    """Whether every environment variable that the config relies on is set."""
    names, faults = [], []
    for url, name in sorted(set(_endpoints(OmegaConf.to_container(config.reward, resolve=True)))):
        try:
            Key.of(Endpoint(url=url, model="-", api_key_env=name))
            names.append(name)
        except ConfigError as error:
            faults.append(wrong(str(error), f"export {name}=... in the shell of pv-rl train"))
    for logger in loggers(config):
        if machine.environment.get(MODES.get(logger, ""), "").strip().lower() in OFFLINE:
            continue
        missing = [one for one in NEEDS.get(logger, ()) if not machine.environment.get(one, "").strip()]
        if missing and not (logger in MODES and _logged_in(logger, machine)):
            mode = f", or {MODES[logger]}=offline" if logger in MODES else ""
            text = f"the logger {logger} needs {' and '.join(missing)}, which is not set or empty"
            faults.append(
                wrong(text, f"export {missing[0]}=...{mode}, or remove {logger} from trainer.logger")
            )
        names += [one for one in NEEDS.get(logger, ()) if one not in missing]
    yield from faults or [right(f"{', '.join(names)} set" if names else "no key is needed")]


def loggers(config: DictConfig) -> list[str]:
    """`trainer.logger` as a list."""
    found: Any = value(config, "trainer.logger")
    return [found] if isinstance(found, str) else [str(one) for one in found or ()]


def _endpoints(tree: object) -> Iterator[tuple[str, str]]:
    """Address and `api_key_env` of every endpoint below."""
    if isinstance(tree, Mapping):
        if tree.get("api_key_env") and tree.get("url"):
            yield str(tree["url"]), str(tree["api_key_env"])
        tree = list(tree.values())
    if isinstance(tree, list):
        for one in tree:
            yield from _endpoints(one)


def _logged_in(logger: str, machine: Machine) -> bool:
    """Whether a login is stored, as `wandb login` and `swanlab login` do it."""
    home = Path(machine.environment.get("HOME", "~")).expanduser()
    if logger == "swanlab":
        return (home / ".swanlab" / ".netrc").is_file()
    server = machine.environment.get("WANDB_BASE_URL") or "https://api.wandb.ai"
    try:
        file = machine.environment.get("NETRC") or os.fspath(home / ".netrc")
        return netrc.netrc(file).authenticators(urlsplit(server).hostname or "") is not None
    except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
        return False
