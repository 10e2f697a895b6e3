"""Guess hidden tokens first, then classify: the command line from one checkpoint to the next."""

import json

import pytest
import torch

SIZES = ("model.d_model=32", "model.n_layers=1", "model.d_ff=64", "model.max_len=64", "model.n_heads=2")


@pytest.fixture
def texts(tmp_path):
    """Sentences without labels, in which every word but one follows from the others."""
    path = tmp_path / "texts.csv"
    rows = [
        f"{subject} {verb} the {thing}"
        for subject in ("anna", "ben", "carl")
        for verb in ("sees", "takes")
        for thing in ("apple", "pear", "hammer", "saw", "nail", "plum")
    ]
    path.write_text("text\n" + "\n".join(rows) + "\n")
    return path


def test_pretrain_then_classify(command, corpus, texts, tmp_path):
    result = command(
        "train.py",
        "data=files",
        f"data.train={texts}",
        "task=mlm",
        "trainer.max_epochs=3",
        *SIZES,
        "hydra.run.dir=out/mlm",
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "task        mlm: tokens are guessed, labels not read" in result.stdout
    assert "perplexity" in result.stdout
    found = json.loads((tmp_path / "out/mlm/metrics.json").read_text())
    assert 0 < found["val/loss"] < 10
    checkpoint = torch.load(tmp_path / "out/mlm/best.ckpt", weights_only=True)
    assert checkpoint["heed"]["task"] == {"name": "mlm"}

    answer = command("predict.py", "out/mlm/best.ckpt", "a text")
    assert answer.returncode == 2
    assert "task=mlm taught it no labels; train some with model.init_from=out/mlm/best.ckpt" in answer.stderr

    train = (
        "train.py",
        "data=files",
        f"data.train={corpus}",
        "trainer.max_epochs=1",
        "model.init_from=out/mlm/best.ckpt",
    )
    other = command(*train, "model.d_model=16", *SIZES[1:])
    assert other.returncode == 2
    assert "model.init_from=out/mlm/best.ckpt: its network is another; give model.d_model=32" in other.stderr

    result = command(*train, *SIZES, "hydra.run.dir=out/classes", "optimizer.lr=0")
    assert (result.returncode, result.stderr) == (0, "")
    after = torch.load(tmp_path / "out/classes/best.ckpt", weights_only=True)
    assert after["heed"]["tokenizer"] == checkpoint["heed"]["tokenizer"]
    for name, weight in checkpoint["state_dict"].items():
        if name.startswith("classifier.encoder."):
            torch.testing.assert_close(after["state_dict"][name], weight, rtol=0, atol=0)
