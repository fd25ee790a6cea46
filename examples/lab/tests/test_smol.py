"""The study of a small language model: its wording and data, its driver with made-up runs, and its report."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sys
from random import Random

import pytest
import typer

from pv_lab.samples import make_sample
from pv_lab.smol import runs as driver
from pv_lab.smol.data import conversations, processbench, write_data
from pv_lab.smol.families import equation, story
from pv_lab.smol.outcomes import read_study, validation_rows
from pv_lab.smol.plan import cells, start_model
from pv_lab.smol.report import compare, write_report
from pv_lab.smol.runs import Study, run_study
from pv_lab.smol.wording import EXACT, TASK, WEAK, ask_about, check
from pv_rl.errors import ConfigError, DataError, LossModeError, SetupError
from pv_rl.verdict import parse_verdict
from pv_runs.run_folder import locked

CHAIN = re.compile(r"Start with (.+) and apply, in order: (.+)\.")
STEP = re.compile(r"The first error is in step (\d)\.")


def samples(count):
    return [make_sample(seed=3, split="train", index=i, difficulty=3, p_true=0.5) for i in range(count)]


def test_an_exact_check_gives_the_right_verdict_and_the_place_of_the_first_error():
    for number, sample in enumerate(samples(300)):
        trace = check(Random(number), sample, EXACT)
        assert parse_verdict(trace) is sample.label
        found = STEP.search(trace)
        assert (int(found[1]) if found else 0) == sample.error_step


def test_weak_checks_accept_half_at_once_and_miss_half_of_the_wrong_steps():
    wrong = [sample for sample in samples(4000) if sample.error_kind == "constant_slip"]
    traces = [check(Random(number), sample, WEAK) for number, sample in enumerate(wrong)]
    short = [trace for trace in traces if "Step" not in trace]
    assert 0.45 < len(short) / len(traces) < 0.55
    rejected = [parse_verdict(trace) is False for trace in traces if trace not in short]
    assert 0.45 < sum(rejected) / len(rejected) < 0.65  # a missed step may be followed by a false alarm


def test_the_label_of_an_equation_is_that_of_its_arithmetic():
    def holds(message):
        a, b, c, d = map(int, re.search(r"Solve (-?\d+)x ([+-]\d+) = (-?\d+)x ([+-]\d+)", message).groups())
        k, b1, d1 = map(int, re.search(r"Step 1: .*: (-?\d+)x ([+-]\d+) = (-?\d+)\.", message).groups())
        k2, e = map(int, re.search(r"Step 2: .*: (-?\d+)x = (-?\d+)\.", message).groups())
        x = int(re.search(r"Step 3: .*x = (-?\d+)\.", message)[1])
        return (k, b1, d1) == (a - c, b, d) and (k2, e) == (k, d1 - b) and k2 * x == e

    proofs = [equation(number) for number in range(200)]
    assert len({equation(number).message for number in range(1400)}) == 1400
    assert [holds(proof.message) for proof in proofs] == [proof.label for proof in proofs]
    assert sum(proof.label for proof in proofs) == 100


def test_the_label_of_a_story_is_that_of_its_arithmetic():
    apply = {"more": lambda n, v: v + n, "less": lambda n, v: v - n, "times": lambda n, v: v * n}
    deeds = {"wins": "more", "loses": "less", "has": "times"}

    def holds(message):
        value = int(re.search(r"A team has (-?\d+) points", message)[1])
        events = re.findall(
            r"it (wins|loses|has)[a-z ]*?(\d+)", message.split("Proof:")[0].replace("It ", "it ")
        )
        steps = re.findall(
            r"With (\d+) (?:points )?(more|less|times) (?:than )?(-?\d+).* has (-?\d+) points", message
        )
        if len(steps) != len(events):
            return False
        for (deed, number), (n, kind, before, after) in zip(events, steps, strict=True):
            right = (deeds[deed], int(number), value) == (kind, int(n), int(before))
            value = apply[kind](int(n), int(before))
            if not right or value != int(after):
                return False
        return True

    proofs = [story(number) for number in range(100)]
    assert [holds(proof.message) for proof in proofs] == [proof.label for proof in proofs]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    far = folder / "gsm8k.jsonl"
    rows = [{"problem": f"Problem {n}?", "steps": [f"It is {n}."], "label": n % 2 - 1} for n in range(4)]
    far.write_text("".join(json.dumps(row) + "\n" for row in rows))
    list(write_data(folder, sft=64, weak=64, train=100, test=10, far=far))
    return folder


def test_the_data_have_their_shares_and_no_held_out_proof_is_trained_on(data):
    import pyarrow.parquet as pq

    held_out = pq.read_table(data / "p50" / "test.parquet").to_pylist()
    assert held_out == pq.read_table(data / "p75" / "test.parquet").to_pylist()
    assert len(held_out) == 54 * 2  # two answers each
    assert {row["data_source"] for row in held_out} == {
        f"{name}/{label}"
        for name in ("chain2", "chain3", "long", "story", "equation", "processbench")
        for label in ("right", "wrong")
    }
    for row in held_out:
        if asked := CHAIN.search(row["prompt"][-1]["content"]):
            question = f"from {asked[1]} {asked[2].replace(',', '')}"
            assert (
                int(hashlib.sha256(question.encode()).hexdigest()[:12], 16) % 8 == 0
            )  # the lab's test split
    seen = {row["prompt"][-1]["content"] for row in held_out}
    assert len(seen) == 54
    for share in (50, 75):
        rows = pq.read_table(data / f"p{share}" / "train.parquet").to_pylist()
        assert sum(row["reward_model"]["ground_truth"] == "True" for row in rows) == share
        assert not seen & {row["prompt"][-1]["content"] for row in rows}
    for start in ("exact", "weak"):
        assert not seen & {row["messages"][0]["content"] for row in conversations(start, 500)}


@pytest.mark.parametrize(
    "row",
    [
        {"problem": "P", "steps": "one", "label": 0},
        {"problem": "P", "steps": [], "label": 0},
        {"problem": "P", "steps": [1], "label": 0},
        {"problem": 3, "steps": ["one"], "label": 0},
        {"problem": "P", "steps": ["one"], "label": True},
        {"problem": "P", "steps": ["one"], "label": "-1"},
        {"problem": "P", "steps": ["one"]},
        {"question": "P"},
    ],
)
def test_a_row_that_is_not_of_processbench_is_refused(row, tmp_path):
    (tmp_path / "other.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=r"row 1 of .*other\.jsonl has no problem, steps and label"):
        list(processbench(tmp_path / "other.jsonl"))


def test_runs_are_ordered_so_that_a_cut_leaves_whole_comparisons():
    planned = cells(["weak"], [75], ["grpo", "balanced:0.4"], [True, False], range(2))
    assert [cell.name for cell in planned] == [
        f"weak-p75-{mode}-{veto}-seed-{seed}"
        for veto in ("veto", "plain")
        for seed in (0, 1)
        for mode in ("grpo", "balanced_0.4")
    ]
    with pytest.raises(ConfigError, match="strong: unknown; choose from exact, weak"):
        cells(["strong"], [75], ["grpo"], [True], range(1))
    with pytest.raises(ConfigError, match="60: unknown; choose from 50, 75"):
        cells(["weak"], [60], ["grpo"], [True], range(1))
    with pytest.raises(LossModeError, match="gpro"):
        cells(["weak"], [75], ["gpro"], [True], range(1))
    with pytest.raises(ConfigError, match=r"--mode balanced and --mode balanced:0.6 are the same weighting"):
        cells(["weak"], [75], ["balanced", "balanced:0.6"], [True], range(1))
    assert len(cells(["weak", "weak"], [75, 75], ["ba"], [True], range(1))) == 1


def test_runs_with_other_overrides_are_runs_of_their_own(tmp_path):
    checkpoints = tmp_path / "starts" / "weak" / "checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "latest_checkpointed_iteration.txt").write_text("5")

    def planned(*changes):
        return cells(["weak"], [75], ["ba"], [True], range(1), changes)[0]

    change = "actor_rollout_ref.actor.kl_loss_coef=0.05"
    cell = planned(change)
    assert re.fullmatch(r"weak-p75-ba-veto-seed-0-kl_loss_coef_0\.05-[0-9a-f]{6}", cell.name)
    overrides = cell.overrides(tmp_path, tmp_path, 2, cpu=True)
    assert overrides[-1] == change
    assert f"hydra.run.dir={tmp_path / 'runs' / cell.name}" in overrides
    assert planned("a.b=1", "c.d=2").name == planned("c.d=2", "a.b=1").name
    assert planned("a.n=4").name != planned("c.n=4").name
    assert len(planned("a.b='größe/.. x" + 300 * "=" + "'").name.encode()) < 200
    for wrong, option in (
        ("seed=7", "--seeds"),
        ("++hydra.run.dir=x", "--out"),
        ("reward=verdict", "--veto"),
    ):
        with pytest.raises(ConfigError, match=rf"{re.escape(wrong)}: the study sets this key .* {option}"):
            planned(wrong)
    with pytest.raises(ConfigError, match=r"--rl a.b=2: a.b is set more than once"):
        planned("a.b=2", "+a.b=1")


CACHE = "actor_rollout_ref.rollout.engine_kwargs.vllm.kv_cache_memory_bytes"


@pytest.mark.parametrize("change", [f"{CACHE}=8000000000", f"~{CACHE}", "trainer.val_before_train=false"])
def test_an_override_of_what_the_study_adds_for_one_gpu_is_taken_as_in_a_run(tmp_path, monkeypatch, change):
    trained = []
    monkeypatch.setattr(driver, "run_study", lambda study, _: trained.append(study) or True)
    folders = {name: tmp_path / name for name in ("data", "model", "out")}
    for folder in folders.values():
        folder.mkdir()
    with pytest.raises(typer.Exit):
        driver.main(**folders, rl=[change])
    assert trained[0].runs[0].changes == (change,)
    if CACHE in change:  # on a CPU no run has this key
        with pytest.raises(ConfigError, match="kv_cache_memory_bytes"):
            driver.main(**folders, rl=[change], cpu=True)


def test_an_override_that_no_run_takes_is_refused_before_anything_is_trained(tmp_path):
    for name in ("data", "model"):
        (tmp_path / name).mkdir()
    folders = {name: tmp_path / name for name in ("data", "model", "out")}
    for wrong in ("kl_loss_coef=0.1", "nokey", "actor_rollout_ref.actor.kl_los_coef=0.1", ""):
        with pytest.raises(ConfigError):
            driver.main(**folders, rl=[wrong])
    assert not folders["out"].exists()


TRAINER = """
import json, os, pathlib, sys, time
values = json.loads(os.environ["TEST_TRAINER"]) | dict(one.split("=", 1) for one in sys.argv[1:] if "=" in one)
folder = pathlib.Path(values["hydra.run.dir"])
with open(values["log"], "a") as log:
    log.write(folder.name + "\\n")
