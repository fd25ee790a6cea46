"""Four of verl's own scripts with the commands of docs/guides/verl.md: each composes, and verl accepts it.

The settings are those of the scripts, without paths and names; the page says where they are from.
"""

from __future__ import annotations

import re
import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fork_server import run_fresh, run_module
from places import ROOT

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

from hydra import compose, initialize_config_module

from pv_rl.errors import ConfigError
from pv_rl.losses import resolve_mode
from pv_rl.recipes.choices import check_choices, check_groups
from pv_rl.rewards.build import build_reward
from pv_rl.rewards.named import plain
from pv_runs.recipes.validation import validate

ACTOR, ROLLOUT, REF = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.ref"
PAGE = (ROOT / "docs" / "guides" / "verl.md").read_text()
BLOCKS = [  # of the page, those that are overrides to append
    shlex.split(block.replace("\\\n", " "))
    for block in re.findall(r"(?:^ {4}.*\n)+", PAGE, re.MULTILINE)
    if not block.lstrip().startswith("bash ")
]
MODE_ALONE, OURS = BLOCKS
RECIPE = ["hydra.searchpath=[pkg://pv_rl.hydra_configs]", "+recipe=balanced", "recipe.eta=0.3"]
RECIPE_LAST = [*RECIPE, f"{ACTOR}.loss_agg_mode=balanced:${{recipe.eta}}@${{recipe.scope}}"]
ROWS = [shlex.split(row) for row in re.findall(r"^\| `([^`]*=[^`]*)` \| [^|]*\|$", PAGE, re.MULTILINE)]
NAMED = "reward.custom_reward_function.path=pkg://pv_rl.rewards.named"
NAME = "reward.custom_reward_function.name={}"
KWARGS = "reward.custom_reward_function.reward_kwargs"
SCORE = "algorithm.filter_groups.metric=score"
COMMON = (
    "algorithm.adv_estimator=grpo",
    "algorithm.use_kl_in_reward=False",
    "data.filter_overlong_prompts=True",
    "actor_rollout_ref.model.path=MODEL",
    "actor_rollout_ref.model.use_remove_padding=True",
    "actor_rollout_ref.model.enable_gradient_checkpointing=True",
    f"{ACTOR}.use_dynamic_bsz=True",
    f"{ACTOR}.optim.lr=1e-6",
    f"{ACTOR}.entropy_coeff=0",
    f"{ROLLOUT}.name=vllm",
    f"{ROLLOUT}.tensor_model_parallel_size=2",
    f"{ROLLOUT}.gpu_memory_utilization=0.6",
    f"{ROLLOUT}.log_prob_use_dynamic_bsz=True",
)


def lengths(prompt: int, response: int, tokens: int) -> tuple[str, ...]:
    return (
        f"data.max_prompt_length={prompt}",
        f"data.max_response_length={response}",
        f"{ACTOR}.ppo_max_token_len_per_gpu={tokens}",
        f"{ROLLOUT}.log_prob_max_token_len_per_gpu={tokens}",
        f"{REF}.log_prob_max_token_len_per_gpu={tokens}",
    )


