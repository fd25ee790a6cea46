"""Run config: sources, filters, generation, the judge panel, labels and outputs; YAML with Hydra's overrides."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from pv_data.asking.settings import Model
from pv_data.plugins import METHODS, SOURCES
from pv_data.records import NAME
from pv_data.shell import config_names, load_yaml
from pv_judge.config import STRICT, Budget, Price, read_config
from pv_judge.hydra_errors import unreadable
from pv_judge.json_schema import json_schema
from pv_rl.errors import ConfigError
from pv_rl.plugins import nearest

__all__ = [
    "Duplicates",
    "Filters",
    "Generate",
    "Labels",
    "RunConfig",
    "Seat",
    "Source",
    "Split",
    "compose",
    "read_run",
    "run_schema",
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Source:
    """Where problems come from, and proofs that come with them."""

    kind: str
    """A source of pv-data or of a plugin: `pv-data sources` lists them."""
    path: str = Field(min_length=1)
    """File or folder."""
    name: str = Field(default="", pattern=NAME)
    """The first part of its slices; the source's own name if not given. It has no `/`, `[` or `]`."""
    limit: int | None = Field(default=None, ge=1)
    """So many problems at most, the first ones."""
    human: bool = False
    """Whether all its proofs count as people's in the distribution: in the paper student work, with its augmented and
    translated copies."""
    split: Literal["", "train", "test"] = ""
    """Where all its problems go; drawn by question if not given."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Of the source, see docs/guides/sources.md."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Filters:
    """What is set aside before anything is paid for."""

    geometry: bool = True
    """Set geometry problems aside, as the paper does."""
    languages: tuple[str, ...] = ()
    """ISO 639-1 codes that are kept; all if none is given."""
    problem_characters: tuple[int, int] = (10, 20_000)
    proof_characters: tuple[int, int] = (20, 60_000)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Duplicates:
    """Near-duplicate problems: kept together in the split, so that none is in both train and test."""

    threshold: float | None = Field(default=0.42, gt=0, le=1)
    """Similarity, with variables, numbers and order blind, from which two problems are taken for one; None does not
    look."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Generate:
    """One generation method with one model, over some sources."""

    method: str
    """A method of pv-data or of a plugin: `pv-data methods` lists them."""
    name: str = Field(default="", pattern=NAME)
    """What its slices call it; the method's own name if not given. Two entries of one method want two."""
    model: str = ""
    """A name of `models`; none for a method that makes its proofs without one."""
    samples: int = Field(default=1, ge=1)
    """Proofs for each input."""
    sources: tuple[str, ...] = ()
    """Names of sources; all if none is given."""
    of: tuple[str, ...] = ("ground_truth",)
    """Methods of the proofs that it works on, where it works on proofs."""
    share: float = Field(default=1.0, gt=0, le=1)
    """Part of the questions, drawn by a hash: the paper's pilot takes 0.05. An audit's pilot are the same questions."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Of the method, see docs/guides/methods.md."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Seat:
    """A judge of the panel."""

    model: str
    """A name of `models`."""
    votes: int = Field(default=1, ge=1)
    """How often it is asked about each proof."""
    weight: float = Field(default=1.0, gt=0)
    """Of each of its votes, for the rule `weighted`."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Labels:
    """How votes become a label, and which proofs get one."""

    rule: Literal["unanimous", "majority", "weighted"] = "unanimous"
    """`unanimous`: all votes agree. `majority`: the larger side has at least `needed` votes. `weighted`: it has at
    least the share `needed_share` of the weight."""
    needed: int | None = Field(default=None, ge=1)
    """Of `majority`; more than half of the votes if not given."""
    needed_share: float = Field(default=0.5, ge=0.5, le=1)
    """Of `weighted`; exactly half is no label."""
    of: tuple[str, ...] = ()
    """Methods of the proofs that are judged; if none is given, all but those that were made wrong on purpose."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Split:
    """Train and test, by question."""

    test: float = Field(default=0.05, ge=0, lt=1)
    """Part of the questions that are drawn for the test set."""
    hold_out_audited: bool = True
    """Whether every question of which people marked a proof is for the test set, as in the paper."""
    train_labels: tuple[Literal["audit", "known", "panel"], ...] = ("audit", "known", "panel")
    """Whose label counts, the first that there is: of people, of how the proof was made, of the panel."""
    test_labels: tuple[Literal["audit", "known", "panel"], ...] = ("audit", "known", "panel")
    """Likewise; only `audit` makes a test set that people have read throughout."""
    discarded: tuple[str, ...] = ()
    """Slices that failed their audit: the panel's labels do not count there."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RunConfig:
    """A run of `pv-data run`."""

    run_dir: str = Field(min_length=1)
    """Folder of the run; one that was stopped goes on there."""
    sources: tuple[Source, ...] = Field(min_length=1)
    filters: Filters = Field(default_factory=Filters)
    duplicates: Duplicates = Field(default_factory=Duplicates)
    models: dict[str, Model] = Field(default_factory=dict)
    """By the name that the rest of the config has for them."""
    generate: tuple[Generate, ...] = ()
    panel: tuple[Seat, ...] = ()
    """The judges; none: nothing is judged, and only what is known has a label."""
    labels: Labels = Field(default_factory=Labels)
    split: Split = Field(default_factory=Split)
    seed: int = 0
    budget_usd: float | None = Field(default=None, ge=0)
    """Of the whole run, all stages and all times that it goes on. Needs a price for every model."""
    executor: Literal["local", "ray"] = "local"
    workers: int = Field(default=1, ge=1)
    """Processes that ask; each has its part of every limit. One asks some 300 questions a second."""
    patience: int = Field(default=50, ge=1)
    """So many questions in a row without an answer end the run, which can go on later."""
    retry_aside: bool = False
    """Ask again about rows that were set aside because a model gave no usable answer (`no answer: ...`)."""
    title: str = "question-proof-check data"
    """Of the dataset card."""

    def __post_init__(self) -> None:
        named = self.named
        if unknown := sorted(named - set(self.models)):
            raise ValueError(
                f"panel or generate names the model {', '.join(unknown)}, which `models` does not have. Add it there; "
                f"models has {', '.join(sorted(self.models)) or 'none'}"
            )
        names = [source.name or source.kind for source in self.sources]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two sources are called {', '.join(twice)}. Set a different `name` for each")
        seats = [seat.model for seat in self.panel]
        if len(set(seats)) < len(seats):
            raise ValueError("a model is on the panel twice. Give it more votes instead")
        asks: dict[tuple[str, str], str] = {}
        prices: dict[str, Price] = {}
        for name in sorted(named):
            model = self.models[name]
            if model.budget != Budget():
                raise ValueError(
                    f"models.{name}.budget is set, but only the run has a budget. Set the run's budget_usd"
                )
            if model.local is not None and any(model.model in one.prices for one in self.models.values()):
                raise ValueError(
                    f"models.{name} is local and costs no dollars, but its name {model.model} has a price in another "
                    "model's prices: rename the folder, or the price would be counted for both"
                )
            # Of a local model the weights are not known yet when the config is read: then its folder is taken.
            who = model.local.checkpoint if model.local is not None and not model.revision else model.model
            other = asks.setdefault((who, model.fields()), name)
            if other != name:  # their answers could not be told apart, and would stand in for each other
                raise ValueError(
                    f"models.{other} and models.{name} ask the same model with the same sampling: use one of them, "
                    "with more votes or samples, or give each a revision that says how they differ"
                )
            for of, price in model.prices.items():
                if prices.setdefault(of, price) != price:
                    raise ValueError(f"{of} has two prices: models that are served under one name have one")
            if self.budget_usd is not None and model.most_tokens is None:
                raise ValueError(
                    f"budget_usd needs models.{name}.sampling.max_tokens: without it the cost of an answer is unknown"
                )
            if model.limits.concurrency < self.workers:
                raise ValueError(
                    f"models.{name}.limits.concurrency is {model.limits.concurrency}, less than the workers, "
                    f"{self.workers}"
                )
        unpriced = [
            f"models.{name}.prices has none for {', '.join(sorted(missing))}"
            for name in sorted(named)
            if (missing := {one.model for one in self.models[name].endpoints} - set(self.models[name].prices))
        ]
        if self.budget_usd is not None and unpriced:
            raise ValueError(f"budget_usd needs a price for every model: {'; '.join(unpriced)}")
        for number, spec in enumerate(self.generate):
            for other in self.generate[:number]:
                same = (spec.name or spec.method, spec.model) == (other.name or other.method, other.model)
                if same and (not spec.sources or not other.sources or set(spec.sources) & set(other.sources)):
                    raise ValueError(
                        f"generate[{number}] produces the same slices as an earlier entry. Raise that entry's "
                        "`samples`, or set a different `name`"
                    )
        votes = sum(seat.votes for seat in self.panel)
        if self.labels.needed is not None and not votes / 2 < self.labels.needed <= votes:
            raise ValueError(
                f"labels.needed is {self.labels.needed}; of {votes} votes it is more than half, at most all"
            )

    @property
    def writers(self) -> set[str]:
        """The models that generate proofs, by their names in `models`."""
        return {spec.model for spec in self.generate if spec.model}

    @property
    def judges(self) -> set[str]:
        """The models of the panel, likewise."""
        return {seat.model for seat in self.panel}

    @property
    def named(self) -> set[str]:
        """The models that are asked, likewise."""
        return self.writers | self.judges


