"""Our encoder with the weights of `transformers`' networks gives what they give, gradients included."""

import json

import pytest
import torch

from errors import UserError
from model.from_pretrained import load_pretrained, names
from model.pretrained import FAMILIES

transformers = pytest.importorskip("transformers", reason="the reference: pip install -e '.[pretrained]'")

SIZES = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "intermediate_size": 48,
    "pad_token_id": 1,
    "attention_dropout": 0.0,
}
CONFIGS = {
    "bert": lambda: transformers.BertConfig(**SIZES, max_position_embeddings=40, type_vocab_size=2),
    "roberta": lambda: transformers.RobertaConfig(**SIZES, max_position_embeddings=42, type_vocab_size=1),
    "xlm-roberta": lambda: transformers.XLMRobertaConfig(**SIZES, max_position_embeddings=42, type_vocab_size=1),
    "distilbert": lambda: transformers.DistilBertConfig(
        vocab_size=60, dim=32, n_heads=4, n_layers=3, hidden_dim=48, pad_token_id=1, max_position_embeddings=40
    ),
    "modernbert": lambda: transformers.ModernBertConfig(
        **SIZES, max_position_embeddings=64, local_attention=8, global_attn_every_n_layers=3
    ),
}
SEP = 3
FACTS = {"n_classes": 2, "vocab_size": 60, "pad_id": 1, "sep_id": SEP, "max_len": 40, "dropout": 0.0}


@pytest.fixture
def saved(tmp_path):
    """A tiny network of a family with random weights, and the folder it is saved in."""

    def save(family: str, **settings):
        torch.manual_seed(0)
        network = transformers.AutoModel.from_config(CONFIGS[family](), attn_implementation="eager").eval()
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, std=0.3)  # its own initialisation hides what a wrong norm would do
        network.save_pretrained(tmp_path, **settings)
        return network, tmp_path

    return save


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Texts of several lengths, one of them far beyond ModernBERT's local window, padded at their ends."""
    mask = torch.arange(38) < torch.tensor([[38], [21], [5], [1]])
    ids = torch.randint(4, 60, (4, 38), generator=torch.Generator().manual_seed(0))
    return torch.where(mask, ids, 1), mask


@pytest.mark.parametrize("family", CONFIGS)
def test_hidden_states_and_gradients_equal_transformers(saved, family):
    theirs, folder = saved(family)
    ours = load_pretrained(name=str(folder), **FACTS).eval()
    ids, mask = batch()
    expected = theirs(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    found = ours.encoder(ids, mask)
    torch.testing.assert_close(found[mask], expected[mask], atol=1e-5, rtol=0)
    weights = torch.randn(found[mask].shape, generator=torch.Generator().manual_seed(1))
    (expected[mask] * weights).sum().backward()
    (found[mask] * weights).sum().backward()
    reference = {name: tensor.grad for name, tensor in theirs.named_parameters()}
    compared = 0
    for module, called in names(FAMILIES[family], n_layers=len(ours.encoder.blocks)):
        for kind in ("weight", "bias"):
            if f"{module}.{kind}" not in dict(ours.encoder.named_parameters()):
                continue
            gradient = ours.encoder.get_parameter(f"{module}.{kind}").grad
            wanted = torch.cat([reference[f"{name}.{kind}"] for name in called])
            wanted = wanted[-len(gradient) :]  # RoBERTa's first two positions stand for nothing
            if module == "embedding":
                wanted[1] = 0.0  # our padding does not learn
            torch.testing.assert_close(gradient, wanted, atol=1e-4, rtol=1e-4)
            compared += 1
    assert compared == len(list(ours.encoder.parameters()))


def test_two_parts_have_the_segments_of_bert(saved):
    theirs, folder = saved("bert")
    ours = load_pretrained(name=str(folder), **FACTS).eval()
    ids = torch.tensor([[2, 9, 8, SEP, 7, 11, 12, SEP]])
    types = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1]])
    expected = theirs(input_ids=ids, token_type_ids=types).last_hidden_state
    torch.testing.assert_close(ours.encoder(ids, ids > 0), expected, atol=1e-5, rtol=0)


