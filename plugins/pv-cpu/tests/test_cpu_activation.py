"""Inert without VERL_PLATFORM=cpu; active, in every process that imports verl, with it."""

import os
import subprocess
import sys

import pytest
from fork_server import run_fresh


def clean() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("VERL_", "PV_CPU_", "OMP_", "RAY_"))}


def python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean(), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def with_verl(code: str, **environment: str) -> subprocess.CompletedProcess:
    """In a process that has imported what verl needs, but neither verl nor the plugin."""
    return run_fresh(code, inherit=clean(), **environment)


HEAVY = "import sys; import pv_cpu; print(sorted({'torch', 'verl', 'ray', 'wrapt'} & set(sys.modules)))"


@pytest.mark.parametrize("platform", ["", "cuda", "cpux"])
def test_importing_the_plugin_imports_nothing_heavy(platform):
    done = python(HEAVY, **({"VERL_PLATFORM": platform} if platform else {}))
    assert done.stdout.strip() == "[]", done.stderr


def test_the_check_above_can_fail():
    assert "torch" in python(HEAVY, VERL_PLATFORM="cpu").stdout


def test_verl_without_the_variable_does_not_know_the_platform():
    code = (
        "import os, verl; from verl.plugin.platform import PlatformRegistry as R;"
        "print(R.get('cpu'), os.environ.get('VERL_ENGINE_DEVICE'))"
    )
    assert with_verl(code).stdout.strip() == "None None"


@pytest.mark.parametrize("platform", ["cpu", " CPU "])
def test_importing_verl_activates_the_platform(platform):
    code = (
        "import verl, os, sys; from verl.utils import device as d;"
        "print(d.get_device_name(), d.get_resource_name(), d.get_nccl_backend(), os.environ['OMP_WAIT_POLICY']);"
        "print([m for m in ('verl.utils.fsdp_utils', 'verl.workers') if m in sys.modules])"
    )
    done = with_verl(code, VERL_PLATFORM=platform)
    assert done.stdout.split("\n")[:2] == ["cpu GPU gloo PASSIVE", "[]"], done.stderr


def test_what_the_user_has_set_is_left_alone():
    code = "import verl, os; print(os.environ['OMP_NUM_THREADS'], os.environ['RAY_USAGE_STATS_ENABLED'])"
    assert with_verl(code, VERL_PLATFORM="cpu", OMP_NUM_THREADS="7").stdout.strip() == "7 0"


def test_a_failure_is_seen_although_verl_hides_it():
    code = "import sys; sys.modules['pv_cpu.activation'] = None; import verl; print('went on')"
    done = with_verl(code, VERL_PLATFORM="cpu")
    assert done.stdout.strip() == "went on"
    assert "pv-cpu could not activate the CPU platform" in done.stderr
    assert "pv_cpu.activation" in done.stderr
