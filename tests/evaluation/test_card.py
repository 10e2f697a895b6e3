"""The model card says what the run's files say, in the form that the Hub reads, and nothing where they are not there."""

import json
import re

import pytest
from huggingface_hub import ModelCard

from evaluation.card import model_card
from model import load_classifier


def test_the_card_holds_the_runs_figures(run):
    folder = run("trainer.max_epochs=3")
    card = (folder / "README.md").read_text(encoding="utf-8")
    metrics = json.loads((folder / "metrics.json").read_text())
    header = ModelCard(card).data  # as the Hub reads it
    found = {result.metric_name: result.metric_value for result in header.eval_results}
    assert found == {
        name: metrics[f"test/{key}"]
        for name, key in (("accuracy", "accuracy"), ("balanced", "balanced_accuracy"), ("macro-F1", "macro_f1"))
    }
    assert (header.pipeline_tag, header.model_name) == ("text-classification", "run")
    for who, key in (("this classifier", "test"), ("TF-IDF + linear", "baseline"), ("majority", "majority")):
        (row,) = re.findall(rf"^\| {re.escape(who)} \| (.*) \|$", card, re.MULTILINE)
        assert row.split(" | ")[0].startswith(f"{100 * metrics[f'{key}/accuracy']:.1f} %")
    assert "train corpus.csv: " in card
    assert str(folder.parent) not in card  # where it was trained is nobody's business
    assert "3 epochs" in card


def test_a_checkpoint_alone_has_a_card_without_figures(run, tmp_path):
    folder = run()
    alone = tmp_path / "alone"
    alone.mkdir()
    (folder / "best.ckpt").rename(alone / "best.ckpt")
    ours = load_classifier(alone / "best.ckpt")
    card = model_card(ours, alone, name="mine", kind="checkpoint")
    assert "## Numbers\n\nNot known: `metrics.json` and `report/report.json` were not beside the checkpoint." in card
    assert " %" not in card
    assert ModelCard(card).data.eval_results is None


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("check.json", {"labels": ["other"]}),
        ("check.json", {"task": "multi_label"}),
        ("metrics.json", {"test/temperature": 3.21}),
    ],
)
def test_another_runs_files_are_not_believed(run, file, change):
    folder = run()
    said = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps({**said, **change}))
    card = model_card(load_classifier(folder / "best.ckpt"), folder, name="mine", kind="checkpoint")
    assert "Not known: the files beside the checkpoint are those of another run." in card
    assert ModelCard(card).data.eval_results is None


def test_damaged_files_are_as_good_as_none(run):
    folder = run()
    (folder / "metrics.json").write_text("{")
    (folder / "report" / "report.json").write_text("[]")
    card = model_card(load_classifier(folder / "best.ckpt"), folder, name="mine", kind="checkpoint")
    assert "Not known: " in card


def test_texts_that_leaked_are_counted(run, corpus):
    folder = run(f"data.test={corpus}", "data.drop_leaks=false")
    assert "- 12 texts of train are in validation or test too" in (folder / "README.md").read_text(encoding="utf-8")
