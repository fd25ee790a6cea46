"""The paper's layout: its six tables and its figure from votes, cell by cell, and what is reported as missing."""

from __future__ import annotations

import csv
import itertools
import json
import random
import re
import shlex
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import places
import pytest
import typer
from evaluate_cases import made, pair, votes
from paper_cases import made_set, right_votes, write_votes
from typer.testing import CliRunner

from pv_eval import Pair, RunInfo, write_run
from pv_eval.intervals import Intervals
from pv_eval.report import paper_best_of
from pv_eval.report.paper import ODD, RIGHT, SIZES, paper_numbers, printed
from pv_eval.report.paper_layout import write_paper
from pv_eval.report.paper_models import find_model, read_models
from pv_eval.report.paper_runs import SPECS
from pv_eval.report_command import report
from pv_eval.sets.catalogue import SETS
from pv_rl.errors import ConfigError

PAPER = places.SHARED / "paper"
KINDS = {"closed_or_api": "closed or API", "base": "base", "trained": "trained"}
CURATED = made_set("curated", 51, [(141, True, ""), (97, False, "")])
OPC = made_set("opc", 65, [(107, True, ""), (185, False, "")])
PROOFBENCH = made_set("proofbench", 145, [(100, True, ""), (335, False, "")])
WRONG = "97 pairs, all wrong proofs: numbers that need both classes are none"
QUICK = Intervals(flips=100)


def table(name: str) -> list[dict[str, str]]:
    if not PAPER.is_dir():
        pytest.skip("the paper's tables are not beside this checkout")
    return list(csv.DictReader((PAPER / name).open()))


def command(*arguments: object):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(report)
    return CliRunner().invoke(app, [str(one) for one in arguments])


def accuracy(pairs, given) -> Fraction:
    """Mean over pairs of the share of right votes."""
    label = {one.pair_id: one.label for one in pairs}
    of: dict[str, list[bool]] = defaultdict(list)
    for vote in given:
        of[vote.pair_id].append(vote.verdict is label[vote.pair_id])
    return sum((Fraction(sum(one), len(one)) for one in of.values()), Fraction(0)) / len(of)


def shown(share: Fraction) -> str:
    return f"{100 * float(share):.1f}"


