"""Cache file: one SQLite file of answers that all processes of a machine share.

It has a write-ahead log: readers never wait, writers wait for one another, and an answer that was put outlives a
`kill -9` of its writer at once. A power loss can lose the last answers, and leaves the file whole. Keep it on a local
disk: SQLite's write-ahead log does not work over a network (https://www.sqlite.org/wal.html). It contains the key, the
answer's text, its tokens, model and time: no prompt, no trace and no failure. A row has a checksum of all of this; a
file of an earlier version has none, and is used as it is.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pv_judge.answer import Usage
from pv_rl.errors import ConfigError, DataError, PvRlError

__all__ = ["AnswerCache", "CacheUnavailable", "CachedAnswer", "cache_key"]

logger = logging.getLogger("pv_rl")

APPLICATION_ID = 0x70765F6A
"""`pv_j`: marks the file as ours, also for the command `file`."""
VERSION = 2
"""1 had no checksums."""
BUSY_S = 10.0
"""Longest wait for other writers."""
REST_S = 60.0
"""After such a wait in vain nothing is written for so long: each queued answer would wait again."""
ROWS = 120
"""Of a statement; SQLite before 3.32 takes 999 values."""
COLUMNS = "text, model, prompt_tokens, completion_tokens, cached_tokens, created"
SCHEMA = """
CREATE TABLE answers (
    key TEXT PRIMARY KEY,
    text BLOB NOT NULL,
    model TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    created REAL NOT NULL,
    crc INTEGER NOT NULL
)"""
RECOVER = "`sqlite3 FILE .recover | sqlite3 NEW` saves what can be read"


class CacheUnavailable(PvRlError, OSError):
    """The cache cannot be read or written now: a full disk, a read-only file. A run can continue without it."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class CachedAnswer:
    """A usable answer. It has no field for a failure."""

    text: str
    """What the model wrote."""
    usage: Usage
    """Tokens that it took."""
    model: str
    created: datetime = field(default_factory=_now)
    """UTC."""


def cache_key(*, template_hash: str, model: str, sampling: Mapping[str, Any], text: str) -> str:
    """SHA-256, in hex, of everything that the answer depends on.

    `sampling` is all of the request but model and messages: sampling parameters, response format and extra_body.
    `text` is what is judged. The order of keys does not matter; 0 and 0.0 are two keys.

    Raises:
        ConfigError: `sampling` contains a value that JSON cannot represent.
    """
    parts = {"form": 1, "template": template_hash, "model": model, "sampling": dict(sampling), "text": text}
    try:
        canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the judge's sampling parameters go into a JSON request, and these cannot ({error}). Use numbers, "
            "strings, booleans, lists and mappings"
        ) from error
    return hashlib.sha256(canonical.encode()).hexdigest()


