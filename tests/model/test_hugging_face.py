"""A network written for `transformers` has equal logits there, whichever of its kinds it is and however it pools."""

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from encoding import SPECIAL_TOKENS
from errors import UserError
from model.build import build_classifier
from model.hugging_face import save_for_transformers
from model.hugging_face_config import kind_of
from model.hugging_face_heads import bert_mean, modernbert
from model.task import make_task
from model.text_classifier import TextClassifier

transformers = pytest.importorskip("transformers", reason="the reader: pip install -e '.[pretrained]'")

WORDS = [*SPECIAL_TOKENS, *(f"w{i}" for i in range(20))]
SHARED = {
    **{
        "vocab_size": 25,
        "n_classes": 3,
        "pad_id": 0,
        "sep_id": 3,
        "d_model": 32,
        "n_heads": 2,
        "n_layers": 3,
        "d_ff": 48,
    },
    **{"max_len": 40, "dropout": 0.1, "attention": "scaled_dot_product", "norm": "layer", "embedding_norm": True},
}
BERT = {**SHARED, "position": "learned", "mask": "padding", "block": "post_norm", "feed_forward": "gelu"}
MODERNBERT = {
    **{**SHARED, "position": "rotary", "mask": "window", "window": 2, "global_every": 2, "block": "pre_norm"},
    **{"feed_forward": "geglu", "rotary_bases": (160_000.0, 10_000.0)},
}
KINDS = {
    "bert, [CLS]": {**BERT, "pooling": "cls"},
    "bert, mean": {**BERT, "pooling": "mean"},
    "bert, two segments": {**BERT, "pooling": "mean", "n_segments": 2},
    "modernbert, [CLS]": {**MODERNBERT, "pooling": "cls", "bias": False},
    "modernbert, mean": {**MODERNBERT, "pooling": "mean", "feed_forward": "swiglu"},
}


def classifier(task: str = "single_label", **architecture) -> TextClassifier:
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    facts = {"mean": 5.0, "spread": 3.0} if task == "regression" else {"temperature": 0.7}
    labels = ["score"] if task == "regression" else list("abc")
    torch.manual_seed(0)
    network = build_classifier(**{**architecture, "n_classes": len(labels)})
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return TextClassifier(
        network, task=make_task(task, labels=labels, **facts), tokenizer=tokenizer, precision="32-true", device="cpu"
    )


def logits_there(folder, texts: list[str]) -> torch.Tensor:
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        return network(**tokenizer(texts, padding=True, return_tensors="pt")).logits


TEXTS = ["w1", "w2 w3 w4", "w5 w6 w7 " * 10, "unseen w9 w10 w11"]


@pytest.mark.parametrize("architecture", KINDS.values(), ids=KINDS)
def test_equal_logits(tmp_path, architecture):
    ours = classifier(**architecture)
    save_for_transformers(ours, tmp_path / "there")
    expected = ours.predict_proba(TEXTS).log()
    found = logits_there(tmp_path / "there", TEXTS)
    assert expected.std() > 0.1
    torch.testing.assert_close(found.log_softmax(dim=-1), expected, atol=5e-5, rtol=0)


@pytest.mark.parametrize("architecture", [KINDS["bert, mean"], KINDS["modernbert, mean"]], ids=["bert", "modernbert"])
def test_a_score_keeps_its_scale(tmp_path, architecture):
    ours = classifier("regression", **architecture)
    save_for_transformers(ours, tmp_path / "there")
    torch.testing.assert_close(logits_there(tmp_path / "there", TEXTS), ours.predict_proba(TEXTS), atol=1e-4, rtol=0)


def test_the_nearest_kind_says_what_is_missing():
    sizes = {**KINDS["bert, mean"], "bias": True, "d_head": None, "d_value": None, "pooling": "max", "norm": "rms"}
    with pytest.raises(
        UserError, match="no network with norm=rms, pooling=max: train one with norm=layer, pooling=cls or mean"
    ):
        kind_of(sizes)


def test_more_classes_than_a_head_has_room_for_are_refused():
    weight, bias = torch.ones(3, 6), torch.zeros(3)
    with pytest.raises(UserError, match=r"3 classes need model.d_model=8 or more"):
        bert_mean(weight, bias, d_ff=4, layer="bert.encoder.layer.1")
    with pytest.raises(UserError, match=r"3 classes need model.d_model=6 or more"):
        modernbert(weight[:, :5], bias, eps=1e-5, norm_bias=False)