def test_what_is_dropped_is_said_and_a_task_model_gives_the_same_encoder(saved, tmp_path, caplog):
    _, folder = saved("bert")
    torch.manual_seed(0)
    with_head = transformers.BertForMaskedLM(CONFIGS["bert"]()).eval()
    with_head.save_pretrained(tmp_path / "head")
    ids, mask = batch()
    caplog.set_level("INFO", logger="heed")
    found = load_pretrained(name=str(tmp_path / "head"), **FACTS).eval().encoder(ids, mask)
    expected = with_head.bert(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    torch.testing.assert_close(found[mask], expected[mask], atol=1e-5, rtol=0)
    assert caplog.messages[-1].endswith("bert; dropped: cls")
    load_pretrained(name=str(folder), **FACTS)
    assert caplog.messages[-1].endswith("bert; dropped: pooler")


def test_shards_and_old_files_are_read(saved, tmp_path):
    theirs, folder = saved("distilbert", max_shard_size="8KB")
    assert not (folder / "model.safetensors").exists()
    ids, mask = batch()
    expected = theirs(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    old = tmp_path / "old"
    old.mkdir()
    (old / "config.json").write_bytes((folder / "config.json").read_bytes())
    tensors = {  # as files of 2018 spell them
        f"distilbert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for name, value in theirs.state_dict().items()
    }
    torch.save(tensors, old / "pytorch_model.bin")
    for place in (folder, old):
        found = load_pretrained(name=str(place), **FACTS).eval().encoder(ids, mask)
        torch.testing.assert_close(found[mask], expected[mask], atol=1e-5, rtol=0)


def test_pooling_is_the_authors(saved):
    _, folder = saved("bert")
    assert load_pretrained(name=str(folder), **FACTS).architecture["pooling"] == "cls"
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}'
    )
    assert load_pretrained(name=str(folder), **FACTS).architecture["pooling"] == "mean"
    assert load_pretrained(name=str(folder), pooling="max", **FACTS).architecture["pooling"] == "max"


def test_frozen_blocks_do_not_learn(saved):
    _, folder = saved("bert")
    ours = load_pretrained(name=str(folder), freeze=2, **FACTS)
    learning = {name for name, parameter in ours.named_parameters() if parameter.requires_grad}
    assert not any(name.startswith(("encoder.blocks.0", "encoder.blocks.1.", "encoder.embedding")) for name in learning)
    assert {"encoder.blocks.2.attention.qkv.weight", "head.weight"} <= learning


BROKEN = {
    "no config": (lambda f: (f / "config.json").unlink(), "there is no config.json"),
    "unknown family": (
        lambda f: edit(f, model_type="gpt2"),
        "model_type=gpt2 is unknown here: choose weights of one of bert",
    ),
    "no weights": (
        lambda f: (f / "model.safetensors").unlink(),
        "there are no weights; give a folder with model.safetensors",
    ),
    "damaged": (lambda f: (f / "model.safetensors").write_bytes(b"no weights at all"), "model.safetensors: damaged"),
    "one layer more": (
        lambda f: edit(f, num_hidden_layers=5),
        r"not found: encoder\.layer\.4\.attention\.self\.query\.weight",
    ),
    "one layer less": (lambda f: edit(f, num_hidden_layers=3), r"not used: encoder\.layer\.3\."),
    "another width": (
        lambda f: edit(f, intermediate_size=64),
        r"of another size: blocks\.0\.feed_forward\.inner\.weight",
    ),
    "fewer positions": (lambda f: edit(f, max_position_embeddings=30), "model.max_len=40: .* has 30 positions"),
    "another activation": (lambda f: edit(f, hidden_act="mish"), "model.feed_forward=mish is unknown"),
    "a shard missing": (
        lambda f: [
            (f / "model.safetensors").unlink(),
            (f / "model.safetensors.index.json").write_text(
                '{"weight_map": {"a": "model-00001-of-00002.safetensors"}}'
            ),
        ],
        "names model-00001-of-00002.safetensors, which is missing",
    ),
}


def edit(folder, **changes) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("what", BROKEN)
def test_broken_folders_are_told_in_a_sentence(saved, what):
    _, folder = saved("bert")
    breaks, sentence = BROKEN[what]
    breaks(folder)
    with pytest.raises(UserError, match=sentence):
        load_pretrained(name=str(folder), **FACTS)


def test_weights_that_would_run_code_are_refused(saved):
    _, folder = saved("bert")
    (folder / "model.safetensors").unlink()
    torch.save({"x": print}, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="refused, it holds more than plain values and could run code"):
        load_pretrained(name=str(folder), **FACTS)


def test_more_tokens_than_vectors_and_more_frozen_than_there_are(saved):
    _, folder = saved("bert")
    with pytest.raises(UserError, match=r"tokenizer.json has 61 tokens, and the weights vectors for 60"):
        load_pretrained(name=str(folder), **{**FACTS, "vocab_size": 61})
    with pytest.raises(UserError, match=r"model.freeze=9: .* has 4 blocks"):
        load_pretrained(name=str(folder), freeze=9, **FACTS)


def test_a_name_that_leads_nowhere(tmp_path):
    with pytest.raises(UserError, match=r"model.name is not set"):
        load_pretrained(name=None, **FACTS)
    with pytest.raises(UserError, match="there is no such folder"):
        load_pretrained(name=str(tmp_path / "none"), **FACTS)
    with pytest.raises(UserError, match=r"model.name=no/where: not to be had from the Hugging Face Hub"):
        load_pretrained(name="no/where", **FACTS)
