"""TRL's GRPO trainer with a weighting: its gradient is the paper's, however TRL cuts the generation batch."""

from __future__ import annotations

import asyncio
import copy
import inspect
from dataclasses import replace

import pytest
import torch
from added_rewards import adding
from grid.cases import Case
from grid.compare import TOLERANCE, as_float64
from grid.model import EOS
from grid.oracle import Loss, predict, row_gradient, update_weights
from trainer_grid import OURS, Step, make_step

from pv_rl.errors import ConfigError, DataError, LossModeError, RunHalted
from pv_rl.hookspecs import RewardEntry
from pv_rl.losses import check_policy_loss
from pv_rl.rewards import RewardOutput

pytest.importorskip("datasets", reason="datasets is not installed: pip install datasets")

from drivers import trl as driver

from pv_trainers import trl as adapter
from pv_trainers.trl_rewards import reward_function

GROUPS = ((3, 17, 40, 9), (5, 1, 22, 60), (8, 8, 30, 2))
ALL_CUTS = {"micro_rows": 2, "mini_rows": 6, "abstained": (1, 4, 5, 6, 7), "holes": 0.3}
"""Accumulation of 3, two updates a generation batch, which TRL shuffles, a row and a group that do not count."""
TWO_RANKS = {"micro_rows": 1, "mini_rows": 6, "ranks": 2, "abstained": (1,)}
"""The second group is on both."""


def case(**axes) -> Case:
    return Case(name="TRL", groups=GROUPS, **axes)


def expected(model, step: Step, spec: str, chosen: list[int]) -> torch.Tensor:
    """(parameters,) the gradient of one update of `chosen` rows; KL is a mean over the generation batch's tokens."""
    rows, loss = [as_float64(row) for row in step.rows], step.case.loss
    updates = len(rows) / (step.case.mini_rows or len(rows))
    if "@batch" in spec:  # TRL's batch is the generation batch
        weights = {row: updates * w for row, w in update_weights(spec, rows, range(len(rows)), 1, 64).items()}
    else:
        weights = update_weights(spec, rows, chosen, updates, 64)
    policy = replace(loss, kl=None, kl_coef=0.0, clip_low=1.0 if loss.policy == "cispo" else loss.clip_low)
    total = sum(weights[row] * row_gradient(model, rows[row], policy) for row in chosen if weights[row])
    if loss.kl:
        without = [replace(row, advantages=torch.zeros_like(row.advantages)) for row in rows]
        tokens = sum(int(row.mask.sum()) for row in rows)
        counted = [row for row in chosen if rows[row].mask.any()]
        total += updates / tokens * sum(row_gradient(model, without[row], loss) for row in counted)
    return total


def worst(models, step: Step, mode: str, given: Step | None = None, **settings) -> float:
    """Worst relative error of a step; `given` is what TRL gets where it is not what the oracle gets."""
    found = driver.updates(models[1], given or step, mode, **settings)
    assert len(found) == len(step.rows) // (step.case.mini_rows or len(step.rows)) * step.case.epochs
    return error(models[0], step, mode, found)


def error(model, step: Step, spec: str, found: list[driver.Update]) -> float:
    """Worst relative error over the updates."""
    pairs = [(gradient.double(), expected(model, step, spec, rows)) for gradient, rows in found]
    return max(float((gradient - wanted).norm() / wanted.norm()) for gradient, wanted in pairs)


@pytest.mark.parametrize("mode", OURS)
def test_each_mode_is_exact_under_accumulation_several_updates_and_rows_that_do_not_count(models, mode):
    assert worst(models, make_step(case(**ALL_CUTS), models[0]), mode) <= TOLERANCE["float32"]


