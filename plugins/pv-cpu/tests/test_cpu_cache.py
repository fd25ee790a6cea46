"""The cache's bookkeeping: rows that join, leave and move, with keys that say where they belong."""

import random

import torch

from pv_cpu.rollout.cache import ColumnCache
from pv_cpu.rollout.engine import _fill_gaps


def write(cache: ColumnCache, marks: torch.Tensor) -> None:
    """One layer, one head, size 1: ``marks: (rows, columns)``."""
    cache.advance(marks.shape[1])
    cache.update(marks[:, None, :, None], -marks[:, None, :, None], 0)


def prefilled(rows: list[list[float]]) -> ColumnCache:
    width = max(map(len, rows))
    cache = ColumnCache()
    cache.rows = len(rows)
    cache.start = torch.tensor([width - len(row) for row in rows])
    write(cache, torch.tensor([[0.0] * (width - len(row)) + row for row in rows]))
    return cache


def content(cache: ColumnCache) -> list[list[float]]:
    columns = slice(cache.first, cache.end)
    key, value = cache.keys[0][: cache.rows, 0, columns, 0], cache.values[0][: cache.rows, 0, columns, 0]
    rows = [key[i, int(start) - cache.first :] for i, start in enumerate(cache.start[: cache.rows])]
    other = [value[i, int(start) - cache.first :] for i, start in enumerate(cache.start[: cache.rows])]
    assert all(torch.equal(one, -two) for one, two in zip(rows, other, strict=True))
    return [row.tolist() for row in rows]


def test_a_longer_prompt_that_joins_moves_the_rows_that_are_there():
    cache = ColumnCache(row_capacity=4)
    cache.admit(prefilled([[1.0, 2.0]]), torch.tensor([0]), columns=3)
    cache.admit(prefilled([[3.0, 4.0, 5.0, 6.0]]), torch.tensor([0]), columns=3)
    assert content(cache) == [[1, 2], [3, 4, 5, 6]]
    write(cache, torch.tensor([[7.0], [8.0]]))
    assert content(cache) == [[1, 2, 7], [3, 4, 5, 6, 8]]


def test_the_mask_hides_what_is_before_a_row():
    cache = ColumnCache()
    cache.admit(prefilled([[1.0], [2.0, 3.0]]), torch.tensor([0, 1]), columns=1)
    assert cache.mask()[:, 0, 0].tolist() == [[-torch.inf, 0], [0, 0]]
    cache.keep(torch.tensor([1]))
    assert cache.mask() is None


def test_gaps_are_filled_from_the_end():
    done = torch.tensor([True, False, False, True, False])
    assert _fill_gaps(done).tolist() == [4, 1, 2]


def test_many_rows_that_come_and_go_keep_their_keys():
    draw = random.Random(0)
    cache, expected = ColumnCache(row_capacity=3), []
    for mark in range(200):
        if len(expected) < 6 and (not expected or draw.random() < 0.3):
            new = [[float(mark)] * draw.randrange(1, 9) for _ in range(draw.randrange(1, 4))]
            cache.admit(prefilled(new), torch.arange(len(new)), columns=draw.randrange(1, 12))
            expected += new
            room = cache.keys[0].shape[2] - cache.end
        elif room and draw.random() < 0.7:
            write(cache, torch.full((len(expected), 1), float(mark)))
            expected = [[*row, float(mark)] for row in expected]
            room -= 1
        else:
            done = torch.tensor([draw.random() < 0.4 for _ in expected])
            order = _fill_gaps(done)
            cache.keep(order)
            expected = [expected[i] for i in order.tolist()]
        if expected:
            assert content(cache) == expected


def test_columns_that_nobody_wrote_are_finite():
    # A masked column has weight 0, and 0 times NaN is NaN: deterministic mode fills fresh memory with NaN.
    torch.use_deterministic_algorithms(True)
    try:
        cache = ColumnCache(row_capacity=4)
        cache.admit(prefilled([[1.0, 2.0, 3.0]]), torch.tensor([0]), columns=3)
        cache.admit(prefilled([[4.0]]), torch.tensor([0]), columns=3)
    finally:
        torch.use_deterministic_algorithms(False)
    cache.write = slice(cache.end, cache.end)
    key, value = cache.update(torch.zeros(2, 1, 0, 1), torch.zeros(2, 1, 0, 1), 0)
    assert key.shape == (2, 1, 3, 1)
    assert key.isfinite().all()
    assert value.isfinite().all()
