"""Check of `pv-rl doctor -- python -m verl.trainer.main_ppo ...`: what verl's driver checks before it starts Ray."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import itertools
import os
import re
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
    from unittest.mock import MagicMock, patch  # it imports asyncio, for which completion should not wait

    modules = [word for before, word in itertools.pairwise(words) if before == "-m"]
    if MAIN not in modules:
        raise ConfigError(
            f"the command runs {', '.join(modules) or 'no module'}. `pv-rl doctor` checks commands of {MAIN}"
        )
    place = list(words).index(MAIN)
    variables = dict(word.split("=", 1) for word in words[:place] if re.match(r"[A-Za-z_]\w*=", word))
    main = importlib.import_module(MAIN)  # verl may be missing, and its adapter has to come first
    with tempfile.TemporaryDirectory(prefix="pvrl-") as folder:
        folders = [f"hydra.run.dir='{folder}'", f"hydra.sweep.dir='{folder}'", "hydra.output_subdir=null"]
        hydra = [*folders, "hydra/job_logging=none", "hydra/launcher=basic"]
        arguments = list(words[place + 1 :])
        # After the command's overrides, which they replace: argparse takes overrides at one place only.
        end = max(number * bool(re.match("[^-].*=", word)) for number, word in enumerate(["", *arguments]))
        arguments[end:end] = hydra
        with (
            patch.object(main, "run_ppo", MagicMock()) as run,
            # As for `python -m`: Hydra then takes a relative --config-path from the file, not from the package.
            patch.object(inspect.unwrap(main.main), "__module__", "__main__"),
            patch.object(sys, "argv", [MAIN, *arguments]),
            patch.dict(os.environ, variables | {"HYDRA_FULL_ERROR": "1"}),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()) as told,
        ):
            text = ""
            try:
                main.main()
            except PvRlError:
                raise
            except SystemExit as error:  # of Hydra's parser
                text = told.getvalue().strip().rpartition("\n")[2] if error.code else ""
            except Exception as error:  # noqa: BLE001 - of Hydra or verl, which raise anything
                text = f"{type(error).__name__}: {error}"
    if text or not run.called:
        remedy = "correct the command" if text else "leave out --help, --cfg and the like"
        return Finding(state="wrong", text=text or "the command starts no run", remedy=remedy)
    return Finding(state="ok", text=f"{MAIN} accepts the command")