if values.get("fails") in (folder.name, "all" if values["run"] == "small" else ""):
    if values["run"] == "small":
        failed = {"state": "failed", "attempts": 1, "error": "it went wrong\\nthen: it ended"}
        (folder / "run.json").write_text(json.dumps(failed))
    sys.exit("it went wrong")
if folder.name == values.get("slow"):
    time.sleep(0.8)
if folder.name == values.get("hangs"):
    time.sleep(60)
if values["run"] == "sft_small":
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "latest_checkpointed_iteration.txt").write_text(values["trainer.total_training_steps"])
else:
    assert pathlib.Path(values["model_path"]).parent.name == "global_step_2", values["model_path"]
record = {"state": "finished", "attempts": 1}
(folder / "run.json").write_text(json.dumps(record))
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study whose runs are a script, without Ray; returns a function that trains it and what was started."""
    (tmp_path / "trainer.py").write_text(TRAINER)
    monkeypatch.setattr(driver, "TRAIN", (sys.executable, str(tmp_path / "trainer.py")))
    monkeypatch.setattr(driver, "POLL_S", 0.01)
    monkeypatch.setattr(driver, "STAGGER_S", 0.0)
    monkeypatch.setattr(
        driver, "ray_slot", lambda number, *_, **__: contextlib.nullcontext(f"127.0.0.1:{number}")
    )

    def train(minutes=1.0, run_minutes=0.0, seeds=2, **options):
        log = tmp_path / "started"
        log.unlink(missing_ok=True)
        lines = []
        monkeypatch.setenv("TEST_TRAINER", json.dumps({"log": str(log), **options}))
        done = run_study(
            Study(
                data=tmp_path / "data",
                model=tmp_path / "model",
                out=tmp_path / "out",
                runs=cells(["weak"], [75], ["grpo", "dapo"], [True], range(seeds)),
                steps=4,
                sft_steps={"exact": 3, "weak": 2},
                at_once=2,
                minutes=minutes,
                run_minutes=run_minutes,
            ),
            lines.append,
        )
        return done, (sorted(log.read_text().split()) if log.exists() else []), lines

    return train


def test_a_study_trains_each_start_and_run_once_and_can_be_continued(study, tmp_path):
    names = [f"weak-p75-{mode}-veto-seed-{seed}" for mode in ("dapo", "grpo") for seed in (0, 1)]
    done, started, _ = study()
    assert (done, started) == (True, sorted(["exact", "weak", *names]))
    assert start_model(tmp_path / "out", "weak").parts[-2:] == ("global_step_2", "huggingface")
    assert study()[:2] == (True, [])
    record = tmp_path / "out" / "runs" / names[0] / "run.json"
    record.write_text(json.dumps({"state": "running", "attempts": 1}))
    assert study()[:2] == (True, [names[0]])
    assert (record.parent.with_name(f".{names[0]}-cut-1") / "run.json").is_file()


def test_a_failed_run_does_not_stop_the_others_and_is_tried_again(study):
    bad = "weak-p75-grpo-veto-seed-0"
    done, started, lines = study(fails=bad)
    assert (done, len(started)) == (False, 6)
    assert f"{bad}: failed. it went wrong" in lines
    assert study()[:2] == (True, [bad])


def test_a_study_whose_first_runs_all_fail_starts_no_other(study, tmp_path):
    with pytest.raises(SetupError, match=r"the first \d runs failed, so no other is started"):
        study(seeds=3, fails="all")
    assert len(list((tmp_path / "out" / "runs").iterdir())) < 6


def test_a_run_whose_ray_does_not_start_is_a_failed_run(study, monkeypatch):
    @contextlib.contextmanager
    def broken(number, *_, **__):
        if number == 1:  # the first slot
            raise SetupError("Ray did not start")
        yield "127.0.0.1:1"

    done, _, _ = study(seeds=1)
    assert done
    monkeypatch.setattr(driver, "ray_slot", broken)
    done, started, lines = study(seeds=2)
    assert (done, started) == (False, [])
    assert lines[-1].endswith("failed. Ray did not start")


def test_a_second_driver_of_a_study_is_refused(study, tmp_path):
    (tmp_path / "out").mkdir()
    with locked(tmp_path / "out"), pytest.raises(SetupError, match="is running"):
        study()


def test_a_failed_start_ends_the_study(study):
    with pytest.raises(SetupError, match="the supervised start 'exact' failed: it went wrong"):
        study(fails="exact")


def test_the_time_limit_ends_runs_and_starts_none_that_would_not_fit(study):
    assert study(seeds=1)[0]
    done, started, lines = study(seeds=2, minutes=0.02, run_minutes=5.0)
    assert (done, started) == (False, [])
    assert lines[-1] == "2 runs are left for another time: one takes 300 s"
    slow, hangs = "weak-p75-grpo-veto-seed-1", "weak-p75-dapo-veto-seed-1"
    done, started, lines = study(seeds=3, minutes=0.025, slow=slow, hangs=hangs)
    assert (done, started) == (
        False,
        [hangs, slow],
    )  # what is left after the slow one is too little for another
    assert lines[-1] == f"{hangs}: cut at step 0, the time is up"


def chat(message):
    return f"system\nYou are a helpful assistant\nuser\n{message}\nassistant\n"


def test_a_validation_has_both_classes_and_an_auroc_worked_by_hand(tmp_path):
    messages = {name: f"{TASK}\n\n{name}" for name in "abcd"}
    proofs = {messages[name]: ("chain2", name in "ab") for name in "abcd"}
    votes = {"a": ["True", "True"], "b": ["True", "False"], "c": ["True", "False"], "d": ["False", None]}
    lines = [
        {"input": chat(messages[name]), "output": "x" if vote is None else f"### {vote}"}
        for name, both in votes.items()
        for vote in both
    ]
    (tmp_path / "7.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (row,) = validation_rows(tmp_path, proofs)
    assert (row["step"], row["set"], row["proofs"]) == (7, "chain2", 4)
    # right: (1 + 1/2) / 2; wrong: (1/2 + 1/2) / 2, for no verdict is as a wrong one
    assert (row["right"], row["wrong"], row["balanced"]) == (0.75, 0.5, 0.625)
    assert row["auroc"] == 0.875  # accepted shares 1, 1/2 against 1/2, 0: (1 + 1 + 1/2 + 1) / 4
    assert row["no_verdict"] == 0.125
    (tmp_path / "8.jsonl").write_text(json.dumps({"input": chat("another"), "output": ""}) + "\n")
    with pytest.raises(DataError, match=r"8\.jsonl has a proof that the held-out files of --data do not"):
        list(validation_rows(tmp_path, proofs))


@pytest.mark.parametrize("line", ["[]", "{}", '{"input": "x"}', "null", "not JSON", "[" * 100_000])
def test_a_line_that_verl_did_not_write_is_named_and_a_dump_that_was_cut_is_left_out(tmp_path, line):
    (tmp_path / "3.jsonl").write_text(line)
    (tmp_path / "x.jsonl").write_text(line)
    assert list(validation_rows(tmp_path, {})) == []
    (tmp_path / "3.jsonl").write_text(line + "\n")
    with pytest.raises(DataError, match=r"line 1 of .*3\.jsonl is not what verl dumps"):
        list(validation_rows(tmp_path, {}))


CONFIG = """
seed: {seed}
data_dir: /somewhere/p75
model_path: /out/starts/weak/checkpoints/global_step_2/huggingface
data: {{train_batch_size: 16}}
reward: {{custom_reward_function: {{name: verdict_fluency}}}}
actor_rollout_ref: {{actor: {{loss_agg_mode: {mode}}}, rollout: {{n: 8}}}}
"""


def add_run(out, data, mode, seed, *, better, collapse=False):
    """A run of 20 steps that accepts everything at first, and `better` of the wrong proofs are rejected at its end."""
    import pyarrow.parquet as pq

    folder = out / "runs" / f"weak-p75-{mode}-veto-seed-{seed}"
    (folder / ".hydra").mkdir(parents=True)
    (folder / "validation").mkdir()
    (folder / ".hydra" / "config.yaml").write_text(CONFIG.format(seed=seed, mode=mode))
    (folder / "run.json").write_text(json.dumps({"state": "finished"}))
    rng, rows = Random(f"{mode} {seed}"), []
    for step in range(1, 21):
        length = 60 if not collapse or step < 12 else 3
        rows.append(
            {"response_length/mean": length + rng.random(), "critic/score/mean": 0.7, "actor/lr": 2e-5,
             "timing_s/step": 9.0}
        )  # fmt: skip
    lines = [json.dumps({"step": step, "data": row}) for step, row in enumerate(rows, 1)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    for step, share in ((0, 0.0), (20, better)):
        dump = []
        for number, row in enumerate(pq.read_table(data / "p75" / "test.parquet").to_pylist()):
            right = row["reward_model"]["ground_truth"] == "True"
            verdict = right or number % 10 >= 10 * share
            dump.append({"input": chat(row["prompt"][0]["content"]), "output": f"### {verdict}"})
        (folder / "validation" / f"{step}.jsonl").write_text("\n".join(map(json.dumps, dump)) + "\n")


def test_the_report_has_every_seed_the_gain_and_the_alarms(data, tmp_path):
    for mode in ("grpo", "dapo"):
        for seed in (0, 1, 2):
            add_run(tmp_path, data, mode, seed, better=1.0)
    runs, validations = read_study(tmp_path, data)
    assert len(runs) == 6
    assert set(runs["start"]) == {"weak"}
    assert set(runs["share"]) == {75}
    assert set(runs["alarms"]) == {0}
    both = compare(validations)
    chain = both[both["set"] == "chain2"]
    assert set(chain["balanced_start"]) == {0.5}
    assert set(chain["balanced_end"]) == {1.0}
    write_report(tmp_path, data, tmp_path / "report")
    text = (tmp_path / "report" / "smol.md").read_text()
    assert (
        "chain2, 10 proofs: balanced accuracy at the end 1.000 (1.000 to 1.000) over 6 runs, 0.500 " in text
    )
    assert (
        "In 6 of 6 the interval over proofs at the end is above the one before RL, in 6 of 6 above 0.5"
        in text
    )
    assert "Sentinel: 0 alarms in 6 healthy runs of 120 steps in all; 0 runs fell" in text
    assert len((tmp_path / "report" / "smol_runs.csv").read_text().splitlines()) == 7
    assert len((tmp_path / "report" / "smol_validations.csv").read_text().splitlines()) == 1 + 6 * 2 * 6
    assert (tmp_path / "report" / "smol.png").stat().st_size > 1000


def test_the_report_names_the_signs_of_a_run_that_alarms(data, tmp_path):
    add_run(tmp_path, data, "grpo", 0, better=0.5, collapse=True)
    write_report(tmp_path, data, tmp_path / "report")
    text = (tmp_path / "report" / "smol.md").read_text()
    assert re.search(r"Sentinel: [1-9]\d* alarms? in 1 healthy run .*weak-p75-grpo-veto-seed-0: \w+", text)


def test_runs_with_other_overrides_are_a_setting_of_their_own(data, tmp_path):
    add_run(tmp_path, data, "grpo", 0, better=1.0)
    add_run(tmp_path, data, "grpo", 1, better=0.5)
    runs = tmp_path / "runs"
    (runs / "weak-p75-grpo-veto-seed-1").rename(runs / "weak-p75-grpo-veto-seed-1-lr.1e-6-a")
    write_report(tmp_path, data, tmp_path / "report")
    text = (tmp_path / "report" / "smol.md").read_text()
    rows = re.findall(r"\| yes \| (\S*) ?\| grpo \| chain2 \| (\d) \|", text)
    assert rows == [("", "1"), ("lr.1e-6-a", "1")]


def test_a_run_of_another_kind_is_refused(data, tmp_path):
    add_run(tmp_path, data, "grpo", 0, better=1.0)
    config = next((tmp_path / "runs").glob("*/.hydra/config.yaml"))
    config.write_text(config.read_text().replace("/out/starts/weak/checkpoints", "/models"))
    with pytest.raises(DataError, match=r"grpo-veto-seed-0 is no run of pv_lab\.smol\.runs: its model_path"):
        read_study(tmp_path, data)


def test_a_study_whose_runs_have_only_started_has_a_report(data, tmp_path):
    add_run(tmp_path, data, "grpo", 0, better=1.0)
    next((tmp_path / "runs").glob("*/validation/20.jsonl")).unlink()
    write_report(tmp_path, data, tmp_path / "report")
    assert (
        "1 run (1 finished); 0 have a validation at the end." in (tmp_path / "report" / "smol.md").read_text()
    )


def test_a_study_without_a_validation_is_refused(data, tmp_path):
    add_run(tmp_path, data, "grpo", 0, better=1.0)
    for file in (tmp_path / "runs").glob("*/validation/*"):
        file.unlink()
    with pytest.raises(DataError, match="has no validation: none of its 1 runs"):
        write_report(tmp_path, data, tmp_path / "report")


def test_the_question_of_a_proof_ends_with_its_claimed_result():
    sample = samples(1)[0]
    assert ask_about(sample).splitlines()[-1] == f"Claimed result: {sample.steps[-1].after}."
