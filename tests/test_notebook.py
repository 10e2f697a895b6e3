import json

import nbformat
from nbclient import NotebookClient

from tests.conftest import ROOT

PATH = ROOT / "notebooks" / "attention.ipynb"


def test_the_notebook_is_kept_without_outputs():
    cells = json.loads(PATH.read_text())["cells"]
    assert all(
        cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code"
    )


def test_the_notebook_runs_and_shows_the_articles_numbers(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    notebook = nbformat.read(PATH, as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(PATH.parent)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = "".join(output.get("text", "") for output in outputs)
    assert "[[1.0, 0.0, 2.0], [2.0, 2.0, 2.0], [2.0, 1.0, 3.0]]" in printed  # the queries
    assert "0.9820" in printed  # a weight of the worked example
    assert "Prediction(label='" in printed
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 4
