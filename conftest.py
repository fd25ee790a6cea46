"""Order of the tests, the path of their child processes, and no network but this machine's."""

import os
import tempfile
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # TRL reports its trainers; read when trl is imported
os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")  # datasets reports what it loads


def pytest_configure(config: pytest.Config) -> None:
    """Child processes of tests find the helpers that `pythonpath` of pyproject.toml gives the tests themselves."""
    helpers = [str(folder) for folder in config.getini("pythonpath")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*helpers, os.environ.get("PYTHONPATH")]))
    import network_guard  # one of them

    os.environ[network_guard.LOG] = str(Path(tempfile.mkdtemp(), "connections"))
    network_guard.install()


@pytest.hookimpl(trylast=True)  # after -m has dropped items
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a `slow` test come first, so that no worker of pytest-xdist is left alone with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def _no_network():
    """Fail a test that tried to reach another machine, itself or by a child process."""
    import network_guard

    yield
    assert network_guard.attempts(Path(os.environ[network_guard.LOG])) == []
