"""Order of the tests, and the path of their child processes."""

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Child processes of tests find the helpers that `pythonpath` of pyproject.toml gives the tests themselves."""
    helpers = [str(folder) for folder in config.getini("pythonpath")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*helpers, os.environ.get("PYTHONPATH")]))


@pytest.hookimpl(trylast=True)  # after -m has dropped items
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a `slow` test come first, so that no worker of pytest-xdist is left alone with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
