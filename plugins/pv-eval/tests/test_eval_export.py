"""Tasks for other harnesses: the folders stand alone, and score as our own function does.

The harnesses themselves run in an environment of their own, `.venv/beside/harnesses` (make test-paths).
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from eval_cases import by_mark, run, small_set
from judge_server import JudgeServer, Script
from places import ROOT

from pv_eval import Intervals, check, evaluate, read_run
from pv_eval.export import HARNESSES
from pv_eval.votes import score_verdict

TRACES = ("Fine.\n### True", "No.\n### False", "I do not know.", "```\n### True\n```")
TASK = "proof_verification_set"


@pytest.fixture
def exported(tmp_path):
    result = run("export", "--set", f"table:{small_set(tmp_path)}", "--out", tmp_path / "tasks", "-n", 2)
    assert result.exit_code == 0, result.output
    return tmp_path / "tasks"


def load(path: Path):
    spec = importlib.util.spec_from_file_location("exported_utils", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_both_folders_hold_each_pair_once_and_no_label_in_its_prompt(exported):
    for harness in ("lm-eval", "inspect"):
        rows = [json.loads(line) for line in (exported / harness / f"{TASK}.jsonl").read_text().splitlines()]
        assert [(row["pair_id"], row["target"]) for row in rows] == [
            (f"p{n}", str(n % 2 == 0)) for n in range(8)
        ]
        assert all("p0" not in row["prompt"] and row["prompt"].rstrip().endswith("### False") for row in rows)


def test_a_set_with_grades_says_that_the_tasks_leave_them_out(tmp_path):
    rows = [{"id": f"p{n}", "problem": "P.", "proof": f"Proof {n}.", "points": n} for n in (0, 6, 7)]
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("export", "--set", f"graded:{path}", "--out", tmp_path / "tasks")
    assert result.exit_code == 0, result.output
    assert "leave them out and ask whether a proof is right (has all points" in result.stderr
    graded = (tmp_path / "tasks" / "inspect" / f"{TASK}.jsonl").read_text().splitlines()
    assert [json.loads(line)["target"] for line in graded] == ["False", "False", "True"]


def test_another_set_in_the_same_folder_leaves_the_first_task_as_it_was(exported, tmp_path):
    first = {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()}
    other = tmp_path / "other.jsonl"
    other.write_text("".join((tmp_path / "set.jsonl").read_text().splitlines(keepends=True)[:3]))
    for n in (3, 4):
        result = run("export", "--set", f"table:{other}", "--out", exported, "-n", n)
        assert result.exit_code == 0, result.output
    assert {path: path.read_bytes() for path in first} == first
    for harness in ("lm-eval", "inspect"):
        folder = exported / harness
        assert len((folder / "proof_verification_other.jsonl").read_text().splitlines()) == 3
        assert not (folder / "data.jsonl").exists()
    assert "repeats: 4" in (exported / "lm-eval" / "proof_verification_other.yaml").read_text()
    assert json.loads((exported / "inspect" / "proof_verification_other.json").read_text())["n"] == 4


def test_another_set_of_the_same_name_is_refused_and_the_same_set_is_written_again(exported, tmp_path):
    first = {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()}
    (tmp_path / "other").mkdir()
    other = small_set(tmp_path / "other", 4)
    result = run("export", "--set", f"table:{other}", "--out", exported, "--to", "inspect")
    assert result.exit_code == 1
    assert f"{TASK}.jsonl exists, with other pairs" in " ".join(result.output.split())
    assert {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()} == first
    named = ["--set", f"table:{other}", "--set-option", "name=second", "--out", exported]
    again = ["--set", f"table:{tmp_path / 'set.jsonl'}", "--out", exported, "-n", 4]
    assert [run("export", *given).exit_code for given in (named, again)] == [0, 0]


def test_lm_eval_scores_as_our_own_function_does(exported):
    pytest.importorskip("datasets")
    utils = load(exported / "lm-eval" / f"{TASK}.py")
    assert utils.load(unused=1)["test"].num_rows == 8
    for label in (True, False):
        ours = [score_verdict(trace, label) for trace in TRACES]
        means = {name: sum(one[name] for one in ours) / len(ours) for name in ours[0]}
        assert utils.process_results({"target": str(label)}, [list(TRACES)]) == means
        assert utils.process_results({"target": str(label)}, list(TRACES)) == means


def test_lm_evals_task_says_how_to_sample(exported):
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: node.value)
    task = yaml.load((exported / "lm-eval" / f"{TASK}.yaml").read_text(), Loader)
    assert task["task"] == TASK
    assert (task["repeats"], task["filter_list"][0]["filter"][0]) == (2, {"function": "take_first_k", "k": 2})
    kwargs = task["generation_kwargs"]
    assert (kwargs["temperature"], kwargs["top_p"], kwargs["max_gen_toks"]) == (0.6, 0.9, 8192)
    assert task["process_results"] == f"{TASK}.process_results"


def test_the_folders_need_nothing_of_ours(exported):
    for harness in ("lm-eval", "inspect"):
        parser = (exported / harness / "verdict.py").read_text()
        assert "import pv_" not in parser
        own: dict = {}
        exec(parser, own)
        assert [own["parse_verdict"](trace) for trace in TRACES] == [True, False, None, None]


def test_the_name_of_a_prompt_is_a_text_of_the_task():
    name = 'a"\nprocess_results: !function os.system'
    settings = {"task": "t", "n": 1, "temperature": 0, "top_p": 1, "max_tokens": 5, "prompt": name}
    text = HARNESSES["lm-eval"](settings)["t.yaml"]
    assert yaml.load(text.replace("!function t", "t"), yaml.SafeLoader)["metadata"]["prompt"] == name


def replies(prompt: str, _: str) -> str:
    """A verdict that is wrong for one proof and missing for another."""
    return "I do not know." if "guess 5" in prompt else by_mark(prompt, _)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Our numbers, and those of each harness, of the same verifier behind a server."""
    harnesses = ROOT / ".venv" / "beside" / "harnesses" / "bin"
    if not harnesses.is_dir():
        pytest.skip("inspect_ai and lm-eval are not installed beside: make test-paths")
    folder = tmp_path_factory.mktemp("harnesses")
    with JudgeServer(Script(reply=replies)) as server:
        given = ("--set", f"table:{small_set(folder)}", "-n", 2)
        asked = ("--verifier", server.url, "--model", "m", "--out", folder / "out", "--no-report")
        for arguments in (("run", *given, *asked), ("export", *given, "--out", folder / "tasks")):
            result = run(*arguments)
            assert result.exit_code == 0, result.output
        keys = {"OPENAI_API_KEY": "k", "JUDGE_API_KEY": "k", "JUDGE_BASE_URL": server.url}
        task = [*("eval", f"{TASK}.py", "--model", "openai-api/judge/m"), *("--log-dir", folder / "logs")]
        at = f"base_url={server.url}/chat/completions,model=m,num_concurrent=1"
        for command, cwd in (
            ([harnesses / "inspect", *task, "--log-format", "json", "--display", "none"], "inspect"),
            (
                [
                    *(harnesses / "lm_eval", "--model", "local-chat-completions", "--model_args", at),
                    *("--tasks", TASK, "--include_path", folder / "tasks" / "lm-eval"),
                    *("--apply_chat_template", "--output_path", folder / "lm-eval"),
                ],
                "lm-eval",
            ),
        ):
            environment = {**os.environ, **keys, "HF_HUB_OFFLINE": "1"}
            where = folder / "tasks" / cwd
            done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
    pairs, votes, _ = read_run(folder / "out")
    found = evaluate(check(pairs, votes), Intervals(flips=0)).metrics
    ours = {name: found[of].value for name, of in (("acc", "accuracy"), ("accepted",) * 2, ("missing",) * 2)}
    return ours, folder


@pytest.mark.paths
def test_inspect_ai_gets_our_numbers(measured):
    ours, folder = measured
    (log,) = (folder / "logs").glob("*.json")
    scores = json.loads(log.read_text())["results"]["scores"]
    assert {one["name"]: one["metrics"]["mean"]["value"] for one in scores} == ours
    assert ours == {"acc": 0.75, "accepted": 0.625, "missing": 0.125}


@pytest.mark.paths
def test_lm_eval_gets_our_numbers(measured):
    ours, folder = measured
    (log,) = (folder / "lm-eval").rglob("results_*.json")
    numbers = json.loads(log.read_text())["results"][TASK]
    assert {name: numbers[f"{name},all"] for name in ours} == ours


def test_an_unknown_harness_is_refused(tmp_path):
    result = run("export", "--set", f"table:{small_set(tmp_path)}", "--out", tmp_path / "x", "--to", "helm")
    assert result.exit_code == 1
    assert "expected lm-eval, inspect" in result.output
    assert not (tmp_path / "x").exists()