@pytest.fixture(scope="module")
def made_paper(tmp_path_factory):
    """Votes with the totals of the paper's tables, and the report that the command makes of them."""
    folder, exact = tmp_path_factory.mktemp("paper"), {}

    def run(verifier: str, name: str, pairs, *totals: float, slices=()) -> None:
        parts = [[one for one in pairs if one.slice == part] for part in slices] or [pairs]
        given = [vote for part, total in zip(parts, totals, strict=True) for vote in right_votes(part, total)]
        exact[verifier, name] = accuracy(pairs, given)
        write_votes(folder / f"{len(exact):02d}", verifier, name, pairs, given)

    for row in table("results_main.csv"):
        run(row["model"], "curated", CURATED, float(row["curated_avg8"]))
    run("OPC-R1-8B", "curated", CURATED, 64.6)
    for row in table("results_ablation_data.csv")[1:]:
        run(row["dataset"], "curated", CURATED, float(row["accuracy"]))
    for row in table("results_transfer.csv"):
        run(row["model"], "opc", OPC, float(row["opc"]))
        if row["proofbench"]:
            run(row["model"], "proofbench", PROOFBENCH, float(row["proofbench"]))
    run("OPC-R1-8B", "opc", OPC, 82.0)
    for name, file, columns, sizes in (
        ("error_types", "results_error_types.csv", ("base_acc", "proofverifier_acc"), (15, 55, 27)),
        ("style", "results_style.csv", ("base_8b", "proofverifier_8b"), (125, 125, 125)),
    ):
        rows = table(file)
        slices = [row[next(iter(row))].lower() for row in rows]
        right = [size // 2 if name == "style" else 0 for size in sizes]
        styled = [
            (number, label, part)
            for size, of, part in zip(sizes, right, slices, strict=True)
            for number, label in ((of, True), (size - of, False))
        ]
        pairs = made_set(name, 51, styled)
        for verifier, column in zip(("Distill-Qwen3-8B", "ProofVerifier-8B"), columns, strict=True):
            run(verifier, name, pairs, *(float(row[column]) for row in rows), slices=slices)
    drawn = random.Random(0)
    candidates = [
        Pair(pair_id=f"k{n}", question_id=f"kq{n % 18}", label=drawn.random() < 0.4) for n in range(864)
    ]
    for verifier, skill in (("Distill-Qwen3-8B", 0.6), ("ProofVerifier-8B", 0.8)):
        given = [
            vote
            for one in candidates
            for vote in votes(one.pair_id, "FT"[one.label == (drawn.random() < skill)] * 2, one.question_id)
        ]
        write_votes(folder / f"k-{verifier}", verifier, "best_of_k", candidates, given)
    runs = sorted(path for path in folder.iterdir())
    answer = command(*runs, "--layout", "paper", "--out", folder / "out")
    assert answer.exit_code == 0, answer.output
    document = json.loads((folder / "out" / "paper.json").read_text(), parse_constant=pytest.fail)
    return answer.output, (folder / "out" / "paper.md").read_text(), document, exact


def expected(exact: dict) -> list[tuple[str, list[list[str]]]]:
    """The paper's tables from the CSV files: after each measured cell the printed one."""
    main = [["Model", "Accuracy, measured, %", "Accuracy, paper, %"]]
    for kind, rows in itertools.groupby(table("results_main.csv"), key=lambda row: row["kind"]):
        main.append([f"**{KINDS[kind]}**", "", ""])
        for row in rows:
            cell = row["curated_avg8"] + (f" (+{row['gain_printed']})" if row["gain_printed"] else "")
            main.append([row["model"], cell, cell])
    transfer = [["Model"]]
    transfer[0] += [f"{name}, {of}, %" for name in ("OPC", "ProofBench") for of in ("measured", "paper")]
    transfer[0] += ["Avg, measured, %"]
    rows = table("results_transfer.csv")
    for start, stop, kind in ((0, 3, "closed or API"), (3, 6, "base"), (6, 9, "trained")):
        transfer.append([f"**{kind}**", *[""] * 5])
        for row in rows[start:stop]:
            cells = []
            for name in ("opc", "proofbench"):
                gain = row[f"{name}_gain_printed"]
                cells += [(row[name] or "-") + (f" (+{gain})" if gain else "")] * 2
            both = [exact.get((row["model"], name)) for name in ("opc", "proofbench")]
            average = shown(sum(both) / 2) if None not in both else "-"
            if kind == "trained":
                base = row["model"].replace("ProofVerifier", "Distill-Qwen3")
                over = sum(both) / 2 - sum(exact[base, name] for name in ("opc", "proofbench")) / 2
                average += f" (+{shown(over)})"
            transfer.append([row["model"], *cells, average])
    errors = [["Error Type", "Percentage, measured, %", "Percentage, paper, %"]]
    errors[0] += ["Distill-Qwen3-8B, measured, %", "Base Model Acc, paper, %"]
    errors[0] += ["ProofVerifier-8B, measured, %", "ProofVerifier Acc, paper, %"]
    for row in table("results_error_types.csv"):
        cell = f"{row['proofverifier_acc']} (+{row['gain_printed']})"
        # 74/120 - 64/120 is 8.33 points; the paper subtracts the rounded numbers
        measured = cell.replace("+8.4", "+8.3")
        share = [row["share_pct"]] * 2
        errors.append([row["error_type"], *share, row["base_acc"], row["base_acc"], measured, cell])
    head = [["Model"]]
    head[0] += [f"{name}, {of}, %" for name in ("Curated", "OPC", "Avg") for of in ("measured", "paper")]
    for row in table("results_head_to_head.csv"):
        head.append(
            [row["model"], *(row[name] for name in ("curated", "opc", "avg_printed") for _ in range(2))]
        )
    style = [["Proof Style", "Distill-Qwen3-8B, measured, %", "Base 8B, paper, %"]]
    style[0] += ["ProofVerifier-8B, measured, %", "ProofVerifier-8B, paper, %"]
    for row in table("results_style.csv"):
        cell = f"{row['proofverifier_8b']} (+{row['gain_printed']})"
        style.append([row["style"], row["base_8b"], row["base_8b"], cell, cell])
    ablation = [["Dataset"]]
    titles = ("Accuracy", "Data Retained", "Drop")
    ablation[0] += [f"{name}, {of}, %" for name in titles for of in ("measured", "paper")]
    for row in table("results_ablation_data.csv"):
        columns = ("accuracy", "data_retained_pct", "drop_printed")
        ablation.append([row["dataset"], *(row[name] for name in columns for _ in range(2))])
    names = ("Main results", "Transfer", "Error types", "Head to head", "Proof style", "Data ablation")
    return list(zip(names, (main, transfer, errors, head, style, ablation), strict=True))


def tables_of(text: str) -> list[tuple[str, list[list[str]]]]:
    """Headings and tables of the Markdown."""
    found: list[tuple[str, list[list[str]]]] = []
    for line in text.splitlines():
        if line.startswith("## "):
            found.append((line[3:], []))
        elif line.startswith("| ") and not line.startswith("| ---"):
            found[-1][1].append([cell.strip() for cell in line[1:-1].split("|")])
    return found


def test_the_papers_six_tables_come_out_of_votes_with_its_totals(made_paper):
    output, text, document, exact = made_paper
    found = tables_of(text)
    assert found[:6] == expected(exact)
    assert [one for one, _ in found[6:]] == ["Best of k", "Notes"]
    seven = "1 pair with another number of samples than 8; a pair counts by its mean ('error_types-96')"
    assert document["notes"] == [  # the sets have the paper's sizes, so no note says that they have not
        f"Distill-Qwen3-8B on error_types: {seven}",
        f"Distill-Qwen3-8B on error_types: {WRONG}",
        "Distill-Qwen3-8B on error_types: votes a pair: 7 to 8, where the paper has 8.",
        f"ProofVerifier-8B on error_types: {WRONG}",
        "Distill-Qwen3-8B on best_of_k: votes a pair: 2, where the paper has 8.",
        "ProofVerifier-8B on best_of_k: votes a pair: 2, where the paper has 8.",
    ]
    assert all(not one["missing"] for one in document["tables"])
    assert "ProofVerifier-8B       76.8 (+5.2)  76.8 (+5.2)" in output
    for sentences in ODD.values():
        assert all(sentence in text for sentence in sentences)


def test_the_json_has_each_measured_number_with_its_interval(made_paper):
    _, _, document, exact = made_paper
    main = document["tables"][0]
    cells = {line["label"]: line["cells"]["curated"] for line in main["lines"]}
    for model, cell in cells.items():
        assert cell["measured"]["value"] == pytest.approx(float(exact[model, "curated"]))
        assert cell["measured"]["low"] < cell["measured"]["value"] < cell["measured"]["high"]
    gain = cells["ProofVerifier-32B"]["gain"]
    difference = exact["ProofVerifier-32B", "curated"] - exact["Distill-Qwen3-32B", "curated"]
    assert gain["value"] == pytest.approx(float(difference))
    assert gain["low"] < gain["value"] < gain["high"]
    assert cells["DeepSeek V3.1"]["gain"]["value"] is None
    average = document["tables"][1]["lines"][-1]["cells"]["average"]
    assert average["measured"]["low"] < average["measured"]["value"] < average["measured"]["high"]
    assert average["gain"]["low"] < average["gain"]["value"] < average["gain"]["high"]


def test_the_figure_has_a_panel_a_set_with_oracle_and_random(made_paper):
    _, text, document, _ = made_paper
    sets = {one["set_name"]: one for one in document["best_of_k"]["sets"]}
    assert list(sets) == ["best_of_k", "curated", "opc", "proofbench"]
    base, trained = sets["best_of_k"]["verifiers"]
    assert (base["problems"], base["candidates"]) == (18, [48, 48])
    assert "best\\_of\\_k: 18 problems with 48 proofs each." in text
    ends = [[one["curves"][name][-1]["value"] for one in (base, trained)] for name in ("uniform", "oracle")]
    assert ends[0][0] < ends[0][1] <= ends[1][0] == 1
    assert {len(curve) for one in (base, trained) for curve in one["curves"].values()} == {48}


def test_the_figure_has_one_legend_below_its_panels_with_whole_names(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(paper_best_of, "to_png", lambda figure, dpi: figures.append(figure) or b"")
    long = "checkpoints/" + "x" * 90 + "/step-300"
    for folder, verifier, name in (("1", long, "opc"), ("2", "b", "opc"), ("3", "b", "mine")):
        write_run(
            tmp_path / folder,
            *made(("a", True, "q", "T"), ("z", False, "q", "F")),
            RunInfo(verifier=verifier, set_name=name),
        )
    write_paper([tmp_path / one for one in "123"], tmp_path / "out", QUICK)
    (figure,) = figures
    assert all(axes.get_legend() is None for axes in figure.axes)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert ["".join(name.strip("\u200b").split()) for name in names] == [long, "b", "oracle", "random"]


def test_the_curves_are_the_means_over_all_subsets(tmp_path):
    shares = {"a": [("T", True), ("T", False), ("F", True)], "b": [("F", True), ("T", False), ("F", False)]}
    rows = [
        (f"{question}{n}", label, question, said * 2)
        for question, candidates in shares.items()
        for n, (said, label) in enumerate(candidates)
    ]
    write_run(tmp_path / "run", *made(*rows), RunInfo(verifier="v", set_name="mine"))
    write_paper([tmp_path / "run"], tmp_path / "out", QUICK)
    (panel,) = json.loads((tmp_path / "out" / "paper.json").read_text())["best_of_k"]["sets"]
    curves = panel["verifiers"][0]["curves"]
    for k in (1, 2, 3):
        chosen, oracle = [], []
        for candidates in shares.values():
            for subset in itertools.combinations(candidates, k):
                best = [label for said, label in subset if said == max(one for one, _ in subset)]
                chosen.append(sum(best) / len(best))
                oracle.append(any(label for _, label in subset))
        assert curves["uniform"][k - 1]["value"] == pytest.approx(sum(chosen) / len(chosen))
        assert curves["oracle"][k - 1]["value"] == pytest.approx(sum(oracle) / len(oracle))
        assert curves["random"][k - 1]["value"] == pytest.approx(0.5)
    assert (tmp_path / "out" / "paper_best_of_k.png").read_bytes().startswith(b"\x89PNG")


def test_the_printed_numbers_are_those_of_the_papers_tables():
    def cells(file: str, name: str, **columns: str):
        rows = table(file)
        assert printed(name) == {
            row[next(iter(row))]: {
                ours: float(row[theirs]) for ours, theirs in columns.items() if row[theirs]
            }
            for row in rows
        }

    cells("results_main.csv", "main", **{"curated": "curated_avg8", "curated gain": "gain_printed"})
    sets = ("opc", "proofbench")
    gains = {f"{name} gain": f"{name}_gain_printed" for name in sets}
    cells("results_transfer.csv", "transfer", **dict(zip(sets, sets, strict=True)), **gains)
    cells("results_head_to_head.csv", "head_to_head", curated="curated", opc="opc", average="avg_printed")
    cells("results_style.csv", "style", base="base_8b", verifier="proofverifier_8b", gain="gain_printed")
    cells(
        "results_error_types.csv",
        "error_types",
        share="share_pct",
        base="base_acc",
        verifier="proofverifier_acc",
        gain="gain_printed",
    )
    cells(
        "results_ablation_data.csv",
        "ablation",
        accuracy="accuracy",
        kept="data_retained_pct",
        drop="drop_printed",
    )
    ours = {(row.model, row.slice): row.percent for row in paper_numbers("curated")}
    assert ours.pop(("OPC-R1-8B", "")) == 64.6
    assert ours == {(row["model"], ""): float(row["curated_avg8"]) for row in table("results_main.csv")}
    assert {row.percent for row in paper_numbers("error_types")} == {53.3, 61.7, 42.7, 56.8, 41.3, 55.6}
    sizes = json.loads((PAPER / "hyperparameters_and_claims.json").read_text())["testsets"]
    assert {
        name: (sizes[name]["pairs"], sizes[name].get("questions") or sizes[name]["problems"])
        for name in SIZES
    } == SIZES
    assert {name: sizes[name]["positive"] for name in RIGHT} == RIGHT


def test_the_printed_numbers_that_do_not_follow_from_one_another_are_those_that_are_noted():
    def tenths(number: float) -> int:
        return round(10 * number)

    odd = []
    for name in ("main", "transfer"):
        for row, numbers in printed(name).items():
            base = printed(name).get(row.replace("ProofVerifier", "Distill-Qwen3"), {})
            odd += [
                (name, row)
                for column, gain in numbers.items()
                if (of := column.removesuffix(" gain")) != column
                and tenths(numbers[of]) - tenths(base[of]) != tenths(gain)
            ]
    for row, numbers in printed("head_to_head").items():
        if tenths(numbers["curated"]) + tenths(numbers["opc"]) != 2 * tenths(numbers["average"]):
            odd.append(("head_to_head", row))
    for name in ("style", "error_types"):
        odd += [
            (name, row)
            for row, numbers in printed(name).items()
            if tenths(numbers["verifier"]) - tenths(numbers["base"]) != tenths(numbers["gain"])
        ]
    whole = printed("ablation")["Full Dataset"]["accuracy"]
    odd += [
        ("ablation", row)
        for row, numbers in printed("ablation").items()
        if tenths(whole) - tenths(numbers["accuracy"]) != tenths(numbers["drop"])
    ]
    assert odd == [("head_to_head", "ProofVerifier-8B")]

    counts = {row: round(97 * numbers["share"] / 100) for row, numbers in printed("error_types").items()}
    assert [tenths(100 * count / 97) for count in counts.values()] == [155, 567, 278]
    found = {}
    for row, count in counts.items():
        for column in ("base", "verifier"):
            votes_of = 8 * count
            of = [
                n
                for n in range(votes_of + 1)
                if tenths(100 * n / votes_of) == tenths(printed("error_types")[row][column])
            ]
            found[row, column] = of
    assert [where for where, of in found.items() if not of] == [
        ("Making up non-existent conclusions", "base")
    ]
    first = "Misusing unjustified assumptions"
    assert (found[first, "base"], found[first, "verifier"]) == ([64], [74])
    assert "89 of 216 are 41.2 %, 90 are 41.7 %" in ODD["error_types"][0]
    assert [tenths(100 * n / 216) for n in (89, 90)] == [412, 417]
    assert tenths(100 * 74 / 120 - 100 * 64 / 120) == 83


def small(
    folder: Path, verifier: str, set_name: str, *rows: tuple[str, bool, str, str], **more: object
) -> Path:
    write_run(folder, *made(*rows), RunInfo(verifier=verifier, set_name=set_name, **more))  # pyright: ignore[reportArgumentType]
    return folder


ROWS = (("a", True, "q", "TTTT"), ("b", False, "q", "TTFF"), ("c", False, "r", "FFFF"))
WORSE = (("a", True, "q", "TTFF"), ("b", False, "q", "TTTT"), ("c", False, "r", "FFFF"))


def cells_of(document: dict, name: str, column: str, number: int = 0) -> dict[str, dict]:
    these = [one for one in document["tables"] if one["name"] == name]
    return {line["label"]: line["cells"][column] for line in these[number]["lines"]}


def written(folder: Path, *runs: Path, models: str | None = None) -> tuple[dict, str]:
    path = None
    if models is not None:
        path = folder / "models.yaml"
        path.write_text(models)
    write_paper(list(runs), folder / "out", Intervals(flips=0), path)
    return json.loads((folder / "out" / "paper.json").read_text()), (folder / "out" / "paper.md").read_text()


def test_what_is_missing_is_named_with_the_command_that_makes_it(tmp_path):
    run = small(tmp_path / "a", "my $(model)", "opc", *ROWS)
    document, text = written(tmp_path, run, models="my $(model): {base: Distill-Qwen3-8B}")
    (main, transfer, *_) = document["tables"]
    assert [one["verifier"] for one in main["missing"]] == [line["label"] for line in main["lines"]]
    of = {(one["verifier"], one["set_name"]): one["command"] for one in transfer["missing"]}
    assert ("o3", "opc") in of
    assert ("o3", "proofbench") not in of  # the paper has no number there either
    assert ("Distill-Qwen3-8B", "opc") in of  # also for the gain
    words = shlex.split(of["my $(model)", "proofbench"])
    assert words[:6] == ["pv-eval", "run", "--set", "proofbench:FILE", "--format", "verdict"]  # it has grades
    assert words[words.index("--name") + 1] == "my $(model)"
    assert all(spec.partition(":")[0] in SETS for spec in SPECS.values())
    assert "No votes of Distill-Qwen3-8B, ProofVerifier-8B on best\\_of\\_k." in text
    cell = cells_of(document, "transfer", "opc")["my $(model)"]
    assert cell["measured"]["value"] == pytest.approx(5 / 6)
    assert (cell["gain"]["value"], cell["paper"]) == (None, None)
    assert "opc: 3 pairs of 2 questions, where the paper's set has 292 of 65: not the same set." in text
    assert "votes a pair: 4, where the paper has 8." in text


def test_a_file_of_models_puts_verifiers_beside_the_papers_rows(tmp_path):
    runs = [
        small(tmp_path / "mine", "mine", "curated", *ROWS),
        small(tmp_path / "qwen", "qwen", "curated", *WORSE),
        small(tmp_path / "part", "part", "curated", *WORSE),
        small(tmp_path / "more", "more", "curated", *WORSE),
        small(tmp_path / "less", "less", "curated", *WORSE),
    ]
    document, text = written(
        tmp_path,
        *runs,
        models="""
mine: {row: ProofVerifier-8B}
qwen: {row: Distill-Qwen3-8B}
part: {row: w/o Extended LLM Usage, kept: 40}
more: {row: w/o Multi-sourced Dataset}
less: {full: mine, kept: 12.5}
gone: {kind: api}
""",
    )
    main = cells_of(document, "main", "curated")
    cell = main["mine (paper: ProofVerifier-8B)"]
    assert (cell["gain"]["value"], cell["paper"], cell["paper_gain"]) == (pytest.approx(1 / 3), 76.8, 5.2)
    assert main["qwen (paper: Distill-Qwen3-8B)"]["measured"]["value"] == 0.5
    assert not {"part", "less", "Distill-Qwen3-8B"} & set(main)
    kept = cells_of(document, "ablation", "kept")
    assert {label: cell["measured"]["value"] for label, cell in kept.items()} == {
        "mine (paper: Full Dataset)": 1,
        "w/o Diverse Prompt Method": None,
        "more (paper: w/o Multi-sourced Dataset)": None,  # the paper's 44 % are not this verifier's
        "part (paper: w/o Extended LLM Usage)": 0.4,
        "less": 0.125,
    }
    assert cells_of(document, "ablation", "drop")["less"]["measured"]["value"] == pytest.approx(1 / 3)
    assert "gone of the file of --models has no run here." in text


def test_a_second_run_of_a_verifier_is_a_row_of_its_own(tmp_path):
    runs = [
        small(tmp_path / "a", "ProofVerifier-8B", "curated", *ROWS, temperature=0.6),
        small(tmp_path / "b", "ProofVerifier-8B", "curated", *WORSE, temperature=1.0),
        small(tmp_path / "c", "ProofVerifier-8B", "curated", *WORSE, temperature=1.0),
        small(tmp_path / "d", "Distill-Qwen3-8B", "curated", *WORSE, temperature=1.0),
    ]
    document, text = written(tmp_path, *runs, runs[0])
    values = {
        label: (cell["measured"]["value"], cell["gain"]["value"])
        for label, cell in cells_of(document, "main", "curated").items()
        if label.startswith("ProofVerifier-8B")
    }
    assert values == {
        "ProofVerifier-8B": (pytest.approx(5 / 6), pytest.approx(1 / 3)),
        "ProofVerifier-8B, temperature 1": (0.5, 0),
        "ProofVerifier-8B, temperature 1 (run 2)": (0.5, 0),
    }
    assert "ProofVerifier-8B and Distill-Qwen3-8B on curated have different temperatures: 0.6 and 1." in text


def test_a_gain_and_a_drop_are_over_the_run_that_was_sampled_alike(tmp_path):
    given = (  # of each model a run at another temperature or of another format comes first
        ("base", WORSE, 0.2, "verdict"),
        ("base", ROWS, 0.6, "verdict"),
        ("base", WORSE, 0.6, "step"),
        ("mine", ROWS, 0.6, "step"),
        ("mine", WORSE, 0.6, "verdict"),
        ("mine", ROWS, 0.6, "verdict"),
        ("part", WORSE, 0.6, "step"),
    )
    runs = [
        small(tmp_path / str(n), name, "curated", *rows, temperature=temperature, verdict_format=form)
        for n, (name, rows, temperature, form) in enumerate(given)
    ]
    document, _ = written(tmp_path, *runs, models="mine: {base: base}\npart: {full: mine}")
    gains = {label: cell["gain"]["value"] for label, cell in cells_of(document, "main", "curated").items()}
    assert {label: gain for label, gain in gains.items() if label.startswith("mine")} == {
        "mine": pytest.approx(-1 / 3),
        "mine (run 2)": pytest.approx(0),
        "mine, format step": pytest.approx(1 / 3),
    }
    assert cells_of(document, "ablation", "drop")["part"]["measured"]["value"] == pytest.approx(1 / 3)


def test_a_gain_is_on_the_pairs_of_both_and_unpaired_where_there_are_none(tmp_path):
    base = small(tmp_path / "base", "Distill-Qwen3-8B", "opc", *WORSE)
    part = small(tmp_path / "part", "ProofVerifier-8B", "opc", *ROWS[:2])
    document, text = written(tmp_path, base, part)
    cell = cells_of(document, "transfer", "opc")["ProofVerifier-8B"]
    assert (cell["measured"]["value"], cell["gain"]["value"]) == (0.75, 0.5)  # 0.75 - 0.25 on a and b
    assert "is on the 2 pairs that both voted on" in text
    other = small(tmp_path / "other", "ProofVerifier-14B", "opc", ("z", True, "s", "TTTF"))
    four = small(tmp_path / "four", "Distill-Qwen3-14B", "opc", *WORSE)
    document, text = written(tmp_path, four, other)
    gain = cells_of(document, "transfer", "opc")["ProofVerifier-14B"]["gain"]
    assert (gain["value"], gain["low"], gain["note"]) == (0.25, None, "not on the same pairs")
    assert "cannot be paired" in text


def test_slices_that_the_paper_does_not_have_get_rows_and_right_proofs_no_share(tmp_path):
    pairs = [
        pair("a", False, "q", slice="Incomplete  logic flow"),
        pair("b", False, "q", slice="typo|<b>"),
        pair("c", True, "r", slice="incomplete logic flow"),
        pair("d", False, "r"),
    ]
    given = [
        vote
        for one, said in zip(pairs, ("TF", "FF", "FF", "TT"), strict=True)
        for vote in votes(one.pair_id, said, one.question_id)
    ]
    write_run(tmp_path / "a", pairs, given, RunInfo(verifier="ProofVerifier-8B", set_name="error_types"))
    document, text = written(tmp_path, tmp_path / "a")
    shares = cells_of(document, "error_types", "share")
    assert [(label, one["measured"]["value"]) for label, one in shares.items()] == [
        ("Misusing unjustified assumptions", 0),
        ("Incomplete logic flow", pytest.approx(1 / 3)),
        ("Making up non-existent conclusions", 0),
        ("(no slice)", pytest.approx(1 / 3)),
        ("typo|<b>", pytest.approx(1 / 3)),
    ]
    right = cells_of(document, "error_types", "verifier")
    assert right["Incomplete logic flow"]["measured"]["value"] == 0.5
    assert "no proof has the slice 'making up non-existent conclusions'" in text
    others = [replace(one, slice="other") for one in pairs]  # of the same pairs, in other slices
    write_run(tmp_path / "b", others, given, RunInfo(verifier="Distill-Qwen3-8B", set_name="error_types"))
    document, _ = written(tmp_path, tmp_path / "a", tmp_path / "b")
    assert cells_of(document, "error_types", "verifier")["typo|<b>"]["gain"]["value"] == 0
    assert cells_of(document, "error_types", "base")["typo|<b>"]["measured"]["value"] is None
    assert "| typo\\|\\<b\\> |" in text


def test_hostile_names_unknown_sets_and_grades_are_shown_and_noted(tmp_path):
    evil = "<script>|$x$ \x1b[31m" + "n" * 200
    runs = [
        small(tmp_path / "a", evil, "opc", *ROWS),
        small(tmp_path / "b", evil, "my|set <i>", *ROWS),
        small(
            tmp_path / "c", "ProofVerifier-8B", "proofbench", *ROWS, verdict_format="grade", grades=(0.0, 7.0)
        ),
        small(tmp_path / "d", "OPC-R1-8B", "proofbench", *ROWS),
        small(tmp_path / "e", "one", "", ("a", True, "q", "T")),
    ]
    document, text = written(tmp_path, *runs)
    page = (tmp_path / "out" / "paper.html").read_text()
    assert not re.search(r"<(script|i>|b>)", page)
    assert "\x1b" not in page + text
    lines = [line for line in document["tables"][1]["lines"] if line["group"] == "other"]
    assert len(lines) == 1
    assert [one["set_name"] for one in document["best_of_k"]["sets"]] == ["opc", "my|set <i>", "proofbench"]
    for sentence in (
        "no table of the paper is on this set. Its sets are curated, opc,",
        "OPC-R1-8B on proofbench: no table of the paper on this set has a row for it.",
        "ProofVerifier-8B on proofbench: verdicts were read by the format grade",
        "one on a set without a name: no table of the paper is on this set",
        "has no role, so it is under other",
    ):
        assert any(sentence in note for note in document["notes"]), sentence


def test_the_file_of_models_in_the_documentation_gives_the_roles_that_it_says(tmp_path):
    page = (Path(__file__).parents[1] / "README.md").read_text()
    (text,) = re.findall(r"```yaml\n(my-base.*?)```", page, re.DOTALL)
    (tmp_path / "models.yaml").write_text(text)
    names = ["my-base", "my-verifier", "other-verifier", "gpt-x", "one-prompt"]
    models = read_models(tmp_path / "models.yaml", names)
    assert {
        name: (models[name].kind, find_model(models, models[name].base, names)) for name in names[:4]
    } == {
        "my-base": ("base", ""),
        "my-verifier": ("trained", "my-base"),
        "other-verifier": ("trained", "my-base"),
        "gpt-x": ("api", ""),
    }
    assert (models["one-prompt"].full, models["one-prompt"].kept) == ("my-verifier", 30.5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "expected names of verifiers with fields"),
        ("mine: base", "expected names of verifiers with fields"),
        ("1: {kind: api}", "expected names of verifiers with fields"),
        ("mine: {bass: x}", "Did you mean base? Expected kind, base, row, full, kept"),
        ("mine: {kind: closed}", "has kind: 'closed'; expected api, base, trained"),
        ("mine: {kind: [api]}", "has kind: a value of type list; expected a text"),
        ("mine: {base: qwem}", "no model of the paper has this name. Did you mean qwen? Correct the name"),
        ("mine: {base: mine}", "names itself as base"),
        ("mine: {base: qwen}\nqwen: {base: mine}", "mine and qwen name each other as base"),
        ("mine: {full: qwen}\nqwen: {full: mine}", "has full: qwen, which is a data ablation too"),
        ("#" * 1_100_000, "models.yaml has more than 1,000,000 bytes"),
        ("[" * 20_000, "cannot be read as YAML"),
        ("mine: {kind: api, base: qwen}", "a verifier with a base is trained"),
        ("mine: {row: ProofVerifier-9B}", "Did you mean ProofVerifier-8B?"),
        ("mine: {row: o3, full: qwen}", "is a data ablation (full) with row: o3; expected w/o Diverse"),
        ("mine: {kept: 0}", "has kept: 0; expected percent, above 0 up to 100"),
        ("mine: {kept: yes}", "has kept: True; expected percent"),
        ("mine: {kept: .nan}", "has kept: nan; expected percent"),
        ("mine: {row: ''}", "has row: ''; expected a text"),
        ("mine: {kind: api}\nmine: {kind: base}", "given twice"),
        ("mine: {kept: 0x" + "f" * 5000 + "}", "has kept: a value of type int"),
        ("mine: {", "cannot be read as YAML"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nmine: {row: *b}", "expected names of verifiers"),
        ("\udcff", "cannot be read as YAML"),
    ],
    ids=lambda text: text[:30].encode("ascii", "replace").decode(),
)
def test_a_file_of_models_that_is_wrong_is_refused(tmp_path, text, problem):
    path = tmp_path / "models.yaml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError) as error:
        read_models(path, ["mine", "qwen"])
    assert problem in str(error.value)
    assert len(str(error.value)) < 800


def test_the_command_names_a_wrong_layout_and_a_file_of_models_without_it(tmp_path):
    run = small(tmp_path / "a", "v", "opc", *ROWS)
    for arguments, problem in (
        (["--layout", "latex"], "--layout is 'latex'; expected report or paper"),
        (["--models", tmp_path / "m.yaml"], "--models is for --layout paper"),
        (["--layout", "paper", "--models", tmp_path / "m.yaml"], "m.yaml cannot be read as YAML"),
        (["--layout", "paper", "--out", tmp_path / "no" / "where"], "there is no folder"),
    ):
        answer = command(run, *arguments)
        assert answer.exit_code == 1
        assert problem in answer.output
    assert command(tmp_path / "none", "--layout", "paper").exit_code == 1
    assert not (run / "report").exists()
