"""How the chunks of a stage are divided among processes."""

from __future__ import annotations

from collections.abc import Iterable

from pv_data.asking.settings import places
from pv_data.run.config import RunConfig

__all__ = ["portions"]


def portions(config: RunConfig, names: Iterable[str], of: int) -> list[float]:
    """What part of the work each of `of` processes can do in the same time; they add up to 1.

    By the model at which a process has the smallest part of the places: of 102 places two of eight processes have 12,
    the others 13. Rates per minute are divided equally. Local models that answer before the stage are no limit.

    Args:
        config: of the run.
        names: of the models that the stage asks.
        of: how many processes there are.
    """
    models = [config.models[name] for name in sorted(names)]
    asked = [one.limits for one in models if one.local is None or config.executor != "ray"]
    equal = any(one.requests_per_minute or one.tokens_per_minute for one in asked)
    parts = [
        min(
            [places(one.concurrency, part, of) / one.concurrency for one in asked] + [1 / of] * equal,
            default=1 / of,
        )
        for part in range(of)
    ]
    return [one / sum(parts) for one in parts]
