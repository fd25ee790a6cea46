"""The connections to one endpoint, in pools of eight.

httpcore's pool looks at all its connections for every request that begins or ends, so that one pool of 64 connections
takes four times the CPU of eight pools of 8 (`benchmarks/judge_client.py`). Where the server speaks HTTP/2, each pool
is one connection with up to eight requests on it: what breaks one connection leaves the others alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

__all__ = ["Pools"]

CONNECTIONS = 8
KEEP_ALIVE_S = 4.0
"""An idle connection is closed after this; uvicorn, which serves vLLM, closes it after 5 s."""


class _Pool:
    def __init__(self, size: int, client: httpx.AsyncClient) -> None:
        self.free = size
        self.client = client


class Pools:
    """As many connections as requests are allowed at the same time."""

    def __init__(self, concurrency: int) -> None:
        logging.getLogger("hpack").setLevel(logging.INFO)  # at DEBUG it writes every header down, the key too
        trusted = httpx.create_ssl_context()
        sizes = [min(CONNECTIONS, concurrency - first) for first in range(0, concurrency, CONNECTIONS)]
        self._pools = []
        for size in sizes:
            limits = httpx.Limits(
                max_connections=size, max_keepalive_connections=size, keepalive_expiry=KEEP_ALIVE_S
            )
            client = httpx.AsyncClient(http2=True, verify=trusted, limits=limits)
            self._pools.append(_Pool(size, client))

    @contextmanager
    def client(self) -> Iterator[httpx.AsyncClient]:
        """The client of the pool with the most room, for one request."""
        pool = max(self._pools, key=lambda pool: pool.free)
        pool.free -= 1
        try:
            yield pool.client
        finally:
            pool.free += 1

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._pools:
            await pool.client.aclose()
