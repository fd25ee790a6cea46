"""Every run on every cluster that it makes sense on, composed and held to verl's own classes and checks."""

from __future__ import annotations

import itertools
import os
import socket

import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")
pytest.importorskip("pv_lab", reason="pv-lab is not installed: pip install ./examples/lab")

from omegaconf import OmegaConf

from pv_lab.dataset import make_rows, write_dataset
from pv_rl.errors import ConfigError, LossModeError
from pv_rl.losses import resolve_mode
from pv_rl.recipes import GROUPS, options
from pv_rl.rewards.build import build_reward
from pv_rl.rewards.named import plain
from pv_runs.preflight import Machine, Node, examine, faults
from pv_runs.recipes import check, check_arguments, compose
from pv_runs.recipes.checks import _check_secrets
from pv_runs.recipes.doctor import check_config
from pv_runs.recipes.unknown_keys import check_keys
from pv_runs.recipes.validation import validate

CLUSTERS = {
    **dict.fromkeys(("8b", "14b"), ("node8", "node8x2", "paper80")),
    "32b": ("node8x2", "paper80"),
    "small": ("gpu1", "node8"),
    "lab": ("cpu", "gpu1"),
}
MODE = "actor_rollout_ref.actor.loss_agg_mode"
KWARGS = "reward.custom_reward_function.reward_kwargs"
MODES = ("sync", "colocate_async", "separate_async")
SENSIBLE = [
    # Recipes take turns, so that each is tried with each run and in each mode.
    (run, cluster, mode, options("recipe")[(turn + turn // len(MODES)) % len(options("recipe"))])
    for run, clusters in CLUSTERS.items()
    for turn, (cluster, mode) in enumerate(itertools.product(clusters, MODES))
    if (cluster, mode) != ("gpu1", "separate_async")
]


@pytest.fixture(autouse=True, scope="module")
def _read_each_file_once():
    """verl's configs are long, and Hydra parses all of them for each composition."""
    from verl.plugin.platform.platform_manager import get_platform

    get_platform()  # verl keeps the first one, whichever test comes first
    original, read = OmegaConf.load, {}

    def load(file):
        name = getattr(file, "name", None)
        if name is None:
            return original(file)
        if name not in read:
            read[name] = original(file)
        return read[name].copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OmegaConf, "load", load)
        yield


def test_every_run_is_tried():
    assert len(SENSIBLE) >= 3 * len(options("judge"))
    assert {*CLUSTERS, "sft_small"} == set(options("runs"))  # that one: test_supervised.py
    recipes = options("recipe")
    assert {(run, recipe) for run, _, _, recipe in SENSIBLE} == set(itertools.product(CLUSTERS, recipes))
    assert {(mode, recipe) for _, _, mode, recipe in SENSIBLE} == set(itertools.product(MODES, recipes))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """Rows for the largest batch."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("train", "test"):
        write_dataset(
            make_rows(split=name, count=60, seed=0, difficulty=2, p_true=0.5), folder / f"{name}.parquet"
        )
    return folder


@pytest.fixture
def judges(monkeypatch):
    """What each judge needs: keys, and a server that listens on this machine."""
    with socket.create_server(("localhost", 0)) as server:
        monkeypatch.setenv("PV_RL_JUDGE_URL", f"http://localhost:{server.getsockname()[1]}/v1")
        for name in ("PV_RL_JUDGE_MODEL", "PV_RL_JUDGE_API_KEY", "DEEPSEEK_API_KEY"):
            monkeypatch.setenv(name, "a-name-or-a-key")
        yield


RUNS_MODEL = "reward.reward_model"
JUDGES = {
    **dict.fromkeys(options("judge"), ()),
    "verl_genrm": (
        *(
            f"{RUNS_MODEL}.enable=True",
            f"{RUNS_MODEL}.model_path=nobody/judge",
            f"{RUNS_MODEL}.rollout.name=vllm",
        ),
        *(
            f"{RUNS_MODEL}.enable_resource_pool=True",
            f"{RUNS_MODEL}.nnodes=1",
            f"{RUNS_MODEL}.n_gpus_per_node=1",
        ),
    ),
}


@pytest.mark.parametrize(("run", "cluster", "mode", "recipe"), SENSIBLE)
def test_a_run_is_clean_on_each_cluster_in_each_mode(run, cluster, mode, recipe, data_dir, judges, tmp_path):
    """Composed, accepted by verl, and without a fault where its needs are there."""
    turn = SENSIBLE.index((run, cluster, mode, recipe))
    judge, logging, sentinel = (
        options(group)[turn % len(options(group))] for group in ("judge", "logging", "sentinel")
    )
    reward = "verdict" if judge == "rules" and turn % 2 else "verdict_fluency"
    overrides = [
        *(f"data_dir={data_dir}", f"judge={judge}", *JUDGES[judge]),
        *(f"reward={reward}", f"logging={logging}", f"sentinel={sentinel}"),
        *(f"cluster={cluster}", f"recipe={recipe}", f"trainer_mode={mode}"),
    ]
    config = compose(run, overrides)
    OmegaConf.set_struct(config, False)
    config.run_dir = str(tmp_path / "run")
    machine = Machine(
        cwd=tmp_path,
        environment={"WANDB_API_KEY": "a-key", "SWANLAB_API_KEY": "a-key", "TENSORBOARD_DIR": "boards"},
        nodes=(Node(cpus=64, gpus=8),) * 11,
        has=lambda module: True,
    )
    checks = ("settings", "secrets", "packages", "gpus", "model", "data", "ports")
    assert faults(examine(config, machine, overrides, only=checks)) == []
    assert resolve_mode(config.actor_rollout_ref.actor.loss_agg_mode).name == recipe
    gpus = config.trainer.nnodes * config.trainer.n_gpus_per_node
    if mode == "separate_async":
        rollout = config.actor_rollout_ref.rollout
        gpus += rollout.nnodes * rollout.n_gpus_per_node
        sampler = config.trainer.v1.sampler
        assert (sampler.max_off_policy_threshold, sampler.max_off_policy_strategy) == (2, "wait")
    expected = {"gpu1": 1, "node8": 8, "node8x2": 16, "paper80": 80}.get(cluster)
    assert expected is None or gpus == expected


@pytest.mark.parametrize("reward", options("reward"))
def test_each_reward_of_a_run_can_be_built(reward, judges, tmp_path):
    """The judge is left out where the reward asks none."""
    judge = "openai_compatible" if reward in ("verdict_fluency", "meta_verified") else "rules"
    config = compose("small", [f"reward={reward}", f"judge={judge}", f"run_dir={tmp_path}", "data_dir=."])
    function = config.reward.custom_reward_function
    built = build_reward(function.name, plain(function.get("reward_kwargs") or {}))
    assert {"acc", "verdict_true", "verdict_missing", "label_true"} <= set(built.metric_names or ())


@pytest.mark.parametrize("run", ["8b", "14b", "32b"])
def test_a_run_has_every_value_of_the_papers_table(run):
    config = compose(run, ["data_dir=DIR"])
    actor, rollout = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout
    assert config.data.train_batch_size * rollout.n == 480
    assert config.data.train_batch_size * config.trainer.total_training_steps == 18_000
    assert (config.data.max_prompt_length, config.data.max_response_length) == (8192, 16000)
    assert (actor.optim.lr, actor.optim.weight_decay) == (5e-7, 0.1)
    assert (actor.optim.lr_scheduler_type, actor.optim.lr_warmup_steps_ratio) == ("cosine", 0.05)
    assert (rollout.n, rollout.temperature, rollout.top_p) == (8, 0.6, 0.9)
    assert (actor.clip_ratio_low, actor.clip_ratio_high) == (3e-4, 4e-4)
    assert (actor.use_kl_loss, actor.kl_loss_coef, actor.kl_loss_type) == (True, 0.05, "low_var_kl")
    assert actor.policy_loss.loss_mode == "gspo"
    assert actor.loss_agg_mode == "balanced:0.6@prompt"
    assert config.reward.custom_reward_function.name == "verdict_fluency"
    trainer = config.trainer
    assert (trainer.v1.trainer_mode, trainer.v1.separate_async.parameter_sync_step) == ("separate_async", 1)
    assert trainer.nnodes * trainer.n_gpus_per_node == 32
    assert rollout.nnodes * rollout.n_gpus_per_node == 48
    longest = config.data.max_prompt_length + config.data.max_response_length
    assert actor.ppo_max_token_len_per_gpu * actor.ulysses_sequence_parallel_size >= longest
    assert rollout.max_model_len == longest


@pytest.mark.parametrize("group", GROUPS)
def test_a_misspelt_option_of_each_group_is_an_error_that_lists_what_there_is(group):
    wrong = options(group)[0] + "x"
    with pytest.raises(ConfigError) as error:
        compose("8b", ["data_dir=DIR", f"{group}={wrong}"])
    assert f"there is no {group} named '{wrong}'" in str(error.value)
    assert all(name in str(error.value) for name in options(group))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("sign", ["", "+", "++"])
def test_a_misspelt_group_is_an_error_that_lists_the_groups(group, sign):
    wrong = f"{sign}{group}s={options(group)[0]}"
    with pytest.raises(ConfigError) as error:
        compose("8b", ["data_dir=DIR", wrong])
    assert f"there is no group or key named '{group}s'. Did you mean {group}?" in str(error.value)
    assert all(name in str(error.value) for name in GROUPS)


def test_a_misspelt_run_is_an_error_that_lists_the_runs():
    with pytest.raises(
        ConfigError, match="there is no run named '9b'; there are 14b, 32b, 8b, lab, sft_small, small"
    ):
        compose("9b")


def test_eta_is_no_setting_of_a_recipe_that_has_none():
    with pytest.raises(ConfigError, match=r"recipe.eta: there is no such setting"):
        compose("8b", ["data_dir=DIR", "recipe=dapo", "recipe.eta=0.3"])


@pytest.fixture(scope="module")
def composed():
    return compose("8b", ["data_dir=DIR"])


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("actor_rollout_ref.actor.optim.lrr=1", "actor_rollout_ref.actor.optim.lr?"),
        ("+trainer.total_traning_steps=9", "trainer.total_training_steps?"),
        ("++trainer.v1.sampler.max_off_policy_treshold=3", "trainer.v1.sampler.max_off_policy_threshold?"),
        (
            "++actor_rollout_ref.actor.optim={lr: 1, weight_decai: 3}",
            "actor_rollout_ref.actor.optim.weight_decay?",
        ),
        ("+actor_rollout_ref.model.overide_config.x=1", "actor_rollout_ref.model.override_config?"),
        ("+actor_rollout_ref.rollout.temperatur=0.5,1", "actor_rollout_ref.rollout.temperature?"),
        ("++algorithm.filter_group.enable=true", "algorithm.filter_groups?"),  # a field of verl's class alone
        ("+ray_kwargs.ray_init.num_gpu=1", "ray_kwargs.ray_init.num_gpus?"),  # a parameter of ray.init alone
        ("+trainer.lr=1", "actor_rollout_ref.actor.optim.lr or critic.optim.lr?"),  # right name, wrong place
        ("+optim.lr=1", "actor_rollout_ref.actor.optim or critic.optim?"),
        ("+trainr.nnodes=2", "trainer?"),
        ("+recipe.etaa=0.3", "recipe.eta?"),
        ("++cluster.gpus_per_nodes=8", "cluster.gpus_per_node?"),
        ("launch.envs.X=1", "launch.env?"),
    ],
)
def test_a_misspelt_key_at_any_depth_is_an_error_with_the_nearest_name(wrong, nearest, composed):
    with pytest.raises(ConfigError, match="there is no such setting") as error:
        check_keys([wrong], composed)
    assert f"Did you mean {nearest}" in str(error.value)


@pytest.mark.parametrize("one", ["data_dir=~/d", "trainer.default_local_dir=~/c"])
def test_a_home_that_no_shell_has_replaced_is_told(one):
    with pytest.raises(ConfigError, match=r"neither Hydra nor verl replaces ~.*HOME"):
        compose("small", [one])


def test_all_misspelt_keys_are_in_one_error():
    with pytest.raises(ConfigError, match=r"(?s)train.nodez.*optim.lrr"):
        compose("8b", ["data_dir=DIR", "cluster.train.nodez=1", "actor_rollout_ref.actor.optim.lrr=1"])


def test_a_key_that_verl_reads_and_does_not_list_has_to_be_added(composed):
    with pytest.raises(ConfigError, match=r"Write \+trainer.wandb_proxy="):
        check_keys(["trainer.wandb_proxy=x"], composed)


@pytest.mark.parametrize(
    "right",
    [
        "trainer.nnodes=3",
        "++recipe.eta=0.3",
        "+trainer.wandb_proxy=x",  # verl reads it from the config and lists it nowhere
        "++algorithm.filter_groups={enable: true, metric: score}",
        "+ray_kwargs.ray_init._temp_dir=x",
        "++ray_kwargs.ray_init.runtime_env.env_vars.A=1",
        "+actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes=4",
        "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
        "+reward.custom_reward_function.reward_kwargs.judge.hedging.after_s=5",
        "+reward.reward_kwargs.overlong_buffer_cfg.len=3",
        "+launch.env.NAME=1",
        "+my_plugin.threshold=3",
        "hydra.run.dir=x",
        "~trainer.nnodes",
    ],
)
def test_a_key_that_something_reads_is_accepted(right, composed):
    check_keys([right], composed)


def test_a_section_of_another_trainer_is_accepted_with_it(composed):
    with pytest.raises(ConfigError, match=r"Did you mean actor_rollout_ref\.rollout"):
        check_keys(["+rollout.nnodes=6"], composed)
    other = "launch.module=verl.experimental.one_step_off_policy.main_ppo"
    check_keys(["+rollout.nnodes=6"], compose("8b", ["data_dir=DIR", other]))


def test_a_key_that_the_users_own_code_reads_is_accepted(tmp_path, composed):
    config, code = composed.copy(), tmp_path / "data.py"
    code.write_text("def rows(config):\n    return config.get('my_rows_of_a_kind')\n")
    with pytest.raises(ConfigError, match="my_rows_of_a_kind"):
        check_keys(["+data.my_rows_of_a_kind=4"], config)
    config.data.custom_cls.path = str(code)
    check_keys(["+data.my_rows_of_a_kind=4"], config)


def test_groups_of_ones_own_are_left_to_hydra():
    with pytest.raises(ConfigError, match=r"there is no config recipe/mine.*It has .*dapo"):
        compose(
            "8b",
            [
                "data_dir=DIR",
                "recipe=mine",
                "hydra.searchpath=[pkg://verl.trainer.config,pkg://pv_rl.hydra_configs]",
            ],
        )


def test_a_sweep_over_options_and_hydras_own_options_pass():
    check_arguments(["recipe=grpo,dapo", "--multirun", "--cfg", "job", "~judge", "trainer.nnodes=1"])


@pytest.mark.parametrize(
    ("overrides", "error", "says"),
    [
        (["cluster=gpu1"], ConfigError, "separate_async trains and rolls out on GPUs of their own.* has 1"),
        (["reward=verdict", "judge=deepseek"], ConfigError, "'verdict' asks no judge"),
        (["reward=grade", "judge=deepseek"], ConfigError, "'grade' asks no judge"),
        (["reward=meta_verified", "judge=rules"], ConfigError, "needs an LLM judge"),
        (["reward=meta_verified", "judge=vllm_local"], ConfigError, "judge=openai_compatible"),
        (["recipe.eta=1.5"], LossModeError, "eta"),
        (["judge=openai_compatible"], ConfigError, "PV_RL_JUDGE_URL"),
        (["trainer.nnodes=0"], ConfigError, "trainer.nnodes is 0"),
        (["recipe.eta=0.3", f"{MODE}=balanced"], ConfigError, "undoes the recipe.* asks for balanced:0.3"),
        (["recipe=balanced", f"{MODE}=dapo"], ConfigError, "undoes the recipe"),
        (["recipe=dapo", f"{MODE}=token-mean"], ConfigError, "undoes the recipe.* asks for dapo@prompt"),
        (["actor_rollout_ref.rollout.n=1"], ConfigError, "rollout.n=1 leaves .* without effect"),
        (["reward=verdict", f"+{KWARGS}.veto=abstain"], ConfigError, "options of the reward 'verdict'"),
        (["reward.reward_manager.name=rate_limited"], ConfigError, "one of naive, dapo"),
        (
            ["++algorithm.filter_groups={enable: true, metric: acc}"],
            ConfigError,
            "filter_groups.metric=score",
        ),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_starts(overrides, error, says, monkeypatch):
    monkeypatch.delenv("PV_RL_JUDGE_URL", raising=False)
    monkeypatch.setenv("PV_RL_JUDGE_MODEL", "a-model")
    with pytest.raises(error, match=says):
        check(compose("8b", ["data_dir=DIR", *overrides]), overrides=overrides)


KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0"


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ({"launch": {"env": {"HF_TOKEN": "x"}}}, "launch.env.HF_TOKEN"),
        (
            {"ray_kwargs": {"ray_init": {"runtime_env": {"env_vars": {"WANDB_API_KEY": "x"}}}}},
            "env_vars.WANDB_",
        ),
        ({"launch": {"env": {"X": KEY}}}, "launch.env.X"),
        ({"data": {"custom": {"api_key": "short"}}}, "data.custom.api_key"),
        (
            {"data": {"api_key": "${oc.env:A_KEY}"}},
            "data.api_key",
        ),  # verl prints the config with this resolved
        ({"reward": {"header": KEY}}, "reward.header"),
        ({"launch": {"env": {"TOKENIZERS_PARALLELISM": "false", "MONKEY": "1"}}}, ""),
        (
            {
                "data": {"prompt_key": "prompt", "model": "hf-qwen3-8b-verifier-2"},
                "judge": {"api_key_env": "A_KEY"},
            },
            "",
        ),
    ],
)
def test_a_secret_is_refused_wherever_the_config_has_it(config, where):
    found = ""
    try:
        _check_secrets(OmegaConf.create(config))
    except ConfigError as error:
        found = str(error)
    assert bool(found) == bool(where)
    assert where in found
    assert KEY not in found


def test_a_mode_in_the_place_of_a_runs_default_recipe_is_a_choice():
    overrides = ["data_dir=DIR", "judge=rules", f"{MODE}=dapo"]
    check(compose("8b", overrides), overrides=overrides)


def test_a_run_that_only_validates_may_have_one_response_a_prompt():
    overrides = ["data_dir=DIR", "judge=rules", "actor_rollout_ref.rollout.n=1", "trainer.val_only=True"]
    check(compose("8b", overrides), overrides=overrides)


def test_a_validation_leaves_the_environment_as_it_was(monkeypatch):
    monkeypatch.delenv("VERL_PLATFORM", raising=False)
    config = compose("lab", ["cluster=cpu"])
    validate(config)  # verl sets variables of its own when it is imported
    before = dict(os.environ)
    validate(config)
    assert os.environ == before


def test_a_plan_needs_no_data_and_refuses_a_reward_that_does_not_exist():
    check(compose("8b", ["judge=rules"]), to_run=False)
    with pytest.raises(ConfigError, match=r"there is no reward 'verdct'\. Did you mean verdict"):
        check(compose("8b", ["reward.custom_reward_function.name=verdct"]), to_run=False)


def test_data_that_is_not_named_is_said():
    with pytest.raises(ConfigError, match="data_dir is missing"):
        check(compose("8b", ["judge=rules"]))


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["actor_rollout_ref.model.use_remove_padding=false"], "use_remove_padding"),
        (["actor_rollout_ref.actor.ppo_mini_batch_size=30"], "has to be parameter_sync_step"),
        (["actor_rollout_ref.rollout.checkpoint_engine.backend=naive"], "backend is naive"),
        (["trainer.v1.trainer_mode=separate"], "separate"),
    ],
)
def test_what_verl_would_refuse_is_refused(overrides, says):
    with pytest.raises(ConfigError, match=says):
        validate(compose("8b", ["data_dir=DIR", "judge=rules", *overrides]))


@pytest.mark.parametrize(
    ("override", "state", "text"),
    [
        ("recipe=dapo", "ok", "run=8b composes with verl's ppo_trainer, dapo@prompt"),
        (
            "actor_rollout_ref.actor.loss_agg_mode=dr_grpo:480",
            "note",
            "the mass of an update is 3.33 to 33.3",
        ),
        ("actor_rollout_ref.rollout.n=1", "wrong", "Set actor_rollout_ref.rollout.n to 2 or more"),
        ("actor_rollout_ref.model.use_remove_padding=false", "wrong", "verl refuses this config"),
    ],
)
def test_the_doctor_checks_the_config_of_a_run(override, state, text):
    arguments = ["run=8b", "judge=rules", override]
    if state == "wrong":
        with pytest.raises(ConfigError, match=text):
            check_config(arguments)
        return
    finding = check_config(arguments)
    assert finding.state == state
    assert text in finding.text
