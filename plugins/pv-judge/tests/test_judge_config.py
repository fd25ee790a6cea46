"""A judge's settings: what cannot be is refused with what is allowed at that place."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from pv_judge.config import Endpoint, read_config
from pv_rl.errors import ConfigError

ENDPOINT = {"url": "http://127.0.0.1:8000/v1", "model": "m"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"endpoint": []},
            r"judge\.endpoint: there is no such setting\. Did you mean endpoints\? Settings of judge: end",
        ),
        (
            {"endpoints": [ENDPOINT | {"modell": "m"}]},
            r"0\.modell: there is no .* mean model\? Settings of judge\.endpoints\.0: url, model, api_key_env",
        ),
        (
            {"endpoints": [ENDPOINT], "limits": {"concurency": 3}},
            r"limits\.concurency: there is no .* mean concurrency\? Settings of judge\.limits: concurrency, adaptive, ",
        ),
        (
            {"endpoints": [ENDPOINT], "prices": {"m": {"inputt": 1}}, "nothing": 1},
            r"Settings of judge\.prices\.m: input, output, cached_input\. Settings of judge: endpoints, ",
        ),
        ({"endpoints": 3}, r"^judge\.endpoints: expected a list \(given: 3\); put it in \[ \]$"),
        ({"endpoints": []}, r"^judge\.endpoints: expected a list of at least 1$"),
        (
            {"endpoints": [ENDPOINT | {"url": "host"}]},
            r"^judge\.endpoints\.0\.url: expected an address[^;]*$",
        ),
        (
            {"endpoints": [ENDPOINT | {"model": 3}]},
            r"^\S*model: expected text \(given: 3\); put it in quotes$",
        ),
        (
            {"endpoints": [{"url": "http://h"}]},
            r"^\S*0\.model: it is required, and not set\. Settings of \S*0: ",
        ),
        (
            {"endpoints": [ENDPOINT], "prices": {"input": 0.3, "output": 1.2}},
            r"^judge\.prices: expected the prices of each model: write prices: \{MODEL: \{input: USD, output: USD\}\}",
        ),
        (
            {"endpoints": [ENDPOINT], "prices": {"m": 3}},
            r"by name \(given: 3\)\. Settings of judge\.prices\.m: in",
        ),
        ({"endpoints": [ENDPOINT], "deadline_s": 0}, r"^\S*: expected a number above 0\.0 \(given: 0\)$"),
        ({"endpoints": [ENDPOINT], "deadline_s": "soon"}, r"^judge\.deadline_s: expected a number$"),
        ({"endpoints": [ENDPOINT], "response_format": "json"}, r": expected 'json_object' or 'none'$"),
        ("http://h/v1", r"^judge: expected settings by name"),
        ({1: 2}, r"^judge: expected settings by name"),
    ],
)
def test_an_unknown_setting_is_told_with_those_that_are_there(settings, said):
    with pytest.raises(ConfigError, match=said):
        read_config(settings)


@pytest.mark.parametrize(
    "url",
    [
        "http://host:99999/v1",
        "http://host:0/v1",
        "http://host:port/v1",
        "http://[::1/v1",
        "http:///v1",
        "http://a..b/v1",
        f"http://{'a' * 64}.example/v1",
    ],
)
def test_an_address_that_no_socket_can_be_opened_for_is_refused(url):
    with pytest.raises(ConfigError, match=r"judge\.endpoints\.0\.url: .*host and port"):
        read_config({"endpoints": [ENDPOINT | {"url": url}]})


@pytest.mark.parametrize(
    "url",
    [
        "http://[::1]:8000/v1",
        "https://bücher.example/v1",
        "http://a_b:1/v1",
        "https://a1b2c3d4e5f6g7h8i9.x.ai",
    ],
)
def test_other_addresses_are_taken(url):
    assert read_config({"endpoints": [ENDPOINT | {"url": url}]}).endpoints[0].url == url


SECRET = "sk-proj-Ab12Cd34Ef56Gh78"


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key_env": SECRET},
        {"api_key_env": SECRET.replace("-", "_")},
        {"api_key_env": "sk_live_abcdef0123456789"},
        {"api_key_env": "abcdef0123456789abcdef0123456789"},
        {"api_key_env": "A0B1C2D3E4F5A6B7C8D9"},
        {"api_key_env": "q" * 40},
        {"url": f"http://127.0.0.1/{SECRET}/v1"},
        {"model": SECRET},
        {"extra_body": {"api_key": SECRET}},
        {"extra_body": {"headers": {"Authorization": f"Bearer {SECRET}"}}},
        {SECRET: "m"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_a_key_in_the_config_is_refused_and_not_shown(settings):
    with pytest.raises(ConfigError) as error:
        read_config({"endpoints": [ENDPOINT | settings]})
    shown = [str(error.value)]
    if SECRET not in settings:
        with pytest.raises(ValidationError) as raised:
            Endpoint(**ENDPOINT | settings)
        shown += [str(raised.value), repr(raised.value)]
    given = str(next(iter(settings.values())))
    assert not [
        one for one in shown if SECRET in one or (given in one.replace("Settings of", "") and given != "m")
    ]


@pytest.mark.parametrize(
    "name", ["", "DEEPSEEK_API_KEY", "MYORGANISATIONSJUDGEKEY2026", "judge_key", "K8S_TOKEN_EU1", "_A1"]
)
def test_names_that_people_give_are_no_keys(name):
    assert read_config({"endpoints": [ENDPOINT | {"api_key_env": name}]}).endpoints[0].api_key_env == name


@pytest.mark.parametrize("limit", ["usd_per_step", "usd_per_run"])
@pytest.mark.parametrize("url", ["http://127.0.0.1:8001/v1", "router"])
def test_a_budget_in_dollars_needs_the_price_of_every_endpoints_model(limit, url):
    endpoints = [ENDPOINT, {"url": url, "model": "spare"}]
    settings = {"endpoints": endpoints, "budget": {limit: 1}}
    price = {"input": 0, "output": 0}
    with pytest.raises(ConfigError, match="prices has none for spare"):
        read_config({**settings, "prices": {"m": price}})
    assert read_config({**settings, "prices": {"m": price, "spare": price}}).unpriced == []
    assert read_config({"endpoints": endpoints, "budget": {"calls_per_run": 1}}).unpriced == ["m", "spare"]