@pytest.mark.parametrize(
    ("axes", "mode", "settings"),
    [
        ({}, "balanced:0.6", {}),
        ({"micro_rows": 2, "epochs": 2, "mini_rows": 6}, "balanced:0.6", {}),
        (ALL_CUTS | {"loss": Loss(policy="gspo")}, "balanced:0.6", {}),
        (ALL_CUTS | {"loss": Loss(policy="cispo")}, "dapo", {}),
        (ALL_CUTS | {"is_weights": True}, "vl_norm:0.75:64", {}),
        (ALL_CUTS | {"loss": Loss(kl="low_var_kl", kl_coef=0.3)}, "balanced:0.6", {}),
        (ALL_CUTS, "balanced:0.6", {"loss_type": "grpo"}),
        (ALL_CUTS | {"loss": Loss(policy="gspo")}, "ba", {"loss_type": "grpo"}),
        (ALL_CUTS, "dapo", {"loss_type": "dr_grpo"}),
        (ALL_CUTS, "balanced:0.6", {"loss_type": "luspo"}),
        ({"micro_rows": 2}, "balanced:0.6", {"steps_per_generation": 2}),  # an update of three generations
        ({"micro_rows": 2}, "dapo", {"steps_per_generation": 2, "loss_type": "grpo"}),
        (TWO_RANKS, "ba", {}),
        (TWO_RANKS, "balanced:0.6", {"loss_type": "grpo"}),
        (TWO_RANKS | {"loss": Loss(policy="gspo", kl="low_var_kl", kl_coef=0.3)}, "dapo", {}),
    ],
)
def test_the_gradient_is_the_papers(models, axes, mode, settings):
    assert worst(models, make_step(case(**axes), models[0]), mode, **settings) <= TOLERANCE["float32"]


@pytest.mark.parametrize("own", driver.OWN)
def test_each_loss_type_is_the_mode_that_the_conversion_table_names(models, own):
    loss = Loss(policy="cispo") if own.endswith("cispo") else Loss()
    step = make_step(case(micro_rows=2, mini_rows=6, loss=loss), models[0])
    specs, found = driver.OWN[own], driver.updates(models[1], step, own)
    errors = {spec: error(models[0], step, spec, found) for spec in ([specs] if specs else OURS)}
    # bnpo is the mean over the tokens of each micro-batch, which is none of ours.
    assert max(errors.values()) <= TOLERANCE["float32"] if specs else min(errors.values()) > 1e-2


def test_a_denominator_of_half_of_the_rows_is_found(models, monkeypatch):
    monkeypatch.setitem(adapter.DENOMINATORS, "dapo", lambda lengths, longest: lengths[:6].sum())
    assert worst(models, make_step(case(**ALL_CUTS), models[0]), "balanced:0.6") > 1e-2


def soft_clipped(log_prob: torch.Tensor, row) -> torch.Tensor:
    """SAPO (arXiv 2511.20347) at TRL's temperatures: 1.0 for an advantage above 0, else 1.05."""
    temperature = 1.0 if row.advantages[0] > 0 else 1.05
    ratio = torch.exp(log_prob - row.old_log_probs)
    return -torch.sigmoid(temperature * (ratio - 1)) * 4 / temperature * row.advantages


def gamma_weighted(log_prob: torch.Tensor, row) -> torch.Tensor:
    """VESPO (arXiv 2602.10693) at TRL's numbers: k, lambda of 2, 3 for an advantage of 0 and above, else 3, 2."""
    k, scale = (2.0, 3.0) if row.advantages[0] >= 0 else (3.0, 2.0)
    log_ratio = ((log_prob - row.old_log_probs) * row.mask).sum().detach()
    return -torch.exp(scale + k * log_ratio - scale * log_ratio.exp()) * row.advantages * log_prob