SCRIPTS = {
    "grpo": (  # verl examples/grpo_trainer/run_qwen3_8b_fsdp.sh at 08aef7f
        *COMMON,
        *lengths(1024, 2048, 24576),
        "data.train_batch_size=1024",
        "data.truncation=error",
        f"{ACTOR}.ppo_mini_batch_size=256",
        f"{ACTOR}.use_kl_loss=True",
        f"{ACTOR}.kl_loss_coef=0.001",
        f"{ACTOR}.kl_loss_type=low_var_kl",
        f"{ROLLOUT}.n=5",
        f"{REF}.fsdp_config.param_offload=True",
        "trainer.nnodes=1",
        "trainer.n_gpus_per_node=8",
    ),
    "gspo": (  # verl examples/gspo_trainer/run_qwen3_8b_fsdp.sh at 08aef7f
        *COMMON,
        *lengths(2048, 8192, 20480),
        "data.train_batch_size=512",
        "data.truncation=error",
        f"{ACTOR}.policy_loss.loss_mode=gspo",
        f"{ACTOR}.loss_agg_mode=seq-mean-token-mean",
        f"{ACTOR}.clip_ratio_low=3e-4",
        f"{ACTOR}.clip_ratio_high=4e-4",
        f"{ACTOR}.clip_ratio_c=10.0",
        f"{ACTOR}.ppo_mini_batch_size=128",
        f"{ACTOR}.use_kl_loss=False",
        f"{ACTOR}.fsdp_config.param_offload=True",
        f"{ACTOR}.fsdp_config.optimizer_offload=True",
        f"{ROLLOUT}.n=16",
        "trainer.nnodes=1",
        "trainer.n_gpus_per_node=8",
    ),
    "dapo": (  # the settings of DAPO (arXiv 2503.14476) for verl 0.9's own group filtering
        *COMMON,
        *lengths(2048, 20480, 22528),
        "data.train_batch_size=512",
        "data.gen_batch_size=1536",
        "data.truncation=left",
        "algorithm.filter_groups.enable=True",
        "algorithm.filter_groups.metric=acc",
        "algorithm.filter_groups.max_num_gen_batches=10",
        f"{ACTOR}.loss_agg_mode=token-mean",
        f"{ACTOR}.clip_ratio_low=0.2",
        f"{ACTOR}.clip_ratio_high=0.28",
        f"{ACTOR}.clip_ratio_c=10.0",
        f"{ACTOR}.ppo_mini_batch_size=32",
        f"{ACTOR}.use_kl_loss=False",
        f"{ROLLOUT}.n=16",
        "reward.reward_manager.name=dapo",
        "+reward.reward_kwargs.overlong_buffer_cfg.enable=True",
        "+reward.reward_kwargs.overlong_buffer_cfg.len=4096",
        "+reward.reward_kwargs.overlong_buffer_cfg.penalty_factor=1.0",
        "+reward.reward_kwargs.overlong_buffer_cfg.log=False",
        "+reward.reward_kwargs.max_resp_len=20480",
        "trainer.nnodes=16",
        "trainer.n_gpus_per_node=8",
    ),
    "async": (  # verl tests/special_e2e/run_v1_separate_async.sh at d2c0bd6
        *COMMON,
        *lengths(512, 512, 4096),
        "trainer.use_v1=True",
        "trainer.v1.trainer_mode=separate_async",
        "trainer.v1.separate_async.num_warmup_batches=1",
        "trainer.v1.separate_async.parameter_sync_step=4",
        "trainer.v1.sampler.max_off_policy_threshold=8",
        "trainer.v1.sampler.max_off_policy_strategy=drop",
        "data.train_batch_size=4",
        "data.gen_batch_size=1",
        "data.truncation=left",
        "algorithm.rollout_correction.bypass_mode=False",
        f"{ACTOR}.strategy=fsdp2",
        f"{ACTOR}.fsdp_config.fsdp_size=2",
        f"{ACTOR}.ppo_mini_batch_size=1",
        f"{ACTOR}.use_kl_loss=False",
        f"{ACTOR}.clip_ratio_low=0.2",
        f"{ACTOR}.clip_ratio_high=0.28",
        f"{ROLLOUT}.nnodes=1",
        f"{ROLLOUT}.n_gpus_per_node=4",
        f"{ROLLOUT}.n=4",
        f"{ROLLOUT}.calculate_log_probs=True",
        f"{ROLLOUT}.checkpoint_engine.backend=nccl",
        "reward.reward_manager.name=dapo",
        "trainer.nnodes=1",
        "trainer.n_gpus_per_node=4",
    ),
}


def composed(*overrides: str):
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=list(overrides))


def accepted(*overrides: str):
    config = composed(*overrides)
    check_choices(config, overrides)
    check_groups(config)
    validate(config)
    return config


def script(name: str) -> tuple[str, ...]:
    """The page says what has to be changed in one of them."""
    return (*SCRIPTS[name], *([SCORE] if name == "dapo" else []))


def test_the_page_has_the_commands_that_are_tried_here():
    assert [override.partition("=")[0] for override in OURS] == [
        f"{ACTOR}.loss_agg_mode",
        "hydra.searchpath",
        "reward",
    ]
    assert [row[0].partition("=")[0] for row in ROWS] == [
        "+judge",
        "reward.custom_reward_function.reward_kwargs.veto",
    ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_verl_composes_with_our_three_overrides_and_changes_nothing_else(name):
    config, before = accepted(*script(name), *OURS), composed(*script(name))

    assert resolve_mode(config.actor_rollout_ref.actor.loss_agg_mode).name == "balanced"
    function = config.reward.custom_reward_function
    assert (function.path, function.name) == ("pkg://pv_rl.rewards.named", "verdict_fluency")
    build_reward(function.name, {**plain(function.reward_kwargs), "ledger": None})

    before.actor_rollout_ref.actor.loss_agg_mode = "balanced"
    before.reward.custom_reward_function = function
    assert config == before


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].partition("=")[0])
def test_a_row_of_the_page_can_be_appended_to_a_script(name, row):
    kwargs = accepted(*script(name), *OURS, *row).reward.custom_reward_function.reward_kwargs
    judged = [one.model for one in kwargs.judge.endpoints] if "judge" in kwargs else []
    assert (judged, kwargs.veto) in ((["deepseek-chat"], "zero"), ([], "abstain"))