def read_run(settings: Any) -> RunConfig:
    """A run from a mapping, as a YAML file gives it.

    Raises:
        ConfigError: (a ValueError) it names every setting that is unknown, of a wrong type or out of bounds.
    """
    return read_config(settings, RunConfig, "")


def run_schema() -> dict[str, Any]:
    """The JSON schema of a config; the names of sources and methods are those that are installed."""
    schema = json_schema(RunConfig, vars={"type": "object"})
    for kind, key, registry in (("Source", "kind", SOURCES), ("Generate", "method", METHODS)):
        schema["$defs"][kind]["properties"][key]["enum"] = list(registry.entries())
    return schema


MODULE = "pv_data.configs"


def compose(config: str, overrides: Sequence[str] = ()) -> RunConfig:
    """The run of a file or of a name.

    Raises:
        ConfigError: there is no such config, Hydra refuses an override, or a setting is not allowed.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir, initialize_config_module
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException

    path, given = Path(config), None
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise ConfigError(f"{path} is not a file. Give a YAML file or one of {', '.join(config_names())}")
        try:
            # Hydra reads the file again, but takes a number twice as a key, and aliases without a bound.
            given = load_yaml(path.read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise ConfigError(f"{config} cannot be read as YAML: {error}") from error
        opened = initialize_config_dir(str(path.parent.resolve()), version_base="1.3")
        name = path.name
    elif config in config_names():
        opened, name = initialize_config_module(MODULE, version_base="1.3"), config
    else:
        raise ConfigError(
            f"no config is called {config!r}.{nearest(config, config_names())} Give a YAML file or one of "
            f"{', '.join(config_names())}"
        )
    try:
        with opened:
            found = hydra_compose(name, [_adding(override) for override in overrides])
            with contextlib.suppress(InterpolationToMissingValueError):  # `vars` may have the value misspelt
                OmegaConf.to_container(found, resolve=True)  # a misspelt reference leaves its variable unread
            if _unread(found):
                extends = isinstance(given, dict) and "defaults" in given
                _check_variables(found, hydra_compose(name), extends=extends)
        values = OmegaConf.to_container(found, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException, OSError, ValueError) as error:
        raise ConfigError(f"{config}: {unreadable(error)}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{config} is not a mapping of settings")
    values.pop("vars", None)  # what a config interpolates
    return read_run(values)


def _check_variables(config: Any, of_file: Any, *, extends: bool) -> None:
    """Refuse a variable that nothing reads.

    Args:
        config: with the overrides.
        of_file: without them.
        extends: whether the file has a `defaults` list. It may then replace what reads the variables of its base.

    Raises:
        ValueError: there is one.
    """
    unread = _unread(config, of_file)
    if extends:
        unread = [one for one in unread if one not in (of_file.get("vars") or ())]
    if unread:
        known = [one for one in config.vars if one not in unread]
        raise ValueError(
            f"vars.{unread[0]}: no ${{...}} of the config reads it.{nearest(str(unread[0]), known)} "
            f"Remove it, or correct the name. Variables that are read: {', '.join(map(str, known)) or 'none'}"
        )


def _unread(config: Any, *others: Any) -> list[Any]:
    """The names under `vars` that no interpolation of these configs contains.

    The config as its file has it is one of the others: an override may replace what reads a variable of the file.
    """
    from omegaconf import OmegaConf

    plain: list[Any] = [OmegaConf.to_container(one) for one in (config, *others)]
    # With indent=0, each value is on a line of its own.
    lines = json.dumps(plain, indent=0, default=str, skipkeys=True, ensure_ascii=False).splitlines()
    text = "\n".join(line for line in lines if "${" in line)
    given = plain[0].get("vars")
    # All of them are read by ${oc.dict.keys:vars}, and any of them by ${vars.${vars.which}}.
    if not isinstance(given, dict) or re.search(r"\bvars\b(?![.\[])|\$\{[^{}]*[.\[]\$\{", text):
        return []
    return [name for name in given if not re.search(rf"[.\[]{re.escape(str(name))}(?!\w)", text)]


def _adding(override: str) -> str:
    """An override that may name a setting of which the file says nothing; `RunConfig` knows which there are."""
    key = override.partition("=")[0]
    return override if key[:1] in "+~" or "@" in key or "/" in key else f"++{override}"
