"""Temperature, top-k, top-p and the drawing of tokens, with numbers worked by hand."""

import math

import pytest
import torch

from pv_cpu.rollout.sampling import choose, processed_log_probs, truncate

LOGITS = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()


def kept(logits: torch.Tensor) -> list[list[bool]]:
    return torch.isfinite(logits).tolist()


def truncated(top_k: int, top_p: float, logits: torch.Tensor = LOGITS) -> list[bool]:
    return kept(truncate(logits, torch.tensor([top_k]), torch.tensor([top_p])))[0]


@pytest.mark.parametrize(
    ("top_k", "expected"),
    [(0, [True] * 4), (1, [True, False, False, False]), (3, [True, True, True, False]), (9, [True] * 4)],
)
def test_top_k_keeps_the_k_largest(top_k, expected):
    assert truncated(top_k, 1.0) == expected


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [
        (0.4, [True, False, False, False]),
        (0.6, [True, True, False, False]),
        (0.85, [True, True, True, False]),
        (0.96, [True] * 4),
        (1.0, [True] * 4),
    ],
)
def test_top_p_keeps_the_smallest_set_that_reaches_p(top_p, expected):
    assert truncated(0, top_p) == expected


def test_top_p_never_drops_the_largest():
    assert truncated(0, 1e-6) == [True, False, False, False]


def test_top_p_counts_what_top_k_left():
    # After top-k=2 the probabilities are 0.625 and 0.375, so p=0.6 needs the first one only.
    assert truncated(2, 0.6) == [True, False, False, False]


def test_the_mask_follows_the_order_of_the_vocabulary_not_of_the_sort():
    assert truncated(1, 1.0, LOGITS.flip(-1)) == [False, False, False, True]


def test_each_row_has_its_own_truncation():
    logits = LOGITS.expand(3, 4)
    result = truncate(logits, torch.tensor([1, 0, 0]), torch.tensor([1.0, 0.6, 1.0]))
    assert [sum(row) for row in kept(result)] == [1, 2, 4]


def test_log_probs_are_of_the_processed_distribution():
    half = torch.tensor([0.5])
    log_probs = processed_log_probs(LOGITS, half, torch.tensor([2]), torch.tensor([1.0]), truncated=True)
    # Temperature 1/2 squares: 0.25 and 0.09 are left.
    assert log_probs[0, :2].exp().tolist() == pytest.approx([0.25 / 0.34, 0.09 / 0.34])
    assert log_probs[0, 2:].tolist() == [-math.inf, -math.inf]


@pytest.mark.parametrize(
    ("uniform", "token"), [(0.0, 0), (0.49, 0), (0.51, 1), (0.79, 1), (0.81, 2), (0.96, 3), (1 - 2**-53, 3)]
)
def test_the_number_picks_the_token_at_that_place_of_the_distribution_function(uniform, token):
    number = torch.tensor([uniform], dtype=torch.float64)
    assert choose(LOGITS, torch.tensor([False]), number).tolist() == [token]


def test_a_token_of_probability_zero_is_never_drawn():
    log_probs = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]]).log().expand(1001, 5)
    uniform = torch.linspace(0, 1 - 2**-53, 1001, dtype=torch.float64)
    tokens = choose(log_probs, torch.zeros(1001, dtype=torch.bool), uniform)
    assert set(tokens.tolist()) == {1, 3}
    assert (tokens == 1).sum() == 500


def test_a_greedy_row_takes_the_largest_whatever_the_number():
    uniform = torch.tensor([0.99, 0.99], dtype=torch.float64)
    assert choose(LOGITS.expand(2, 4), torch.tensor([True, False]), uniform).tolist() == [0, 3]
