"""Other releases of verl than the installed one: 0.9.0 is served, 0.8.0 is refused by name and runs as it is.

Each is a folder of its own that `make test` fills, put before the installed packages of a process. `make test-verl
VERL=...` adds one to those that have to keep the contract.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fork_server import run_fresh, run_module

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

HERE = Path(__file__).parent
SERVED = ["0.9.0", *filter(None, [os.environ.get("PV_RL_TEST_VERL")])]
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
import torch
sys.stdout.write(f"token-mean: {core.agg_loss(torch.tensor([[1.0, 4.0]]), torch.ones(1, 2), 'token-mean')}")
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
@pytest.mark.parametrize("version", SERVED)
def test_the_adapter_keeps_its_contract_with_verl(version):
    """All but two tests of verl's own gspo, which has one mode in 0.9.0."""
    names = ("contract", "ppo_loss", "row_weights", "batch_weights", "other_losses")
    files = [str(HERE / f"test_{name}.py") for name in names]
    arguments = ["-q", "-p", "no:cacheprovider", "-k", "not (last_bit and dapo and gspo)", *files]
    done = process(version, f"import pytest, sys; sys.exit(pytest.main({arguments}))")
    assert done.returncode == 0, done.stdout[-6000:]
    assert "skipped" not in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("version", SERVED)
def test_a_misspelt_reward_stops_the_driver_before_ray_starts(version):
    function = "reward.custom_reward_function"
    overrides = [f"{function}.path=pkg://pv_rl.rewards.named", f"{function}.name=verdct"]
    done = process(version, run_module("verl.trainer.main_ppo", *overrides))
    assert f"{function}.name=verdct: there is no reward 'verdct'. Did you mean verdict?" in done.stderr
    assert "ray init" not in done.stdout


def test_verl_0_8_refuses_our_modes_by_name_in_actor_and_critic_and_is_left_as_it_is():
    done = process("0.8.0", TRY, **BY_MODULE)
    assert done.returncode == 0, done.stderr
    *refusals, stock = done.stdout.splitlines()
    assert len(refusals) == 4
    for text in refusals:
        assert "cannot serve verl 0.8.0 in " in text
        assert (
            "verl.trainer.ppo.v1.trainer_base cannot be imported: No module named 'verl.trainer.ppo.v1'"
            in text
        )
        assert "Install verl 0.9.0 or 0.9.1" in text
        assert "use verl's own modes" in text
    assert stock == "token-mean: 2.5"


def test_verl_0_8_that_was_not_told_of_us_refuses_in_its_own_words():
    assert "Invalid loss_agg_mode: balanced" in process("0.8.0", TRY).stderr
