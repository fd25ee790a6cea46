"""Check of `pv-rl doctor -- python -m verl.trainer.main_ppo ...`: what verl's driver checks before it starts Ray."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import tempfile
from collections.abc import Sequence

from pv_rl.errors import ConfigError, PvRlError
from pv_rl.hookspecs import Finding

__all__ = ["check_command", "is_command"]

MAIN = "verl.trainer.main_ppo"


def is_command(words: Sequence[str]) -> bool:
    """Whether the words are a command, and not `run=NAME` with overrides."""
    return "-m" in words


def check_command(words: Sequence[str]) -> Finding:
    """Run verl's own main with the arguments of a command, without the function that starts Ray.

    Raises:
        PvRlError: the command runs another module, or pv-rl stops the run.
    """
    from unittest.mock import patch  # it imports asyncio, which completion in the shell should not wait for

    place = list(words).index("-m")
    module, *arguments = words[place + 1 :] or [""]
    if module != MAIN:
        raise ConfigError(
            f"the command runs {module or 'no module'}. `pv-rl doctor` checks commands of {MAIN}"
        )
    main = importlib.import_module(MAIN)  # verl may be missing, and its adapter has to come first
    with tempfile.TemporaryDirectory(prefix="pvrl-") as folder:
        hydra = [f"hydra.run.dir={folder}", "hydra.output_subdir=null", "hydra/job_logging=none"]
        with (
            patch.object(main, "run_ppo", lambda *_, **__: None),
            patch.object(sys, "argv", [MAIN, *arguments, *hydra]),
            patch.dict(os.environ, HYDRA_FULL_ERROR="1"),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            try:
                main.main()
            except PvRlError:
                raise
            except (Exception, SystemExit) as error:  # noqa: BLE001 - of Hydra or verl, which raise anything
                text = f"{type(error).__name__}: {error}"
                return Finding(state="wrong", text=text, remedy="correct the command")
    return Finding(state="ok", text=f"{MAIN} accepts the command")