@pytest.mark.parametrize(("loss_type", "formula"), [("sapo", soft_clipped), ("vespo", gamma_weighted)])
def test_the_losses_that_verl_does_not_have_are_weighed_exactly(models, loss_type, formula):
    step = make_step(case(**ALL_CUTS), models[0])
    for gradient, chosen in driver.updates(models[1], step, "balanced:0.6", loss_type=loss_type):
        weights = update_weights("balanced:0.6", step.rows, chosen, 2, 64)
        models[0].zero_grad()
        for row, weight in weights.items():
            given = as_float64(step.rows[row])
            if weight:
                log_prob = predict(models[0], given.prompt, given.response)[1]
                (weight * (formula(log_prob, given) * given.mask).sum()).backward()
        wanted = torch.cat([parameter.grad.flatten() for parameter in models[0].parameters()])
        assert float((gradient.double() - wanted).norm() / wanted.norm()) <= TOLERANCE["float32"]


def test_advantages_of_each_token_are_scaled_on_every_rank(models, monkeypatch):
    original = driver.GivenRows._generate_and_score_completions

    def by_token(self, inputs):
        batch = original(self, inputs)
        return batch | {
            "advantages": batch["advantages"][:, None].expand(-1, batch["completion_ids"].shape[1])
        }

    monkeypatch.setattr(driver.GivenRows, "_generate_and_score_completions", by_token)
    assert worst(models, make_step(case(**TWO_RANKS), models[0]), "ba") <= TOLERANCE["float32"]


@pytest.mark.parametrize("scaling", ["group", "batch"])
def test_advantages_that_trl_divides_by_a_deviation_are_weighed_as_they_are(models, scaling):
    step = make_step(case(**ALL_CUTS), models[0])
    found = {row.group: [] for row in step.rows}
    for row in step.rows:
        if row.mask.any():
            found[row.group].append(float(row.advantages[0]))
    everything = [value for values in found.values() for value in values]
    wide = {
        group: torch.tensor(everything if scaling == "batch" else values).std() if values else 1.0
        for group, values in found.items()
    }
    scaled = [replace(row, advantages=row.advantages / (wide[row.group] + 1e-4)) for row in step.rows]
    assert worst(models, Step(step.case, scaled), "balanced:0.6", given=step, scale_rewards=scaling) <= 5e-6


def test_completions_that_trl_masks_as_truncated_do_not_count(models):
    step = make_step(case(micro_rows=2, mini_rows=6), models[0])
    ended = {0, 2, 3, 5, 8, 9, 10, 11}
    for number, row in enumerate(step.rows):
        row.response[-1] = EOS if number in ended else 2
    counted = [
        row if number in ended else replace(row, mask=torch.zeros_like(row.mask))
        for number, row in enumerate(step.rows)
    ]
    error = worst(
        models, Step(step.case, counted), "balanced:0.6", given=step, mask_truncated_completions=True
    )
    assert error <= TOLERANCE["float32"]


@pytest.mark.parametrize("loss_type", adapter.DENOMINATORS)
@pytest.mark.parametrize("level", ["token", "sequence"])
def test_each_loss_that_is_served_is_proportional_to_each_rows_advantage(models, loss_type, level):
    trainer = driver.train(
        models[1],
        make_step(Case(name="short", groups=((2, 3, 4, 1),), micro_rows=4), models[0]),
        "dapo",
        loss_type=loss_type,
        importance_sampling_level=level,
    )
    inputs, given = trainer._buffered_inputs[0], trainer._get_per_token_logps_and_entropies

    def policy_loss(log_probs, advantages):
        trainer._get_per_token_logps_and_entropies = lambda *_, **__: (
            log_probs,
            torch.zeros_like(log_probs),
            *rest,
        )
        return trainer._compute_loss(trainer.model, inputs | {"advantages": advantages})

    ids, mask = (
        torch.cat([inputs[f"prompt_{part}"], inputs[f"completion_{part}"]], dim=1) for part in ("ids", "mask")
    )
    with torch.no_grad():
        log_probs, _, *rest = given(trainer.model, ids, mask, inputs["completion_ids"].shape[1])
    check_policy_loss(policy_loss, log_probs + 0.05, torch.tensor([0.5, -1.0, 2.0, -0.25]))


