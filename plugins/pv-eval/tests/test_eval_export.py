"""Tasks for other harnesses: the folders stand alone, and score as our own function does.

With the real packages: run this file's tests in an environment that has lm_eval and inspect_ai; here they are skipped.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import yaml
from eval_cases import run, small_set

from pv_eval.votes import score_verdict

TRACES = ("Fine.\n### True", "No.\n### False", "I do not know.", "```\n### True\n```")


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
        rows = [json.loads(line) for line in (exported / harness / "data.jsonl").read_text().splitlines()]
        assert [(row["pair_id"], row["target"]) for row in rows] == [
            (f"p{n}", str(n % 2 == 0)) for n in range(8)
        ]
        assert all("p0" not in row["prompt"] and row["prompt"].rstrip().endswith("### False") for row in rows)


def test_lm_eval_scores_as_our_own_function_does(exported):
    pytest.importorskip("datasets")
    utils = load(exported / "lm-eval" / "utils.py")
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
    task = yaml.load((exported / "lm-eval" / "proof_verification_set.yaml").read_text(), Loader)
    assert task["task"] == "proof_verification_set"
    assert (task["repeats"], task["filter_list"][0]["filter"][0]) == (2, {"function": "take_first_k", "k": 2})
    kwargs = task["generation_kwargs"]
    assert (kwargs["temperature"], kwargs["top_p"], kwargs["max_gen_toks"]) == (0.6, 0.9, 8192)
    assert task["process_results"] == "utils.process_results"


def test_the_folders_need_nothing_of_ours(exported):
    for harness in ("lm-eval", "inspect"):
        parser = (exported / harness / "verdict.py").read_text()
        assert "import pv_" not in parser
        own: dict = {}
        exec(parser, own)
        assert [own["parse_verdict"](trace) for trace in TRACES] == [True, False, None, None]


def test_the_real_inspect_ai_runs_the_task(exported, monkeypatch):
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.model import ModelOutput, ModelUsage, get_model  # pyright: ignore[reportMissingImports]

    monkeypatch.chdir(exported / "inspect")

    def output():
        made = ModelOutput.from_content("m", TRACES[0])
        made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return made

    mock = get_model("mockllm/model", custom_outputs=(output() for _ in range(100)))
    log = inspect_ai.eval("task.py", model=mock, log_dir="logs", display="none")[0]
    assert log.status == "success", log.error
    found = {score.name: score.metrics["mean"].value for score in log.results.scores}
    assert found == {"acc": 0.5, "accepted": 1.0, "missing": 0.0}


def test_the_real_lm_eval_runs_the_task(exported):
    lm_eval = pytest.importorskip("lm_eval")
    from lm_eval.api.model import LM  # pyright: ignore[reportMissingImports]
    from lm_eval.tasks import TaskManager  # pyright: ignore[reportMissingImports]

    class Accepting(LM):
        def generate_until(self, requests, disable_tqdm=False):
            return [TRACES[0]] * len(requests)

        def loglikelihood(self, requests):
            raise NotImplementedError

        def loglikelihood_rolling(self, requests):
            raise NotImplementedError

    tasks = TaskManager(include_path=str(exported / "lm-eval"), include_defaults=False)
    name = "proof_verification_set"
    found = lm_eval.simple_evaluate(model=Accepting(), tasks=[name], task_manager=tasks, bootstrap_iters=0)
    numbers = found["results"][name]
    assert [numbers[f"{metric},all"] for metric in ("acc", "accepted", "missing")] == [0.5, 1.0, 0.0]


def test_an_unknown_harness_is_refused(tmp_path):
    result = run("export", "--set", f"table:{small_set(tmp_path)}", "--out", tmp_path / "x", "--to", "helm")
    assert result.exit_code == 1
    assert "expected lm-eval, inspect" in result.output
    assert not (tmp_path / "x").exists()
