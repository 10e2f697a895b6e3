"""A network written as a file gives its logits there, whichever of its parts it has, on batches of any shape."""

import pytest
import torch
from torch import nn

from errors import UserError
from model.build import TABLES
from model.exported import FORMATS, onnx_in_int8
from model.program import to_onnx, to_pt2, to_safetensors
from tests.classifiers import BERT, MODERNBERT
from tests.conftest import ROOT

SHAPES = ((1, 1), (1, 3), (3, 1), (2, 7), (5, 16), (3, 24))
CHOSEN = {
    "as it is": {},
    "with a linear model": {"n_buckets": 2**10},
    "bert": {**BERT, "n_segments": 2, "sep_id": 3},
    "modernbert": MODERNBERT,
    "the others": {"position": "alibi", "mask": "window", "window": 2, "norm": "rms", "attention": "additive"},
}
EACH = {
    f"{key}={name}": {key: name, **({"window": 2} if name == "window" else {})}
    for key in TABLES
    for name in TABLES[key]
} | {
    "window and alibi": {"mask": "window", "window": 2, "position": "alibi"},
    "causal, max": {"mask": "causal", "pooling": "max"},
}


def batch(n_texts: int, n_tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random tokens; the first row is as long as the batch, the last has a token."""
    ids = torch.randint(50, (n_texts, n_tokens), generator=torch.Generator().manual_seed(n_tokens))
    lengths = torch.linspace(n_tokens, 1, n_texts).round()
    return ids, torch.arange(n_tokens) < lengths[:, None]


def onnx_logits(path, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    onnxruntime = pytest.importorskip("onnxruntime", reason="the reader: pip install -e '.[export]'")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(["logits"], {"ids": ids.numpy(), "mask": mask.numpy()})[0])


def check_onnx(network, path):
    pytest.importorskip("onnxscript", reason="the writer: pip install -e '.[export]'")
    to_onnx(network, path)
    for shape in SHAPES:
        ids, mask = batch(*shape)
        with torch.no_grad():
            expected = network(ids, mask)
        torch.testing.assert_close(onnx_logits(path, ids, mask), expected, atol=1e-4, rtol=0)


def check_pt2(network, path):
    to_pt2(network, path)
    program = torch.export.load(path).module()
    for shape in SHAPES:
        ids, mask = batch(*shape)
        torch.testing.assert_close(program(ids, mask), network(ids, mask), atol=1e-5, rtol=0)


@pytest.mark.parametrize("architecture", CHOSEN.values(), ids=CHOSEN)
def test_onnx_has_equal_logits(network, tmp_path, architecture):
    check_onnx(network(**architecture), tmp_path / "model.onnx")


@pytest.mark.parametrize("architecture", CHOSEN.values(), ids=CHOSEN)
def test_an_exported_program_has_equal_logits(network, tmp_path, architecture):
    check_pt2(network(**architecture), tmp_path / "model.pt2")


@pytest.mark.slow
@pytest.mark.parametrize("architecture", EACH.values(), ids=EACH)
def test_every_part_is_exported(network, tmp_path, architecture):
    check_onnx(network(**architecture), tmp_path / "model.onnx")
    check_pt2(network(**architecture), tmp_path / "model.pt2")


def test_a_file_does_not_say_where_it_was_made(network, tmp_path):
    pytest.importorskip("onnxscript", reason="the writer: pip install -e '.[export]'")
    for write in (to_onnx, to_pt2):
        write(network(n_layers=1), tmp_path / "model")
        assert str(ROOT).encode() not in (tmp_path / "model").read_bytes()


def test_weights_in_a_file_build_the_same_network(network, tmp_path):
    ours, (ids, mask) = network(**MODERNBERT), batch(2, 7)
    to_safetensors(ours, tmp_path / "model.safetensors")
    theirs = FORMATS["safetensors"].open(tmp_path / "model.safetensors", ours)
    assert torch.equal(theirs(ids, mask), ours(ids, mask))


def test_int8_holds_bytes_and_stays_close(network, tmp_path):
    onnx = pytest.importorskip("onnx", reason="the reader: pip install -e '.[export]'")
    pytest.importorskip("onnxruntime", reason="the writer: pip install -e '.[export]'")
    path, ours, (ids, mask) = tmp_path / "model.onnx", network(d_model=64, d_ff=128, vocab_size=2000), batch(4, 9)
    to_onnx(ours, path)
    size = path.stat().st_size
    onnx_in_int8(path)
    weights = [onnx.numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer]
    assert {each.dtype.name for each in weights if each.size > 2000} == {"int8", "uint8"}  # the maps, the embeddings
    assert path.stat().st_size < size / 2.5
    expected = ours(ids, mask)
    assert 0 < (onnx_logits(path, ids, mask) - expected).abs().max() < 0.1 * expected.abs().max()


class Branching(nn.Module):
    """A part of one's own that no graph can hold."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x[:, 0] if x.sum() > 0 else x[:, -1]


def test_what_cannot_be_traced_is_refused(network, tmp_path):
    ours = network()
    ours.pooling = Branching()
    with pytest.raises(UserError, match="must not branch on the batch's values"):
        to_pt2(ours, tmp_path / "model.pt2")
