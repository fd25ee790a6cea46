"""The tabular mechanism: its weights, its gradient against an exact enumeration, its signs, and what it refuses."""

import itertools
import json
import math
import statistics
from dataclasses import replace

import numpy as np
import pytest

from pv_lab.mechanism import Setting, experiments, train, weightings
from pv_lab.mechanism.__main__ import main
from pv_lab.mechanism.command import FILES, show_mechanism, train_all
from pv_lab.mechanism.document import markdown, numbers
from pv_lab.mechanism.experiments import Experiment
from pv_lab.mechanism.outcome import ArmOutcome, Outcome
from pv_lab.mechanism.policy import Counts, Probabilities, first_logits, probabilities, score
from pv_lab.mechanism.sampling import Proofs, respond
from pv_lab.mechanism.training import History, Run, _draw_proofs
from pv_lab.mechanism.weighing import advantages, token_weights
from pv_rl.errors import ConfigError, LossModeError
from pv_rl.losses import resolve_mode, response_weights

MODES = ("dapo", "balanced:0.6", "grpo")
SMALL = Setting(prompts=8, group=4, train_steps=6)
WRONG_STEP, LIMIT = 0, 60
"""The tiny case: a proof of two steps, the first of them wrong, and a limit that cuts off a third pass."""


def enumerate_responses():
    """Every response to the tiny case, told as a story of yes and no: (decisions, length, correct).

    A decision is (chance, yes). Written down from the description of the behaviours, apart from the sampler.
    """

    def look(step, decisions, length, twice):
        if length >= LIMIT:
            yield decisions, LIMIT, False
            return
        length += 8
        name = "miss" if step == WRONG_STEP else "false_alarm"
        for yes in (True, False):
            path = [*decisions, (name, yes)]
            alarm = (not yes) if name == "miss" else yes
            if not alarm:
                yield from passed(step, path, length, twice)
            elif not twice:
                yield path, min(length + 11, LIMIT), length + 11 < LIMIT
            else:
                second = "lost" if name == "miss" else "kept"
                for said in (True, False):
                    confirmed = (not said) if second == "lost" else said
                    after = [*path, (second, said)]
                    if confirmed:
                        yield after, min(length + 21, LIMIT), length + 21 < LIMIT
                    else:
                        yield from passed(step, after, length + 10, twice)

    def passed(step, decisions, length, twice):
        if step == 0:
            yield from look(1, decisions, length, twice)
        elif not twice:
            yield decisions, min(length + 7, LIMIT), False
        else:
            yield [*decisions, ("again", False)], min(length + 7, LIMIT), False
            yield from look(0, [*decisions, ("again", True)], length + 8, twice)

    yield [("behaviour", 0)], 8, False  # accepts a wrong proof
    for kind in (1, 2):
        yield from look(0, [("behaviour", kind)], 5, kind == 2)


def log_probability(z, decisions):
    names = ("miss", "false_alarm", "again", "lost", "kept")
    total = 0.0
    for name, value in decisions:
        if name == "behaviour":
            total += z[value] - math.log(sum(math.exp(x) for x in z[:3]))
        else:
            x = z[3 + names.index(name)]
            total -= math.log1p(math.exp(-x if value else x))
    return total


def counts_of(decisions):
    names = ("miss", "false_alarm", "again", "lost", "kept")
    asked, yes = np.zeros((5, 1), dtype=int), np.zeros((5, 1), dtype=int)
    for name, value in decisions[1:]:
        asked[names.index(name)] += 1
        yes[names.index(name)] += value
    return Counts(behaviour=np.array([decisions[0][1]]), asked=asked, yes=yes)


@pytest.fixture(scope="module")
def tiny():
    z = first_logits([Setting(miss=0.6, false_alarm=0.3, lost=0.2, kept=0.3)])[0]
    responses = list(enumerate_responses())
    weight = np.array([math.exp(log_probability(z, decisions)) for decisions, _, _ in responses])
    return z, responses, weight


