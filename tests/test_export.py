"""A checkpoint exported gives elsewhere what it gives here, and a mistake leaves nothing."""

import csv
import json
import re
import subprocess
import sys

import pytest
import torch
from sklearn.metrics import accuracy_score

import export
from errors import UserError
from evaluation.parity import largest_difference
from model import load_classifier
from model.exported import FORMATS, in_place_of
from tests.classifiers import BERT, TEXTS, classifier, write_checkpoint
from tests.conftest import FRUIT, TOOLS

SIZES = ("model.d_model=32", "model.n_layers=2", "model.d_ff=64", "model.max_len=64", "model.n_heads=2")
AS_BERT = ("model.block=post_norm", "model.embedding_norm=true", "mix_linear=false", "model.dropout=0.1")


@pytest.fixture
def trained(command, corpus):
    def train(*overrides: str) -> str:
        result = command(
            "train.py",
            "data=files",
            f"data.train={corpus}",
            "trainer.max_epochs=2",
            *SIZES,
            *overrides,
            "hydra.run.dir=run",
        )
        assert result.returncode == 0, result.stderr
        return "run/best.ckpt"

    return train


def test_transformers_gives_equal_logits(command, trained, corpus, tmp_path):
    transformers = pytest.importorskip("transformers", reason="the reader: pip install -e '.[pretrained]'")
    learned = (f"data.validation={corpus}", "data.drop_leaks=false", "trainer.max_epochs=40", "monitor=val/loss")
    checkpoint = trained(*AS_BERT, *learned)
    result = command("export.py", checkpoint, "--to", "hf", "there")
    assert (result.returncode, result.stderr) == (0, "")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "there").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "there")
    texts = [*FRUIT, *TOOLS, "an unseen \N{SNOWMAN}"]
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    ours = load_classifier(tmp_path / checkpoint, precision="32-true")
    with torch.inference_mode():
        expected = ours.predict_proba(texts)
        found = theirs(**inputs).logits
    assert expected.std() > 0.1  # it has learned something
    torch.testing.assert_close(found.log_softmax(dim=-1), expected.log(), atol=1e-4, rtol=0)
    assert [theirs.config.id2label[i] for i in range(2)] == ours.labels


def test_a_linear_model_beside_the_network_is_refused_for_transformers(exported, tmp_path):
    write_checkpoint(classifier(**BERT, n_buckets=64), tmp_path / "best.ckpt")
    with pytest.raises(UserError, match="no linear model beside a network: train one with mix_linear=false"):
        exported("--to", "hf")
    assert [path.name for path in tmp_path.iterdir()] == ["best.ckpt"]


def test_a_network_that_transformers_has_not_is_refused(exported, tmp_path):
    write_checkpoint(classifier(position="learned"), tmp_path / "best.ckpt")
    sentence = (
        "transformers has no network with block=pre_norm, embedding_norm=False: "
        "train one with block=post_norm, embedding_norm=True"
    )
    with pytest.raises(UserError, match=re.escape(sentence)):
        exported("--to", "hf")
    assert [path.name for path in tmp_path.iterdir()] == ["best.ckpt"]


WITHOUT_TORCH = """
import json, re, sys
for name in ("torch", "model", "encoding", "safetensors"):  # torch, and all of Heed that could help
    sys.modules[name] = None
code = re.search(r"```python\\n(.*?)```", open("README.md", encoding="utf-8").read(), re.DOTALL)[1]
exec(code)
sys.stdout.reconfigure(encoding="utf-8")
print(json.dumps([predict(text) for text in json.loads(sys.argv[1])]))
"""


@pytest.fixture
def exported(tmp_path, monkeypatch, capsys):
    """Export in this process; return the folder and what was printed."""

    def run(*options: str, checkpoint="best.ckpt", folder: str = "there"):
        path = tmp_path / folder
        monkeypatch.setattr(sys, "argv", ["export.py", str(tmp_path / checkpoint), *options, str(path)])
        export.main()
        return path, capsys.readouterr().out

    return run


@pytest.fixture
def needs_onnx():
    pytest.importorskip("onnxscript", reason="the writer: pip install -e '.[export]'")
    pytest.importorskip("onnxruntime", reason="the reader: pip install -e '.[export]'")


@pytest.fixture
def labelled(tmp_path):
    """A CSV of texts with labels, of which the untrained network gets some right."""
    path = tmp_path / "check.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [("text", "label"), *((f"w{i} w{i + 3} w{40 - i}", "abü"[i % 3]) for i in range(30))]
        )
    return path


