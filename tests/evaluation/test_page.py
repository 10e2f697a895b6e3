"""The report's page: whole, alone, escaped."""

import json
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from evaluation.answers import Answers
from evaluation.calibration import trust
from evaluation.findings import findings
from evaluation.page import page
from model.task import MultiLabel, Regression, SingleLabel

EVIL = '<script>alert("x")</script> & $x^2$'
LABELS = ["a", "b", EVIL]
TASKS = {
    "single_label": SingleLabel(labels=LABELS, temperature=1.5, abstain_below=0.6, in_set_from=0.2),
    "multi_label": MultiLabel(labels=LABELS),
    "regression": Regression(labels=["score"], mean=0.0, spread=1.0),
}
HISTORY = [
    {"epoch": e, "step": 9 * e, "seconds": 1.0, "train/loss": 1 / e, "val/loss": 2 / e, "val/accuracy": 1 - 1 / e}
    for e in (1, 2, 3)
]
SECTIONS = {
    "single_label": {"confusion", "classes", "reliability", "coverage", "label_sets", "suspects"},
    "multi_label": {"classes"},
    "regression": {"scores"},
}
EVERYWHERE = {"summary", "history", "lengths", "errors", "configuration"}


def answers(task: str, n: int = 40) -> Answers:
    """Texts of 1 to `n` words with truths, and answers of which some are wrong."""
    random = np.random.default_rng(0)
    probabilities = random.dirichlet([0.5] * 3, n)
    chosen = probabilities.argmax(axis=1)
    truth = np.where(random.random(n) < 0.7, chosen, random.integers(3, size=n))
    columns = {
        "single_label": ([LABELS[i] for i in truth], [LABELS[i] for i in chosen]),
        "multi_label": ([[LABELS[i]] for i in truth], [[LABELS[i]] if i else [] for i in chosen]),
        "regression": (truth.astype(float).tolist(), (truth + random.normal(size=n)).tolist()),
    }[task]
    texts = [f"{EVIL} {'word ' * i}" for i in range(n)]
    return Answers("test", np.arange(n), texts, *columns, probabilities, probabilities)


def report(task: str, *, n: int = 40) -> dict:
    test = answers(task, n)
    found = {
        "run": "outputs/a&b",
        "task": task,
        "monitor": "val/accuracy",
        "history": HISTORY,
        "configuration": f"data: {EVIL}",
        "versions": {"torch": "2"},
        "seconds": 3.0,
        **findings(TASKS[task], test, answers(task)),
    }
    if n:
        scores = {"single_label": "accuracy", "multi_label": "micro_f1", "regression": "mse"}[task]
        summary = {"test": {scores: 0.5, f"{scores}_low": 0.4, f"{scores}_high": 0.6}, "majority": {scores: 0.3}}
        found |= {"summary": summary, "verdict": "level with it", "trust": trust(TASKS[task], test)}
    return found


class Page(HTMLParser):
    """What a page loads, its sections, whether its tags close."""

    VOID = ("meta", "use", "path")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.sections: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.loads += [value for key, value in named.items() if key.split(":")[-1] in ("src", "href", "data")]
        if "id" in named:
            self.ids.append(named["id"])
            self.sections += [named["id"]] if tag == "section" else []
        assert tag != "script"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("task", TASKS)
def test_the_page_has_every_section_loads_nothing_and_escapes_what_users_wrote(task):
    found = report(task)
    text = page(json.loads(json.dumps(found)))  # report.json says as much as the page
    parsed = Page(text)
    assert set(parsed.sections) == EVERYWHERE | SECTIONS[task]
    assert all(address.startswith("#") for address in parsed.loads)
    assert {address[1:] for address in parsed.loads} <= set(parsed.ids)
    assert parsed.open == []
    assert "http://" not in text
    assert "https://" not in text
    assert "@import" not in text
    assert "url(#" in text
    assert EVIL not in text
    assert "&lt;script&gt;" in text
    assert "prefers-color-scheme:dark" in text
    assert 'name="viewport" content="width=device-width' in text
    assert len(text) < 400_000


@pytest.mark.parametrize("task", TASKS)
def test_without_labelled_test_texts_the_page_says_what_is_known(task):
    sections = set(Page(page(report(task, n=0))).sections)
    assert {"history", "configuration"} <= sections
    assert not sections & {"summary", "errors", "confusion", "scores"}


@pytest.mark.parametrize("task", TASKS)
def test_one_text_and_one_epoch_are_enough(task):
    found = report(task, n=1)
    found["history"] = [{key: value for key, value in HISTORY[0].items() if key != "val/accuracy"}]  # it was no number
    assert "summary" in Page(page(found)).sections


def test_the_errors_are_wrong_and_the_surest_come_first():
    test = answers("single_label")
    errors = report("single_label")["errors"]
    probabilities = [error["how_far"] for error in errors]
    assert probabilities == sorted(probabilities, reverse=True)
    for error in errors:
        row = error["row"] - 1
        assert error["truth"] == test.truth[row] != test.predicted[row] == error["predicted"]
        assert error["how_far"] == test.probabilities[row].max()
        assert error["text"].endswith("…") == (row > 40)
    assert len(errors) == min(20, int((~test.right()).sum()))


def test_lengths_share_the_texts_out_by_words():
    parts = report("single_label")["lengths"]
    assert sum(part["n"] for part in parts) == 40
    assert all(one["to"] < next_["from"] for one, next_ in pairwise(parts))
    expected = np.average([part["value"] for part in parts], weights=[part["n"] for part in parts])
    assert expected == pytest.approx(answers("single_label").right().mean())


def test_of_many_classes_those_with_the_most_errors_are_shown():
    labels = [f"label {i}" for i in range(60)]
    truth = labels * 2
    said = labels + [labels[i - 1] if 10 <= i < 20 else labels[i] for i in range(60)]
    even = np.full((120, 60), 1 / 60)
    test = Answers("test", np.arange(120), ["text"] * 120, truth, said, even, even)
    found = findings(SingleLabel(labels=labels), test, test.only(np.zeros(120, bool)))["confusion"]
    assert found["of"] == 60
    assert len(found["labels"]) == 25
    assert set(labels[9:20]) <= set(found["labels"])