def test_the_tiny_case_is_enumerated_whole(tiny):
    _, _, probability = tiny
    assert probability.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_score_function_gradient_is_the_derivative_of_the_expected_objective(tiny, mode):
    """Pairs of responses, drawn from z: E[sum_i w_i A_i p_z'(o_i) / p_z(o_i)], differentiated at z' = z."""
    z, responses, probability = tiny
    lengths = np.array([length for _, length, _ in responses])
    correct = np.array([float(good) for _, _, good in responses])
    first, second = map(np.array, zip(*itertools.product(range(len(responses)), repeat=2), strict=True))
    pairs = np.stack([lengths[first], lengths[second]], axis=1)
    weights = response_weights(mode, pairs.ravel().tolist(), np.repeat(range(len(first)), 2).tolist())
    weights = weights.numpy().reshape(-1, 2) * len(first)  # of a step with this pair alone
    advantage = advantages(np.stack([correct[first], correct[second]], axis=1))
    # coefficient of each response's ratio, summed over the pairs in which it stands
    pair = (probability[first] * probability[second])[:, None] * weights * advantage
    coefficient = np.bincount(first, pair[:, 0]) + np.bincount(second, pair[:, 1])

    def objective(moved):
        now = np.array([math.exp(log_probability(moved, decisions)) for decisions, _, _ in responses])
        return float((coefficient * now / probability).sum())

    step = 1e-5
    numeric = [(objective(z + step * axis) - objective(z - step * axis)) / (2 * step) for axis in np.eye(8)]
    policy = probabilities(z[None])
    own = np.zeros(1, dtype=int)
    scores = np.concatenate([score(counts_of(decisions), policy, own) for decisions, _, _ in responses])
    assert coefficient @ scores == pytest.approx(np.array(numeric), abs=1e-8)
    assert np.abs(numeric).max() > 1e-4  # not a comparison of zeros


def test_the_sampler_draws_what_the_enumeration_says(tiny):
    z, responses, probability = tiny
    number = 40_000
    proofs = Proofs(steps=np.full(number, 2), wrong=np.full(number, WRONG_STEP))
    run = np.zeros(number, dtype=int)
    drawn = respond(np.random.default_rng(5), proofs, probabilities(z[None]), run, np.full(number, LIMIT))
    expected: dict = {}
    for (decisions, length, correct), p in zip(responses, probability, strict=True):
        counts = counts_of(decisions)
        key = (decisions[0][1], length, correct, *counts.asked[:, 0].tolist(), *counts.yes[:, 0].tolist())
        expected[key] = expected.get(key, 0.0) + p
    rows = zip(
        drawn.counts.behaviour,
        drawn.length,
        drawn.correct(proofs),
        *drawn.counts.asked,
        *drawn.counts.yes,
        strict=True,
    )
    seen: dict = {}
    for row in rows:
        seen[tuple(map(int, row))] = seen.get(tuple(map(int, row)), 0) + 1
    assert set(seen) <= {tuple(map(int, key)) for key in expected}
    for key, p in expected.items():
        share = seen.get(tuple(map(int, key)), 0) / number
        assert share == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / number) + 1e-9), key


@pytest.mark.parametrize("mode", [*MODES, "dr_grpo:400", "ba"])
def test_weights_are_those_of_response_weights(mode):
    rng = np.random.default_rng(1)
    length, advantage = rng.integers(8, 400, (3, 6 * 4)), rng.integers(-1, 2, (3, 6 * 4))
    found = token_weights(resolve_mode(mode), length, 4, advantage)
    for row, own, signs in zip(found, length, advantage, strict=True):
        expected = response_weights(
            mode, own.tolist(), np.repeat(range(6), 4).tolist(), signs.tolist()
        ).numpy()
        assert row == pytest.approx(expected, rel=1e-12)


def test_between_two_modes_of_fixed_length_weighting_changes_speed_and_not_sign():
    """Four responses of 8 tokens, four of 60: m = 34, and GRPO is m^2 / (8 * 60) = 2.41 times as fast."""
    length = np.array([[8] * 4 + [60] * 4])
    long_score = np.array([0.5] * 4 + [-0.5] * 4)  # d log pi / d z of the short mode at pi = 1/2
    for rewards, sign in (([1, 1, 1, 0, 1, 0, 0, 0], 1), ([1, 0, 0, 0, 1, 1, 1, 0], -1)):
        advantage = advantages(np.array([rewards], dtype=float))[0]
        speed = {
            mode: float((token_weights(resolve_mode(mode), length, 8)[0] * advantage) @ long_score)
            for mode in MODES
        }
        assert all(math.copysign(1, value) == sign for value in speed.values())
        assert speed["grpo"] / speed["dapo"] == pytest.approx(34**2 / (8 * 60))
        assert speed["balanced:0.6"] == pytest.approx(0.6 * speed["grpo"] + 0.4 * speed["dapo"])