@pytest.mark.parametrize("eta", [0, 0.3])
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_sweep_over_the_recipes_eta_trains_with_each_value_or_is_refused(name, eta):
    """The scripts of GSPO and DAPO set a loss_agg_mode, which has precedence over the group."""
    sweep = [f"recipe.eta={eta}" if one.startswith("recipe.eta") else one for one in RECIPE]
    if name in ("gspo", "dapo"):
        with pytest.raises(ConfigError, match=f"undoes the recipe, which asks for balanced:{eta}@prompt"):
            accepted(*script(name), *sweep)
        sweep = [f"recipe.eta={eta}" if one.startswith("recipe.eta") else one for one in RECIPE_LAST]
    config = accepted(*script(name), *sweep)
    assert dict(resolve_mode(config.actor_rollout_ref.actor.loss_agg_mode).parameters) == {"eta": eta}


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        (["+recipe=balanced", "recipe.eta=0.3", f"{ACTOR}.loss_agg_mode=balanced"], "undoes the recipe"),
        (["+recipe=balanced", f"{ACTOR}.loss_agg_mode=balanced:0.6@batch"], "undoes the recipe"),
        (["+recipe=balanced", "recipe.scope=batch", f"{ACTOR}.loss_agg_mode=balanced"], "undoes the recipe"),
        (["+recipe=grpo", f"{ACTOR}.loss_agg_mode=seq-mean-token-mean"], "asks for grpo@prompt"),
        (["+recipe=dapo", "+recipe.eta=0.3"], "recipe.eta=0.3 has no effect with recipe=dapo"),
        ([f"{ROLLOUT}.n=1", *OURS], r"n=1 leaves .*balanced:0.6@prompt without effect.*balanced:0.6@batch"),
        ([f"{ROLLOUT}.n=1", "+recipe=dapo"], r"or .*=dapo@batch"),
        ([f"{ROLLOUT}.n=1", f"{ACTOR}.loss_agg_mode=vl_norm:0.5:99"], "without effect"),
        ([f"{ROLLOUT}.n=1", "critic.loss_agg_mode=dapo"], "n=1 leaves critic.loss_agg_mode=dapo@prompt"),
        (["algorithm.filter_groups.enable=True", "algorithm.filter_groups.metric=acc", *OURS], SCORE),
        (
            [
                *("algorithm.filter_groups.enable=True", "algorithm.filter_groups.metric=acc", *OURS[1:]),
                "reward.custom_reward_function.name=weighted",
                "+reward.custom_reward_function.reward_kwargs.rewards={verdict_fluency: 1.0}",
            ],
            SCORE,
        ),
    ],
)
def test_a_setting_that_undoes_another_is_refused(overrides, text):
    with pytest.raises(ConfigError, match=text):
        accepted(*SCRIPTS["grpo"], "hydra.searchpath=[pkg://pv_rl.hydra_configs]", *overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        ["+recipe=balanced", f"{ACTOR}.loss_agg_mode=balanced"],  # the recipe's own values
        [f"{ROLLOUT}.n=1", f"{ACTOR}.loss_agg_mode=grpo"],
        [f"{ROLLOUT}.n=1", f"{ACTOR}.loss_agg_mode=balanced:1"],
        [f"{ROLLOUT}.n=1", f"{ACTOR}.loss_agg_mode=balanced@batch"],
        [f"{ROLLOUT}.n=1", f"{ACTOR}.loss_agg_mode=dr_grpo:99"],
        [f"{ROLLOUT}.n=1"],
        ["algorithm.filter_groups.enable=True", "algorithm.filter_groups.metric=acc", "reward=verdict"],
        ["algorithm.filter_groups.enable=True", "algorithm.filter_groups.metric=acc"],
        ["algorithm.filter_groups.metric=acc", "reward=verdict_fluency"],
    ],
    ids=" ".join,
)
def test_settings_that_agree_are_accepted(overrides):
    accepted(*SCRIPTS["grpo"], "hydra.searchpath=[pkg://pv_rl.hydra_configs]", *overrides)


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        (["+recipe=dapo"], r"a plain key, .* Add hydra.searchpath=\[pkg://pv_rl.hydra_configs\]"),
        (
            [*RECIPE, f"{ACTOR}.loss_agg_mode=balanced"],
            "undoes the recipe, which asks for balanced:0.3@prompt",
        ),
        (
            [NAMED, NAME.format("verdct")],
            r"name=verdct: there is no reward 'verdct'\. Did you mean verdict\?",
        ),
        ([NAMED, NAME.format("verdct"), "trainer.use_v1=False"], r"there is no reward 'verdct'"),
        (
            [*OURS[1:], f"+{KWARGS}.rulse=1"],
            rf"{KWARGS}: verdict_fluency has no option 'rulse'\. Did you mean rules",
        ),
        (
            [*OURS[1:], f"{KWARGS}.veto=drop"],
            rf"{KWARGS}: the option veto is 'drop'; expected zero or abstain",
        ),
        (
            [NAMED, NAME.format("verdict"), "data.train_files={labels}"],
            r"data\.train_files: the reward cannot read the labels of 2 of 3 rows\. The first: row 1 of .*"
            r"labels\.parquet: the label is 'good'; .* True or False",
        ),
    ],
)
def test_verls_own_command_stops_at_start(overrides, text, tmp_path):
    """Before Ray starts, so that no worker has loaded a model: verl prints the arguments of `ray.init`."""
    labels = pa.array([{"ground_truth": label} for label in ("good", "True", "bad")])
    pq.write_table(pa.table({"reward_model": labels}), tmp_path / "labels.parquet")
    overrides = [one.replace("{labels}", str(tmp_path / "labels.parquet")) for one in overrides]
    done = run_fresh(run_module("verl.trainer.main_ppo", *SCRIPTS["grpo"], *overrides))
    assert done.returncode == 1
    assert re.search(text, done.stderr)
    assert "ray init" not in done.stdout


