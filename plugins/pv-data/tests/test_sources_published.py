"""Published sets: presets on rows of their published form, trial of a file, download from a real HTTP server."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from sources_cases import DATA, FOLDERS, jsonl, needs_data, problems, proofs, read, reasons
from typer.testing import CliRunner

from pv_data.cli import app
from pv_data.plugins import SOURCES
from pv_data.records import GROUND_TRUTH, Aside, Problem, Proof
from pv_data.run.config import compose
from pv_data.shell import load_yaml
from pv_data.sources import download as downloading
from pv_data.sources.download import download, fetch
from pv_data.sources.opening import check_options, open_source
from pv_data.sources.presets import File, Published, published
from pv_rl.errors import ConfigError, DataError


def labels(rows: list[Any]) -> list[tuple[str, bool | None]]:
    return [(one.text, one.known) for one in proofs(rows) if one.method != GROUND_TRUTH]


def test_openr1_math_has_a_label_for_each_generation(tmp_path: Path):
    row = {
        "problem": "P?",
        "solution": "A reference of NuminaMath.",
        "answer": "7",
        "problem_type": "Algebra",
        "uuid": "u-1",
        "is_reasoning_complete": [True, True, False, True],
        "generations": [
            "<think>Hm.</think>So.",
            "<think>Hm.</think>Thus.",
            "<think>Hm",
            "<think>Hm.</think>Hence.",
        ],
        "correctness_math_verify": [True, False, False, False],
        "correctness_llama": None,
        "messages": [{"role": "user", "content": "P?"}],
    }
    by_llama = row | {"uuid": "u-2", "problem": "Q?", "correctness_llama": [True, False, False, True]}
    pq.write_table(pa.Table.from_pylist([row, by_llama]), tmp_path / "a.parquet")
    rows = read("openr1_math", tmp_path / "a.parquet")
    assert [(one.native_id, one.answer, one.subject) for one in problems(rows)] == [
        ("u-1", "7", "Algebra"),
        ("u-2", "7", "Algebra"),
    ]
    assert labels(rows) == [
        ("So.", True),
        ("Thus.", False),
        ("Hence.", False),
        ("So.", True),
        ("Thus.", False),
    ]
    assert {one.method for one in proofs(rows)} == {"solution"}  # no reference: nobody has checked it
    assert reasons(rows) == {"thoughts without an end: proof": 2, "no label: label": 1}
    bare = {"problem": "P?", "generations": ["So."], "correctness_math_verify": [True]}
    assert labels(read("openr1_math", jsonl(tmp_path / "b.jsonl", bare))) == [("So.", True)]


def test_mr_gsm8k_is_wrong_by_its_steps_and_not_by_its_answer(tmp_path: Path):
    row = {
        "uuid": "u-1",
        "question": "P?",
        "ground_truth_solution": "By adding.",
        "ground_truth_answer": 5,
        "model_output_steps": ["Step 1: So.", "Step 2: Thus."],
        "model_output_answer_correctness": "correct",
        "model_output_solution_correctness": "wrong",
        "model_output_solution_first_error_step": 1,
    }
    good = row | {"model_output_steps": ["Step 1: Well."], "model_output_solution_correctness": "correct"}
    odd = row | {"model_output_steps": ["Step 1: Hm."], "model_output_solution_correctness": "N/A"}
    (tmp_path / "MR-GSM8K.json").write_text(json.dumps([row, good, odd]))
    rows = read("mr_gsm8k", tmp_path / "MR-GSM8K.json")
    assert labels(rows) == [("Step 1: So.\n\nStep 2: Thus.", False), ("Step 1: Well.", True)]
    assert [one.text for one in proofs(rows) if one.method == GROUND_TRUTH] == ["By adding."]
    assert problems(rows)[0].answer == "5"
    assert reasons(rows) == {"no label: label": 1}


def test_big_bench_mistake_is_right_where_no_step_is_a_mistake(tmp_path: Path):
    def row(name: str, mistake: object) -> dict[str, object]:
        return {
            "input": name,
            "target": "3",
            "answer": "4",
            "steps": [f"Step of {name}"],
            "mistake_index": mistake,
        }

    odd = [row("R?", -1), row("S?", "none"), row("T?", True), {**row("U?", 0), "steps": []}]
    missing = {"input": "V?", "target": "3", "steps": ["a"]}
    rows = read(
        "big_bench_mistake", jsonl(tmp_path / "a.jsonl", row("P?", None), row("Q?", 0), *odd, missing)
    )
    assert labels(rows) == [("Step of P?", True), ("Step of Q?", False)]
    assert reasons(rows) == {"no label: label": 3, "empty: steps": 1, "missing: mistake_index": 1}


def test_olympiadbench_is_read_as_it_is_published(tmp_path: Path):
    proof = {
        "id": 1,
        "question": "Show it.",
        "solution": ["So.", "Or so."],
        "final_answer": None,
        "subfield": "Algebra",
    }
    open_ended = proof | {"id": 2, "question": "Which?", "solution": ["Seven."], "final_answer": ["7", "8"]}
    picture = proof | {"id": 3, "question": "See <image_1>", "modality": "Multimodal"}
    context = proof | {
        "id": 4,
        "question": "Show it too.",
        "context": "Let n be even.",
        "solution": ["Even."],
    }
    typed = open_ended | {"id": 5, "question": "And?", "question_type": "Open-ended"}
    (tmp_path / "a.json").write_text(json.dumps([proof, open_ended, picture, context, typed]))
    rows = read("olympiadbench", tmp_path)
    assert [(one.text, one.source, one.answer) for one in problems(rows)] == [
        ("Show it.", "OlympiadBench", ""),
        ("Which?", "OlympiadBench-OE", "7; 8"),
        ("Let n be even.\n\nShow it too.", "OlympiadBench", ""),
        ("And?", "OlympiadBench-OE", "7; 8"),
    ]
    assert reasons(rows) == {"picture": 1}
    assert [one.native_id for one in problems(read("olympiadbench", tmp_path, split="OE"))] == ["2", "5"]
    (tmp_path / "b.json").write_text(json.dumps([open_ended]))
    only_proofs = read("olympiadbench", tmp_path, split="TP")
    assert [one.native_id for one in problems(only_proofs)] == ["1", "4"]
    assert reasons(only_proofs) == {
        "picture": 1
    }  # b.json holds nothing for this entry, and is not refused for that


@pytest.mark.parametrize(
    ("index", "points", "known"),
    [
        ("IMO2025-1", 7, True),
        ("PB-Basic-001", 6, False),
        ("Putnam2024-A1", 10, True),
        ("CMO2024-1", 10, False),
    ],
)
def test_deepseekmath_is_read_as_it_is_published(tmp_path: Path, index: str, points: int, known: bool):
    made = {"proof": "So.", "average_automatic_rating": 1.0, "human_rating": points}
    row = {"question": "P?", "solution": "By adding.", "problem_idx": index, "model_prediction": made}
    unknown = row | {"question": "Q?", "problem_idx": "USAMO2025-1"}
    rows = read(
        "dsmathv2", jsonl(tmp_path / "CMO2024.jsonl", row, unknown, row | {"model_prediction": "So."})
    )
    assert problems(rows)[0].native_id == f"CMO2024/{index}"
    assert labels(rows) == [("So.", known)]
    assert [one.text for one in proofs(rows) if one.method == GROUND_TRUTH] == ["By adding."] * 2
    assert reasons(rows) == {"empty: max_rating": 1, "not an object: model_prediction": 1}


def test_an_option_of_a_config_replaces_the_presets_and_is_checked(tmp_path: Path):
    path = jsonl(tmp_path / "a.jsonl", {"input": "P?", "steps": ["So."], "mistake_index": None})
    assert problems(read("big_bench_mistake", path))[0].licence == "Apache-2.0"
    assert problems(read("big_bench_mistake", path, licence="MIT"))[0].licence == "MIT"
    entry = SOURCES.entries()["mr_gsm8k"]
    assert check_options("mr_gsm8k", entry.read, {"licence": "none"}) == {"licence": "none"}
    with pytest.raises(ConfigError, match="no option 'licens'"):
        check_options("mr_gsm8k", entry.read, {"licens": "MIT"})


@needs_data
@pytest.mark.parametrize("kind", FOLDERS)
def test_a_trial_finds_the_kind_of_a_real_file_and_its_config_reads_the_same(kind: str, tmp_path: Path):
    path = DATA / FOLDERS[kind]
    answer = CliRunner().invoke(app, ["sources", "--try", str(path), "--rows", "3"])
    assert answer.exit_code == 0
    found = list(open_source(kind, path))
    assert f"{kind} reads: {len(problems(found))} problems" in answer.output
    for known, word in ((True, "right"), (False, "wrong"), (None, "no label")):
        if count := sum(one.known is known and one.method != GROUND_TRUTH for one in proofs(found)):
            assert f"{count:,} proofs {word}" in answer.output
    for reason, count in reasons(found).items():
        assert f"- {count} {reason}" in answer.output
    assert yaml.safe_load(answer.output[answer.output.rindex("sources:") :]) == {
        "sources": [{"kind": kind, "path": str(path)}]
    }


@needs_data
def test_a_trial_of_columns_shows_each_row_and_the_config_that_reads_it(tmp_path: Path):
    path, config = DATA / "mrgsm8k" / "judge_traces.jsonl", tmp_path / "a.yaml"
    asked = [
        "sources",
        "--try",
        str(path),
        "--rows",
        "2",
        "--column",
        "problem=question",
        "--column",
        "steps=steps",
    ]
    asked += ["--column", "label=human_label", "--options", "labels: {correct: true, wrong: false}"]
    answer = CliRunner().invoke(app, asked)
    assert answer.exit_code == 0, answer.output
    assert "table reads: 219 problems, 227 proofs wrong, 21 rejected" in answer.output  # 248 rows
    assert answer.output.count("judge_traces.jsonl:1 ") == answer.output.count("judge_traces.jsonl:2 ") == 1
    assert "judge_traces.jsonl:3" not in answer.output
    config.write_text(answer.output[answer.output.rindex("sources:") :])
    panel = {"model": "m"}
    model = {"endpoints": [{"url": "http://127.0.0.1:1/v1", "model": "m"}]}
    config.write_text(
        config.read_text() + yaml.safe_dump({"run_dir": "r", "models": {"m": model}, "panel": [panel]})
    )
    (source,) = compose(str(config)).sources
    counts = Counter(type(one) for one in open_source(source.kind, Path(source.path), source.options))
    assert counts == {Problem: 219, Proof: 227, Aside: 21}


@pytest.mark.parametrize(
    "labels", ["{1: true, 1: false}", "{true: true, true: false}", "{a: true, a: false}"]
)
def test_a_config_that_gives_a_label_two_meanings_is_refused(tmp_path: Path, labels: str):
    source = f"{{kind: table, path: a.jsonl, options: {{labels: {labels}}}}}"
    (tmp_path / "a.yaml").write_text(f"run_dir: r\nsources: [{source}]\n")
    assert load_yaml("a: &a {1: x, 2: y}\nb: {<<: *a, 1: z}")["b"] == {1: "z", 2: "y"}
    with pytest.raises(ConfigError, match="twice"):
        compose(str(tmp_path / "a.yaml"))


def test_a_trial_shows_a_rejected_row_with_its_problem_and_reason(tmp_path: Path):
    row = {"problem": "Problem 0?", "proof": "So.", "label": "yes"}
    rows = [row, row | {"problem": "Problem 1?", "label": "maybe"}]
    answer = CliRunner().invoke(app, ["sources", "--try", str(jsonl(tmp_path / "a.jsonl", *rows))])
    (line,) = [one for one in answer.output.splitlines() if one.startswith("a.jsonl:2 ")]
    assert "Problem 1?" in line
    assert "rejected: no label: label (label is 'maybe', which is not in the option labels:" in line
    assert "table reads: 2 problems, 1 proof right, 1 rejected" in answer.output


def test_a_trial_in_which_no_label_can_be_read_names_them_and_the_option(tmp_path: Path):
    both = {"proof": "So.", "steps": ["So."]}  # ProcessBench has steps, and numbers as labels
    rows = [{"id": f"p{n}", "problem": f"P{n}?", **both, "label": ("good", "bad")[n]} for n in range(2)]
    path = str(jsonl(tmp_path / "a.jsonl", *rows))
    answer = CliRunner().invoke(app, ["sources", "--try", path])
    assert "Also read by processbench" in answer.output
    assert "label is 'good', which is not in the option labels" in " ".join(answer.output.split())
    assert "with --options '{labels: {WORD: true, OTHER: false}}'" in answer.output
    given = ["--kind", "table", "--options", "{labels: {good: true, bad: false}}"]
    answer = CliRunner().invoke(app, ["sources", "--try", path, *given])
    assert "table reads: 2 problems, 1 proof right, 1 proof wrong" in answer.output


def test_a_trial_in_which_no_proof_has_a_label_shows_the_columns(tmp_path: Path):
    rows = [{"problem": "P?", "completion": "So.", "score": 1.0, "chat": [{"role": "user", "content": "P?"}]}]
    answer = CliRunner().invoke(app, ["sources", "--try", str(jsonl(tmp_path / "a.jsonl", *rows))])
    assert answer.exit_code == 0
    for path in ("completion", "score", "chat[user]"):
        assert re.search(rf"^{re.escape(path)}  ", answer.output, re.M)


def test_a_trial_of_a_file_that_no_source_reads_shows_its_columns(tmp_path: Path):
    row = {"q": {"text": "P?\x1b[2J"}, "answers": [{"t": "So."}, {"t": "Thus."}], "tags": ["a"], "n": None}
    answer = CliRunner().invoke(app, ["sources", "--try", str(jsonl(tmp_path / "a.jsonl", row))])
    assert answer.exit_code == 1
    for path in ("q.text", "answers[].t", "tags", "n"):
        assert re.search(rf"^{re.escape(path)}  ", answer.output, re.M)
    assert "missing: problem" in answer.output
    assert "\x1b" not in answer.output


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--try", "none.jsonl"], "none.jsonl does not exist"),
        (["--kind", "table"], "go with --try"),
        (["--column", "a=b"], "go with --try"),
        (["--try", "a", "--get", "opc"], "both given"),
        (["--try", "a", "--column", "problem"], "MEANING=PATH"),
        (["--try", "a", "--column", "colour=b"], "it maps a meaning to a column"),
        (["--try", "a", "--column", "proof=a", "--column", "proof=b"], "proof twice"),
        (["--try", "a", "--options", "[1]"], "it is a mapping"),
        (["--try", "a", "--options", "{a: "], "cannot be read as YAML"),
        (["--try", "a", "--options", "@none.yaml"], "cannot be read as YAML"),
        (["--try", "a", "--options", "labels: {1: true, 1: false}"], "given twice"),
        (["--try", "a", "--options", "labels: {1: true, '1': false}"], "one as text"),
        (["--try", "a", "--kind", "tabel"], "Did you mean table?"),
        (["--get", "gsm8k_solution"], "Did you mean gsm8k_solutions?"),
        (["--get", "latex"], "Published sets"),
    ],
)
def test_what_the_command_cannot_do_it_says(asked: list[str], said: str):
    answer = CliRunner().invoke(app, ["sources", *asked])
    assert answer.exit_code == 1
    assert said in answer.output


CONTENT = b"".join(b'{"problem": "P%d?"}\n' % number for number in range(1000))
GIT = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        port = self.server.server_address[1]
        places_to = {"/moved": "/good", "/away": f"ftp://127.0.0.1:{port}/good", "/loop": "/loop"}
        if self.path in places_to:
            self.send_response(302)
            self.send_header("Location", places_to[self.path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(
            200 if self.path in ("/good", "/cut", "/unsaid", "/huge", "/drip", "/page", "/empty") else 404
        )
        if self.path not in ("/unsaid", "/drip", "/empty"):
            self.send_header("Content-Length", str(10**12 if self.path == "/huge" else len(CONTENT)))
        if self.path == "/page":
            self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        with suppress(OSError):  # the client may have closed the connection
            while self.path == "/drip":
                self.wfile.write(b"x")
                time.sleep(0.02)
        self.wfile.write({"/cut": CONTENT[:500], "/empty": b""}.get(self.path, CONTENT))
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


@pytest.mark.parametrize("path", ["/good", "/moved", "/unsaid"])
@pytest.mark.parametrize("checksum", [{}, {"sha256": hashlib.sha256(CONTENT).hexdigest()}, {"git": GIT}])
def test_a_file_is_downloaded_whole(server: str, tmp_path: Path, path: str, checksum: dict[str, str]):
    file = File(path="a", url=server + path, **checksum)
    assert fetch(file, tmp_path / "set" / "a.jsonl", schemes=("http",)) == len(CONTENT)
    assert [one.name for one in (tmp_path / "set").iterdir()] == ["a.jsonl"]
    assert (tmp_path / "set" / "a.jsonl").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "more", "said"),
    [
        ("/none", {}, "answered 404. Try again, or get it by another way and put it at"),
        ("/cut", {}, "cannot be downloaded"),
        ("/away", {}, "ftp://.* is not http"),
        ("/loop", {}, "TooManyRedirects"),
        ("/page", {}, "sent a web page, not the file"),
        ("/empty", {}, "sent nothing, not the file"),
        ("/good", {"sha256": "0" * 64}, "and 0{64} was expected"),
        ("/good", {"git": "0" * 40}, f"the git id {GIT}, and 0"),
        ("/good", {"largest": 1000}, "larger than 1,000 bytes"),
        ("/unsaid", {"largest": 1000}, "larger than 1,000 bytes"),
        ("/huge", {}, "larger than 2,147,483,648 bytes"),
        ("/good", {"schemes": ("https",)}, "is not https; nothing is downloaded"),
        (":1/good", {}, "cannot be downloaded"),
    ],
)
def test_a_download_that_fails_leaves_nothing_behind(
    server: str, tmp_path: Path, path: str, more: dict[str, Any], said: str
):
    url = f"http://127.0.0.1{path}" if path.startswith(":") else server + path
    checks = {key: more[key] for key in ("sha256", "git") if key in more}
    rules = {"schemes": ("http",)} | {key: more[key] for key in ("largest", "schemes") if key in more}
    with pytest.raises(DataError, match=said):
        fetch(File(path="a", url=url, **checks), tmp_path / "new" / "set" / "a.jsonl", **rules)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_sends_a_byte_now_and_then_is_left(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pv_data.sources.download.PATIENCE", 0.1)
    with pytest.raises(DataError, match=r"sent .* bytes in .* Try again"):
        fetch(File(path="a", url=f"{server}/drip"), tmp_path / "new" / "a.jsonl", schemes=("http",))
    assert list(tmp_path.iterdir()) == []


def test_a_set_is_downloaded_once_with_its_licence_and_nothing_is_overwritten(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    files = (
        File(path="set/a.jsonl", url=f"{server}/good", git=GIT),
        File(path="set/b.jsonl", url=f"{server}/good"),
    )
    one = Published(name="mine", licence="MIT", page="https://example.org", files=files)
    monkeypatch.setattr(downloading, "published", lambda: {"mine": one})
    monkeypatch.setattr(downloading, "ONLY", ("http",))
    said = list[str]()
    download("mine", tmp_path, said.append)
    assert "Licence: MIT" in said
    assert any("checksum is right" in line for line in said)
    assert any(hashlib.sha256(CONTENT).hexdigest() in line for line in said)
    said.clear()
    download("mine", tmp_path, said.append)
    assert sum("there already" in line for line in said) == 2
    (tmp_path / "set" / "a.jsonl").write_text("mine")
    with pytest.raises(DataError, match=r"is there already and has the git id .* move it away"):
        download("mine", tmp_path, said.append)
    assert (tmp_path / "set" / "a.jsonl").read_text() == "mine"


def test_each_published_set_has_a_kind_a_licence_and_files_from_https_with_a_place_of_their_own():
    places_of = [file.path for one in published().values() for file in one.files]
    assert len(set(places_of)) == len(places_of) > 10
    for name, one in published().items():
        assert name in SOURCES.entries()
        assert one.licence
        for file in one.files:
            assert file.url.startswith("https://")
            assert re.fullmatch(r"[\w-]+/[\w.-]+", file.path)
            assert (len(file.sha256), len(file.git)) in ((0, 0), (64, 0), (0, 40))


def test_the_packaged_configs_read_the_folders_into_which_sets_are_downloaded():
    there = {file.path.partition("/")[0] for one in published().values() for file in one.files}
    needed = {"gsm8k_judges": "judge_url=http://x/v1", "gsm8k_local": "checkpoint=x", "paper": ""}
    for name, more in needed.items():
        config = compose(name, ["vars.data_dir=D", *([f"vars.{more}"] if more else [])])
        assert {Path(source.path).parts[1] for source in config.sources} <= there
