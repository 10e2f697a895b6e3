"""Label texts with a checkpoint that train.py left: `python predict.py CHECKPOINT "text" ["text" …]`.

`python predict.py CHECKPOINT --input FILE --output FILE` labels the rows of a file (`scoring/job.py`).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from arguments import parse_arguments
from errors import UserError, exit_on_user_error

if TYPE_CHECKING:
    from model import Prediction, TextClassifier

CHUNK = 1024  # texts held at a time


def main() -> None:
    """Read the arguments, load the checkpoint, and print one line a text."""
    arguments = parse_arguments()
    import torch  # takes a second to import, and --help does not need it

    from model import load_classifier
    from model.device import physical_cores

    torch.set_num_threads(physical_cores())
    classifier = load_classifier(
        arguments.checkpoint or newest_checkpoint(), max_len=arguments.max_len, precision=arguments.precision
    )
    if arguments.max_len and classifier.max_len < arguments.max_len:
        note(f"--max-len {arguments.max_len}: learned positions end at {classifier.max_len}, texts are cut there")
    if arguments.input is not None:
        score_file(classifier, arguments)
    else:
        answer_texts(classifier, arguments)


def answer_texts(classifier: TextClassifier, arguments: argparse.Namespace) -> None:
    """Print one line a text of the command line or of standard input."""
    texts: Iterator[str] = iter(arguments.texts) if arguments.texts not in ([], ["-"]) else lines_of_stdin()
    n_texts = n_truncated = n_abstained = 0
    while chunk := list(islice(texts, CHUNK)):
        parts = [parts_of(text, classifier.n_parts) for text in chunk]
        tokens = classifier.encode(parts)
        predictions = classifier.predictions(classifier.logits_of(tokens), abstain=arguments.abstain)
        for text, prediction in zip(chunk, predictions, strict=True):
            json_asked, top_k = arguments.json, arguments.top_k
            print(as_json(text, prediction, classifier) if json_asked else as_line(prediction, top_k=top_k))
            if arguments.explain:
                from evaluation.explanation import explain  # rich and the rest only where asked for

                explain(classifier, parts[0], picture=arguments.picture)
        n_texts += len(chunk)
        n_truncated += int(classifier.truncated(tokens).sum())
        n_abstained += sum(prediction.label is None for prediction in predictions)
    say_counts(classifier, n_texts, n_truncated, n_abstained, abstain=arguments.abstain)


def score_file(classifier: TextClassifier, arguments: argparse.Namespace) -> None:
    """Write the rows of a file with what the classifier says to each."""
    from scoring.job import Job, score  # what reads and writes files takes a second to import

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    job = Job(arguments.input, **{name: getattr(arguments, name) for name in Job._fields[1:]})
    counts = score(classifier, job)
    say_counts(classifier, counts.texts, counts.truncated, counts.abstained, abstain=arguments.abstain)


def say_counts(classifier: TextClassifier, n_texts: int, n_truncated: int, n_abstained: int, *, abstain: bool) -> None:
    """How many texts were left without a label, and how many were not read to their end."""
    if abstain and n_texts:
        least = classifier.task.abstain_below
        note(f"{n_abstained} of {n_texts} texts have no label: none was as probable as {least:.3f}")
    if n_truncated:
        note(f"{n_truncated} of {n_texts} texts are longer than {classifier.max_len} tokens: only so many were read")


def newest_checkpoint() -> Path:
    """The checkpoint under `outputs/` written last; says which. Raises `UserError` when there is none."""
    found = sorted(Path("outputs").rglob("best.ckpt"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UserError(
            "no checkpoint given and none under outputs/: run python train.py first, or give a path ending in .ckpt"
        )
    note(f"using {found[-1]}")
    return found[-1]


def lines_of_stdin() -> Iterator[str]:
    """Yield one text a line, what is not UTF-8 replaced."""
    if sys.stdin.isatty():
        note("reading one text a line, Ctrl-D ends")
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    return (line.rstrip("\r\n") for line in sys.stdin)


def parts_of(text: str, n_parts: int) -> str | list[str]:
    """A text as the classifier reads it: for one trained on several columns, its parts are separated by tabs."""
    return text if n_parts == 1 else text.split("\t")


def as_line(prediction: Prediction, *, top_k: int | None) -> str:
    """The labels with their probabilities, separated by tabs: the `top_k` most probable, or what was decided (None).

    A score is a number alone; a text without any of the labels, or with too uncertain a one, gets "-".
    """
    if prediction.label is None:
        return "-"
    if isinstance(prediction.label, float):
        return f"{prediction.label:.4g}"
    decided = [prediction.label] if isinstance(prediction.label, str) else prediction.label
    shown = decided if top_k is None else list(prediction.probabilities)[:top_k]
    return "\t".join(f"{label} {prediction.probabilities[label]:.3f}" for label in shown) or "-"


def as_json(text: str, prediction: Prediction, classifier: TextClassifier) -> str:
    """The text, its label, all probabilities, and where it is known the label set, as one JSON object."""
    answer = {"text": text, "label": prediction.label, "probabilities": prediction.probabilities}
    if classifier.task.in_set_from is not None:
        answer["set"] = classifier.label_set(prediction)
    return json.dumps(answer)


def note(sentence: str) -> None:
    """Say something that is not an answer."""
    print(f"note: {sentence}", file=sys.stderr)


if __name__ == "__main__":
    with exit_on_user_error():
        main()