@pytest.mark.parametrize(("p_true", "rises"), [(1.0, True), (0.0, False)])
@pytest.mark.parametrize("mode", MODES)
def test_short_acceptance_grows_exactly_where_accepting_pays(mode, p_true, rises):
    setting = replace(SMALL, p_true=p_true, prompts=32, train_steps=3, miss=0.6)
    history = train([Run(setting=setting, mode=mode)] * 4, 3)
    change = np.diff(history.behaviour[:, :, 0], axis=1)
    assert (change > 0).all() if rises else (change < 0).all()


def test_the_first_steps_move_short_acceptance_fastest_under_grpo():
    history = train([Run(setting=Setting(train_steps=21), mode=mode) for mode in MODES for _ in range(3)], 7)
    dapo, balanced, grpo = history.behaviour[:, -1, 0].reshape(3, 3).mean(axis=1)
    assert 0.5 < dapo < balanced < grpo


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    runs = [Run(setting=SMALL, mode=mode) for mode in MODES]
    first, again, other = (train(runs, [seed, 0]) for seed in (4, 4, 5))
    for name, values in vars(first).items():
        np.testing.assert_array_equal(values, vars(again)[name])
    assert (first.length != other.length).any()


def test_an_update_is_made_of_the_rows_of_its_own_run_with_response_weights():
    """One step of two unlike runs, done again row by row."""
    settings = [replace(SMALL, short=0.2, p_true=0.3), replace(SMALL, short=0.7, learning_rate=5.0)]
    modes = ("grpo", "balanced:0.3")
    found = train([Run(setting=s, mode=mode) for s, mode in zip(settings, modes, strict=True)], 9)

    rows, rng, logits = SMALL.prompts * SMALL.group, np.random.default_rng(9), first_logits(settings)
    proofs = _draw_proofs(rng, settings, SMALL.prompts, SMALL.group)
    of_run = np.repeat([0, 1], rows)
    drawn = respond(rng, proofs, probabilities(logits), of_run, np.full(2 * rows, SMALL.max_length))
    correct, ids = drawn.correct(proofs).astype(float), [row // SMALL.group for row in range(rows)]
    for place, (setting, mode) in enumerate(zip(settings, modes, strict=True)):
        z, own = logits[place].copy(), slice(place * rows, (place + 1) * rows)
        weights = response_weights(mode, drawn.length[own].tolist(), ids).tolist()
        policy = probabilities(logits[place : place + 1])
        for row in range(own.start, own.stop):
            group = correct[row - row % SMALL.group :][: SMALL.group].tolist()
            advantage = (correct[row] - statistics.mean(group)) / (statistics.stdev(group) + 1e-6)
            counts = drawn.counts
            behaviour = np.eye(3)[counts.behaviour[row]] - policy.behaviour[0]
            chance = counts.yes[:, row] - counts.asked[:, row] * policy.chance[0]
            rate = setting.learning_rate * np.array([1, 1, 1, 0.2, 0.2, 1, 0.2, 0.2])  # skill_rate 0.2
            z += rate * weights[row - own.start] * advantage * np.concatenate([behaviour, chance])
        after = probabilities(z[None])
        np.testing.assert_allclose(found.behaviour[place, 1], after.behaviour[0], rtol=1e-10)
        np.testing.assert_allclose(found.chance[place, 1], after.chance[0], rtol=1e-10)
        assert found.reward[place, 0] == pytest.approx(correct[own].mean())
        assert found.length[place, 0] == pytest.approx(drawn.length[own].mean())


def outcome_of(lengths, shorts):
    experiment, *_ = experiments(SMALL, 0.6, 2)
    arms = []
    for arm, length, short in zip(experiment.arms, lengths, shorts, strict=True):
        flat = np.full((2, 10), float(length))
        behaviour = np.stack(
            [np.full((2, 10), short), np.full((2, 10), 0.0), np.full((2, 10), 1 - short)], axis=2
        )
        history = History(
            length=flat, reward=flat, right=flat, wrong=flat, behaviour=behaviour, chance=np.zeros((2, 10, 5))
        )
        arms.append(ArmOutcome(arm=arm, history=history))
    return Outcome(experiment=experiment, arms=tuple(arms))


@pytest.mark.parametrize(
    ("lengths", "shorts", "order", "regimes"),
    [
        ((110, 90, 18), (0.1, 0.3, 0.9), True, True),
        ((110, 120, 18), (0.1, 0.3, 0.9), False, False),
        ((110, 90, 50), (0.1, 0.3, 0.6), True, False),
        ((110, 30, 18), (0.1, 0.7, 0.9), True, False),
    ],
)
def test_the_three_regimes_need_the_order_and_a_collapse_of_grpo_alone(lengths, shorts, order, regimes):
    outcome = outcome_of(lengths, shorts)
    assert outcome.ordered("length_end") is order
    assert outcome.three_regimes() is regimes


def test_middle_and_end_are_tenths_of_the_steps():
    experiment: Experiment = experiments(SMALL, 0.6, 1)[0]
    ramp = np.arange(40.0)[None]
    history = History(
        length=ramp,
        reward=ramp,
        right=ramp,
        wrong=ramp,
        behaviour=np.zeros((1, 40, 3)),
        chance=np.zeros((1, 40, 5)),
    )
    arm = ArmOutcome(arm=experiment.arms[0], history=history)
    found = [arm.values(f"length_{when}") for when in ("start", "middle", "end")]
    assert found == [[0.0], [19.5], [37.5]]  # step 0; 18 to 21; 36 to 39


def test_main_setting_is_never_written_without_its_controls(tmp_path):
    show_mechanism(out=tmp_path / "new", setting=SMALL, eta=0.6, seeds=1, seed=0, processes=1)
    picture, table, raw = (tmp_path / "new" / name for name in FILES)
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = table.read_text()
    for name in (
        "main",
        "balanced labels",
        "other rates",
        "twice as long",
        "p\\_true 0.56",
        "Three regimes:",
    ):
        assert name in text
    names = [experiment["name"] for experiment in json.loads(raw.read_text())["experiments"]]
    assert len(names) == 1 + 3 + 12


def test_accuracy_on_proofs_that_there_are_none_of_is_no_number():
    outcomes = train_all(setting=replace(SMALL, p_true=1.0), eta=0.6, seeds=1, seed=0, processes=1)
    row = next(line for line in markdown(outcomes).splitlines() if line.startswith("| main | dapo |"))
    assert row.endswith(" | - |")
    raw = numbers(outcomes, 0)
    assert "NaN" not in raw
    assert json.loads(raw)["experiments"][0]["arms"][0]["runs"]["wrong_end"] == [None]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"p_true": 1.2}, r"p_true=1.2 is no share; give a number from 0 to 1"),
        ({"p_true": math.nan}, r"p_true=nan is no share"),
        ({"p_true": True}, r"p_true=True is not a number"),
        ({"miss": 1.0}, r"miss=1.0 has no logit; give a probability above 0 and below 1"),
        ({"short": 0.9, "recheck": 0.1}, r"leave a behaviour without probability"),
        ({"steps_low": 9}, r"steps_low=9 to steps_high=8"),
        ({"group": 1}, r"group=1 is too small; give 2 or more"),
        ({"group": 2.5}, r"group=2.5 is not a whole number"),
        ({"learning_rate": 0.0}, r"learning_rate=0.0 teaches nothing"),
        ({"skill_rate": -1.0}, r"skill_rate=-1.0 is no share of a rate"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        Setting(**changes)


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(LossModeError, match=r"eta.*1\.5"):
        weightings(1.5)
    with pytest.raises(ConfigError, match=r"seeds=0 trains nothing; give 1 or more"):
        experiments(Setting(), 0.6, 0)
    with pytest.raises(ConfigError, match=r"seed=-1 starts no stream"):
        train_all(setting=SMALL, eta=0.6, seeds=1, seed=-1, processes=1)
    with pytest.raises(ConfigError, match=r"processes=0"):
        train_all(setting=SMALL, eta=0.6, seeds=1, seed=0, processes=0)
    with pytest.raises(ConfigError, match=r"'dapo@batch' weighs all prompts.*give 'dapo'"):
        train([Run(setting=SMALL, mode="dapo@batch")], 0)
    with pytest.raises(ConfigError, match=r"0 runs"):
        train([], 0)


def test_the_command_says_what_is_wrong_in_one_line(tmp_path):
    import typer
    from typer.testing import CliRunner

    app = typer.Typer()
    app.command()(main)
    result = CliRunner().invoke(app, ["--out", str(tmp_path), "--p-true", "1.2"])
    assert result.exit_code == 1
    assert result.output.strip() == "error: p_true=1.2 is no share; give a number from 0 to 1"
    assert not list(tmp_path.iterdir())


def test_probabilities_undo_first_logits():
    setting = Setting()
    found: Probabilities = probabilities(first_logits([setting]))
    assert found.behaviour[0] == pytest.approx([0.5, 0.38, 0.12])
    assert found.chance[0] == pytest.approx([0.93, 0.104, 0.6, 0.02, 0.02])