def test_the_log_has_the_weights(models):
    step = make_step(Case(name="paper", groups=((1, 2, 5),), micro_rows=1), models[0])
    logged = driver.train(models[1], step, "balanced:0.6").state.log_history[0]
    assert logged["pv_rl/update_mass"] == pytest.approx(1)
    assert logged["pv_rl/token_weight_max"] == pytest.approx(0.25)
    assert logged["pv_rl/token_weight_min"] == pytest.approx(0.09)
    assert logged["clip_ratio/region_mean"] >= 0  # TRL's own are there
    halves = make_step(
        Case(name="halves", groups=((1, 2, 5), (1, 2, 5)), micro_rows=1, mini_rows=3), models[0]
    )
    logged = driver.train(models[1], halves, "balanced:0.6").state.log_history[0]
    assert logged["pv_rl/token_weight_max"] == pytest.approx(0.25)  # 0.25 / 2 prompts, times 2 updates
    assert logged["pv_rl/update_mass"] == pytest.approx(1)


def test_no_row_that_counts_is_no_gradient(models):
    step = make_step(Case(name="nothing", groups=((1, 2, 5),), micro_rows=1, abstained=(0, 1, 2)), models[0])
    trainer = driver.train(models[1], step, "balanced:0.6")
    assert trainer.updates[0][0].abs().max() == 0
    assert trainer.state.log_history[0]["pv_rl/update_mass"] == 0


def test_evaluation_is_trls(models):
    step = make_step(Case(name="paper", groups=((1, 2, 5),), micro_rows=1), models[0])
    trainer = driver.train(models[1], step, "balanced:0.6")
    trainer.model.eval()
    batch = trainer._generate_and_score_completions([{"prompt": "0"}] * 3)
    assert batch["advantages"].tolist() == pytest.approx(
        [float(row.advantages[0]) for row in step.rows], abs=1e-6
    )


@pytest.mark.parametrize(
    ("settings", "mode", "error"),
    [
        ({"loss_type": "bnpo"}, "dapo", ConfigError),
        ({"loss_type": "ppo"}, "dapo", ConfigError),
        ({}, "balance", LossModeError),
        ({}, "balanced:2", LossModeError),
    ],
)
def test_what_cannot_be_served_is_refused_at_start(models, settings, mode, error):
    step = make_step(Case(name="paper", groups=((1, 2, 5),), micro_rows=1), models[0])
    with pytest.raises(error, match="dapo"):  # what to take instead
        driver.train(models[1], step, mode, **settings)


def test_a_trl_whose_loss_has_another_scale_is_refused(models, monkeypatch):
    monkeypatch.setattr(driver.trl, "__version__", "1.14.2")  # Liger's loss; before 1.10 also TRL #6024
    step = make_step(Case(name="paper", groups=((1, 2, 5),), micro_rows=1), models[0])
    with pytest.raises(ConfigError, match=r"trl 1\.14\.2"):
        driver.train(models[1], step, "dapo")


def test_a_trainer_without_a_loss_type_is_refused():
    mine = type("Mine", (adapter.WeightedAdvantages,), {})  # as trl.RLOOTrainer and SFTTrainer have none
    with pytest.raises(ConfigError, match="loss_type=None of Mine"):
        mine(loss_agg_mode="dapo")


@pytest.mark.filterwarnings("ignore:You are importing")
def test_a_trainer_of_trl_with_a_loss_of_its_own_is_refused(models, tmp_path):
    from trl.experimental.gmpo import GMPOConfig, GMPOTrainer

    class Mine(adapter.WeightedAdvantages, GMPOTrainer):
        """Its loss is not a sum over tokens."""

    settings = {"per_device_train_batch_size": 2, "num_generations": 2, "use_cpu": True, "bf16": False}
    with pytest.raises(ConfigError, match="loss_type=dapo of Mine"):
        Mine(
            copy.deepcopy(models[1]),
            lambda completions, **_: [0.0] * len(completions),
            GMPOConfig(output_dir=str(tmp_path), report_to=[], **settings),
            train_dataset=driver.Dataset.from_dict({"prompt": ["w2"] * 2}),
            processing_class=driver.AutoTokenizer.from_pretrained(models[1].config.name_or_path),
            loss_agg_mode="dapo",
        )


