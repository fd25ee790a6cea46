"""A file is there whole or not at all, and an error says which one."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from pv_judge.files import write_atomically


def test_a_full_disk_says_which_file_and_leaves_what_was_there(tmp_path):
    path = tmp_path / "spent.json"
    path.write_text("before")

    def full(file: Path) -> None:
        file.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"No space left on device.*spent\.json") as caught:
        write_atomically(path, full)
    assert caught.value.errno == errno.ENOSPC
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
