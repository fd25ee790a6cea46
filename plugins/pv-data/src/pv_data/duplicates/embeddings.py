"""Embeddings of problems from an OpenAI-compatible server (`POST /v1/embeddings`), and nearest neighbours by cosine.

An extra of the contamination report: it finds what shares neither words nor formulas, such as translations, as far as
the model does. The cosine of one model cannot be compared with that of another, so there is no threshold: for each
problem of a test set the nearest problem of the run is shown to a person, who reads from the top.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pv_judge.config import Endpoint, read_config
from pv_judge.files import load_json
from pv_judge.http import retry_after_s
from pv_judge.keys import Key, unlogged
from pv_rl.errors import ConfigError, DataError, SetupError

if TYPE_CHECKING:
    import httpx
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["embed", "nearest", "parse_endpoint"]

BATCH = 64
"""Texts of a request."""
LONGEST = 8_000
"""Characters of a text that are sent: about 2,000 to 4,000 tokens, which most embedding models take."""
MOST_BYTES = 100 * 2**20
"""Of an answer: 64 vectors of 8,192 numbers have 12 MB."""
TRIES = 5
SECONDS = 120
"""For the next bytes of an answer."""
ROWS = 4096
"""Problems that are compared at a time."""


def parse_endpoint(text: str, api_key_env: str = "") -> Endpoint:
    """`MODEL@URL`, for example `BAAI/bge-m3@http://localhost:8000/v1`.

    Raises:
        ConfigError: it has another form, or the URL or the name of the variable is not valid.
    """
    model, at, url = text.rpartition("@http")
    if not at or not model:
        raise ConfigError(
            "--embeddings: expected MODEL@URL, for example BAAI/bge-m3@http://localhost:8000/v1, with the URL up to "
            "and without /embeddings"
        )
    settings = {"model": model, "url": "http" + url, "api_key_env": api_key_env}
    return read_config(settings, Endpoint, "--embeddings")


def embed(texts: Sequence[str], endpoint: Endpoint) -> NDArray[np.float32]:
    """Vectors of length 1, a row for each text, in their order.

    Raises:
        SetupError: the server cannot be reached, or refuses.
        DataError: its answer is not one vector for each text.
    """
    import httpx
    import numpy as np

    key, parts = Key.of(endpoint), list[Any]()
    headers = {"User-Agent": "pv-rl", "Accept-Encoding": "identity", **key.headers()}
    with unlogged(), httpx.Client(headers=headers, timeout=SECONDS) as client:
        for first in range(0, len(texts), BATCH):
            # an empty text is refused by some servers, and halves of surrogate pairs are no text
            sent = [
                one[:LONGEST].encode("utf-8", "replace").decode() if one.strip() else "?"
                for one in texts[first : first + BATCH]
            ]
            parts.append(_vectors(_ask(client, endpoint, key, sent), len(sent), endpoint))
    if len({part.shape[1] for part in parts}) > 1:
        raise DataError(f"{endpoint.url} answers with vectors of different lengths; expected one model's")
    return np.concatenate(parts) if parts else np.empty((0, 1), dtype=np.float32)


def nearest(run: NDArray[np.float32], test: NDArray[np.float32]) -> Iterator[tuple[int, int, float]]:
    """For each row of `test` its nearest row of `run`: place in `run`, place in `test`, cosine; the most similar first.

    Args:
        run: (problems of the run, numbers of a vector), of length 1; at least one row.
        test: (problems of the test sets, numbers of a vector).
    """
    import numpy as np

    best, where = np.full(len(test), -2.0, dtype=np.float32), np.zeros(len(test), dtype=np.int64)
    for first in range(0, len(run), ROWS):
        cosines = test @ run[first : first + ROWS].T
        at = cosines.argmax(axis=1)
        values = cosines[np.arange(len(test)), at]
        better = values > best
        best[better], where[better] = values[better], at[better] + first
    for place in np.lexsort((np.arange(len(test)), -best)):
        yield int(where[place]), int(place), float(best[place])


def _ask(client: httpx.Client, endpoint: Endpoint, key: Key, texts: list[str]) -> bytes:
    """The body of the answer. A server that is busy or fails is asked again."""
    import httpx

    body = {"model": endpoint.model, "input": texts, "encoding_format": "float", **endpoint.extra_body}
    for left in reversed(range(TRIES)):
        wait = 2.0 ** (TRIES - left) / 4
        try:
            with client.stream("POST", endpoint.url + "/embeddings", json=body) as answer:
                raw = b""
                for chunk in answer.iter_bytes():
                    raw += chunk
                    if len(raw) > MOST_BYTES:
                        raise DataError(f"{endpoint.url}: an answer is longer than {MOST_BYTES:,} bytes")
            if answer.is_success:
                return raw
            why = f"HTTP {answer.status_code}: " + key.blot(raw[:300].decode("utf-8", "replace"))
            if answer.status_code != 429 and answer.status_code < 500:
                left = 0
            wait = retry_after_s(answer.headers.get("retry-after"), time.time()) or wait
        except httpx.HTTPError as error:
            why = type(error).__name__  # its text may quote what was sent
        if not left:
            raise SetupError(
                f"the embedding server {endpoint.url} gives no embeddings of {endpoint.model} ({why}). Expected an "
                f"OpenAI-compatible POST {endpoint.url}/embeddings. {key.source}"
            )
        time.sleep(wait)
    raise AssertionError


def _vectors(raw: bytes, number: int, endpoint: Endpoint) -> NDArray[np.float32]:
    """The vectors of an answer, in the order of the texts, of length 1."""
    import numpy as np

    try:
        rows = load_json(raw)["data"]
        by_place = {row.get("index", at): row["embedding"] for at, row in enumerate(rows)}
        found = np.array([by_place[place] for place in range(number)], dtype=np.float32)
        if len(rows) != number or found.ndim != 2 or not found.size:
            raise ValueError("not one vector for each text")
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise ValueError("a vector without a direction")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(
            f"{endpoint.url}/embeddings answers in another form ({type(error).__name__}); expected "
            f'{{"data": [{{"index": 0, "embedding": [numbers]}}, ...]}} with {number} vectors of one length'
        ) from None
    return found / lengths
