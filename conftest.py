"""Child processes of tests find the helpers that `pythonpath` of pyproject.toml gives the tests themselves."""

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    helpers = [str(folder) for folder in config.getini("pythonpath")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*helpers, os.environ.get("PYTHONPATH")]))
