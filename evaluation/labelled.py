"""How good the answers to a file with labels are: the lines and the page that a run has for its test split.

R texts, C classes.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from data.labels import Label, class_name, number
from encoding import plain
from evaluation.answers import Answers
from evaluation.calibration import trust
from evaluation.compare import intervals, resampled
from evaluation.findings import findings
from evaluation.metrics import SCORES, sentence
from evaluation.report import PACKAGES, write_page
from model.task import SingleLabel

MOST = 20_000  # labelled texts that are looked at, of more a sample: memory does not grow
MOST_NAMED = 5  # labels that the classifier does not know


class Judge:
    """Keep labelled texts as they pass, at most `MOST`, each as likely as any other (Vitter 1985, doi:10.1145/3147.3165,
    algorithm R), and score the answers to them at the end. `folder` is where the page goes, or None."""

    def __init__(self, task: SingleLabel, *, source: str, folder: Path | None) -> None:
        self.task, self.source, self.folder = task, source, folder
        self.kept: list[tuple[int, str, Any, Tensor]] = []  # row, text, truth, logits (C,)
        self.n_known = self.n_unknown = 0  # texts with a label that the classifier knows, and with another
        self.unknown: list[str] = []
        self.random = np.random.default_rng(0)

    def add(self, start: int, texts: Sequence[str | Sequence[str]], labels: Sequence[Label], logits: Tensor) -> None:
        """Some rows, the first of which is `start`, with `logits (R, C)`; those without a label do not count."""
        for row, label in enumerate(labels):
            truth = known(label, self.task)
            if truth is None:
                if label is not None:
                    self.n_unknown += 1
                    name = ", ".join(label) if isinstance(label, tuple) else str(label)
                    if len(self.unknown) < MOST_NAMED and name not in self.unknown:
                        self.unknown.append(name)
                continue
            place = self.n_known if self.n_known < MOST else int(self.random.integers(self.n_known + 1))
            self.n_known += 1
            if place < MOST:  # a copy of the logits: a view would hold those of all rows
                self.kept[place : place + 1] = [(start + row, plain(texts[row]), truth, logits[row].clone())]

    def answers(self) -> Answers:
        """What was kept, in the order of the file."""
        rows, texts, truth, each = zip(*sorted(self.kept, key=lambda one: one[0]), strict=True)
        logits = torch.stack(each)  # (R, C)
        probabilities = self.task.probabilities(logits)
        predicted = [self.task.prediction(row).label for row in probabilities]
        before = logits.softmax(dim=-1).numpy()
        return Answers("file", np.array(rows), list(texts), list(truth), predicted, probabilities.numpy(), before)

    def report(self, say: Callable[[str, str], None], seconds: float) -> None:
        """Say the scores, and write `index.html` and `report.json` into the folder."""
        if self.n_unknown:
            names = ", ".join(map(repr, self.unknown)) + ", …" * (len(self.unknown) == MOST_NAMED)
            say(
                "unknown",
                f"{self.n_unknown:,} texts have a label that the classifier does not know ({names}): not scored",
            )
        if not self.kept:
            return
        test, name = self.answers(), self.task.name
        scores = SCORES[name](test.truth, test.predicted) | intervals(resampled(name, test.truth, test.predicted))
        drawn = f" of the {self.n_known:,} with a label, drawn at random" * (self.n_known > MOST)
        say("test", f"{sentence(scores)}  on {len(test.rows):,} texts{drawn}")
        if self.folder is None:
            return
        empty = Answers("", np.empty(0, int), [], [], [], test.probabilities[:0], test.before[:0])
        found = {
            "run": self.source,
            "task": name,
            "summary": {"test": scores},
            "trust": trust(self.task, test),
            **findings(self.task, test, empty),
            "configuration": f"input: {self.source}\ntexts: {len(test.rows)}{drawn}\n",
            "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
            "seconds": seconds,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        write_page(found, self.folder)
        say("report", str(self.folder / "index.html"))


def known(label: Label, task: SingleLabel) -> Any:
    """The label as the task takes it; None where there is none, or one that the classifier has not learned."""
    if label is None or task.name == "regression":
        return number(label)
    names = label if isinstance(label, tuple) else (class_name(label),)
    if not set(names) <= set(task.labels) or (task.name == "single_label" and len(names) != 1):
        return None
    return list(names) if task.name == "multi_label" else names[0]
