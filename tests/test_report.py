"""What a run leaves to read: metrics.json and report/ say the same, of every task, and nothing that fails costs the run."""

import csv
import json
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch

from errors import UserError
from evaluation.calibration import expected_calibration_error
from model import load_classifier
from predict import as_json
from tests.evaluation.test_page import EVERYWHERE, SECTIONS, Page
from training.run import train

QUICK = ("data=files", "experiment=quick", "tokenizer.min_frequency=1", "trainer.accelerator=cpu")
LEARN = ("trainer.max_epochs=12", "optimizer.lr=0.02", "patience=12")
WORDS = {"fruit": "apple", "tool": "hammer", "old": "rusty"}


def rows_of(task: str) -> list[dict]:
    """Texts of which the words say the label, but for a tenth."""
    random = np.random.default_rng(0)
    rows = []
    for i in range(240):
        labels = [label for bit, label in enumerate(WORDS) if i >> bit & 1] if task != "single_label" else []
        labels = labels or [list(WORDS)[i % 3]]
        text = " ".join([WORDS[label] for label in labels] + [f"word{i} <b>"] + ["filler"] * int(random.integers(9)))
        wrong = list(WORDS)[random.integers(3)] if random.random() < 0.2 else labels[0]
        value = {"single_label": wrong, "multi_label": labels, "regression": len(labels) + random.random() / 2}[task]
        rows.append({"text": text, "label": value})
    return rows


@pytest.fixture
def run(configure, tmp_path):
    def training(task: str, *overrides: str, name: str = "run") -> Path:
        data, folder = tmp_path / f"{task}.jsonl", tmp_path / name
        data.write_text("".join(json.dumps(row) + "\n" for row in rows_of(task)))
        folder.mkdir()
        train(configure(*QUICK, f"data.train={data}", *overrides), folder, started=time.perf_counter())
        return folder

    return training


@pytest.mark.parametrize("task", SECTIONS)
def test_every_task_has_its_report(run, task):
    folder = run(task, "trainer.max_epochs=3", "optimizer.lr=0.01", "mix_linear=false")  # together they make no mistake
    found = json.loads((folder / "report" / "report.json").read_text())
    text = (folder / "report" / "index.html").read_text()
    assert {path.name for path in (folder / "report").iterdir()} == {"report.json", "index.html"}
    assert EVERYWHERE | SECTIONS[task] - {"suspects"} <= set(Page(text).sections) | {"errors"}
    assert "http://" not in text
    assert [entry["epoch"] for entry in found["history"]] == [1, 2, 3]
    assert {"train/loss", "val/loss", found["monitor"], "seconds"} <= found["history"][0].keys()
    assert "max_epochs: 3" in found["configuration"]
    metrics = json.loads((folder / "metrics.json").read_text())
    main = {"single_label": "accuracy", "multi_label": "micro_f1", "regression": "mse"}[task]
    for who in ("test", "baseline", "majority"):
        assert found["summary"][who][main] == metrics[f"{who}/{main}"]
    assert metrics[f"test/{main}_low"] <= metrics[f"test/{main}"] <= metrics[f"test/{main}_high"]
    assert 0 < metrics["compare/p_value"] <= 1
    assert metrics["compare/difference"] == metrics[f"test/{main}"] - metrics[f"baseline/{main}"]
    assert ("test/ece" in metrics) == (task == "single_label")


def test_the_checkpoint_answers_abstains_and_gives_sets_as_the_report_says(run, tmp_path):
    folder = run("single_label", *LEARN, f"data.test={held_out(tmp_path)}")
    metrics = json.loads((folder / "metrics.json").read_text())
    classifier = load_classifier(folder / "best.ckpt")
    kept = torch.load(folder / "best.ckpt", weights_only=True)["heed"]["task"]
    assert classifier.task.facts() == kept
    assert metrics["test/temperature"] == kept["temperature"] != 1.0
    with open(held_out(tmp_path)) as file:
        texts, truth = zip(*((row["text"], row["label"]) for row in csv.DictReader(file)), strict=True)
    logits = classifier.logits(texts)
    torch.testing.assert_close(classifier.predict_proba(texts), (logits / kept["temperature"]).softmax(dim=1))
    plain, careful = classifier.predict(texts), classifier.predict(texts, abstain=True)
    right = np.array([p.label == t for p, t in zip(plain, truth, strict=True)])
    confidence = np.array([max(p.probabilities.values()) for p in plain])
    assert metrics["test/ece"] == pytest.approx(expected_calibration_error(confidence, right), abs=1e-6)
    answered = np.array([p.label is not None for p in careful])
    assert answered.tolist() == (confidence >= kept["abstain_below"]).tolist()
    assert 0 < answered.sum() < len(texts)
    assert metrics["abstain/coverage"] == answered.mean()
    assert metrics["abstain/accuracy"] == right[answered].mean()
    assert all(
        a.label in (None, b.label) and a.probabilities == b.probabilities for a, b in zip(careful, plain, strict=True)
    )
    sets = classifier.predict_sets(texts)
    assert metrics["conformal/coverage"] == np.mean([t in labels for t, labels in zip(truth, sets, strict=True)])
    assert metrics["conformal/size"] == np.mean([len(labels) for labels in sets])
    for labels, p in zip(sets, plain, strict=True):
        assert labels[0] == p.label
        assert labels[1:] == [
            label for label in list(p.probabilities)[1:] if p.probabilities[label] >= kept["in_set_from"]
        ]


