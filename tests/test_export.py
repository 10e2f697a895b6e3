"""A checkpoint exported for `transformers` gives what it gives here."""

import pytest
import torch

from model import load_classifier
from tests.conftest import FRUIT, TOOLS

transformers = pytest.importorskip("transformers", reason="the reader: pip install -e '.[pretrained]'")
SIZES = ("model.d_model=32", "model.n_layers=2", "model.d_ff=64", "model.max_len=64", "model.n_heads=2")
AS_BERT = ("model.block=post_norm", "model.embedding_norm=true")


@pytest.fixture
def trained(command, corpus):
    def train(*overrides: str) -> str:
        result = command(
            "train.py",
            "data=files",
            f"data.train={corpus}",
            "trainer.max_epochs=2",
            *SIZES,
            *overrides,
            "hydra.run.dir=run",
        )
        assert result.returncode == 0, result.stderr
        return "run/best.ckpt"

    return train


def test_transformers_gives_equal_logits(command, trained, corpus, tmp_path):
    learned = (f"data.validation={corpus}", "data.drop_leaks=false", "trainer.max_epochs=40", "monitor=val/loss")
    checkpoint = trained(*AS_BERT, *learned)
    result = command("export.py", checkpoint, "--to", "hf", "there")
    assert (result.returncode, result.stderr) == (0, "")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "there").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "there")
    texts = [*FRUIT, *TOOLS, "an unseen \N{SNOWMAN}"]
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    ours = load_classifier(tmp_path / checkpoint, precision="32-true")
    with torch.inference_mode():
        expected = ours.predict_proba(texts)
        found = theirs(**inputs).logits
    assert expected.std() > 0.1  # it has learned something
    torch.testing.assert_close(found.log_softmax(dim=-1), expected.log(), atol=1e-4, rtol=0)
    assert [theirs.config.id2label[i] for i in range(2)] == ours.labels


def test_a_network_that_transformers_has_not_is_refused(command, trained):
    result = command("export.py", trained(), "--to", "hf", "there")
    assert result.returncode == 2
    assert (
        "transformers has no network with block=pre_norm, embedding_norm=False: "
        "train one with block=post_norm, embedding_norm=True" in result.stderr
    )


def test_a_folder_that_is_there_is_left_alone(command, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("kept")
    result = command("export.py", "any.ckpt", "--to", "hf", "there")
    assert (result.returncode, (tmp_path / "there" / "mine").read_text()) == (2, "kept")
