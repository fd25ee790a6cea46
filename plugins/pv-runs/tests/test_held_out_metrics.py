"""Held-out numbers by class, slice and length, worked by hand; and their way into what verl's trainers log."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
from fake_trainer import FakeTrainer

from pv_rl.verl_adapter.trainers import patch_validation
from pv_runs.held_out_metrics import held_out_metrics

# Six rows: two right proofs (one accepted), four wrong ones (one rejected, two accepted, one without a verdict).
SOURCES = ["putnam/right", "imo/right", "putnam/wrong", "putnam/wrong", "imo/wrong", "imo/wrong"]
INFOS = {
    "reward": [1.0, 0.0, 1.0, 0.0, 0.0, 0.0],
    "acc": [1.0, 0.0, 1.0, 0.0, 0.0, 0.0],
    "label_true": [1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
    "verdict_true": [1.0, 0.0, 0.0, 1.0, 1.0, 0.0],
    "verdict_missing": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
}
LENGTHS = [10, 20, 30, 40, 50, 90]


def numbers(sources=SOURCES, infos=INFOS, lengths=LENGTHS) -> dict[str, float]:
    found = held_out_metrics(sources, infos, lengths)
    assert all(name.startswith("pv_rl/held_out/") for name in found)
    return {name.removeprefix("pv_rl/held_out/"): value for name, value in found.items()}


def test_the_classes_are_told_apart():
    found = numbers()
    assert found["rows"] == 6
    assert found["acc"] == pytest.approx(2 / 6)
    assert found["acc_label_true"] == 1 / 2
    assert found["acc_label_false"] == 1 / 4
    assert found["balanced"] == (1 / 2 + 1 / 4) / 2
    assert found["accepted"] == 3 / 6
    assert found["missing"] == 1 / 6
    assert found["abstained"] == 0


def test_a_slice_is_the_data_source_without_its_class():
    found = numbers()
    assert found["slice/putnam/acc"] == pytest.approx(2 / 3)
    assert found["slice/putnam/balanced"] == (1 + 1 / 2) / 2
    assert found["slice/imo/acc"] == 0
    assert found["slice/imo/missing"] == 1 / 3
    assert not any(name.startswith("slice/") for name in numbers(["right"] * 2 + ["wrong"] * 4))


def test_lengths_are_split_by_verdict_and_accuracy_by_thirds():
    found = numbers()
    assert found["length/all"] == 40
    assert found["length/right"] == 20
    assert found["length/wrong"] == pytest.approx((20 + 40 + 50) / 3)
    assert found["length/accepted"] == pytest.approx(100 / 3)
    assert found["length/rejected"] == 25
    assert found["length/missing"] == 90
    assert [found[f"length/{third}/acc"] for third in ("short", "middle", "long")] == [0.5, 0.5, 0]
    assert not any("length" in name for name in numbers(lengths=None))
    assert not any("length" in name for name in numbers(lengths=[1, 2]))  # of another set of rows


def test_equal_lengths_are_in_the_same_third():
    found = numbers(lengths=[19] * 6)
    assert found["length/short/acc"] == found["acc"]
    assert "length/middle/acc" not in found
    assert "length/long/acc" not in found


def test_a_row_that_abstains_is_in_no_accuracy():
    found = numbers(infos=INFOS | {"reward_valid": [1.0, 0.0, 1.0, 1.0, 1.0, 1.0]})
    assert found["abstained"] == pytest.approx(1 / 6)
    assert (found["rows"], found["acc_label_true"]) == (5, 1)


def test_rows_of_other_rewards_are_left_alone():
    assert held_out_metrics(["gsm8k"], {"reward": [1.0], "acc": [1.0]}) == {}
    mixed = {name: [None, *values[1:]] for name, values in INFOS.items()}
    assert numbers(infos=mixed)["rows"] == 5


@pytest.mark.parametrize("name", ["PPOTrainer", "RayPPOTrainer"])
def test_the_numbers_join_those_that_verl_logs(name):
    one = trainer(name)
    one._maybe_log_val_generations(inputs=[*"aabbcd"], outputs=["x" * n for n in LENGTHS], scores=[0.0] * 6)
    assert one.calls == ["show 6"]
    found = one._val_metrics_update(SOURCES, [*"123456"], INFOS, [])  # verl's uid of a row, not of a proof
    assert (found["pv_rl/held_out/proofs_label_true"], found["pv_rl/held_out/proofs_label_false"]) == (1, 3)
    assert found["val-core/x/acc/mean@1"] == 0.5
    assert found["pv_rl/held_out/balanced"] == 0.375
    assert found["pv_rl/held_out/length/missing"] == 90
    again = one._val_metrics_update(SOURCES, ["a"] * 6, INFOS, [])  # no lengths of an earlier validation
    assert not any("length" in name or "proofs" in name for name in again)


def test_a_fault_of_ours_ends_no_run():
    one = trainer("PPOTrainer")
    found = one._val_metrics_update(
        ["a"], ["a"], {key: ["no number"] for key in INFOS}, [], expected_acc_counts=3
    )
    assert found["expected_acc_counts"] == 3
    assert found["pv_rl/held_out/failed"] == 1


def trainer(name):
    class Trainer(FakeTrainer):
        """Of its own for each test: what it inherits is wrapped in this class alone."""

    patch_validation(SimpleNamespace(**{name: Trainer}))  # pyright: ignore[reportArgumentType]
    return Trainer({})
