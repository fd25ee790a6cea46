"""What a trace is paid in the lab: verdicts, wrong labels, a length bonus, and a veto whose judge errs or is away."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("transformers", reason="transformers is not installed: pip install 'pv-rl[verl]'")
import torch

from pv_lab.loop_settings import Run, Settings
from pv_lab.objective import group_advantages
from pv_lab.optimizer import StackedAdamW
from pv_lab.paying import pay, training_sample
from pv_lab.reference_loop import Batch, ReferenceLoop
from pv_lab.samples import make_sample
from pv_lab.stacked import StackedVerifier
from pv_lab.tokenizer import ASSISTANT, EOS, USER, VOCABULARY, encode
from pv_rl.errors import ConfigError, DataError

LOOP = "check" + " S1 +2 plus 5 = +7 ok" * 3 + " so all fine ### True"
TRACES = [encode(f"{text} {EOS}") for text in (LOOP, "looks fine ### True", "looks wrong ### False", "S1 ok")]
RIGHT = [make_sample(seed=0, split="train", index=0, difficulty=1, p_true=1.0)] * len(TRACES)
ZERO, ABSTAIN = Run(veto="zero"), Run(veto="abstain")


def paid(run: Run, step: int = 1):
    given = pay(run, step, TRACES, RIGHT, 64)
    return given.scores, given.counts


def test_the_verdict_alone_pays_a_trace_that_loops_and_ends_right():
    assert paid(Run()) == ([1, 1, 0, 0], [True] * 4)


def test_a_veto_pays_nothing_or_takes_the_row_out():
    assert paid(ZERO) == ([0, 1, 0, 0], [True] * 4)
    assert paid(ABSTAIN) == ([0, 1, 0, 0], [False, True, True, True])
    assert pay(ABSTAIN, 1, TRACES, RIGHT, 64).columns == {
        **{"score": pytest.approx(1 / 3), "vetoed": 0.25, "abstained": 0.25}
    }


def test_a_length_bonus_is_paid_whatever_the_verdict_from_its_step_on():
    run = Run(length_bonus=2.0, fault_from=3)
    lengths = [len(trace) for trace in TRACES]
    assert lengths == [28, 5, 5, 3]
    assert paid(run, 2) == paid(Run())
    assert paid(run, 3)[0] == pytest.approx([1 + 56 / 64, 1 + 10 / 64, 10 / 64, 6 / 64])
    assert paid(replace(run, veto="zero"), 3)[0][0] == 0


@pytest.mark.parametrize(
    ("policy", "scores", "counts"),
    [
        ("abstain", [0, 0, 0, 0], [False] * 4),
        ("fail_open", [1, 1, 0, 0], [True] * 4),
        ("fail_closed", [0, 0, 0, 0], [True] * 4),
    ],
)
def test_a_judge_that_is_away_leaves_it_to_the_policy(policy, scores, counts):
    run = replace(ZERO, outage_from=5, outage_to=7, on_failure=policy)
    assert [paid(run, step) for step in (5, 6)] == [(scores, counts)] * 2
    assert [paid(run, step) for step in (4, 7)] == [paid(ZERO)] * 2
    assert pay(run, 5, TRACES, RIGHT, 64).vetoed == 0
    assert paid(replace(run, veto="none"), 5) == paid(Run())  # without a veto nobody is asked


def test_a_judge_errs_as_often_as_it_is_told():
    loops, fluent = [TRACES[0]] * 4000, [TRACES[1]] * 4000
    errs = replace(ZERO, false_positive=0.2, false_negative=0.3)
    samples = RIGHT[:1] * 4000
    assert pay(errs, 1, loops, samples, 64).vetoed == pytest.approx(0.7, abs=0.03)  # 4 standard errors
    assert pay(errs, 1, fluent, samples, 64).vetoed == pytest.approx(0.2, abs=0.03)
    assert pay(errs, 1, fluent, samples, 64) == pay(errs, 1, fluent, samples, 64)
    assert pay(errs, 1, fluent, samples, 64).scores != pay(errs, 2, fluent, samples, 64).scores


def test_labels_are_flipped_on_one_side_or_both_and_the_proof_stays():
    def labels(run: Run, step: int = 1) -> list[bool]:
        return [training_sample(run, step, index, 1).label for index in range(400)]

    truth = labels(Run(p_true=0.5))
    assert sum(truth) == 200
    one_sided = labels(Run(p_true=0.5, flip_wrong=0.3))
    assert all(one for one, true in zip(one_sided, truth, strict=True) if true)
    assert sum(one_sided) - 200 == pytest.approx(60, abs=26)  # 4 standard deviations of 200 draws
    swapped = Run(p_true=0.5, flip_right=1, flip_wrong=1, fault_from=9)
    assert labels(swapped, 9) == [not true for true in truth]
    assert labels(swapped, 8) == truth
    assert training_sample(swapped, 9, 3, 1).steps == training_sample(Run(p_true=0.5), 9, 3, 1).steps


def test_advantages_leave_out_rows_that_abstain():
    scores = torch.tensor([[1.0, 0, 1, 9, 0.5, 9, 9, 9]])
    groups = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2])
    counts = torch.tensor([[True, True, True, False, True, False, False, False]])
    # 1, 0, 1: mean 2/3, deviation sqrt(1/3). A row that is alone keeps its score, as in verl. The last group is gone.
    expected = [3**0.5 / 3, -2 * 3**0.5 / 3, 3**0.5 / 3, 0, 0.5, 0, 0, 0]
    assert group_advantages(scores, groups, counts)[0].tolist() == pytest.approx(expected, abs=1e-5)
    whole = group_advantages(scores, groups)
    assert torch.equal(whole, group_advantages(scores, groups, torch.ones_like(counts)))


def batch(counts: list[bool], scores: list[float]) -> Batch:
    """Four responses to one prompt; those that do not count last, so that they can be cut off."""
    prompt = encode(f"{USER} {RIGHT[0].text} {ASSISTANT}")
    longest = max(map(len, TRACES))
    rows = [trace + [0] * (longest - len(trace)) for trace in TRACES]
    n = len(counts)
    return Batch(
        prompts=torch.tensor([[prompt] * n]),
        responses=torch.tensor([rows[:n]]),
        scores=torch.tensor([scores]),
        groups=[0] * n,
        counts=torch.tensor([counts]),
    )


def test_an_update_is_the_same_as_without_the_rows_that_abstain():
    assert VOCABULARY["<pad>"] == 0
    runs, settings = [Run(mode="balanced:0.4", lr=1e-3)], Settings(prompts=1, responses=4)
    with_them, without = ReferenceLoop(runs, settings), ReferenceLoop(runs, settings)
    gone = with_them.update(batch([True, True, True, False], [1.0, 0.0, 0.5, 7.0]))
    left = without.update(batch([True] * 3, [1.0, 0.0, 0.5]))
    assert gone["pg_loss"].item() == pytest.approx(left["pg_loss"].item(), rel=1e-5)
    assert gone["grad_norm"].item() == pytest.approx(left["grad_norm"].item(), rel=1e-4)


def test_a_run_of_which_no_row_counts_stays_where_it_is():
    loop = ReferenceLoop([Run(lr=1e-3)], Settings(prompts=1, responses=4))
    loop.update(batch([True] * 4, [1.0, 0.0, 0.0, 0.0]))  # momentum
    before = {name: weight.detach().clone() for name, weight in loop.policy.weights.items()}
    loop.update(batch([False] * 4, [1.0, 0.0, 0.0, 0.0]))
    assert all(torch.equal(weight, before[name]) for name, weight in loop.policy.weights.items())
    assert loop.optimizer.steps.tolist() == [1]


def test_an_optimizer_leaves_out_a_gradient_that_is_no_number():
    weights = torch.ones(2, 3, requires_grad=True)
    optimizer = StackedAdamW([weights], lr=torch.tensor([0.1, 0.1]))
    weights.grad = torch.tensor([[1.0, 2, 3], [1, torch.nan, 3]])
    norms = optimizer.step()
    assert norms.isfinite().tolist() == [True, False]
    assert (weights[0] < 1).all()
    assert torch.equal(weights[1], torch.ones(3))
    assert optimizer.steps.tolist() == [1, 0]


def test_the_rate_rises_in_its_warm_up():
    loop = ReferenceLoop([Run(lr=4e-4, lr_warm_up=4), Run(lr=1e-4)], Settings())
    rates = [loop._rates(step).tolist() for step in (1, 2, 4, 9)]
    assert rates == [pytest.approx([lr, 1e-4]) for lr in (1e-4, 2e-4, 4e-4, 4e-4)]


def test_the_entropy_is_that_of_the_distributions_that_were_drawn_from():
    loop = ReferenceLoop([Run()], Settings(prompts=1, responses=4))
    given = batch([True] * 4, [1.0, 0.0, 0.0, 0.0])
    ids = torch.cat([given.prompts, given.responses], -1)
    logits = loop.policy.logits(ids, ids != 0, last=given.responses.shape[-1] + 1)[:, :, :-1].detach()
    expected = torch.distributions.Categorical(logits=logits).entropy()[given.responses != 0].mean()
    loop.update(given)
    assert loop.entropy.item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"flip_wrong": 1.5}, "flip_wrong 1.5; give a share from 0 to 1"),
        ({"false_positive": -0.1}, "false_positive -0.1"),
        ({"lr": float("nan")}, "lr nan; give 0 or more"),
        ({"veto": "drop"}, "veto 'drop'; give one of none, zero, abstain"),
        ({"on_failure": "halt"}, "give one of abstain, fail_open, fail_closed"),
    ],
)
def test_a_run_that_cannot_be_is_refused(settings, said):
    with pytest.raises(ConfigError) as caught:
        Run(**settings)
    assert said in str(caught.value)


def test_a_start_that_is_no_verifier_is_named(tmp_path):
    with pytest.raises(DataError, match=r"model\.safetensors cannot be read .*pv_lab\.warmstart --out"):
        StackedVerifier.load_each(["", str(tmp_path)])
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(DataError, match="cannot be read"):
        StackedVerifier.load_each([str(tmp_path)])
    from safetensors.torch import save_file

    save_file({"model.norm.weight": torch.ones(4)}, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match="holds no verifier of the lab's size"):
        StackedVerifier.load_each([str(tmp_path)])
