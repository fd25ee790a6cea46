"""Where a trace ends, read as `pv_rl.verdict.parse_verdict` reads it; remembered, since several rules ask."""

from __future__ import annotations

from functools import lru_cache

from pv_rl import verdict

__all__ = ["end_of_trace"]

end_of_trace = lru_cache(maxsize=8)(verdict.end_of_trace)
