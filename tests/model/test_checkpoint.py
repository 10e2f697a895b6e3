import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from data.tokenizer import train_tokenizer
from encoding import encode
from errors import UserError
from model import TextClassifier, build_classifier, load_classifier
from model.checkpoint import checkpoint_content
from model.optim import adamw
from model.task import SingleLabel
from padding import pad
from tests.conftest import FRUIT, ROOT, SMALL, TOOLS

LABELS = ["fruit", "tool"]
TEXTS = FRUIT[:4] + TOOLS[:4]


@pytest.fixture(scope="module")
def overfit(tmp_path_factory) -> TextClassifier:
    """A network that knows eight sentences by heart."""
    torch.manual_seed(0)
    cache = str(tmp_path_factory.mktemp("cache"))
    tokenizer = train_tokenizer(
        TEXTS, key="", kind="words", vocab_size=99, min_frequency=1, lowercase=True, cache_dir=cache
    )
    network = build_classifier(**{**SMALL, "vocab_size": tokenizer.get_vocab_size(), "n_classes": 2})
    ids, mask, _ = pad(encode(tokenizer, TEXTS, max_len=24), range(8), pad_id=0)
    targets = torch.tensor([0] * 4 + [1] * 4)
    optimizer, schedule = adamw(
        network, 60, lr=1e-2, weight_decay=0.0, betas=(0.9, 0.98), warmup=0.1, schedule="cosine"
    )
    for _ in range(60):
        optimizer.zero_grad()
        F.cross_entropy(network(ids, mask), targets).backward()
        optimizer.step()
        schedule.step()
    optimizer.zero_grad()
    return TextClassifier(network, task=SingleLabel(labels=LABELS), tokenizer=tokenizer)


@pytest.fixture
def save(tmp_path):
    """Write a checkpoint as training does: weights under Lightning's prefix, the rest under `heed`."""

    def write(classifier: TextClassifier, name: str = "best.ckpt", prefix: str = "classifier.") -> Path:
        content = checkpoint_content(
            classifier.network, task=classifier.task, tokenizer=classifier.tokenizer, truncation="head"
        )
        weights = {prefix + key: value for key, value in classifier.network.state_dict().items()}
        torch.save({"state_dict": weights, "heed": content}, tmp_path / name)
        return tmp_path / name

    return write