DOCTOR = """
import sys
from pv_doctor import _guarded, all_checks
for more in {more}:
    checks = all_checks(["EPOCHS=2", "python3", "-m", "wrapper", "-m", "verl.trainer.main_ppo", *{script}, *more])
    finding = _guarded(checks["command"])
    sys.stdout.write(f"{{finding.state}} {{' '.join(finding.text.split())}} {{finding.remedy}}\\n")
sys.stdout.write(_guarded(all_checks(["python3", "-m", "mine"])["command"]).text + "\\n")
sys.stdout.write(f"{{'ray' in sys.modules and sys.modules['ray'].is_initialized()}}")
"""


def test_the_doctor_checks_a_command_as_verls_driver_does_and_starts_nothing(tmp_path):
    accepted = [
        [],
        ["--config-path=./config"],
        ["trainer.total_epochs=1,2", "--multirun"],
        ["trainer.total_epochs=${oc.env:EPOCHS}"],
    ]
    refused = [
        [NAMED, NAME.format("verdct")],
        ["+recipe=dapo"],
        ["data.train_fils=x"],
        ["--help"],
        ["--infos"],
    ]
    script = [*SCRIPTS["grpo"], *OURS]
    done = run_fresh(DOCTOR.format(script=script, more=[*accepted, *refused]), cwd=tmp_path)
    *fine, name, group, key, printed, parser, other, started = done.stdout.splitlines()
    assert fine == ["ok verl.trainer.main_ppo accepts the command "] * len(accepted)
    assert printed == "wrong the command starts no run leave out --help, --cfg and the like"
    assert parser.startswith("wrong verl.trainer.main_ppo: error: unrecognized arguments: --infos ")
    assert name.startswith("wrong reward.custom_reward_function.name=verdct: there is no reward 'verdct'.")
    assert "undoes the recipe, which asks for dapo@prompt" in group  # as Hydra alone knows
    assert re.search(r"^wrong .*Could not override 'data.train_fils'.* correct the command$", key)
    assert other == "the command runs mine. `pv-rl doctor` checks commands of verl.trainer.main_ppo"
    assert started == "False"
    assert list(tmp_path.iterdir()) == []


def test_an_update_of_another_size_is_a_warning_at_start(caplog):
    from verl.utils.config import validate_config

    config = composed(*SCRIPTS["grpo"], f"{ACTOR}.loss_agg_mode=dr_grpo:50")
    validate_config(config, False, False)
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "pv_rl"]
    assert "the mass of an update is 4.08 to 41 at responses of 204 to 2,048 tokens" in warning


def test_a_key_of_somebody_else_that_is_named_like_a_group_is_left_alone():
    config = composed(*SCRIPTS["grpo"], "+recipe=mine")
    check_groups(config)
    config.recipe = "dapo"  # as a config file may say
    check_groups(config)