class AnswerCache:
    """The file at `path`, made if it is missing. All threads of a process can share one; each process opens its own.

    Args:
        path: of the file.
        instead: what else a user can do about a file that cannot be used, for errors.
        rest_s: seconds without writes after another process held the file for `BUSY_S`.

    Raises:
        DataError: the file is something else, or of a newer pv-rl.
        CacheUnavailable: (an OSError) it cannot be opened or written; also by each method.
    """

    def __init__(
        self, path: str | Path, *, instead: str = "name another file in judge.cache", rest_s: float = REST_S
    ) -> None:
        self.path = Path(path).expanduser()
        self._instead = instead
        self.damaged = 0
        """Answers that `get` found damaged."""
        self._lock = threading.Lock()
        self._rest_s, self._rest_until = rest_s, -math.inf
        deadline = time.monotonic() + BUSY_S
        with self._available():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            while True:  # SQLite does not itself wait for the lock that the switch to a write-ahead log takes
                try:
                    self._db = self._open()
                    self._opened = os.stat(self.path)
                    return
                except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                    if _is_damage(error):
                        raise DataError(
                            f"the judge's cache {self.path} is not a cache: {error}. {RECOVER}; or {self._instead}"
                        ) from error
                    if "locked" not in str(error) or time.monotonic() > deadline:
                        raise
                    time.sleep(0.02)

    def get(self, key: str) -> CachedAnswer | None:
        """The answer that was put first under `key`, if any.

        A damaged one counts as missing and in `damaged`. The next answer under its key replaces it, unless its page
        cannot be read at all.
        """
        with self._available(), self._lock:
            try:
                columns = f"{COLUMNS}, crc" if self._checked else COLUMNS
                row = self._db.execute(f"SELECT {columns} FROM answers WHERE key = ?", (key,)).fetchone()
                if row is None:
                    return None
                if self._checked and _checksum(key, *row[:-1]) != row[-1]:
                    raise ValueError("it does not fit its checksum")
                return _answer(*row[:6])
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                return self._is_damaged(error)
            except (ValueError, TypeError, OverflowError, OSError) as error:
                with suppress(sqlite3.Error, UnicodeDecodeError):
                    self._db.execute("DELETE FROM answers WHERE key = ?", (key,))
                return self._is_damaged(error)

    def drop(self, key: str) -> None:
        """Delete an answer that cannot be used, so that the next one under its key is kept."""
        with self._writing():
            self._db.execute("DELETE FROM answers WHERE key = ?", (key,))

    def count(self) -> int:
        """Number of answers, from the last row id: hardly any answer is ever deleted."""
        with self._available(), self._lock:
            return self._db.execute("SELECT coalesce(max(rowid), 0) FROM answers").fetchone()[0]

    def put(self, key: str, answer: CachedAnswer) -> None:
        """Keep an answer, see `put_all`."""
        self.put_all({key: answer})

    def put_all(self, answers: Mapping[str, CachedAnswer]) -> None:
        """Keep all of the answers or none of them. An answer that is already under a key stays."""
        rows = [_row(key, answer, checked=self._checked) for key, answer in answers.items()]
        # Mostly one statement, which commits itself: at each further one this thread gives up the interpreter, gets it
        # back late if another thread is busy, and holds the file for all processes meanwhile.
        statements = [rows[first : first + ROWS] for first in range(0, len(rows), ROWS)]
        with self._writing(), self._db:
            if not os.path.samestat(self._opened, os.stat(self.path)):
                raise OSError("it was replaced by another file after it was opened")
            if len(statements) > 1:
                self._db.execute("BEGIN IMMEDIATE")
            for some in statements:
                values = ", ".join([f"({', '.join('?' * len(some[0]))})"] * len(some))
                self._db.execute(
                    f"INSERT INTO answers VALUES {values} ON CONFLICT DO NOTHING",
                    [value for row in some for value in row],
                )

    def close(self) -> None:
        """Close the file; it is whole without this too."""
        with self._lock:
            self._db.close()

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            db.text_factory = bytes  # or SQLite decodes, and refuses what it cannot
            self._check(db)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("BEGIN IMMEDIATE")  # of many that open a new file, one makes the table
            if not self._check(db):
                db.execute(SCHEMA)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {VERSION}")
            db.execute("COMMIT")
            found = db.execute("SELECT count(*) FROM pragma_table_info('answers') WHERE name = 'crc'")
            self._checked = bool(found.fetchone()[0])
        except BaseException:  # of any kind: the connection must not stay open
            db.close()
            raise
        return db

    def _check(self, db: sqlite3.Connection) -> bool:
        """Whether the file is a cache; False for an empty file."""
        application, version, tables = db.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
            " FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if application == 0 and tables == 0:
            return False
        if application != APPLICATION_ID:
            raise DataError(
                f"the judge's cache {self.path} is the database of something else. Move it away, or {self._instead}; "
                "a new one is made"
            )
        if version > VERSION:
            raise DataError(
                f"the judge's cache {self.path} has version {version}, and this pv-rl reads up to {VERSION}. "
                f"Install the newer pv-rl, or {self._instead}"
            )
        return True

    def _is_damaged(self, error: Exception) -> None:
        self.damaged += 1
        if self.damaged == 1:
            logger.warning(
                "the judge's cache %s has a damaged answer (%s). The question is asked again; this warning comes "
                "once. %s",
                *(self.path, error, RECOVER),
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._available(), self._lock:
            if time.monotonic() < self._rest_until:
                raise sqlite3.OperationalError("database was locked, and is left alone for a minute")
            try:
                yield
            except sqlite3.OperationalError as error:
                if "locked" in str(error):
                    self._rest_until = time.monotonic() + self._rest_s
                raise

    @contextmanager
    def _available(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            remedy = f"Free disk space, make the file writable, or {self._instead}"
            if "locked" in str(error):
                remedy = "Another process, such as a backup or an sqlite3 shell, holds it; end that process"
            elif _is_damage(error):
                remedy = f"The file is damaged. {RECOVER}; or {self._instead}"
            raise CacheUnavailable(
                f"the judge's cache {self.path} cannot be used now ({error}). {remedy}"
            ) from error


def _is_damage(error: Exception) -> bool:
    """Whether the file is damaged; else the disk or another process is the reason."""
    # sqlite3 cannot decode a message that quotes a damaged schema.
    return type(error) is sqlite3.DatabaseError or isinstance(error, UnicodeDecodeError)


def _answer(text: Any, model: Any, prompt: Any, completion: Any, cached: Any, created: Any) -> CachedAnswer:
    """From a row, which may be damaged."""
    for count in (prompt, completion, cached):
        if not isinstance(count, int) or count < 0:
            raise ValueError(f"{count!r} is not a token count")
    return CachedAnswer(
        text=str(text, "utf-8", "surrogatepass"),
        usage=Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached),
        model=str(model, "utf-8"),
        created=datetime.fromtimestamp(created, UTC),
    )


def _row(key: str, answer: CachedAnswer, *, checked: bool) -> tuple[Any, ...]:
    usage, text = answer.usage, answer.text.encode("utf-8", "surrogatepass")
    tokens = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
    values = (text, answer.model, *tokens, answer.created.timestamp())
    return (
        (key, *values, _checksum(key, text, answer.model.encode(), *values[2:]))
        if checked
        else (key, *values)
    )


def _checksum(key: str, text: bytes, *others: Any) -> int:
    """CRC-32 of a row and of the key that it was asked for by: a damaged index may lead to another row."""
    return zlib.crc32(text, zlib.crc32(repr((key, *others)).encode()))
