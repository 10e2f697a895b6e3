"""Turn a checkpoint into what runs elsewhere: `python export.py CHECKPOINT --to onnx FOLDER`."""

from __future__ import annotations

import argparse
import json
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from errors import UserError, exit_on_user_error
from files import folder_written_whole

if TYPE_CHECKING:
    from evaluation.parity import Texts
    from model import TextClassifier

KINDS = {
    "hf": "for transformers' from_pretrained",
    "onnx": "for ONNX Runtime, without torch",
    "safetensors": "the weights alone, for this code",
    "pt2": "for torch.export.load, without this code",
}

BATCHES = "Several texts at once: fill `ids` up with `pad_id` of `heed.json`, and let `mask` be False there."
IN_THE_HEAD = "What follows the logits, a temperature or a score's scale, is in the weights of the head already."
BEGINNING = "`transformers` reads the first {} tokens of a text."


def main() -> None:
    """Read the arguments, load the checkpoint, and write the folder."""
    arguments = parse_arguments()
    kind, folder = arguments.to, arguments.folder
    from evaluation.card import model_card  # here, since torch takes a second to import, and --help does not need it
    from evaluation.parity import read_texts
    from model import load_classifier
    from model.program import require
    from model.usage import usage

    if kind == "onnx":
        require("onnx", "onnxscript", *(["onnxruntime"] if arguments.int8 or arguments.check else []))
    classifier = load_classifier(arguments.checkpoint, precision="32-true", device="cpu")
    usage(classifier, kind)  # what its README cannot say is refused before anything is written
    texts = read_texts(arguments.check, classifier) if arguments.check else None
    with folder_written_whole(folder) as unfinished:
        if kind == "hf":
            from model.hugging_face import save_for_transformers

            save_for_transformers(classifier, unfinished)
            notes = [IN_THE_HEAD, BEGINNING.format(classifier.max_len)]
        else:
            notes = write_network(classifier, unfinished, kind, int8=arguments.int8, texts=texts)
        write_companions(classifier, unfinished, kind, int8=arguments.int8)
        name = folder.resolve().name
        card = model_card(classifier, arguments.checkpoint.parent, name=name, kind=kind, notes=notes)
        (unfinished / "README.md").write_text(card, encoding="utf-8")
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{folder}: {size:.1f} MB, {KINDS[kind]}; its README.md says how")


def parse_arguments() -> argparse.Namespace:
    """The command line. Raises `UserError` for what cannot work whatever the checkpoint."""
    parser = argparse.ArgumentParser(
        description="Turn a checkpoint that train.py left into what runs elsewhere.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {kind:12} {what}" for kind, what in KINDS.items()),
    )
    parser.add_argument("checkpoint", type=Path, help="a .ckpt file")
    parser.add_argument("--to", required=True, metavar="KIND", help=f"{', '.join(KINDS)}; see below")
    parser.add_argument("--int8", action="store_true", help="onnx: weights of a byte each, a quarter of the size")
    what = "a CSV with text and label: the accuracy of both on it (several labels parted by ;)"
    parser.add_argument("--check", type=Path, metavar="FILE", help=what)
    parser.add_argument("folder", type=Path, help="where to; must not exist yet")
    arguments = parser.parse_args()
    if arguments.to not in KINDS:
        raise UserError(f"--to {arguments.to}: unknown; choose one of {', '.join(KINDS)}")
    if arguments.int8 and arguments.to != "onnx":
        raise UserError(f"--int8 is for --to onnx, and {arguments.to} has none here: leave it out")
    if arguments.check and arguments.to == "hf":
        raise UserError("--check is not for --to hf, which other code runs: leave it out")
    if arguments.check and not arguments.check.exists():
        raise UserError(f"--check {arguments.check}: no such file; give a CSV with the columns text and label")
    if arguments.folder.exists():
        raise UserError(f"{arguments.folder}: is there already; give a folder that does not exist")
    return arguments


def write_network(classifier: TextClassifier, folder: Path, kind: str, *, int8: bool, texts: Texts | None) -> list[str]:
    """Write the network, and compare its answers with the checkpoint's. Returns what its README is to say of that."""
    from evaluation.metrics import NAMES, shown
    from evaluation.parity import ANSWERED, answers_moved, largest_difference, scores_before_and_after
    from model.exported import FORMATS, onnx_in_int8

    file, write, start = FORMATS[kind]
    path, said = folder / file, []
    write(classifier.network, path)
    if kind == "onnx" and find_spec("onnxruntime") is None:
        said = ["Not compared with the checkpoint's logits: ONNX Runtime was not installed."]
    else:
        run = start(path, classifier.network)
        difference = largest_difference(classifier, run)
        said = [
            f"Its logits differ from the checkpoint's by {difference:.1e} at most, on random batches of six shapes."
        ]
        if int8:
            onnx_in_int8(path)
            run = start(path, classifier.network)
            difference = largest_difference(classifier, run, needed=False)
            said = [f"In int8 its logits differ from the checkpoint's by {difference:.1e} at most, on random batches."]
        if texts is not None:
            name, before, after, moved = scores_before_and_after(classifier, run, texts)
            said.append(
                f"On {len(texts.texts):,} texts with labels: {NAMES[name]} {shown(name, after)}, the checkpoint's "
                f"{shown(name, before)}; {moved:,} answers differ."
            )
        elif int8 and classifier.task.name != "regression":
            said.append(
                f"{answers_moved(classifier, run)} of {ANSWERED} rows of random tokens get another answer; what int8 costs on "
                "texts was not measured (`--check FILE` does)."
            )
    print("\n".join(said))
    return [*said, BATCHES]


def write_companions(classifier: TextClassifier, folder: Path, kind: str, *, int8: bool) -> None:
    """Write the tokenizer, and what else a prediction depends on."""
    from model.exported import facts

    known = {**facts(classifier), "format": kind, "weights": "int8" if int8 else "float32", "versions": versions()}
    (folder / "heed.json").write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if kind != "hf":
        classifier.tokenizer.save(str(folder / "tokenizer.json"))


def versions() -> dict[str, str]:
    """What wrote the folder, as far as it is installed."""
    packages = ("torch", "tokenizers", "onnx", "onnxscript", "onnxruntime")
    return {package: version(package) for package in packages if find_spec(package)}


if __name__ == "__main__":
    with exit_on_user_error():
        main()
