"""prime-rl's adapter without prime-rl: numbers by hand, refusals, and the launcher of a command."""

from __future__ import annotations

import runpy
import sys
from types import ModuleType, SimpleNamespace

import pytest

from pv_rl.errors import LossModeError
from pv_trainers import prime_rl


class TrainSink:
    """The part of prime-rl's class that is wrapped: takes `batch_size` traces and drops those without advantages."""

    def __init__(self, traces, batch_size, *, filtered=True, seq_len=16):
        self.config = SimpleNamespace(seq_len=seq_len, train=SimpleNamespace(filter_zero_advantages=filtered))
        self.batch_size = batch_size
        self.pending_batch = {str(number): samples for number, (_, samples) in enumerate(traces)}
        self.episode_by_trace = {str(number): group for number, (group, _) in enumerate(traces)}

    def process_batch(self):
        taken = list(self.pending_batch)[: self.batch_size]
        samples = [sample for trace in taken for sample in self.pending_batch.pop(trace)]
        for trace in taken:
            self.episode_by_trace.pop(trace)
        if self.config.train.filter_zero_advantages:
            samples = [sample for sample in samples if any(sample.advantages)]
        return SimpleNamespace(samples=samples)


def make_sample(length, advantage=1.0, *, prompt=2, **fields):
    mask, advantages = [False] * prompt + [True] * length, [0.0] * prompt + [advantage] * length
    return SimpleNamespace(
        **{"mask": mask, "advantages": advantages, "rl_weights": None, "mm_kwargs": None, **fields}
    )


@pytest.fixture
def install(monkeypatch):
    """`pv_trainers.prime_rl.install` where a package prime_rl has no more than the seam."""
    sink = ModuleType("prime_rl.orchestrator.train_sink")
    sink.TrainSink = type("TrainSink", (TrainSink,), {"process_batch": TrainSink.process_batch})
    sink.episode_group_id = lambda episode: episode
    for name in ("prime_rl", "prime_rl.orchestrator"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, sink.__name__, sink)

    def installed(mode):
        prime_rl.install(mode)
        return sink.TrainSink

    return installed


def advantages_of(batch):
    return [sample.advantages[-1] for sample in batch.samples]


@pytest.mark.parametrize(
    ("mode", "factors"),
    [
        ("balanced:0.6", [2, 1.2, 0.72]),
        ("dapo", [1, 1, 1]),
        ("dr_grpo:4", [2 / 3] * 3),
        ("ba@batch", [1, 1, 1]),
    ],
)
def test_factors_by_hand(install, mode, factors):
    sink = install(mode)([("a", [make_sample(length)]) for length in (1, 2, 5)], 3)
    batch = sink.process_batch()
    assert advantages_of(batch) == pytest.approx(factors)
    assert [sample.advantages[:2] for sample in batch.samples] == [[0, 0]] * 3


def test_a_row_without_advantage_counts_though_its_tokens_leave_the_denominator(install):
    rows = [("a", [make_sample(1)]), ("a", [make_sample(2, -1.0)]), ("a", [make_sample(5, 0.0)])]
    assert advantages_of(install("dapo")(rows, 3).process_batch()) == pytest.approx([3 / 8, -3 / 8])


def test_a_batch_is_a_step_of_its_own(install):
    sink = install("dapo")(
        [(group, [make_sample(length)]) for group, length in zip("aabb", [1, 3, 2, 2], strict=True)], 3
    )
    assert advantages_of(sink.process_batch()) == pytest.approx([6 / 8, 6 / 8, 6 / 4])
    assert advantages_of(sink.process_batch()) == pytest.approx([1])


def test_what_the_trainer_does_not_count_has_no_length(install):
    long = make_sample(20)  # of which seq_len leaves 14
    outside = make_sample(4, rl_weights=[0.0] * 4 + [1.0] * 2)
    branches = [make_sample(1), make_sample(2)]
    sink = install("grpo")([("a", [long]), ("b", [outside]), ("c", branches)], 3)
    batch = sink.process_batch()
    tokens = 14 + 2 + 3
    assert [sample.advantages[sample.mask.index(True)] for sample in batch.samples] == pytest.approx(
        [tokens / 3 / 14, 0, tokens / 3 / 3, tokens / 3 / 3]
    )
    assert outside.advantages[-1] == pytest.approx(tokens / 3 / 2)
    assert len(long.advantages) == 22


