"""A network as one file that runs elsewhere: an ONNX graph, torch's exported program, or the weights alone.

B batch, T tokens, C classes.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from errors import UserError
from model.classifier import Classifier

INSTALL = "pip install -c constraints.txt -e '.[export]'"


def to_onnx(network: Classifier, path: Path) -> None:
    """Write an ONNX graph: `ids (batch, tokens)` int64 and `mask (batch, tokens)` bool to `logits (batch, C)`.

    Raises `UserError` where the packages are missing, or the network cannot be traced.
    """
    require("onnx", "onnxscript")
    with traceable(path):
        program = torch.onnx.export(
            network.eval(),
            example(network),
            input_names=["ids", "mask"],
            output_names=["logits"],
            dynamic_shapes=dynamic(network),
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        for node in program.model.graph:
            node.metadata_props.clear()  # on which line, in whose folder, it was traced; half of a small file
        program.save(str(path))


def to_pt2(network: Classifier, path: Path) -> None:
    """Write what `torch.export.load` opens, without this code. Raises `UserError` where the network cannot be traced."""
    with traceable(path):
        program = torch.export.export(network.eval(), example(network), dynamic_shapes=dynamic(network))
        for node in program.graph.nodes:
            node.meta.pop("stack_trace", None)  # as above
        torch.export.save(program, path)


def to_safetensors(network: Classifier, path: Path) -> None:
    """Write the weights by their names; `build_classifier` with the same arguments takes them."""
    path.write_bytes(save({name: tensor.contiguous() for name, tensor in network.state_dict().items()}))


def example(network: Classifier) -> tuple[Tensor, Tensor]:
    """A batch to trace: no size of it is 0 or 1, which torch would take for fixed."""
    sizes = network.architecture
    ids = torch.zeros(2, min(7, sizes["max_len"]), dtype=torch.long)  # (B, T)
    return ids, torch.ones_like(ids, dtype=torch.bool)


def dynamic(network: Classifier) -> tuple[dict, dict]:
    """Both sizes of a batch are open, its length up to `max_len`."""
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", max=network.architecture["max_len"])}
    return sizes, {**sizes}


def require(*packages: str) -> None:
    """Raise `UserError` when one of the packages is not installed."""
    if missing := [package for package in packages if find_spec(package) is None]:
        raise UserError(f"exporting to onnx needs {' and '.join(missing)}: {INSTALL}")


@contextmanager
def traceable(path: Path) -> Iterator[None]:
    """Turn what torch says of a network that it cannot trace into a `UserError`."""
    try:
        with quiet():
            yield
    except OSError:  # a full disk
        raise
    except Exception as error:  # many types
        reason = " ".join(str(error).split())[:160]
        what = f"this network cannot be written as {path.name} ({type(error).__name__}: {reason})"
        raise UserError(f"{what}; a part of your own must not branch on the batch's values or sizes") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep to itself what the libraries say about their own insides."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
