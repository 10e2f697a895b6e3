"""Pretrained weights on the command line: from a folder to a checkpoint that predicts without it."""

import json
import re

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

transformers = pytest.importorskip("transformers", reason="makes the weights: pip install -e '.[pretrained]'")
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "apple",
    "pear",
    "plum",
    "a",
    "hammer",
    "saw",
    "nail",
    "and",
    "the",
]


@pytest.fixture
def weights(tmp_path):
    """A folder with a tiny RoBERTa's weights and its tokenizer, whose special tokens have their own names."""
    folder = tmp_path / "weights"
    torch.manual_seed(0)
    names = {"[PAD]": "<pad>", "[UNK]": "<unk>", "[CLS]": "<s>", "[SEP]": "</s>", "[MASK]": "<mask>"}
    vocabulary = {names.get(word, word): i for i, word in enumerate(WORDS)}
    config = transformers.RobertaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_attention_heads=2,
        num_hidden_layers=2,
        intermediate_size=32,
        max_position_embeddings=34,
        pad_token_id=0,
        type_vocab_size=1,
    )
    transformers.RobertaModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def train(corpus, weights):
    """The command that fine-tunes these weights on the small corpus."""
    return (
        "train.py",
        "data=files",
        f"data.train={corpus}",
        "model=pretrained",
        f"model.name={weights}",
        "model.max_len=16",
    )


def test_fine_tune_then_predict_without_the_folder(command, train, weights, tmp_path):
    result = command(*train, "trainer.max_epochs=2", "hydra.run.dir=run")
    assert (result.returncode, result.stderr) == (0, "")
    assert "tokenizer   WordLevel, 14 tokens, pretrained" in result.stdout
    assert f"pretrained  {weights}, roberta; dropped: pooler" in result.stdout
    weights.rename(tmp_path / "gone")
    answer = command("predict.py", "run/best.ckpt", "a ripe apple", "nail " * 30, "--json")
    assert answer.returncode == 0
    assert len(answer.stdout.splitlines()) == 2
    assert "1 of 2 texts are longer than 16 tokens" in answer.stderr
    architecture = torch.load(tmp_path / "run/best.ckpt", weights_only=True)["heed"]["architecture"]
    assert (architecture["pad_id"], architecture["n_classes"], architecture["pooling"]) == (0, 2, "cls")


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.max_len=40", "model.max_len=40: .* has 33 positions; give at most so many"),
        ("model.name=null", "model.name is not set: give a folder or a Hugging Face id"),
        ("model.name=./nowhere", "model.name=./nowhere: there is no such folder"),
        ("model.pooling=sum", "model.pooling=sum is unknown: choose one of mean, max, cls, attention"),
        ("model.freeze=3", "model.freeze=3: .* has 2 blocks"),
    ],
)
def test_what_does_not_fit_is_told_in_a_sentence(command, train, override, sentence):
    result = command(*train, override, "hydra.run.dir=run")
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert re.search(sentence, result.stderr), result.stderr


def test_a_tokenizer_that_is_missing_or_too_large(command, train, weights):
    path = weights / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["vocab"]["more"] = 14
    path.write_text(json.dumps(content))
    larger = command(*train)
    assert larger.returncode == 2
    assert "tokenizer.json has 15 tokens, and the weights vectors for 14" in larger.stderr
    path.unlink()
    missing = command(*train)
    assert missing.returncode == 2
    assert "there is no tokenizer.json" in missing.stderr
