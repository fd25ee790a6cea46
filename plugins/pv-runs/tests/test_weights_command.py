"""`pv-rl weights` from the command line: what is printed, drawn and written."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from pv_rl.cli import app
from pv_runs.weights import Rollouts, summarise
from pv_runs.weights.figure import draw

runner = CliRunner()
PNG = b"\x89PNG\r\n\x1a\n"
MANY = "--lengths=" + ",".join(map(str, range(1, 41)))


def weights(*options):
    return runner.invoke(app, ["weights", *options])


def words(text):
    return " ".join(text.split())


def test_the_paper_example_in_a_table():
    answer = weights("--lengths", "1,2,5", "--mode", "balanced:0.6", "--mode", "dapo")
    assert answer.exit_code == 0
    assert "3 given lengths: 3 responses of 1 prompt, 8 tokens" in answer.stdout
    lines = [line.split() for line in answer.stdout.splitlines()]
    assert ["1", "1", "0.25", "25.0%", "0.125", "12.5%"] in lines
    assert ["1", "2", "0.15", "30.0%", "0.125", "25.0%"] in lines
    assert ["1", "5", "0.09", "45.0%", "0.125", "62.5%"] in lines
    assert "\x1b" not in answer.stdout


def test_three_modes_are_compared_by_default():
    heads = words(weights("--lengths", "1,2,5").stdout)
    assert "grpo grpo dapo dapo balanced:0.6 balanced:0.6" in heads
    assert "mass of the update" not in heads


def test_each_use_of_lengths_is_a_prompt():
    stdout = weights("--lengths", "1,2", "--lengths", "3 4").stdout
    assert "4 responses of 2 prompts" in stdout
    assert [line.split()[:2] for line in stdout.splitlines()[4:8]] == [
        ["1", "1"],
        ["1", "2"],
        ["2", "3"],
        ["2", "4"],
    ]


def test_many_responses_are_shown_by_quarters():
    stdout = weights(MANY, "--mode", "dapo").stdout
    lines = [line.split() for line in stdout.splitlines()]
    assert ["responses", "with", "count", "dapo", "dapo"] in lines
    assert ["1", "to", "10", "tokens", "10", "0.00122", "6.7%"] in lines  # 55 of 820 tokens
    assert ["31", "to", "40", "tokens", "10", "0.00122", "43.3%"] in lines  # 355 of 820


def test_a_mass_that_is_not_one_is_shown():
    stdout = weights("--lengths", "1,2,5", "--mode", "dr_grpo:10").stdout
    assert "mass of the update" in stdout
    assert "dr_grpo:10 2.5 of 3 62.5% 0.267" in map(words, stdout.splitlines())


def test_piped_output_is_not_cut_however_many_modes_there_are(tmp_path):
    modes = [f"--mode=balanced:0.{n}" for n in range(1, 10)]
    command = [sys.executable, "-m", "pv_rl.cli", "weights", MANY, *modes]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    # further modes continue below
    assert all(run.stdout.count(f"balanced:0.{n}  ") >= 2 for n in range(1, 10))
    assert max(map(len, run.stdout.splitlines())) <= 120
    assert "\x1b" not in run.stdout
    assert "…" not in run.stdout
    assert run.stderr == ""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], "give either --lengths 1,2,5 or --rollouts PATH"),
        (["--lengths", "1,2", "--parquet", "x.parquet"], "not both"),
        (["--lengths", "1,two"], "'two', which is not a length"),
        (["--lengths", "0,0"], "no response has any tokens"),
        (["--lengths", "1,2", "--mode", "balancd"], "Did you mean balanced"),
        (["--lengths", "1,2", "--mode", "balanced:7"], "balanced:7"),
        (["--lengths", "1,2", "--step", "3"], "--step is for --rollouts"),
        (["--lengths", "1,2", "--tokenizer", "x"], "--tokenizer is for --rollouts"),
        (["--lengths", "1,2", "--plot", "missing/a.png"], "there is no folder missing; make it first"),
        (["--lengths", "1,2", "--plot", "a.bmp"], "use one of .png, .pdf, .svg"),
        (["--lengths", "1,2", "--json", "missing/a.json"], "there is no folder missing"),
        (["--lengths", "1,2", "--json", "."], "is a folder; name a file in it"),
        (["--rollouts", "missing"], "missing does not exist"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(options, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = weights(*options)
    assert answer.exit_code == 1
    assert text in words(answer.stderr)
    assert answer.stderr.startswith("error ")
    assert "Traceback" not in answer.output
    assert answer.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--parquet", "--rollouts"])
def test_a_folder_of_rollouts(option, tmp_path):
    for step in (1, 2):
        rows = [
            {"input": "q", "output": "a " * n + end, "score": float(n % 2), "step": step, "uid": f"q_{n}_0"}
            for n, end in enumerate(["### True", "### False"] * 2)
        ]
        (tmp_path / f"{step}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    stdout = weights(option, str(tmp_path), "--mode", "dapo").stdout
    assert "2.jsonl, step 2 of steps 1 to 2: 4 responses of 1 prompt, 14 words" in stdout
    lines = [line.split() for line in stdout.splitlines()]
    assert ["verdict", "True", "2", "0.0714", "42.9%"] in lines  # 2 + 4 of 14 words
    assert ["score", "1", "2", "0.0714", "57.1%"] in lines
    assert ["1", "3", "False", "1", "0.0714", "21.4%"] in lines
    assert "not tokens. --tokenizer PATH" in stdout


def test_json_has_all_of_it(tmp_path):
    file = tmp_path / "weights.json"
    answer = weights("--lengths", "1,2,5;4", "--mode", "balanced", "--json", str(file))
    assert f"wrote {file}" in answer.stdout
    read = json.loads(file.read_text())
    assert (read["prompts"], read["responses"], read["tokens"], read["unit"]) == (2, 4, 12, "tokens")
    assert read["length"] == [1, 2, 5, 4]
    assert read["prompt"] == [0, 0, 0, 1]
    assert read["verdict"] is None
    (mode,) = read["modes"]
    assert mode["spec"] == "balanced:0.6@prompt"
    assert mode["weights"] == pytest.approx([0.125, 0.075, 0.045, 0.125])
    assert mode["shares"] == pytest.approx([0.125, 0.15, 0.225, 0.5])
    assert mode["mass"] == pytest.approx(1)
    assert read["parts"][0]["share"].keys() == {"balanced:0.6@prompt"}
    assert [path.name for path in tmp_path.iterdir()] == ["weights.json"]


def test_json_on_standard_output_is_alone_there():
    answer = weights("--lengths", "1,2,5", "--mode", "token-mean", "--json", "-")
    assert json.loads(answer.stdout)["modes"][0]["spec"] == "dapo@batch"
    assert "token-mean is verl's name for dapo@batch" in answer.stderr


@pytest.mark.parametrize("lengths", ["--lengths=7", "--lengths=1,2,5;0,3", MANY])
def test_the_plot_is_a_png_and_replaces_an_earlier_one(lengths, tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "weights.png"
    file.write_text("an earlier plot")
    answer = weights(lengths, "--plot", str(file))
    assert answer.exit_code == 0
    assert f"wrote {file}" in answer.stdout
    assert file.read_bytes().startswith(PNG)
    assert [path.name for path in tmp_path.iterdir()] == ["weights.png"]


def test_a_plot_has_titles_units_and_a_colour_for_each_mode(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib.figure")
    drawn = []
    save = matplotlib.Figure.savefig
    monkeypatch.setattr(
        matplotlib.Figure, "savefig", lambda self, *a, **k: drawn.append(self) or save(self, *a, **k)
    )
    assert weights(MANY, "--plot", str(tmp_path / "a.png")).exit_code == 0
    (left, right) = drawn[0].axes
    assert (left.get_xscale(), left.get_yscale()) == ("log", "log")
    assert "tokens" in left.get_xlabel()
    assert "weight" in left.get_ylabel()
    assert "share of the update" in right.get_ylabel()
    assert left.get_title()
    assert right.get_title()
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["grpo", "dapo", "balanced:0.6"]
    assert len({line.get_color() for line in left.lines}) == 3
    grpo, dapo, *_ = right.lines
    assert list(grpo.get_ydata()) == pytest.approx(list(grpo.get_xdata()))  # each response the same
    assert dapo.get_ydata()[20] == pytest.approx(
        100 * 210 / 820
    )  # the shorter half: 1 + ... + 20 of 820 tokens
    assert grpo.get_ydata()[-1] == dapo.get_ydata()[-1] == pytest.approx(100)


def test_a_source_with_mathematics_in_its_name_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    summary = summarise(Rollouts(lengths=[1, 2], groups=[0, 0], source="$run_{/1.jsonl"), ["grpo"])
    draw(summary, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)


def test_a_plot_that_fails_leaves_the_earlier_one(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib.figure")

    def fail(self, file, **_):
        file.write_bytes(PNG)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(matplotlib.Figure, "savefig", fail)
    file = tmp_path / "a.png"
    file.write_text("an earlier plot")
    answer = weights("--lengths", "1,2", "--plot", str(file))
    assert answer.exit_code == 1
    assert "No space left" in answer.stderr
    assert file.read_text() == "an earlier plot"
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_without_matplotlib_it_says_what_to_install_before_any_work(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    answer = weights("--rollouts", "missing", "--plot", str(tmp_path / "a.png"))
    assert answer.exit_code == 1
    assert "pip install matplotlib" in answer.stderr


def test_the_package_imports_nothing_heavy():
    code = "import sys, pv_runs.weights, pv_runs.weights.command; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "verl", "pyarrow", "matplotlib", "transformers", "numpy"} & set(run.stdout.split())


def test_a_hundred_thousand_rows_are_quick(tmp_path):
    file = tmp_path / "1.jsonl"
    lines = (f'{{"uid": {n // 8}, "length": {1 + n % 999}, "score": {n % 2}}}\n' for n in range(100_000))
    file.write_text("".join(lines))
    weights("--lengths", "1")  # torch is imported
    start = time.perf_counter()
    answer = weights("--rollouts", str(file))
    assert answer.exit_code == 0
    assert "100000 responses of 12500 prompts" in answer.stdout
    assert time.perf_counter() - start < 60  # about 3 s where nothing else runs
