"""Download of a published set: whole or not at all, over https, checked against its checksum where there is one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from time import monotonic

import httpx

from pv_data.sources.presets import File, Published, published
from pv_judge.files import write_atomically
from pv_rl.errors import ConfigError, DataError
from pv_rl.plugins import nearest

__all__ = ["LARGEST", "download", "fetch"]

LARGEST = 2 * 2**30
"""Bytes of a file. A larger one is a mistake, and is not read."""
SLOWEST = 1_000
"""Bytes a second that a server has to send on average, after `PATIENCE`; a slower one may never end."""
PATIENCE = 60.0
"""Seconds."""
TIMEOUT = httpx.Timeout(60, connect=20)
ONLY = ("https",)


def download(name: str, folder: Path, say: Callable[[str], object]) -> None:
    """Download the files of a set that are not there yet, and print its licence.

    Args:
        name: of the set.
        folder: `data_dir` of a config.
        say: prints a line.

    Raises:
        ConfigError: there is no such set.
        DataError: a file cannot be downloaded, or another is in its place.
    """
    sets = {one.name: one for one in published().values() if one.files}
    if name not in sets:
        raise ConfigError(
            f"no set {name!r} can be downloaded.{nearest(name, sets)} These can: {', '.join(sets)}. "
            "The reference in the documentation (Published sets) shows where the others are"
        )
    one = sets[name]
    say(f"{name}: {one.page}")
    say(f"Licence: {one.licence}")
    for file in one.files:
        target = folder / file.path
        if target.exists():
            _check_there(target, file)
            say(f"{target}: there already")
            continue
        say(f"{target} <- {file.url}")
        size = fetch(file, target, schemes=ONLY)
        known = (
            "checksum is right"
            if file.sha256 or file.git
            else f"no checksum is known; SHA-256 {sha256(target)}"
        )
        say(f"{size:,} bytes; {known}")
    say(f"Try it: pv-data sources --try {_common(folder, one)} --kind {name}")


def _common(folder: Path, one: Published) -> Path:
    paths = [folder / file.path for file in one.files]
    return paths[0] if len(paths) == 1 else paths[0].parent


def fetch(file: File, target: Path, *, schemes: Collection[str] = ONLY, largest: int = LARGEST) -> int:
    """Download a file; returns its bytes. On an error there is no file, and no folder that was not there before.

    Args:
        file: what to download.
        target: the file to write.
        schemes: of its address, and of those to which a server redirects.
        largest: bytes of the file.

    Raises:
        DataError: it cannot be downloaded whole, is larger, or has another checksum.
    """

    def check(request: httpx.Request) -> None:
        if request.url.scheme not in schemes:
            raise DataError(f"{request.url} is not {' or '.join(schemes)}; nothing is downloaded from it")

    def write(temporary: Path) -> None:
        size, start = 0, monotonic()
        with (
            httpx.Client(follow_redirects=True, timeout=TIMEOUT, event_hooks={"request": [check]}) as client,
            client.stream("GET", file.url, headers={"Accept-Encoding": "identity"}) as answer,
            temporary.open("wb") as out,
        ):
            answer.raise_for_status()
            if int(answer.headers.get("Content-Length") or 0) > largest:
                raise _too_large(file, largest)
            for chunk in answer.iter_bytes():
                size += len(chunk)
                passed = monotonic() - start
                if passed > PATIENCE and size < SLOWEST * passed:
                    raise DataError(f"{file.url} sent {size:,} bytes in {passed:.0f} s. {by_hand}")
                if size > largest:
                    raise _too_large(file, largest)
                out.write(chunk)
            if not size or answer.headers.get("Content-Type", "").startswith("text/html"):
                what = "a web page" if size else "nothing"
                raise DataError(f"{file.url} sent {what}, not the file. {by_hand}")
        if wrong := _wrong(temporary, file):
            raise DataError(
                f"{file.url} was downloaded with {wrong}. Try again; it may have been changed there"
            )

    by_hand = f"Try again, or get it by another way and put it at {target}"
    new = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_atomically(target, write)
    except httpx.HTTPStatusError as error:
        raise DataError(f"{file.url} answered {error.response.status_code}. {by_hand}") from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{file.url} cannot be downloaded ({type(error).__name__}: {error}). {by_hand}"
        ) from error
    finally:
        if not target.exists():
            for folder in new:
                with suppress(OSError):
                    folder.rmdir()
    return target.stat().st_size


def _too_large(file: File, largest: int) -> DataError:
    return DataError(
        f"{file.url} is larger than {largest:,} bytes, so it is not downloaded. Get it by another way"
    )


def _check_there(target: Path, file: File) -> None:
    if not target.is_file() or (wrong := _wrong(target, file)):
        what = "is no file" if not target.is_file() else f"has {wrong}"
        raise DataError(
            f"{target} is there already and {what}. Nothing is overwritten: move it away, or choose another "
            "folder with --to"
        )


def _wrong(path: Path, file: File) -> str:
    """What is wrong with the checksum; empty if nothing is, or none is known."""
    if file.sha256 and (found := sha256(path)) != file.sha256:
        return f"the SHA-256 {found}, and {file.sha256} was expected"
    if file.git and (found := _git_id(path)) != file.git:
        return f"the git id {found}, and {file.git} was expected"
    return ""


def sha256(path: Path) -> str:
    """Of a file, as hex digits."""
    return _digest(path, "sha256")


def _git_id(path: Path) -> str:
    return _digest(path, "sha1", b"blob %d\0" % path.stat().st_size)


def _digest(path: Path, name: str, start: bytes = b"") -> str:
    digest = hashlib.new(name, start, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
