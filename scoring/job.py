"""A file of texts → its rows with labels and probabilities, some thousand at a time: `predict.py --input`.

R rows, C classes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from data.columns import Columns
from data.rows import Rows
from data.scored import SEPARATOR, Added, Decided
from errors import UserError
from files import standard_output, whole_file
from model.task import MultiLabel, SingleLabel
from model.text_classifier import TextClassifier
from scoring.progress import progress
from scoring.sheets import ahead, check_output, chunks, kind_of, make_writer, rows_of


class Job(NamedTuple):
    """What is asked for; `source` may be -, standard input, and `output` None, standard output."""

    source: str
    output: Path | None = None
    force: bool = False  # put the output in the place of one that is there
    text: Sequence[str] = ()  # columns; none: those of training
    label: str | None = None  # None: training's where it is there; "": not read
    abstain: bool = False
    report: Path | None = None  # a folder; None: beside the output


class Counts:
    """What is said at the end."""

    texts = truncated = abstained = 0


def score(classifier: TextClassifier, job: Job) -> Counts:
    """Write the rows with what the classifier says to each; say how good that is where they have labels.

    Raises `UserError` for what cannot work; then, as after Ctrl-C, nothing of the output is left.
    """
    started = time.perf_counter()
    classifier.check_abstain(job.abstain)
    kind = kind_of(job.source)
    wanted = check_output(job.output, kind, force=job.force)
    rows = rows_of(job.source, kind, job.text or classifier.columns.text)
    first = next(rows, None)
    if first is None:
        raise UserError(f"--input {job.source}: there is no row in it; nothing is to be scored")
    columns = choose_columns(classifier, first, job)
    judge = make_judge(classifier, columns, job)
    task = classifier.task
    classes = [] if task.name == "regression" else task.labels
    added = Added(classes, one=task.name == "single_label", separator=columns.separator or SEPARATOR)
    sink = standard_output() if job.output is None else whole_file(job.output)
    with sink as file, progress(job.source) as advance:
        writer = make_writer(file, added, source=job.source, kind=kind, wanted=wanted)
        counts = Counts()
        for parts in ahead(chunks(chain([first], rows)), job.source):
            for some in parts:
                added.check(some, nested=writer.nested)
            score_rows(classifier, parts, columns, writer, counts, judge, abstain=job.abstain)
            advance(parts)
        writer.close()
    say = speaker(job)
    seconds = time.perf_counter() - started
    if job.output is not None:
        say("scored", f"{counts.texts:,} texts in {job.output}  after {seconds:.0f} s")
    if judge is not None:
        judge.report(say, seconds)
    return counts


def score_rows(
    classifier: TextClassifier,
    parts: list[Rows],
    columns: Columns,
    writer: Any,
    counts: Counts,
    judge: Any,
    *,
    abstain: bool,
) -> None:
    """Write one chunk, count it, and show it to the judge."""
    texts = [text for rows in parts for text in columns.texts(rows)]
    tokens = classifier.encode(texts)
    logits = classifier.logits_of(tokens)
    decided = decide(classifier.task, logits, least=(classifier.task.abstain_below or 0.0) if abstain else 0.0)
    writer.write(parts, decided)
    if judge is not None:
        judge.add(counts.texts, texts, [label for rows in parts for label in columns.labels(rows)], logits)
    counts.texts += len(texts)
    counts.truncated += int(classifier.truncated(tokens).sum())
    counts.abstained += decided.labels.count(None)


def decide(task: SingleLabel, logits: Tensor, *, least: float) -> Decided:
    """What `logits (R, C)` say, for all rows at once; no label below the probability `least`."""
    probabilities = task.probabilities(logits).numpy()
    if task.name == "regression":
        return Decided(probabilities[:, 0].tolist(), None, None)
    if isinstance(task, MultiLabel):
        chosen = (probabilities >= task.thresholds).tolist()  # (R, C)
        labels = [[name for name, on in zip(task.labels, row, strict=True) if on] for row in chosen]
        return Decided(labels, None, probabilities)
    best, largest = probabilities.argmax(axis=1), probabilities.max(axis=1)
    names = [task.labels[i] for i in best.tolist()]
    if least:
        names = [name if p >= least else None for name, p in zip(names, largest.tolist(), strict=True)]
    return Decided(names, largest, probabilities)


def speaker(job: Job) -> Any:
    """What prints a line with its head: where the rows do not go."""
    file = sys.stderr if job.output is None else sys.stdout
    return lambda head, line: print(f"{head:<11} {line}", file=file, flush=True)


def make_judge(classifier: TextClassifier, columns: Columns, job: Job) -> Any:
    """What compares answers with labels; None without such a column. Raises `UserError` for a report that exists."""
    if columns.label is None:
        return None
    from evaluation.labelled import Judge  # what judges takes a second to import

    folder = job.report or (None if job.output is None else job.output.with_suffix(".report"))
    if folder is not None and folder.exists() and not job.force:
        raise UserError(f"--report {folder}: this exists; give another folder, or --force to replace it")
    return Judge(classifier.task, source=job.source, folder=folder)


def choose_columns(classifier: TextClassifier, rows: Rows, job: Job) -> Columns:
    """The columns of text and label. Raises `UserError` for one that is not there, and another number of texts."""
    names, there = tuple(job.text or classifier.columns.text), ", ".join(map(str, rows.columns))
    place = rows.place.rsplit(": ", 1)[0]
    for name in names:
        if name not in rows.columns:
            raise UserError(f"{place}: no column {name!r}, only {there}; say --text COLUMN")
    if len(names) != classifier.n_parts:
        each = " ".join(["--text COLUMN"] * classifier.n_parts)
        raise UserError(
            f"{place}: the classifier reads {classifier.n_parts} columns of it, not {len(names)}; give {each}"
        )
    label = classifier.columns.label if job.label is None else job.label
    if job.label and label not in rows.columns:
        raise UserError(f"{place}: no column {label!r}, only {there}; leave --label out, or give one of these")
    return Columns(names, label if label in rows.columns else None, None, classifier.columns.separator)