GOOD, BAD = ({"prompt": ["w2"] * 2, name: [True] * 2} for name in ("correct", "answer"))


@pytest.mark.parametrize(
    ("train", "given", "refused"),
    [
        (BAD, {}, True),
        (GOOD, {}, False),
        (GOOD, {"eval_dataset": driver.Dataset.from_dict(BAD)}, True),
        (GOOD, {"eval_dataset": {"a": driver.Dataset.from_dict(BAD)}}, True),
        (
            GOOD,
            {
                "eval_dataset": driver.Dataset.from_dict(BAD).with_transform(
                    lambda rows: rows | {"correct": [1]}
                )
            },
            False,
        ),
        (BAD, {"rollout_func": print}, False),  # it may return the labels
    ],
)
def test_a_data_set_without_labels_is_refused_before_the_training(models, tmp_path, train, given, refused):
    def make():
        return adapter.WeightedGRPOTrainer(
            copy.deepcopy(models[1]),
            [reward_function("verdict", label="correct"), lambda completions, **_: [0.0] * len(completions)],
            driver.trl.GRPOConfig(
                output_dir=str(tmp_path),
                report_to=[],
                per_device_train_batch_size=2,
                num_generations=2,
                use_cpu=True,
                bf16=False,
            ),
            train_dataset=driver.Dataset.from_dict(train),
            processing_class=driver.AutoTokenizer.from_pretrained(models[1].config.name_or_path),
            loss_agg_mode="dapo",
            **given,
        )

    if refused:
        with pytest.raises(
            DataError, match=r"no column 'correct', .* 'verdict' looks for labels; it has prompt, answer"
        ):
            make()
    else:
        make()


def test_the_seams_of_trl_are_those_that_were_read():
    assert driver.trl.__version__ == driver.VERSION
    of = driver.trl.GRPOTrainer
    assert list(inspect.signature(of._calculate_rewards).parameters) == [
        *("self", "inputs", "prompts", "completions", "completion_ids_list")
    ]
    assert list(inspect.signature(of._generate_and_score_completions).parameters) == ["self", "inputs"]
    assert list(inspect.signature(of._compute_loss).parameters) == ["self", "model", "inputs"]


def test_a_group_that_a_reward_takes_out_leaves_the_step_on_every_rank(models, monkeypatch):
    def reward(self, completions, **_):
        reward.dropped = [row == 5 for row in self._here]  # its group is rows 4 to 7, on both ranks
        return [float(self.step.rows[row].advantages[0]) for row in self._here]

    monkeypatch.setattr(driver.GivenRows, "reward", reward)
    step = make_step(case(**TWO_RANKS | {"abstained": ()}), models[0])
    left = [
        replace(row, mask=torch.zeros_like(row.mask)) if 4 <= number < 8 else row
        for number, row in enumerate(step.rows)
    ]
    assert worst(models, Step(step.case, left), "dapo", given=step) <= TOLERANCE["float32"]


