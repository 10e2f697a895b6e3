"""What a classifier answers to a string, a list, an iterator; to several threads at once."""

from concurrent.futures import ThreadPoolExecutor
from itertools import chain, count, islice

import numpy as np
import pytest
import torch

from data.tokenizer import train_tokenizer
from encoding import encode
from errors import UserError
from model import Prediction, TextClassifier, build_classifier
from model.explain import attributions
from model.task import SingleLabel
from padding import pad
from tests.conftest import FRUIT, SMALL, TOOLS

LABELS = ["fruit", "tool", "other"]
TEXTS = [*FRUIT, *TOOLS, "", "apple " * 30]


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    cache = str(tmp_path_factory.mktemp("cache"))
    tokenizer = train_tokenizer(
        FRUIT + TOOLS, key="", kind="words", vocab_size=99, min_frequency=1, lowercase=True, cache_dir=cache
    )

    def build(*, max_len: int | None = None, truncation: str = "head", precision: str = "auto", **changes):
        torch.manual_seed(0)
        network = build_classifier(**{**SMALL, "vocab_size": tokenizer.get_vocab_size(), **changes})
        torch.nn.init.normal_(network.head.weight)
        options = {"max_len": max_len, "truncation": truncation, "precision": precision}
        return TextClassifier(network, task=SingleLabel(labels=LABELS), tokenizer=tokenizer, **options)

    return build


def test_a_string_has_one_answer_and_a_list_a_list(make):
    classifier = make()
    one, (first, second) = classifier.predict("plum jam"), classifier.predict(["plum jam", "rusty nail"])
    assert isinstance(one, Prediction)
    assert one == first
    label, probabilities = one
    assert label == max(probabilities, key=probabilities.get)
    assert classifier.predict_proba("plum jam").shape == (3,)
    assert classifier.predict_proba(["plum jam"]).shape == (1, 3)
    assert list(classifier.predict_proba("rusty nail")) == pytest.approx(
        [second.probabilities[name] for name in LABELS]
    )
    assert classifier.predict(np.array(["plum jam", "rusty nail"])) == [first, second]
    assert [label for label, probabilities in classifier.predict(["plum jam", "rusty nail"])] == [
        first.label,
        second.label,
    ]
    assert classifier.predict([]) == []
    assert classifier.predict_proba([]).shape == (0, 3)
    assert classifier.embed([]).shape == (0, 16)


def test_an_iterator_is_read_as_its_answers_are_asked_for(make):
    classifier = make()
    endless = (TEXTS[i % len(TEXTS)] for i in count())
    answers = classifier.predict(endless)
    assert next(endless) == TEXTS[0]  # nothing was read before an answer was asked for
    expected = classifier.predict(TEXTS)
    found = list(islice(answers, 3000))
    assert [p.label for p in found] == [expected[i % len(TEXTS)].label for i in range(1, 3001)]
    for method in (classifier.predict_proba, classifier.embed):
        torch.testing.assert_close(torch.stack(list(method(iter(TEXTS)))), method(TEXTS), atol=1e-6, rtol=1e-5)
    assert list(classifier.predict(iter([]))) == []
    broken = classifier.predict(chain(["apple"] * 1500, [7]))
    assert len(list(islice(broken, 1024))) == 1024
    with pytest.raises(UserError, match=r"after 1,024 texts: text 477.*int"):
        next(broken)
    with pytest.raises(UserError, match="has no threshold"):
        classifier.predict(iter(TEXTS), abstain=True)  # at once, not when it is read


