"""The notebook runs, and is kept without outputs."""

from __future__ import annotations

import json

import pytest
from places import ROOT

NOTEBOOK = ROOT / "examples" / "notebook" / "first_steps.ipynb"


def test_the_notebook_is_kept_without_outputs():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 5
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.paths  # starts a kernel: ten seconds
def test_the_notebook_runs_and_shows_what_it_says(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    book = nbformat.read(NOTEBOOK, as_version=4)
    context = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3", resources=context).execute()
    shown = [one["data"] for cell in book.cells for one in cell.get("outputs", ()) if "data" in one]
    texts = "\n".join(one.get("text/markdown", "") for one in shown)
    # the longest response: 1 of 8, all of its tokens (1600 of 2 * 2135), 0.6 and 0.4 of these
    assert "| b | 1600 | 12.5 | 22.5 | 37.5 |" in texts
    assert "| loop | 1 | 0 |" in texts
    assert any("image/png" in one for one in shown)
    assert (tmp_path / "first_steps" / "report.html").is_file()
