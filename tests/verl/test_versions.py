"""Other releases of verl than the installed one: 0.9.0 is served, 0.8.0 is refused by name and runs as it is.

Each is a folder of its own that `make test` fills, put before the installed packages of a process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fork_server import run_fresh

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

HERE = Path(__file__).parent
BY_MODULE = {"VERL_USE_EXTERNAL_MODULES": "pv_rl.verl_adapter"}  # all that verl before 0.9 knows
TRY = """
import sys
from verl.workers.config import ActorConfig, CriticConfig
from pv_rl.errors import VerlError
settings = dict(strategy="fsdp2", rollout_n=2, ppo_micro_batch_size_per_gpu=1)
for config in (ActorConfig, CriticConfig):
    config(loss_agg_mode="token-mean", **settings)
    for mode in ("balanced", "balanced@batch"):
        try:
            config(loss_agg_mode=mode, **settings)
        except VerlError as error:
            sys.stdout.write(f"{error}\\n")
import verl.trainer.ppo.core_algos as core
sys.stdout.write(f"patched: {hasattr(core.agg_loss, '__wrapped__')}")
"""


def process(version: str, code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a snippet where `verl` is that release."""
    folder = Path(sys.prefix) / "beside" / f"verl-{version}"
    if not (folder / ".installed").exists():
        pytest.skip(f"verl {version} is not in {folder}: make test puts it there")
    return run_fresh(code, path=folder, **env)


def test_the_other_release_is_the_one_that_is_found():
    code = "import sys, verl, importlib.metadata as m; sys.stdout.write(f'{verl.__version__} {m.version(\"verl\")}')"
    done = process("0.9.0", code)
    assert done.stdout.split() == ["0.9.0", "0.9.0"], done.stderr


@pytest.mark.slow
def test_the_adapter_keeps_its_contract_with_verl_0_9_0():
    """All but two tests of verl's own gspo, which has one mode there, and those of what we do with a changed verl."""
    names = ("contract", "ppo_loss", "row_weights", "batch_weights", "other_losses")
    chosen = "not (last_bit and dapo and gspo) and not changed and not unknown"
    files = [str(HERE / f"test_{name}.py") for name in names]
    arguments = ["-q", "-p", "no:cacheprovider", "-k", chosen, *files]
    done = process("0.9.0", f"import pytest, sys; sys.exit(pytest.main({arguments}))")
    assert done.returncode == 0, done.stdout[-6000:]
    assert "skipped" not in done.stdout.splitlines()[-1]


def test_verl_0_8_refuses_our_modes_by_name_in_actor_and_critic_and_is_left_as_it_is():
    done = process("0.8.0", TRY, **BY_MODULE)
    assert done.returncode == 0, done.stderr
    *refusals, patched = done.stdout.splitlines()
    assert len(refusals) == 4
    for text in refusals:
        assert "verl 0.8.0 is installed and the adapter serves verl 0.9.x" in text
        assert "Install verl 0.9.x" in text
        assert "use one of verl's own modes" in text
    assert patched == "patched: False"


def test_verl_0_8_that_was_not_told_of_us_refuses_in_its_own_words():
    assert "Invalid loss_agg_mode: balanced" in process("0.8.0", TRY).stderr
