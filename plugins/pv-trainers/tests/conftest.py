"""Models and oracles that the tests of several trainers share, made once a file, and the thread that they run in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from grid.model import load_oracle_model, save_model
from trainer_errors import Measure
from transformers import GPT2LMHeadModel
from whole_step import WholeStep


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """The matrices are small, and a rank that is forked from a process with a pool of threads hangs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The oracle's model in float64, and the same in float32."""
    folder = tmp_path_factory.mktemp("model")
    save_model(folder)
    return load_oracle_model(folder), GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def measure(tmp_path_factory) -> Measure:
    return Measure(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> WholeStep:
    return WholeStep(tmp_path_factory.mktemp("model"), torch.float32)
