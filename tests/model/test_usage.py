"""The lines that an exported folder shows, run as they stand, answer as `predict` does."""

import json

import pytest

from errors import UserError
from model.exported import FORMATS, facts
from model.usage import usage
from tests.classifiers import TEXTS, classifier
from tests.conftest import ROOT

PAIRS = [[text, other] for text in TEXTS for other in ("w8 w9", "w3 " * 40, "")]
READ = [(truncation, 1) for truncation in ("head", "head_tail", "windows")] + [("head", 2), ("head_tail", 2)]


def written(ours, kind: str, folder):
    """The folder, with what the lines open."""
    folder.mkdir(exist_ok=True)
    (folder / "heed.json").write_text(json.dumps(facts(ours)), encoding="utf-8")
    ours.tokenizer.save(str(folder / "tokenizer.json"))
    path = folder / FORMATS[kind].file
    if not path.exists():
        FORMATS[kind].write(ours.network, path)
    return folder


def check(ours, kind: str, folder, monkeypatch, texts: list):
    monkeypatch.chdir(written(ours, kind, folder))
    lines: dict = {}
    exec(usage(ours, kind), lines)
    for text, (label, probabilities) in zip(texts, ours.predict(texts), strict=True):
        found = lines["predict"](text)
        if isinstance(label, float):
            assert found == pytest.approx(label, abs=1e-4)
        else:
            assert found[0] == label
            assert found[1] == pytest.approx(probabilities, abs=1e-5)


@pytest.mark.parametrize("task", ["multi_label", "regression"])
def test_pt2(task, tmp_path, monkeypatch):
    check(classifier(task), "pt2", tmp_path, monkeypatch, TEXTS)


@pytest.mark.parametrize(("truncation", "n_parts"), READ)
def test_safetensors(truncation, n_parts, tmp_path, monkeypatch):
    ours = classifier(truncation=truncation, n_parts=n_parts, n_segments=n_parts)
    check(ours, "safetensors", tmp_path, monkeypatch, TEXTS if n_parts == 1 else PAIRS)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A folder with the graph of a network with three outputs."""
    pytest.importorskip("onnxscript", reason="the writer: pip install -e '.[export]'")
    pytest.importorskip("onnxruntime", reason="the reader: pip install -e '.[export]'")
    return written(classifier(n_segments=2), "onnx", tmp_path_factory.mktemp("graph"))


@pytest.mark.parametrize("task", ["single_label", "multi_label"])
@pytest.mark.parametrize(("truncation", "n_parts"), READ)
def test_onnx(task, truncation, n_parts, graph, monkeypatch):
    ours = classifier(task, truncation=truncation, n_parts=n_parts, n_segments=2)
    check(ours, "onnx", graph, monkeypatch, TEXTS if n_parts == 1 else PAIRS)


@pytest.mark.parametrize(("kind", "n_parts"), [("onnx", 2), ("hf", 3)])
def test_columns_that_the_lines_cannot_read_are_refused(kind, n_parts):
    with pytest.raises(UserError, match="column"):
        usage(classifier(truncation="windows", n_parts=n_parts), kind)


def test_the_readme_shows_the_same_lines():
    assert f"```python\n{usage(classifier(), 'onnx')}```" in (ROOT / "README.md").read_text(encoding="utf-8")
