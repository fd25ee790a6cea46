"""The configs of local judges: settings that are known, and a schema that allows what the parser takes."""

from __future__ import annotations

import json

import pytest
from omegaconf import OmegaConf
from places import ROOT

from pv_judge.answer import JudgeFailure
from pv_judge.config import read_config
from pv_judge.fluency import KINDS, parse_fluency

jsonschema = pytest.importorskip("jsonschema", reason="comes with ray: pip install ./plugins/pv-cpu")

FOLDER = ROOT / "hydra_configs" / "judge"
QUOTED = {"kind": "repetition", "quote": "so so so"}

TAKEN = (
    {"fluent": True, "anomalies": [], "confidence": 0.95},
    {"fluent": True, "anomalies": [], "confidence": 0},
    {
        "fluent": False,
        "anomalies": [{"kind": kind, "quote": "naïve ∑"} for kind in KINDS[:3]],
        "confidence": 1,
    },
    *({"fluent": False, "anomalies": [{"kind": kind, "quote": ""}], "confidence": 1.0} for kind in KINDS),
)
REFUSED = (
    {"fluent": True, "anomalies": [QUOTED], "confidence": 0.9},
    {"fluent": False, "anomalies": [], "confidence": 0.9},
    {"fluent": "false", "anomalies": [QUOTED], "confidence": 0.9},
    {"fluent": False, "anomalies": [{"kind": "wrong", "quote": ""}], "confidence": 0.9},
    {"fluent": False, "anomalies": [{**QUOTED, "why": ""}], "confidence": 0.9},
    {"fluent": False, "anomalies": [QUOTED], "confidence": 1.1},
    {"fluent": False, "anomalies": [QUOTED], "confidence": "high"},
    {"fluent": False, "anomalies": [QUOTED]},
    {"fluent": True, "anomalies": [], "confidence": 0.9, "reason": ""},
    [],
)
ENDLESS = (
    {"fluent": False, "anomalies": [QUOTED] * 4, "confidence": 0.9},
    {"fluent": False, "anomalies": [{"kind": "repetition", "quote": "x" * 201}], "confidence": 0.9},
    {"fluent": False, "anomalies": [{"kind": "repetition", "quote": "a\nb"}], "confidence": 0.9},
)


def settings(name: str, monkeypatch) -> dict:
    monkeypatch.setenv("PV_RL_JUDGE_MODEL", "models/judge")
    config = OmegaConf.load(FOLDER / f"{name}.yaml")
    config["trainer"] = {"default_local_dir": "run"}
    plain = OmegaConf.to_container(config, resolve=True)
    del plain["trainer"]
    return plain


def allowed(answer: object, monkeypatch) -> bool:
    body = settings("vllm_local", monkeypatch)["endpoints"][0]["extra_body"]
    schema = body["response_format"]["json_schema"]["schema"]
    return jsonschema.Draft202012Validator(schema).is_valid(answer)


@pytest.mark.parametrize("name", ["transformers_local", "vllm_local"])
def test_a_local_judge_is_one_of_this_machine_until_another_url_is_given(name, monkeypatch):
    monkeypatch.delenv("PV_RL_JUDGE_URL", raising=False)
    (endpoint,) = read_config(settings(name, monkeypatch)).endpoints
    assert (endpoint.url, endpoint.model) == ("http://localhost:8000/v1", "models/judge")
    monkeypatch.setenv("PV_RL_JUDGE_URL", "http://10.0.0.7:8001/v1")
    assert read_config(settings(name, monkeypatch)).endpoints[0].url == "http://10.0.0.7:8001/v1"


@pytest.mark.parametrize("answer", TAKEN)
def test_what_the_schema_allows_is_taken_by_the_parser(answer, monkeypatch):
    assert allowed(answer, monkeypatch)
    parse_fluency(json.dumps(answer))


@pytest.mark.parametrize("answer", REFUSED)
def test_what_the_parser_refuses_is_not_allowed_by_the_schema(answer, monkeypatch):
    assert not allowed(answer, monkeypatch)
    with pytest.raises(JudgeFailure):
        parse_fluency(json.dumps(answer))


@pytest.mark.parametrize("answer", ENDLESS)
def test_the_schema_bounds_lists_and_quotes_so_that_an_answer_ends(answer, monkeypatch):
    assert not allowed(answer, monkeypatch)
    parse_fluency(json.dumps(answer))
