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
    from model import Prediction

CHUNK = 1024  # texts held at a time


def main() -> None:
    """Read the arguments, load the checkpoint, and print one line a text."""
    arguments = parse_arguments()
    from model import load_classifier  # torch takes a second to import, and --help does not need it

    classifier = load_classifier(arguments.checkpoint or newest_checkpoint())
    texts: Iterator[str] = iter(arguments.texts) if arguments.texts not in ([], ["-"]) else lines_of_stdin()
    n_texts = n_truncated = 0
    while chunk := list(islice(texts, CHUNK)):
        for text, prediction in zip(chunk, classifier.predict(chunk), strict=True):
            print(as_json(text, prediction) if arguments.json else as_line(prediction, top_k=arguments.top_k))
        n_texts += len(chunk)
        n_truncated += classifier.n_truncated
    if n_truncated:
        note(
            f"{n_truncated} of {n_texts} texts are longer than {classifier.max_len} tokens: only their beginning was read"
        )


def parse_arguments() -> argparse.Namespace:
    """The command line; a first argument that is no checkpoint is a text already."""
    parser = argparse.ArgumentParser(
        description="Label texts with a checkpoint that train.py left.",
        epilog='examples: python predict.py "a text"    python predict.py best.ckpt - < texts.txt',
    )
    parser.add_argument("checkpoint", nargs="?", help="a .ckpt file (default: the newest under outputs/)")
    parser.add_argument("texts", nargs="*", help="the texts; - or none reads one text a line from standard input")
    parser.add_argument(
        "--top-k", type=int, default=1, metavar="K", help="labels shown for a text (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line with every label's probability")
    arguments = parser.parse_args()
    if arguments.top_k < 1:
        parser.error(f"--top-k {arguments.top_k}: give 1 or more")
    first = arguments.checkpoint
    if first is not None and not first.endswith(".ckpt") and not os.path.isfile(first):  # it is a text already
        arguments.checkpoint, arguments.texts = None, [first, *arguments.texts]
    return arguments


def newest_checkpoint() -> Path:
    """The checkpoint under `outputs/` written last; says which. Raises `UserError` when there is none."""
    found = sorted(Path("outputs").rglob("*.ckpt"), key=lambda path: path.stat().st_mtime)
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


def as_line(prediction: Prediction, *, top_k: int) -> str:
    """The most probable labels with their probabilities, separated by tabs."""
    best = list(prediction.probabilities.items())[:top_k]
    return "\t".join(f"{label} {probability:.3f}" for label, probability in best)


def as_json(text: str, prediction: Prediction) -> str:
    """The text, its label and all probabilities as one JSON object."""
    return json.dumps({"text": text, "label": prediction.label, "probabilities": prediction.probabilities})


def note(sentence: str) -> None:
    """Say something that is not an answer."""
    print(f"note: {sentence}", file=sys.stderr)


if __name__ == "__main__":
    with exit_on_user_error():
        main()
