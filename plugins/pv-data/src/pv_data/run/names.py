"""Names in a config that only the collected rows can confirm: sources, and methods of proofs."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pv_data.run.config import RunConfig
from pv_data.run.generating import methods
from pv_data.table import column
from pv_rl.errors import ConfigError
from pv_rl.plugins import nearest

__all__ = ["check_names"]


def check_names(folder: Path, config: RunConfig) -> None:
    """Refuse a name that nothing has: an entry would be about nothing, and nobody would say so.

    Raises:
        ConfigError: it names what there is.
    """
    sources = set(column(folder / "problems", "source"))
    brought = set(column(folder / "proofs", "method"))
    made = {spec.name or spec.method for spec in config.generate}
    for number, (spec, method) in enumerate(zip(config.generate, methods(config), strict=True)):
        _check(f"generate[{number}].sources", spec.sources, sources)
        if method.needs_proof:
            _check(f"generate[{number}].of", spec.of, brought)
    _check("labels.of", config.labels.of, brought | made)
    for name in config.split.discarded:
        source, _, rest = name.partition("/")
        method, _, model = rest.partition("/")
        _check("split.discarded, source", [source], sources)
        _check("split.discarded, method", [method], brought | made)
        models = {"-", *config.models, *column(folder / "proofs", "model")}
        _check("split.discarded, model", [model], models)


def _check(where: str, given: Collection[str], there: Collection[str]) -> None:
    for name in given:
        if name not in there:
            known = ", ".join(sorted(there)) or "none"
            raise ConfigError(f"{where}: nothing is called {name!r}.{nearest(name, there)} There are {known}")
