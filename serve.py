"""Answer over HTTP with a checkpoint that train.py left: `python serve.py CHECKPOINT`, by LitServe (`pip install '.[serve]'`).

`POST /predict` takes `{"text": "…"}` or `{"texts": ["…", …]}` and answers `{"predictions": [{"label": …,
"probabilities": {…}}, …]}`, one for each text in order; a refusal is `{"detail": "why"}` with a status of 4xx.
`GET /health` and `GET /info` say how it is and what it serves.
"""

from __future__ import annotations

import argparse
import json
import signal
import tempfile
import threading
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

from errors import UserError, exit_on_user_error
from predict import newest_checkpoint
from serving.address import add_address, require_free_port, url_of
from serving.checks import Limits

TEXT = "The striker scored twice in the final."


def main() -> None:
    """Read the arguments, look at the checkpoint, and serve it until Ctrl-C or SIGTERM."""
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: nothing stays behind
    if find_spec("litserve") is None:
        raise UserError("serve.py needs LitServe: pip install -c constraints.txt -e '.[serve]'")
    require_free_port(arguments.host, arguments.port)
    path = arguments.checkpoint or newest_checkpoint()
    limits = Limits(arguments.max_bytes, arguments.max_texts, arguments.max_characters, arguments.patience)
    from model import load_classifier  # torch, and below LitServe: seconds that a mistake above need not wait for

    classifier = load_classifier(path, precision=arguments.precision, device="cpu")
    from serving.server import copy_checkpoint, facts_of, make_server, run_server

    with tempfile.TemporaryDirectory(prefix="heed-") as folder:
        copy, key = copy_checkpoint(path, Path(folder))
        info, n_parts = facts_of(classifier, path, key), classifier.n_parts
        del classifier  # the workers have their own
        server = make_server(
            copy,
            info=info,
            n_parts=n_parts,
            limits=limits,
            workers=arguments.workers,
            max_batch=arguments.max_batch,
            precision=arguments.precision,
        )
        labels = ", ".join(info["labels"][:10]) + ", …" * (len(info["labels"]) > 10)
        print(f"checkpoint  {path}")
        print(f"task        {info['task']}, {len(info['labels'])} labels: {labels}", flush=True)
        text = TEXT if n_parts == 1 else [TEXT] * n_parts
        address = url_of(arguments.host, arguments.port)
        threading.Thread(target=announce, args=(address, text), daemon=True).start()
        run_server(server, host=arguments.host, port=arguments.port, limits=limits)
        print("stopped")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Answer over HTTP with a checkpoint that train.py left.")
    add_address(parser, port=8000)
    what = "processes that compute, each with its share of the cores (default: %(default)s)"
    parser.add_argument("--workers", type=at_least_one, default=1, metavar="N", help=what)
    what = "requests answered together at most; 1: each alone (default: %(default)s)"
    parser.add_argument("--max-batch", type=at_least_one, default=64, metavar="N", help=what)
    what = "of a request's body (default: %(default)s)"
    parser.add_argument("--max-bytes", type=at_least_one, default=2_000_000, metavar="N", help=what)
    parser.add_argument(
        "--max-texts", type=at_least_one, default=256, metavar="N", help="of a request (default: %(default)s)"
    )
    what = "of a text (default: %(default)s)"
    parser.add_argument("--max-characters", type=at_least_one, default=100_000, metavar="N", help=what)
    what = "seconds a client may take to send a request (default: %(default)s)"
    parser.add_argument("--patience", type=at_least_one, default=10, metavar="N", help=what)
    parser.add_argument(
        "--precision",
        choices=("auto", "32-true", "bf16-mixed", "int8"),
        default="auto",
        help="default: bf16 where that is faster than 32-true",
    )
    return parser.parse_args()


def at_least_one(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: give a whole number of at least 1")
    return int(text)


def announce(address: str, text: str | list[str]) -> None:
    """Say where the server is, as soon as it answers."""
    while True:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=1):
                break
        except OSError:
            time.sleep(0.1)
    body = json.dumps({"text": text})
    print(f"serving     {address}  (Ctrl-C stops)\ntry         curl {address}/predict -d '{body}'", flush=True)


if __name__ == "__main__":
    with exit_on_user_error():
        main()
