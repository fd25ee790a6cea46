"""A file is there whole or not at all, and an error says which one; JSON from outside has bounded depth."""

from __future__ import annotations

import errno
import pickle
from pathlib import Path

import pytest

from pv_judge.files import load_json, write_atomically


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


@pytest.mark.parametrize(
    ("before", "after", "levels"), [("[", "]", 200), ('{"a":', "}", 200), ('[{"a":', "}]", 100)]
)
def test_json_that_is_nested_too_deeply_is_a_value_error(before, after, levels):
    assert load_json(before * levels + "1" + after * levels)
    for many in (levels + 1, 495, 100_000):
        with pytest.raises(ValueError, match="more than 200 levels"):
            load_json(before * many + "1" + after * many)


def test_brackets_in_texts_are_no_levels():
    assert load_json('["' + "[{" * 500 + '"]') == ["[{" * 500]


def test_bytes_in_no_encoding_give_an_error_that_can_be_sent_between_processes():
    with pytest.raises(ValueError, match="it is not utf-") as caught:
        load_json(b"1\x00\x00\xdf0")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
