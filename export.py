"""Turn a checkpoint into what other libraries open: `python export.py CHECKPOINT --to hf FOLDER`."""

from __future__ import annotations

import argparse
from pathlib import Path

from errors import UserError, exit_on_user_error


def main() -> None:
    """Read the arguments, load the checkpoint, and write the folder."""
    parser = argparse.ArgumentParser(description="Turn a checkpoint that train.py left into what other libraries open.")
    parser.add_argument("checkpoint", help="a .ckpt file")
    parser.add_argument("--to", choices=["hf"], required=True, help="hf: a folder for transformers' from_pretrained")
    parser.add_argument("folder", type=Path, help="where to; must not exist yet, or be empty")
    arguments = parser.parse_args()
    if arguments.folder.exists() and (not arguments.folder.is_dir() or any(arguments.folder.iterdir())):
        raise UserError(f"{arguments.folder}: is there already; give a folder that does not exist")
    from model import load_classifier  # torch takes a second to import, and --help does not need it
    from model.hugging_face import save_for_transformers

    classifier = load_classifier(arguments.checkpoint, precision="32-true", device="cpu")
    save_for_transformers(classifier, arguments.folder)
    print(
        f"{arguments.folder}: open it with AutoModelForSequenceClassification.from_pretrained({str(arguments.folder)!r})"
    )


if __name__ == "__main__":
    with exit_on_user_error():
        main()
