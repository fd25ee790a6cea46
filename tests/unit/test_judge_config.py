"""A judge's settings: what cannot be is refused with what is allowed at that place."""

from __future__ import annotations

import pytest

from pv_rl.errors import ConfigError
from pv_rl.judge.config import read_config

ENDPOINT = {"url": "http://127.0.0.1:8000/v1", "model": "m"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"endpoint": []}, r"judge\.endpoint: Unexpected.*\. Settings of judge: endpoints, sampling"),
        (
            {"endpoints": [ENDPOINT | {"modell": "m"}]},
            r"0\.modell: Unexpected.*\. Settings of judge\.endpoints\.0: url, model, api_key_env",
        ),
        (
            {"endpoints": [ENDPOINT], "limits": {"concurency": 3}},
            r"limits\.concurency: Unexpected.*\. Settings of judge\.limits: concurrency, adaptive, ",
        ),
        (
            {"endpoints": [ENDPOINT], "prices": {"m": {"inputt": 1}}, "nothing": 1},
            r"Settings of judge\.prices\.m: input, output, cached_input\. Settings of judge: endpoints, ",
        ),
        ({"endpoints": 3}, r"valid tuple \(given: 3\)\. Settings of judge: endpoints"),
    ],
)
def test_an_unknown_setting_is_told_with_those_that_are_there(settings, said):
    with pytest.raises(ConfigError, match=said):
        read_config(settings)


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
