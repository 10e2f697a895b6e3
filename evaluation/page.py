"""The report as one page: a section for each thing that was found."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from evaluation import pictures
from evaluation.calibration import N_BINS
from evaluation.markup import document, figures, heat_table, paragraph, table
from evaluation.metrics import NAMES, WHO, with_interval

MOST_ROWS = 20


def page(found: dict[str, Any]) -> str:
    """The page of what `evaluation/report.py` put together (`report.json`); what was not found has no section."""
    parts = [
        f'<section id="{key}"><h2>{title}</h2>{section(found)}</section>\n'
        for key, (title, section) in SECTIONS.items()
        if found.get(key)
    ]
    return document(f"Heed: {found['run']}", "".join(parts))


def summary(found: dict[str, Any]) -> str:
    """The scores of the three, each with its interval, and what their difference is worth."""
    scores = found["summary"]
    names = [name for name in NAMES if any(name in of for of in scores.values())]
    rows = [[WHO[who], *(with_interval(name, of) for name in names)] for who, of in scores.items()]
    said = f"This classifier is {found['verdict']}. In brackets 95 % intervals: bootstrap over the test texts, the same"
    return table(["", *(NAMES[name] for name in names)], rows) + paragraph(f"{said} resamples for all.")


def training(found: dict[str, Any]) -> str:
    """Loss and the metric that chose the epoch, over the epochs."""
    history, monitor = found["history"], found["monitor"]
    drawn = [("Loss", pictures.curves(history, {"train/loss": "training", "val/loss": "validation"}, y="loss"))]
    if monitor != "val/loss":
        name = NAMES[monitor.removeprefix("val/")]
        drawn.append(
            (f"{name} on validation, which chose the epoch", pictures.curves(history, {monitor: name}, y=name))
        )
    return figures(*drawn)


def confusion(found: dict[str, Any]) -> str:
    """Rows are the true classes, columns the answers; the deeper, the larger the share of the row."""
    labels, counts, of = (found["confusion"][key] for key in ("labels", "counts", "of"))
    some = f" The {len(labels)} of {of} classes with the most errors." if len(labels) < of else ""
    return paragraph(f"Each row is a true class, each column what the classifier said.{some}") + heat_table(
        labels, counts
    )


def classes(found: dict[str, Any]) -> str:
    """Precision, recall, F1 and count."""
    rows = [[row[key] for key in ("label", "precision", "recall", "f1", "count")] for row in found["classes"]]
    return table(["class", "precision", "recall", "F1", "test texts"], rows)


def reliability(found: dict[str, Any]) -> str:
    """Both reliability diagrams."""
    trust, bins = found["trust"], found["reliability"]
    drawn = [
        (f"{name} temperature: error {100 * trust[key]:.1f} %", pictures.reliability(when, bins[when]))
        for name, when, key in (("Before", "before", "test/ece_before"), ("After", "after", "test/ece"))
    ]
    return paragraph(
        f"Of the texts answered with a probability of 80 %, 80 % should be right. The logits are divided by "
        f"{trust['test/temperature']:.2f}, the temperature fitted on validation. The error is the expected calibration error "
        f"in {N_BINS} bins of equal width, on test."
    ) + figures(*drawn)


def coverage(found: dict[str, Any]) -> str:
    """Accuracy by the share of texts answered, and the threshold."""
    trust = found["trust"]
    accuracy = f", {100 * trust['abstain/accuracy']:.1f} % of them right" if "abstain/accuracy" in trust else ""
    said = (
        f"predict.py --abstain gives no label below a probability of {trust['abstain/threshold']:.3f}: the lowest on "
        "validation from which 95 % of the answers are right, or errors are halved where that is more. On test "
        f"{100 * trust['abstain/coverage']:.1f} % of the texts are answered{accuracy}."
    )
    return paragraph(said) + figures(("", pictures.coverage(found["coverage"], answered=trust["abstain/coverage"])))


def label_sets(found: dict[str, Any]) -> str:
    """What conformal prediction promised and kept."""
    trust = found["trust"]
    return paragraph(
        "predict_sets gives every label that may be meant: 90 % of the sets are to hold the truth (split conformal "
        f"prediction, fitted on validation). On test {100 * trust['conformal/coverage']:.1f} % do; a set has "
        f"{trust['conformal/size']:.2f} labels on average."
    ) + table(["labels in the set", "test texts"], [[size, n] for size, n in found["label_sets"]])


def lengths(found: dict[str, Any]) -> str:
    """The fifths of the texts by length."""
    y = {"single_label": "accuracy", "multi_label": "exactly right", "regression": "mean absolute error"}[found["task"]]
    return figures(("", pictures.lengths(found["lengths"], y=y)))


def scores(found: dict[str, Any]) -> str:
    """Predicted against true scores, and what is left."""
    points = found["scores"]
    return figures(
        *((name, pictures.scatter(points, residuals=name == "Residuals")) for name in ("Scores", "Residuals"))
    )


def errors(found: dict[str, Any]) -> str:
    """The most confident errors; the text last, since a phone shows the first columns."""
    far = "probability" if found["task"] == "single_label" else "off by"
    rows = [[row[key] for key in ("row", "truth", "predicted", "how_far", "text")] for row in found["errors"]]
    return table(["row", "truth", "answer", far, "text"], rows)


def suspects(found: dict[str, Any]) -> str:
    """Labels that may be wrong, with what the classifier gives them and what it would rather say."""
    rows = []
    for row in found["suspects"][:MOST_ROWS]:
        given, rather = f"{row['label']} {row['probability']:.3f}", f"{row['rather']} {row['rather_probability']:.3f}"
        rows.append([f"{row['split']} {row['row']}", given, rather, row["text"]])
    return paragraph(
        "Texts of validation and test, from which the classifier has not learned, that it gives confidently to another class "
        f"than their label (confident learning): the most suspect {len(rows)} of the {len(found['suspects'])} in report.json."
    ) + table(["row", "label", "rather", "text"], rows)


def settings(found: dict[str, Any]) -> str:
    """The configuration, versions and times."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return (
        paragraph(f"{found['seconds']:.0f} seconds up to this page. {versions}.")
        + f"<details><summary>Configuration</summary><pre>{escape(found['configuration'])}</pre></details>"
    )


SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "summary": ("On the test texts", summary),
    "history": ("Training", training),
    "scores": ("Scores", scores),
    "confusion": ("Confusion", confusion),
    "classes": ("Classes", classes),
    "reliability": ("Are its probabilities right?", reliability),
    "coverage": ("When to abstain", coverage),
    "label_sets": ("Label sets", label_sets),
    "lengths": ("By length of the text", lengths),
    "errors": ("The worst errors", errors),
    "suspects": ("Suspected label errors", suspects),
    "configuration": ("The run", settings),
}
