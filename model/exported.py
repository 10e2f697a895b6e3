"""The files that `model/program.py` writes, run in the network's place.

B batch, T tokens, C classes.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from encoding import CLS, SEP, UNK, separators, special_id
from model.build import build_classifier
from model.classifier import Classifier
from model.program import quiet, require, to_onnx, to_pt2, to_safetensors
from model.text_classifier import TextClassifier

Run = Callable[[Tensor, Tensor], Tensor]  # ids (B, T), mask (B, T), True = real token → logits (B, C)


def run_onnx(path: Path, network: Classifier) -> Run:
    """Open an ONNX graph in ONNX Runtime, with as many threads as torch has."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda ids, mask: torch.from_numpy(session.run(None, {"ids": ids.numpy(), "mask": mask.numpy()})[0])


def run_pt2(path: Path, network: Classifier) -> Run:
    """Open an exported program."""
    with quiet():
        return torch.export.load(path).module()


def run_safetensors(path: Path, network: Classifier) -> Run:
    """Build the network anew from its arguments and the weights."""
    anew = build_classifier(**network.architecture)
    anew.load_state_dict(load_file(path))
    return anew.eval()


class Format(NamedTuple):
    """How a network becomes a file, and how that file is run."""

    file: str
    write: Callable[[Classifier, Path], None]
    open: Callable[[Path, Classifier], Run]


FORMATS = {
    "onnx": Format("model.onnx", to_onnx, run_onnx),
    "safetensors": Format("model.safetensors", to_safetensors, run_safetensors),
    "pt2": Format("model.pt2", to_pt2, run_pt2),
}


def onnx_in_int8(path: Path) -> None:
    """Turn the weights of an ONNX graph to bytes, in place: those of linear maps a column each, the embeddings' as a whole.

    By ONNX Runtime's dynamic quantisation: what comes into a linear map is turned to bytes as it comes, as in
    `text_classifier.in_int8`. Raises `UserError` where the packages are missing.
    """
    require("onnx", "onnxruntime")
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(path)
    del graph.graph.value_info[:]  # it gives the head's weight the shape from before it was transposed
    with quiet():
        quantize_dynamic(graph, path, weight_type=QuantType.QInt8, per_channel=True)


class Exported(nn.Module):
    """An exported file in the network's place, so that a `TextClassifier` asks it."""

    def __init__(self, run: Run, network: Classifier) -> None:
        super().__init__()
        self.run, self.architecture = run, network.architecture

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map `ids (B, T)` and `mask (B, T)` to logits `(B, C)`."""
        return self.run(ids, mask)


def in_place_of(classifier: TextClassifier, run: Run) -> TextClassifier:
    """The same classifier with an exported network."""
    other = copy(classifier)
    other.network = cast(Any, Exported(run, classifier.network))
    return other


def facts(classifier: TextClassifier) -> dict[str, Any]:
    """All that a prediction depends on beside weights and tokenizer, as plain values: `heed.json`."""
    special = {"unk_id": UNK, "cls_id": CLS, "sep_id": SEP}
    known = classifier.task.facts()
    return {
        "task": known.pop("name"),
        **known,
        "max_len": classifier.max_len,
        "truncation": classifier.truncation,
        "n_parts": classifier.n_parts,
        "pad_id": classifier.network.architecture["pad_id"],
        **{name: special_id(classifier.tokenizer, token) for name, token in special.items()},
        "between_ids": separators(classifier.tokenizer),
        "architecture": classifier.network.architecture,
    }
