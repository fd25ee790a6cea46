"""What pv-data may import: never torch or verl, and its command nothing heavy until it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

ALL = """
import importlib, pkgutil, pv_data
for module in pkgutil.walk_packages(pv_data.__path__, "pv_data."):
    if not module.name.endswith("ray_executor"):
        importlib.import_module(module.name)
"""
NEVER = ("torch", "verl", "ray", "transformers", "vllm", "datasets")
LATER = (
    "numpy",
    "scipy",
    "pyarrow",
    "matplotlib",
    "hydra",
    "httpx",
    "jinja2",
    "latex2mathml",
    "pylatexenc",
)


def loaded(code: str, names: tuple[str, ...]) -> list[str]:
    code += f"\nimport sys\nprint(*[name for name in {names!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout.split()


def test_no_module_loads_torch_or_verl():
    assert loaded(ALL, NEVER) == []


def test_the_command_is_quick_to_start():
    assert loaded("import pv_data.cli", NEVER + LATER) == []


def test_a_process_of_ray_s_imports_pandas_before_it_asks_and_ray_data_not_at_all():
    pytest.importorskip("pandas", reason="pandas comes with Ray")
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'pv-data[ray]'")
    code = "from pv_data.run.ray_executor import _import_stages\n_import_stages()"
    assert loaded(code, ("ray.data", "pandas", "pv_data.run.judge")) == ["pandas", "pv_data.run.judge"]


@pytest.mark.parametrize("name", ["numpy", "scipy"])
def test_these_tests_can_fail(name):
    assert loaded(f"import pv_data.cli, {name}", LATER) != []
