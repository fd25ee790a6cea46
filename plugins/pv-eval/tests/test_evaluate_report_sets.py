"""The report of several sets and several runs: what is compared, and how runs are named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from evaluate_cases import made

from pv_eval import RunInfo, write_run
from pv_eval.intervals import Intervals
from pv_eval.report import charts
from pv_eval.report.names import tails, tell_apart
from pv_eval.report.summary import summarise
from pv_eval.report.writing import write_report
from pv_eval.run_files import find_runs
from pv_rl.errors import DataError

QUICK = Intervals(flips=100)
SMALL = (("a", True, "q", "TF"), ("b", False, "q", "FF"), ("c", True, "r", "TT"), ("d", False, "r", "TF"))


def run(folder: Path, rows=SMALL, length: float | None = 7.0, **info) -> Path:
    pairs, votes = made(*rows)
    settings = RunInfo(**({"verifier": "v", "set_name": "opc"} | info))
    write_run(folder, pairs, [replace(vote, length=length) for vote in votes], settings)
    return folder


def other(rows=SMALL):
    """The same set with every vote reversed."""
    return [(*row[:3], row[3].translate(str.maketrans("TF", "FT"))) for row in rows]


def test_runs_are_compared_within_their_set_and_keep_their_names(tmp_path):
    proofs = [(f"p{name}", label, f"p{question}", said) for name, label, question, said in SMALL]
    run(tmp_path / "1", verifier="base")
    run(tmp_path / "2", proofs, verifier="base", set_name="proofbench")
    run(tmp_path / "3", other(), verifier="trained")
    run(tmp_path / "4", other(proofs), verifier="trained", set_name="proofbench")
    summary, files = write_report([tmp_path], tmp_path / "out", QUICK)
    assert [(group.name, [entry.name for entry in group.entries]) for group in summary.groups] == [
        ("opc", ["base", "trained"]),
        ("proofbench", ["base", "trained"]),
    ]
    # right votes of the base: 1 + 2 + 2 + 1 of 8, of the other one 2 of 8
    assert [
        versus.comparison.differences["accuracy"].value for group in summary.groups for versus in group.versus
    ] == [-0.5, -0.5]
    given = json.loads((tmp_path / "out" / "report.json").read_text())
    assert given["sets"] == [
        {"name": name, "set_name": name, "runs": ["base", "trained"]} for name in ("opc", "proofbench")
    ]
    assert [(one["set"], one["first"], one["second"]) for one in given["versus"]] == [
        ("opc", "base", "trained"),
        ("proofbench", "base", "trained"),
    ]
    assert [(one["set"], one["name"]) for one in given["runs"]][1:3] == [
        ("opc", "trained"),
        ("proofbench", "base"),
    ]
    text = (tmp_path / "out" / "report.md").read_text()
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings.index("## opc") < headings.index("### Against base") < headings.index("## proofbench")
    assert headings.count("### Against base") == headings.count("### Best of k") == 2
    figures = {file.name for file in files if file.suffix == ".png"}
    assert figures == {f"set{n}_{name}.png" for n in (1, 2) for name in ("reliability", "best_of", "length")}
    assert all(f"]({name})" in text for name in figures)


def test_verifiers_that_gave_grades_are_compared_with_the_first_that_did(tmp_path):
    grades = {"plain": [None] * 4, "base": [5, 2, 4, 1], "trained": [7, 0, 3, 1]}
    for number, (name, given) in enumerate(grades.items()):
        pairs, votes = made(*((*row[:3], row[3][0]) for row in SMALL))
        pairs = [replace(pair, grade=points / 7) for pair, points in zip(pairs, (7, 0, 3, 2), strict=True)]
        votes = [
            replace(vote, grade=None if points is None else points / 7)
            for vote, points in zip(votes, given, strict=True)
        ]
        scale = tuple(map(float, range(8))) if name != "plain" else ()
        write_run(tmp_path / str(number), pairs, votes, RunInfo(verifier=name, set_name="opc", grades=scale))
    write_report([tmp_path], tmp_path / "out", QUICK)
    (versus,) = json.loads((tmp_path / "out" / "report.json").read_text())["grades_versus"]
    assert (versus["set"], versus["first"], versus["second"]) == ("opc", "base", "trained")
    # MAE: (2 + 2 + 1 + 1) / 4 and 1 / 4
    assert versus["comparison"]["differences"]["mae_points"]["value"] == pytest.approx(-1.25)
    text = (tmp_path / "out" / "report.md").read_text()
    assert "### Grades of trained against base" in text
    assert "| MAE, points | -1.25 (" in text


def test_runs_of_one_verifier_are_told_apart_by_what_differs(tmp_path):
    folders = [
        run(tmp_path / "a", temperature=0.6, seed=1),
        run(tmp_path / "b", temperature=1.0, seed=1),
        run(tmp_path / "c", verifier="w", seed=3),
        run(tmp_path / "d" / "x", temperature=1.0, seed=1),
    ]
    (group,) = summarise(folders, QUICK).groups
    assert [entry.name for entry in group.entries] == [
        "v (temperature 0.6, a)",
        "v (temperature 1, b)",
        "w",
        "v (temperature 1, x)",
    ]


@pytest.mark.parametrize(
    ("names", "details", "expected"),
    [
        (["a", "a"], [("t 1", "n 2", "x"), ("t 1", "n 4", "y")], ["a (n 2)", "a (n 4)"]),
        (["a", "b"], [("t 1", "x"), ("t 2", "y")], ["a", "b"]),
        (
            ["a", "a", "a (t 1)"],
            [("t 1", "x"), ("t 2", "y"), ("t 1", "z")],
            ["a (t 1) (x)", "a (t 2)", "a (t 1) (z)"],
        ),
        (
            ["a"] * 4,
            [("t 1", "n 1", "p"), ("t 1", "n 2", "q"), ("t 2", "n 1", "r"), ("t 2", "n 2", "s")],
            ["a (t 1, n 1)", "a (t 1, n 2)", "a (t 2, n 1)", "a (t 2, n 2)"],
        ),
    ],
)
def test_the_first_details_that_tell_apart_are_added(names, details, expected):
    assert tell_apart(names, details) == expected


def test_paths_are_shown_by_their_shortest_ends_that_differ():
    assert tails([Path("/r/t0/run"), Path("/r/t1/run")]) == ["t0/run", "t1/run"]
    assert tails([Path("/r/a"), Path("/s/b")]) == ["a", "b"]
    assert len(set(tails([Path("/a/a"), Path("/a")]))) == 2


@pytest.mark.parametrize(
    ("rows", "groups", "reason"),
    [
        ([("z", True, "q", "T")], 2, "no pair in common"),
        ([("a", False, "q", "TF"), *SMALL[1:]], 2, "differ in the label"),
        (SMALL[:3], 1, ""),
    ],
)
def test_a_set_is_its_name_and_its_pairs(tmp_path, rows, groups, reason):
    folders = [run(tmp_path / "a"), run(tmp_path / "b", rows, verifier="w")]
    summary, _ = write_report(folders, tmp_path / "out", QUICK)
    assert len(summary.groups) == groups
    assert reason in summary.groups[-1].apart
    text = (tmp_path / "out" / "report.md").read_text()
    assert ("w: has 3 pairs and v 4, 3 of them the same" in text) is (groups == 1)
    assert ("It is another set than an earlier one of the same name" in text) is (groups == 2)


@pytest.fixture
def figures(monkeypatch):
    drawn = []
    monkeypatch.setattr(charts, "to_png", lambda figure, dpi: drawn.append(figure) or b"")
    return drawn


def test_tokens_and_characters_are_on_figures_of_their_own(tmp_path, figures):
    folders = [
        run(tmp_path / "a", length_unit="tokens", length=5),
        run(tmp_path / "b", length_unit="characters", length=2000),
        run(tmp_path / "c", length=None, verifier="unknown"),
    ]
    summary, files = write_report(folders, tmp_path / "out", QUICK)
    (group,) = summary.groups
    assert [entry.name for entry in group.entries] == ["v (a)", "v (b)", "unknown"]
    axes = [figure.axes[0] for figure in figures if "length" in figure.axes[0].get_ylabel()]
    assert [one.get_ylabel() for one in axes] == ["mean length, tokens", "mean length, characters"]
    assert [[text.get_text()[1:] for text in one.figure.legends[0].get_texts()] for one in axes] == [
        ["v (a)"],
        ["v (b)"],
    ]
    assert {"length_tokens.png", "length_characters.png"} < {file.name for file in files}
    text = (tmp_path / "out" / "report.md").read_text()
    assert "### " not in text.split("## Length of traces in tokens")[1].split("## Worst errors")[0]
    assert "| v (a) | true | 4 | 5 |" in text
    assert "v (b)" not in text.split("traces in tokens")[1].split("## Length of traces in characters")[0]


def test_oracle_and_random_lines_are_of_the_proofs_that_were_chosen_from(tmp_path, figures):
    one = [*SMALL, ("e", True, "r", "TT")]
    folders = [
        run(tmp_path / "a", one),
        run(tmp_path / "b", other(one), verifier="w"),
        run(tmp_path / "c", one[:4], verifier="part"),
    ]
    charts.draw_charts(summarise(folders[:2], QUICK).groups[0])
    charts.draw_charts(summarise(folders, QUICK).groups[0])
    legends = [
        [text.get_text().strip("\u200b") for text in figure.legends[0].get_texts()]
        for figure in figures
        if "chosen" in figure.axes[0].get_ylabel()
    ]
    assert legends == [
        ["v", "w", "oracle", "random"],
        [
            "v",
            "w",
            "part",
            *(f"{b} of the proofs of {name}" for name in ("v", "part") for b in ("oracle", "random")),
        ],
    ]


def test_runs_are_found_in_folders_once_and_in_order(tmp_path):
    home = run(tmp_path / "runs")
    inner = [run(home / name) for name in ("t=10", "t=2", "deep/er/run")]
    run(home / ".hidden")
    (home / "link").symlink_to(run(tmp_path / "elsewhere"))
    (home / "report").mkdir()
    assert find_runs([home]) == [home, inner[2], inner[1], inner[0]]
    assert find_runs([inner[0], home / "t=2" / ".." / "t=2", home]) == [
        inner[0],
        home / "t=2" / ".." / "t=2",
        home,
        inner[2],
    ]
    assert find_runs([home / "link"]) == [home / "link"]


def test_a_folder_without_a_run_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty has no votes.parquet, and no folder in it has one"):
        find_runs([tmp_path / "empty"])
    with pytest.raises(DataError, match="there is no folder"):
        find_runs([tmp_path / "none"])
    run(tmp_path / "half")
    (tmp_path / "half" / "run.json").unlink()
    with pytest.raises(DataError, match=r"half has no run.json"):
        write_report([tmp_path], tmp_path / "out", QUICK)


def test_the_base_of_a_set_is_its_first_run(tmp_path):
    first, second = run(tmp_path / "a"), run(tmp_path / "b", verifier="w")
    run(tmp_path / "c", set_name="other")  # the same pairs under another name are another set
    groups = summarise([second, tmp_path / "c", first], QUICK).groups
    assert [(group.name, group.first.name) for group in groups] == [("opc", "w"), ("other", "v")]