@pytest.mark.parametrize("pooling", ["mean", "max", "cls", "attention"])
def test_embed_gives_what_the_head_reads_off(make, pooling):
    classifier = make(pooling=pooling)
    network, vectors = classifier.network, classifier.embed(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), 16), torch.float32)
    read_off = vectors @ network.head.weight.T + network.head.bias
    torch.testing.assert_close(read_off, classifier.logits(TEXTS), atol=1e-5, rtol=1e-5)
    read_off.sum().backward()  # others may learn from the vectors
    ids, mask, _ = pad(encode(classifier.tokenizer, [TEXTS[0]], max_len=24), [0], pad_id=0)
    with torch.no_grad():
        x = network.encoder(ids, mask)[0]  # (T, D), no padding
    expected = {"mean": x.mean(dim=0), "max": x.amax(dim=0), "cls": x[0]}
    if pooling in expected:
        torch.testing.assert_close(vectors[0], expected[pooling], atol=1e-6, rtol=1e-5)
    assert classifier.embed(TEXTS[0]).tolist() == pytest.approx(vectors[0].tolist(), abs=1e-5)


def test_of_windows_the_vector_is_the_mean(make):
    reader = make(truncation="windows", max_len=6)
    pieces = ["an apple and a", "pear saw and hammer", "saw and hammer drill"]
    whole = reader.embed("an apple and a pear saw and hammer drill")
    torch.testing.assert_close(whole, reader.embed(pieces).mean(dim=0), atol=1e-6, rtol=1e-5)
    assert not reader.truncated(reader.encode(["apple " * 30])).any()


def test_in_bf16_vectors_are_fp32(make):
    vectors = make(precision="bf16-mixed").embed(["apple " * 20] * 30)
    assert vectors.dtype == torch.float32
    torch.testing.assert_close(vectors, make().embed(["apple " * 20] * 30), atol=0.1, rtol=0.05)


def test_explain_answers_as_attributions_do(make):
    classifier = make()
    one, (first, second) = classifier.explain("plum jam"), classifier.explain(["plum jam", "rusty nail"])
    for mine, text in ((one, "plum jam"), (first, "plum jam"), (second, "rusty nail")):
        reference = attributions(classifier, text)
        assert (mine.label, mine.tokens) == (reference.label, reference.tokens)
        torch.testing.assert_close(mine.scores, reference.scores)
        assert float(mine.scores.sum()) == pytest.approx(mine.change, abs=0.02 * abs(mine.change) + 1e-6)
    assert next(classifier.explain(iter(["saw"]), label="other")).label == "other"
    with pytest.raises(UserError, match="label 'novel' is unknown"):
        classifier.explain("saw", label="novel")
    with pytest.raises(UserError, match="int8 has no gradients"):
        make(precision="int8").explain("saw")


def test_threads_that_share_a_classifier_get_what_one_alone_gets(make):
    """Texts of very different lengths, so that positions grow, and explanations, whose hooks nobody else may meet."""
    torch.set_num_threads(1)
    alone = make(max_len=400)
    texts = [f"{TEXTS[i % 12]} " * (1 + 11 * (i % 9)) for i in range(60)]
    parts = [texts[i::8] for i in range(8)]
    answers = [alone.predict_proba(part) for part in parts]
    vectors = [alone.embed(part) for part in parts]
    reasons = [alone.explain(part[0], label="other").scores for part in parts]
    for _ in range(3):
        shared = make(max_len=400)  # its table of positions is short again
        with ThreadPoolExecutor(6) as pool:
            found = pool.map(shared.predict_proba, parts), pool.map(shared.embed, parts)
            explained = [pool.submit(shared.explain, part[0], label="other") for part in parts]
            for expected, mine in ((answers, found[0]), (vectors, found[1])):
                for one, other in zip(expected, mine, strict=True):
                    torch.testing.assert_close(other, one, atol=1e-5, rtol=1e-4)
            for one, future in zip(reasons, explained, strict=True):
                torch.testing.assert_close(future.result().scores, one, atol=1e-4, rtol=1e-3)


def test_nothing_of_a_call_stays_in_the_classifier(make):
    classifier = make()
    before = {**vars(classifier)}
    modules = [len(module._forward_hooks) for module in classifier.network.modules()]
    classifier.predict(["apple " * 30])
    classifier.explain("apple saw")
    assert vars(classifier) == before
    assert [len(module._forward_hooks) for module in classifier.network.modules()] == modules