def test_samples_of_other_losses_stay_as_they_are(install):
    distilled = make_sample(3, advantages=None, rl_weights=[0.0] * 5)
    sink = install("dapo")([("a", [make_sample(2), distilled])], 1, filtered=False)
    batch = sink.process_batch()
    assert batch.samples[1].advantages is None
    assert batch.samples[0].advantages[-1] == pytest.approx(1)


def test_a_batch_without_advantages_ships_nothing(install):
    assert install("dapo")([("a", [make_sample(2, 0.0)])], 1).process_batch().samples == []


def test_what_cannot_be_served_is_refused(install, monkeypatch):
    with pytest.raises(LossModeError, match="balanced"):
        install("balance")
    sink = install("dapo")([("a", [make_sample(20, mm_kwargs={})])], 1)
    with pytest.raises(LossModeError, match="images is longer than seq_len"):
        sink.process_batch()
    sink = sys.modules["prime_rl.orchestrator.train_sink"].TrainSink(
        [("a", [make_sample(2, advantages=[1.0])])], 1
    )
    with pytest.raises(ValueError, match="zip"):  # not filled up: prime-rl refuses it too
        sink.process_batch()
    with pytest.raises(LossModeError, match="not that of commit 559b447"):
        install("dapo")  # a second time


@pytest.fixture
def launch(install, monkeypatch):
    """Run `python -m pv_trainers.prime_rl ARGUMENTS` over a package that has no more than the entry points."""

    def launched(command, *arguments):
        module, seen = ModuleType(f"prime_rl.entrypoints.{command}"), []
        module.Popen = lambda args, **others: seen.append((args, others))

        def main():
            seen.append(list(sys.argv))
            if command == "rl" and "slurm" in sys.argv:
                module.rl_slurm(None)
            elif command == "rl":
                module.Popen(["inference", "@", "i.json"], env={})
                module.Popen(["orchestrator", "@", "o.json"], env={"A": "b"})

        module.main = main
        monkeypatch.setitem(sys.modules, "prime_rl.entrypoints", ModuleType("prime_rl.entrypoints"))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(sys, "argv", ["prime_rl", *arguments])
        monkeypatch.delitem(sys.modules, "pv_trainers.prime_rl", raising=False)
        runpy.run_module("pv_trainers.prime_rl", run_name="__main__")
        return seen

    return launched


def test_launcher_of_rl_starts_the_orchestrator_through_itself(launch):
    arguments, inference, orchestrator = launch("rl", "balanced:0.6", "rl", "@", "rl.toml")
    assert arguments == ["rl", "@", "rl.toml"]
    assert inference == (["inference", "@", "i.json"], {"env": {}})
    again = [sys.executable, "-m", "pv_trainers.prime_rl", "balanced:0.6@prompt"]
    assert orchestrator == ([*again, "orchestrator", "@", "o.json"], {"env": {"A": "b"}})


def test_launcher_of_the_orchestrator_installs_the_weighting(launch):
    assert launch("orchestrator", "dapo", "orchestrator", "@", "o.toml") == [["orchestrator", "@", "o.toml"]]
    sink = sys.modules["prime_rl.orchestrator.train_sink"].TrainSink
    assert advantages_of(sink([("a", [make_sample(2)]), ("b", [make_sample(6)])], 2).process_batch()) == [
        2,
        2 / 3,
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage"),
        (["dapo"], "usage"),
        (["rl", "@", "rl.toml"], "usage"),
        (["dapo", "rl", "slurm"], "slurm"),
    ],
)
def test_launcher_stops_where_it_cannot_serve(launch, arguments, message):
    with pytest.raises(SystemExit, match=message):
        launch("rl", *arguments)
