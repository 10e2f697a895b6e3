"""The command line of `predict.py`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

FILES_ALONE = ("output", "force", "text", "label", "report")  # options that --input takes
TEXTS_ALONE = ("top_k", "json", "explain")  # and that it does not


def parse_arguments() -> argparse.Namespace:
    """Read the command line, options before, between and after the texts; exit with a sentence where it cannot work."""
    parser = argparse.ArgumentParser(
        description="Label texts with a checkpoint that train.py left.",
        epilog='examples: python predict.py "a text"    python predict.py best.ckpt - < texts.txt    '
        "python predict.py best.ckpt --input texts.csv --output scored.csv",
    )
    parser.add_argument("checkpoint", nargs="?", help="a .ckpt file (default: the newest under outputs/)")
    what = "the texts (several columns: parted by tabs); - or none: one a line of standard input"
    parser.add_argument("texts", nargs="*", help=what)
    add_options(parser)
    add_file_options(parser.add_argument_group("files"))
    arguments = parser.parse_intermixed_args()
    first = arguments.checkpoint
    if first is not None and not first.endswith(".ckpt") and not os.path.isfile(first):  # it is a text already
        arguments.checkpoint, arguments.texts = None, [first, *arguments.texts]
    if mistake := mistake_in(arguments):
        parser.error(mistake)
    return arguments


def add_options(parser: argparse.ArgumentParser) -> None:
    """What is answered, and how it is computed."""
    what = "show the K most probable labels of a text (default: its label)"
    parser.add_argument("--top-k", type=int, metavar="K", help=what)
    parser.add_argument("--json", action="store_true", help="one JSON object a line with every label's probability")
    what = "answer - where the label is too uncertain (the report's threshold)"
    parser.add_argument("--abstain", action="store_true", help=what)
    what = "show which tokens spoke for the label, and draw the attention"
    parser.add_argument("--explain", action="store_true", help=what)
    parser.add_argument("--picture", type=Path, default=Path("explanation.png"), help="where to (default: %(default)s)")
    what = "tokens read of a text (default: as many as in training)"
    parser.add_argument("--max-len", type=int, metavar="N", help=what)
    parser.add_argument(
        "--precision",
        choices=("auto", "32-true", "bf16-mixed", "int8"),
        default="auto",
        help="int8 is fastest for one short text (default: bf16 where that is faster than 32-true)",
    )


def add_file_options(group: argparse._ArgumentGroup) -> None:
    """What is read from a file, and where the rows go."""
    what = "label each row of a .csv, .tsv, .jsonl, .parquet or .txt (also .csv.gz and so on); - for lines of standard input"
    group.add_argument("--input", metavar="FILE", help=what)
    what = "where the rows go with label and probabilities: .csv, .tsv, .jsonl or .parquet (default: standard output)"
    group.add_argument("--output", type=Path, metavar="FILE", help=what)
    group.add_argument("--force", action="store_true", help="replace an output that exists")
    what = "the column of the texts, as often as there are several (default: as in training)"
    group.add_argument("--text", action="append", default=[], metavar="COLUMN", help=what)
    what = "the column of labels to compare with; '' for none (default: as in training, where it is there)"
    group.add_argument("--label", metavar="COLUMN", help=what)
    what = "where the report on a file with labels goes (default: beside the output, as scored.report/)"
    group.add_argument("--report", type=Path, metavar="FOLDER", help=what)


def mistake_in(arguments: argparse.Namespace) -> str | None:
    """What cannot work, in a sentence."""
    if arguments.top_k is not None and arguments.top_k < 1:
        return f"--top-k {arguments.top_k}: give 1 or more"
    if arguments.max_len is not None and arguments.max_len < 3:
        return f"--max-len {arguments.max_len}: give 3 or more, two are for [CLS] and [SEP]"
    if arguments.input is not None:
        if arguments.texts:
            return f"--input reads the texts from a file: leave {arguments.texts[0]!r} out (a checkpoint ends in .ckpt)"
        if given := [name for name in TEXTS_ALONE if getattr(arguments, name)]:
            return f"--{given[0].replace('_', '-')} is for texts on the command line: leave it out beside --input"
        return None
    if given := [name for name in FILES_ALONE if getattr(arguments, name)]:
        return f"--{given[0]} goes with --input FILE: give the file to read"
    alone = len(arguments.texts) == 1 and arguments.texts != ["-"]
    if arguments.explain and (not alone or arguments.json or arguments.precision == "int8"):
        return "--explain is for one text on the command line, without --json and --precision int8"
    if arguments.picture.suffix != ".png" or not arguments.picture.parent.is_dir():
        return f"--picture {arguments.picture}: give a path that ends in .png, in a folder that exists"
    return None
