"""A page to try a checkpoint that train.py left: `python app.py CHECKPOINT`, by Gradio (`pip install '.[serve]'`).

A text in; label bars, tokens coloured by what they did, attention by layer and head, and what the test set got wrong.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
from importlib.util import find_spec
from pathlib import Path

from errors import UserError, exit_on_user_error
from predict import newest_checkpoint
from serving.address import add_address, require_free_port, url_of

QUIET = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1"}


def main() -> None:
    """Read the arguments, load the checkpoint, and show the page until Ctrl-C or SIGTERM."""
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if find_spec("gradio") is None:
        raise UserError("app.py needs Gradio: pip install -c constraints.txt -e '.[serve]'")
    require_free_port(arguments.host, arguments.port)
    path = arguments.checkpoint or newest_checkpoint()
    from model import load_classifier

    classifier = load_classifier(path)
    os.environ.update(QUIET)
    from serving.page import launch, make_page  # Gradio takes seconds, which a mistake above need not wait for

    blocks = make_page(classifier, Path(path))
    launch(blocks, host=arguments.host, port=arguments.port)
    print(f"checkpoint  {path}\npage        {url_of(arguments.host, arguments.port)}  (Ctrl-C stops)", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        blocks.close(verbose=False)
        print("stopped")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="A page to try a checkpoint that train.py left.")
    add_address(parser, port=7860)
    return parser.parse_args()


if __name__ == "__main__":
    with exit_on_user_error():
        main()