def test_a_reward_of_ours_is_a_reward_function_of_trl():
    seen: list[tuple[str, float]] = []
    verdict = reward_function("verdict", label="correct")
    call = verdict(
        prompts=["a"] * 4,
        completions=["### True", "### False", [{"role": "assistant", "content": "### True"}], "### True"],
        correct=[True, True, "true", "perhaps"],
        trainer_state=None,
        log_metric=lambda name, value: seen.append((name, value)),
    )
    assert asyncio.run(call) == [1.0, 0.0, 1.0, None]
    assert verdict.__name__ == "verdict"  # TRL's name of it in the log
    assert [value for name, value in seen if name == "pv_rl/reward/abstained"] == [0, 0, 0, 1]
    assert [value for name, value in seen if name == "pv_rl/reward/score"] == [1, 0, 1]


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ([{"role": "assistant", "content": [{"type": "text", "text": "### True"}]}], 1.0),
        ([{"role": "assistant", "content": [{"type": "image", "text": None}]}], 0.0),
        ([{"role": "tool", "content": "### True"}, {"role": "assistant", "content": "### False"}], 0.0),
        ([{"role": "assistant", "content": ""}, {"role": "tool", "content": "### True"}], 0.0),
        ([{"role": "assistant", "content": ""}, {"role": "user", "content": "### True"}], 0.0),
        ([{"content": "### True"}], 1.0),
        ([], 0.0),
    ],
)
def test_only_the_models_last_message_is_scored(completion, score):
    """TRL ends a conversation with a tool's message if no token is left for an answer to it."""
    call = reward_function("verdict")(completions=[completion], label=[True])
    assert asyncio.run(call) == [score]


def test_a_reward_function_hands_on_what_the_reward_says_of_its_group():
    class Theirs:
        async def score(self, sample):
            no = sample.response == "no"
            return RewardOutput(score=0.0 if no else float(sample.step or 0), valid=not no, drop_group=no)

    class State:
        global_step = 7

    with adding(RewardEntry(name="theirs", build=Theirs, meaning="a test's")):
        theirs = reward_function("theirs")
        call = theirs(completions=["yes", "no", [{"content": None}]], label=[1, 0, 1], trainer_state=State)
        assert asyncio.run(call) == [7.0, None, 7.0]
        assert theirs.dropped == [False, True, False]


def test_a_reward_reads_the_other_columns_of_the_data_set():
    pytest.importorskip(
        "pv_verdicts", reason="pv-verdicts is not installed: pip install ./plugins/pv-verdicts"
    )
    seen: list[tuple[str, float]] = []
    call = reward_function("grade", truth_key="points")(
        completions=["### Grade: 5", "### Grade: 7", "no grade"],
        label=[True, False, True],
        points=[5, 0, None],
        unrelated=[1, 2],
        log_metric=lambda name, value: seen.append((name, value)),
    )
    assert asyncio.run(call) == [1.0, 0.0, None]
    assert [value for name, value in seen if name == "pv_rl/reward/grade_error"] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: reward_function("verdikt"), ConfigError, "did you mean|verdict"),
        (lambda: reward_function("verdict", rules={}), ConfigError, "do not fit"),
        (lambda: reward_function("verdict_fluency", on_failure="halt"), ConfigError, "on_failure=abstain"),
        (
            lambda: asyncio.run(reward_function("verdict")(completions=["a"], prompts=["b"], answer=["c"])),
            DataError,
            "no column 'label'.*prompts, answer",
        ),
        (
            lambda: asyncio.run(
                reward_function("verdict")(completions=["a"] * 16, label=["?"] * 9 + [1] * 7)
            ),
            RunHalted,
            "'verdict' failed for most of the last rows: DataError: the label is",
        ),
    ],
)
def test_a_reward_that_cannot_be_had_ends_the_run(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_weights_of_unsloths_own_are_refused(models, monkeypatch):
    original = driver.GivenRows._generate_and_score_completions
    monkeypatch.setattr(
        *(driver.GivenRows, "_generate_and_score_completions"),
        lambda self, inputs: original(self, inputs) | {"unsloth_sample_weight": torch.ones(3)},
    )
    step = make_step(Case(name="paper", groups=((1, 2, 5),), micro_rows=1), models[0])
    with pytest.raises(ConfigError, match="UNSLOTH_GRPO_"):
        driver.train(models[1], step, "dapo")
