"""Label texts with a checkpoint that train.py left: `python predict.py CHECKPOINT "text" ["text" …]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

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
    texts: Iterator[str] = iter(arguments.texts) if arguments.texts not in ([], ["-"]) else lines_of_stdin()
    n_texts = n_truncated = n_abstained = 0
    while chunk := list(islice(texts, CHUNK)):
        parts = [parts_of(text, classifier.n_parts) for text in chunk]
        predictions = classifier.predict(parts, abstain=arguments.abstain)
        for text, prediction in zip(chunk, predictions, strict=True):
            json_asked, top_k = arguments.json, arguments.top_k
            print(as_json(text, prediction, classifier) if json_asked else as_line(prediction, top_k=top_k))
            if arguments.explain:
                from evaluation.explanation import explain  # rich and the rest only where asked for

                explain(classifier, parts[0], picture=arguments.picture)
        n_texts += len(chunk)
        n_truncated += classifier.n_truncated
        n_abstained += sum(prediction.label is None for prediction in predictions)
    if arguments.abstain and n_texts:
        least = classifier.task.abstain_below
        note(f"{n_abstained} of {n_texts} texts have no label: none was as probable as {least:.3f}")
    if n_truncated:
        note(f"{n_truncated} of {n_texts} texts are longer than {classifier.max_len} tokens: only so many were read")


def parse_arguments() -> argparse.Namespace:
    """The command line; a first argument that is no checkpoint is a text already."""
    parser = argparse.ArgumentParser(
        description="Label texts with a checkpoint that train.py left.",
        epilog='examples: python predict.py "a text"    python predict.py best.ckpt - < texts.txt',
    )
    parser.add_argument("checkpoint", nargs="?", help="a .ckpt file (default: the newest under outputs/)")
    what = "the texts (several columns: parted by tabs); - or none: one a line of standard input"
    parser.add_argument("texts", nargs="*", help=what)
    what = "show the K most probable labels of a text (default: its label)"
    parser.add_argument("--top-k", type=int, metavar="K", help=what)
    parser.add_argument("--json", action="store_true", help="one JSON object a line with every label's probability")
    what = "answer - where the label is too uncertain (the report's threshold)"
    parser.add_argument("--abstain", action="store_true", help=what)
    parser.add_argument(
        "--explain", action="store_true", help="show which tokens spoke for the label, and draw the attention"
    )
    parser.add_argument("--picture", type=Path, default=Path("explanation.png"), help="where to (default: %(default)s)")
    parser.add_argument(
        "--max-len", type=int, metavar="N", help="tokens read of a text (default: as many as in training)"
    )
    parser.add_argument(
        "--precision",
        choices=("auto", "32-true", "bf16-mixed", "int8"),
        default="auto",
        help="int8 is fastest for one short text (default: bf16 where that is faster than 32-true)",
    )
    arguments = parser.parse_args()
    if arguments.top_k is not None and arguments.top_k < 1:
        parser.error(f"--top-k {arguments.top_k}: give 1 or more")
    if arguments.max_len is not None and arguments.max_len < 3:
        parser.error(f"--max-len {arguments.max_len}: give 3 or more, two are for [CLS] and [SEP]")
    first = arguments.checkpoint
    if first is not None and not first.endswith(".ckpt") and not os.path.isfile(first):  # it is a text already
        arguments.checkpoint, arguments.texts = None, [first, *arguments.texts]
    alone = len(arguments.texts) == 1 and arguments.texts != ["-"]
    if arguments.explain and (not alone or arguments.json or arguments.precision == "int8"):
        parser.error("--explain is for one text on the command line, without --json and --precision int8")
    if arguments.picture.suffix != ".png" or not arguments.picture.parent.is_dir():
        parser.error(f"--picture {arguments.picture}: give a path that ends in .png, in a folder that exists")
    return arguments


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