@pytest.mark.usefixtures("needs_onnx")
def test_an_onnx_folder_answers_without_torch(command, trained, tmp_path):
    checkpoint = trained("trainer.max_epochs=4", "model.max_len=8")
    result = command("export.py", checkpoint, "--to", "onnx", "there")
    assert (result.returncode, result.stderr) == (0, "")
    assert float(re.search(r"differ from the checkpoint's by (\S+)", result.stdout)[1]) < 1e-4
    files = {"README.md", "heed.json", "model.onnx", "tokenizer.json"}
    assert {path.name for path in (tmp_path / "there").iterdir()} == files
    texts = [*FRUIT, "", "a saw [SEP] and a pear", "rusty " * 20, "an unseen \N{SNOWMAN}"]
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, json.dumps(texts)], cwd=tmp_path / "there", capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout.splitlines()[-1])
    for (label, probabilities), ours in zip(found, load_classifier(tmp_path / checkpoint).predict(texts), strict=True):
        assert label == ours.label
        assert probabilities == pytest.approx(ours.probabilities, abs=1e-5)


@pytest.mark.usefixtures("needs_onnx")
def test_int8_says_what_it_costs(exported, labelled, tmp_path):
    ours = classifier()
    write_checkpoint(ours, tmp_path / "best.ckpt")
    folder, said = exported("--to", "onnx", "--int8", "--check", str(labelled))
    with open(labelled, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    texts, truth = [row["text"] for row in rows], [row["label"] for row in rows]
    int8 = in_place_of(ours, FORMATS["onnx"].open(folder / "model.onnx", ours.network))
    here, there = ([p.label for p in c.predict(texts)] for c in (ours, int8))
    accuracies = [f"{100 * accuracy_score(truth, answers):.1f} %" for answers in (there, here)]
    moved = sum(a != b for a, b in zip(here, there, strict=True))
    sentence = f"accuracy {accuracies[0]}, the checkpoint's {accuracies[1]}; {moved} answers differ."
    assert f"On 30 texts with labels: {sentence}" in said
    assert sentence in (folder / "README.md").read_text(encoding="utf-8")
    assert json.loads((folder / "heed.json").read_text(encoding="utf-8"))["weights"] == "int8"
    _, said = exported("--to", "onnx", "--int8", folder="unchecked")
    assert re.search(
        r"\d+ of 256 rows of random tokens get another answer; what int8 costs on texts was not measured", said
    )


@pytest.mark.parametrize("kind", ["safetensors", "pt2"])
def test_the_other_formats_answer_alike(exported, labelled, tmp_path, kind):
    ours = classifier("multi_label", n_parts=1)
    write_checkpoint(ours, tmp_path / "best.ckpt")
    folder, said = exported("--to", kind, "--check", str(labelled))
    assert "0 answers differ" in said
    theirs = in_place_of(ours, FORMATS[kind].open(folder / FORMATS[kind].file, ours.network))
    torch.testing.assert_close(theirs.logits(TEXTS), ours.logits(TEXTS), atol=1e-5, rtol=0)
    facts = json.loads((folder / "heed.json").read_text(encoding="utf-8"))
    assert (facts["labels"], facts["thresholds"], facts["max_len"]) == (["a", "b", "ü"], [0.4, 0.5, 0.6], 24)


def test_the_folder_for_transformers_has_a_card_too(exported, tmp_path):
    write_checkpoint(classifier(**BERT), tmp_path / "best.ckpt")
    folder, _ = exported("--to", "hf")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "library_name: transformers" in card
    assert "AutoModelForSequenceClassification" in card
    assert "Not known: `metrics.json`" in card
    assert {"config.json", "heed.json", "model.safetensors", "tokenizer.json"} <= {
        path.name for path in folder.iterdir()
    }


def test_a_network_that_answers_otherwise_is_not_exported(exported, tmp_path, monkeypatch):
    write_checkpoint(classifier(), tmp_path / "best.ckpt")
    start = FORMATS["safetensors"].open
    off = FORMATS["safetensors"]._replace(
        open=lambda path, network: lambda ids, mask: start(path, network)(ids, mask) + 2e-4 * (ids.shape[1] == 24)
    )
    monkeypatch.setitem(FORMATS, "safetensors", off)
    with pytest.raises(UserError, match="logits differ"):
        exported("--to", "safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["best.ckpt"]


def test_not_a_number_is_no_equal_logit():
    ours = classifier()
    with pytest.raises(UserError, match="logits differ by nan"):
        largest_difference(ours, lambda ids, mask: ours.network(ids, mask) * torch.nan)


def test_a_full_disk_leaves_nothing(exported, tmp_path, monkeypatch):
    write_checkpoint(classifier(), tmp_path / "best.ckpt")

    def full(network, path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(FORMATS, "safetensors", FORMATS["safetensors"]._replace(write=full))
    with pytest.raises(UserError, match="No space left on device"):
        exported("--to", "safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["best.ckpt"]


def test_without_onnx_runtime_the_card_says_so(exported, tmp_path, monkeypatch):
    pytest.importorskip("onnxscript", reason="the writer: pip install -e '.[export]'")
    write_checkpoint(classifier(n_layers=1), tmp_path / "best.ckpt")
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    folder, said = exported("--to", "onnx")
    sentence = "Not compared with the checkpoint's logits: ONNX Runtime was not installed."
    assert sentence in said
    assert sentence in (folder / "README.md").read_text(encoding="utf-8")


MISTAKES = {
    "an unknown kind": (["--to", "coreml"], "--to coreml: unknown; choose one of hf, onnx, safetensors, pt2"),
    "int8 elsewhere": (["--to", "pt2", "--int8"], "--int8 is for --to onnx"),
    "check for hf": (["--to", "hf", "--check", "check.csv"], "--check is not for --to hf"),
    "no check file": (["--to", "pt2", "--check", "none.csv"], "--check none.csv: no such file"),
}


@pytest.mark.parametrize(("options", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_sentence(exported, tmp_path, options, sentence):
    write_checkpoint(classifier(), tmp_path / "best.ckpt")
    with pytest.raises(UserError, match=re.escape(sentence)):
        exported(*options)
    assert [path.name for path in tmp_path.iterdir()] == ["best.ckpt"]


CHECKS = {
    "an unknown label": (
        "text,label\nw1,a\nw2,c\n",
        {},
        "line 3: the label 'c' is unknown to this checkpoint; it knows a, b, ü",
    ),
    "no label column": ("text,stars\nw1,a\n", {}, "there is no column label, only text, stars"),
    "neither column": ("body,stars\nw1,a\n", {}, "there is no column text or label, only body, stars"),
    "no rows": ("text,label\n", {}, "there is no row below the header"),
    "one label of several": ("text,label\nw1,a;x\n", {"task": "multi_label"}, "line 2: the label 'x' is unknown"),
    "no score": ("text,label\nw1,much\n", {"task": "regression"}, "the label 'much' is no number"),
    "several columns": ("text,label\nw1,a\n", {"n_parts": 2}, "this classifier reads 2"),
}


@pytest.mark.parametrize(("content", "changes", "sentence"), CHECKS.values(), ids=CHECKS)
def test_a_check_file_that_cannot_work_is_one_sentence(exported, tmp_path, content, changes, sentence):
    write_checkpoint(classifier(**changes), tmp_path / "best.ckpt")
    (tmp_path / "check.csv").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(sentence)):
        exported("--to", "safetensors", "--check", str(tmp_path / "check.csv"))
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("missing", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_package_names_the_extra(exported, tmp_path, monkeypatch, missing):
    write_checkpoint(classifier(), tmp_path / "best.ckpt")
    monkeypatch.setattr("model.program.find_spec", lambda name: None if name == missing else True)
    with pytest.raises(UserError, match=re.escape(f"needs {missing}: pip install -c constraints.txt -e '.[export]'")):
        exported("--to", "onnx", "--int8")
    assert [path.name for path in tmp_path.iterdir()] == ["best.ckpt"]


def test_a_missing_checkpoint_and_one_without_labels(exported, tmp_path):
    with pytest.raises(UserError, match="no such file"):
        exported("--to", "pt2")
    path = write_checkpoint(classifier(), tmp_path / "best.ckpt")
    content = torch.load(path, weights_only=True)
    content["heed"]["task"]["name"] = "mlm"
    torch.save(content, path)
    with pytest.raises(UserError, match="task=mlm taught it no labels"):
        exported("--to", "safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["best.ckpt"]


def test_a_folder_that_is_there_is_left_alone(command, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("kept")
    result = command("export.py", "any.ckpt", "--to", "hf", "there")
    assert (result.returncode, (tmp_path / "there" / "mine").read_text()) == (2, "kept")