def held_out(folder: Path) -> Path:
    """Forty more texts, of which some say nothing."""
    path = folder / "test.csv"
    labels = list(WORDS)
    texts = [f"{WORDS[labels[i % 3]] if i % 4 else 'unseen'} thing {i},{labels[i % 3]}" for i in range(40)]
    path.write_text("text,label\n" + "\n".join(texts) + "\n")
    return path


def test_predict_abstains_on_the_command_line(run, command, tmp_path):
    checkpoint = run("single_label", *LEARN) / "best.ckpt"
    texts = ["apple apple", "unseen hammer apple rusty", "rusty rusty", "nothing known"]
    classifier = load_classifier(checkpoint)
    careful = classifier.predict(texts, abstain=True)
    silent = [prediction.label is None for prediction in careful]
    assert 0 < sum(silent) < 4
    result = command("predict.py", str(checkpoint), *texts, "--abstain")
    assert (result.returncode, [line == "-" for line in result.stdout.splitlines()]) == (0, silent)
    assert result.stderr == (
        f"note: {sum(silent)} of 4 texts have no label: none was as probable as {classifier.task.abstain_below:.3f}\n"
    )
    answers = [json.loads(as_json(text, p, classifier)) for text, p in zip(texts, careful, strict=True)]
    assert [answer["label"] is None for answer in answers] == silent
    assert [answer["set"] for answer in answers] == classifier.predict_sets(texts)


def test_what_cannot_abstain_says_so(run, command):
    checkpoint = run("regression") / "best.ckpt"
    result = command("predict.py", str(checkpoint), "an apple", "--abstain")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "error: abstain: this classifier (task=regression) has no threshold, which task=single_label alone has; "
        "predict without it\n"
    )
    several = load_classifier(run("multi_label", name="several") / "best.ckpt")
    with pytest.raises(UserError, match=r"predict_sets: this classifier [(]task=multi_label[)] has no label sets"):
        several.predict_sets(["an apple"])


def test_a_checkpoint_from_before_has_no_threshold(run, tmp_path):
    folder = run("single_label")
    content = torch.load(folder / "best.ckpt", weights_only=True)
    content["heed"]["task"] = {key: content["heed"]["task"][key] for key in ("name", "labels")}
    torch.save(content, tmp_path / "old.ckpt")
    old = load_classifier(tmp_path / "old.ckpt")
    torch.testing.assert_close(old.predict_proba(["apple"]), old.logits(["apple"]).softmax(dim=1))
    with pytest.raises(UserError, match="has no threshold, it was trained before there were any"):
        old.predict(["apple"], abstain=True)


def test_a_picture_that_fails_costs_nothing_else(run, caplog):
    caplog.set_level("INFO", logger="heed")
    with mock.patch("evaluation.pictures.in_page", side_effect=RuntimeError("no ink")):
        folder = run("single_label")
    assert "test/accuracy" in json.loads((folder / "metrics.json").read_text())
    assert (folder / "best.ckpt").exists()
    assert "report      not written: RuntimeError: no ink" in caplog.text
    assert "predict     python predict.py" in caplog.text


def test_without_labels_in_test_there_is_a_report_of_training(run, tmp_path):
    (tmp_path / "test.csv").write_text("text\nan apple\n")
    folder = run("single_label", f"data.test={tmp_path / 'test.csv'}")
    sections = set(Page((folder / "report" / "index.html").read_text()).sections)
    assert {"history", "configuration"} <= sections
    assert not sections & {"summary", "errors"}