def test_overfit_save_load_in_a_fresh_process_without_lightning(overfit, save, tmp_path):
    expected = overfit.predict(TEXTS)
    assert [prediction.label for prediction in expected] == ["fruit"] * 4 + ["tool"] * 4
    path = save(overfit)
    script = """
import json, sys
for name in ("pytorch_lightning", "lightning", "hydra", "datasets", "torchmetrics", "sklearn", "data", "evaluation"):
    sys.modules[name] = None  # importing any of them now fails
from model import load_classifier
predictions = load_classifier(sys.argv[1]).predict(json.loads(sys.argv[2]))
print(json.dumps([list(p) for p in predictions]))
"""
    command = [sys.executable, "-c", script, str(path), json.dumps(TEXTS)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert answer.stderr == ""
    for (label, probabilities), prediction in zip(json.loads(answer.stdout), expected, strict=True):
        assert label == prediction.label
        assert probabilities == pytest.approx(prediction.probabilities, abs=1e-6)


def test_a_batch_answers_as_its_texts_alone_in_the_order_given(overfit):
    texts = [TEXTS[5], "", "an apple " * 11, TEXTS[0], "   "]
    together = overfit.predict_proba(texts)
    alone = torch.cat([overfit.predict_proba([text]) for text in texts])
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(overfit.predict_proba(texts, max_tokens=1), alone, atol=1e-6, rtol=1e-5)


def test_probabilities_are_named_sorted_and_sum_to_one(overfit):
    (prediction,) = overfit.predict(["a heavy hammer"])
    assert list(prediction.probabilities) == ["tool", "fruit"]
    assert prediction.probabilities["tool"] > prediction.probabilities["fruit"]
    assert sum(prediction.probabilities.values()) == pytest.approx(1.0, abs=1e-6)


def test_no_text_one_string_and_what_is_no_text(overfit):
    assert overfit.predict([]) == []
    assert list(overfit.predict(iter([]))) == []
    assert overfit.predict_proba([]).shape == (0, 2)
    with pytest.raises(UserError, match="text 1 is NoneType"):
        overfit.predict([None])


def test_texts_beyond_max_len_are_answered_and_counted(overfit):
    texts = ["apple " * 5000, "apple", "apple " * 22, "apple " * 23]  # of 24 tokens two are [CLS] and [SEP]
    assert len(overfit.predict(texts)) == 4
    assert overfit.truncated(overfit.encode(texts)).tolist() == [True, False, False, True]


def test_windows_answer_with_the_mean_of_their_logits(overfit):
    words = ["an", "apple", "and", "a", "pear", "saw", "and", "hammer", "drill"]
    reader = TextClassifier(
        overfit.network, task=overfit.task, tokenizer=overfit.tokenizer, truncation="windows", max_len=6
    )
    pieces = [words[:4], words[4:8], words[5:9]]  # two of six tokens are [CLS] and [SEP]
    ids, mask, _ = pad(encode(overfit.tokenizer, [" ".join(piece) for piece in pieces], max_len=6), range(3), pad_id=0)
    expected = overfit.network(ids, mask).mean(dim=0).softmax(dim=-1)
    probabilities = reader.predict_proba(["apple", " ".join(words)])
    torch.testing.assert_close(probabilities[1], expected.detach(), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(probabilities[0], overfit.predict_proba(["apple"])[0], atol=1e-6, rtol=1e-5)


def test_positions_that_are_not_learned_read_beyond_the_training_length(overfit, save):
    longer = load_classifier(save(overfit), max_len=100)
    assert longer.max_len == 100
    assert longer.predict_proba(["apple " * 90]).isfinite().all()
    assert longer.truncated(longer.encode(["apple " * 98, "apple " * 99])).tolist() == [False, True]


def test_a_checkpoint_of_a_compiled_network_loads(overfit, save):
    path = save(overfit, prefix="classifier._orig_mod.")
    torch.testing.assert_close(load_classifier(path).predict_proba(TEXTS), overfit.predict_proba(TEXTS))


def test_int8_answers_as_fp32_does_with_weights_of_a_byte(overfit, save):
    whole, bytes_ = (load_classifier(save(overfit), precision=precision) for precision in ("32-true", "int8"))
    torch.testing.assert_close(bytes_.predict_proba(TEXTS), whole.predict_proba(TEXTS), atol=0.02, rtol=0)
    assert [p.label for p in bytes_.predict(TEXTS)] == [p.label for p in whole.predict(TEXTS)]
    weight = bytes_.network.encoder.blocks[0].feed_forward.inner.weight()
    assert weight.element_size() == 1
    exact = whole.network.encoder.blocks[0].feed_forward.inner.weight
    torch.testing.assert_close(weight.dequantize(), exact, atol=float(exact.abs().max()) / 127, rtol=0)


def test_an_unknown_precision_is_refused_with_those_there_are(overfit, save):
    with pytest.raises(UserError, match="precision=int4 is unknown: choose one of auto, 32-true, bf16-mixed, int8"):
        load_classifier(save(overfit), precision="int4")


def test_the_file_holds_plain_values_only(overfit, save):
    content = torch.load(save(overfit), weights_only=True)["heed"]
    learned = {"temperature": 1.0, "abstain_below": None, "in_set_from": None}
    assert content["task"] == {"name": "single_label", "labels": LABELS, **learned}
    assert content["architecture"]["d_model"] == 16
    assert json.loads(content["tokenizer"])["model"]["type"] == "WordLevel"
    assert content["versions"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
    json.dumps(content)


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('this ran')",))


def test_a_pickle_that_would_run_code_is_refused(tmp_path):
    for name, write in (("torch.ckpt", torch.save), ("plain.ckpt", lambda o, p: p.write_bytes(pickle.dumps(o)))):
        write({"state_dict": Bomb()}, tmp_path / name)
        with pytest.raises(UserError, match=rf"{name}: refused"):
            load_classifier(tmp_path / name)


def test_unsound_checkpoints_are_refused_with_a_sentence(overfit, save, tmp_path):
    good = save(overfit).read_bytes()
    middle = len(good) // 2
    for name, content in (
        ("truncated.ckpt", good[:middle]),
        ("overwritten.ckpt", good[:200] + bytes(middle) + good[200 + middle :]),
        ("empty.ckpt", b""),
        ("text.ckpt", b"text,label\na,b\n"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=rf"{name}: .*damaged"):
            load_classifier(tmp_path / name)
    with pytest.raises(UserError, match=r"nowhere\.ckpt: no such file"):
        load_classifier(tmp_path / "nowhere.ckpt")
    for other in ({"state_dict": {}}, [1, 2], {"heed": {}}, torch.ones(3)):
        torch.save(other, tmp_path / "other.ckpt")
        with pytest.raises(UserError, match="not written by Heed"):
            load_classifier(tmp_path / "other.ckpt")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda heed: heed.update(format=99), "format 99, this version reads"),
        (lambda heed: heed["architecture"].update(d_model=32), "do not fit together"),
        (lambda heed: heed["architecture"].update(position="os.system"), "do not fit together"),
        (lambda heed: heed["architecture"].update(surprise=1), "do not fit together"),
        (lambda heed: heed.update(tokenizer="{}"), "do not fit together"),
        (lambda heed: heed.pop("task"), "do not fit together"),
    ],
)
def test_a_checkpoint_whose_parts_do_not_fit_is_refused(overfit, save, change, sentence):
    path = save(overfit)
    content = torch.load(path, weights_only=True)
    change(content["heed"])
    torch.save(content, path)
    with pytest.raises(UserError, match=sentence):
        load_classifier(path)
