import json
import re

import pytest
import torch

from model import load_classifier
from model.explain import attributions
from tests.conftest import FRUIT, QUICK, TOOLS
from training import mixing
from training.assembly import make_data


@pytest.fixture
def texts() -> list[str]:
    return [*FRUIT, *TOOLS, "a pear and a nail", "unheard words", ""]


def test_the_linear_model_is_added_to_the_network_that_was_trained(run, texts, caplog):
    caplog.set_level("INFO", logger="heed")
    mixed, alone = (load_classifier(run(f"mix_linear={on}", name=on) / "best.ckpt") for on in ("true", "false"))
    share = float(re.search(r"its share (0\.\d+)", caplog.text)[1])
    linear = mixed.network.ngrams
    tokens = mixed.encode(texts)
    rows = torch.split(tokens.ids, tokens.lengths.tolist())
    added = torch.cat([linear(row.unsqueeze(0), torch.ones(1, len(row), dtype=torch.bool)) for row in rows])
    torch.testing.assert_close(mixed.logits(texts), (1 - share) * alone.logits(texts) + added, atol=1e-5, rtol=1e-5)
    assert added.abs().sum() > 0


def test_validation_is_at_least_as_likely_as_by_the_network_alone(run, caplog):
    caplog.set_level("INFO", logger="heed")
    run()
    mixed, alone, linear = map(
        float, re.search(r"loss on validation (\S+), alone (\S+), linear (\S+)", caplog.text).groups()
    )
    assert mixed <= alone
    assert mixed < linear + 0.1  # the network keeps a twentieth at least


def test_the_run_reports_the_network_alone(run):
    mixed, alone = (
        json.loads((run(f"mix_linear={on}", name=on) / "metrics.json").read_text()) for on in ("true", "false")
    )
    assert mixed["alone/accuracy"] == alone["test/accuracy"]
    assert "alone/accuracy" not in alone


def test_a_share_of_none_leaves_the_file_as_it_is(run, monkeypatch):
    monkeypatch.setattr(mixing, "SHARES", torch.zeros(1))
    folder = run()
    assert load_classifier(folder / "best.ckpt").network.architecture["n_buckets"] == 0
    assert "alone/accuracy" not in json.loads((folder / "metrics.json").read_text())


def test_the_attributions_of_both_add_up(run):
    classifier = load_classifier(run() / "best.ckpt")
    found = attributions(classifier, "a sweet red apple")
    assert float(found.scores.sum()) == pytest.approx(found.change, rel=0.02, abs=1e-4)
    with torch.no_grad():  # as if there were no network
        classifier.network.head.weight.zero_()
    of_linear = attributions(classifier, "a sweet red apple", label=found.label)
    assert float(of_linear.scores.sum()) == pytest.approx(of_linear.change, rel=1e-4)
    assert of_linear.change != 0


@pytest.mark.parametrize(
    "settings", ["class_weight=balanced", "sampler=balanced", "truncation=windows model.max_len=4"]
)
def test_it_goes_with_other_settings(run, settings, texts):
    classifier = load_classifier(run(*settings.split()) / "best.ckpt")
    assert classifier.network.architecture["n_buckets"] == mixing.MOST_BUCKETS
    together = classifier.logits(texts)
    torch.testing.assert_close(together, torch.cat([classifier.logits([text]) for text in texts]), atol=1e-5, rtol=1e-4)


def test_another_run_can_begin_with_its_encoder(run):
    first = run()
    second = run(f"model.init_from={first / 'best.ckpt'}", "optimizer.lr=0", name="second")
    weights = [load_classifier(folder / "best.ckpt").network.encoder.embedding.weight for folder in (first, second)]
    torch.testing.assert_close(*weights)


def test_many_classes_have_fewer_buckets():
    sizes = [
        min(mixing.MOST_BUCKETS, 2 ** int(torch.tensor(mixing.MOST_WEIGHTS / n).log2())) for n in (2, 64, 65, 1000)
    ]
    assert sizes == [2**18, 2**18, 2**17, 2**14]


def test_what_is_mixed_already_is_not_mixed_again(run, configure, corpus):
    """As when a run is killed at its very end and goes on."""
    path = run() / "best.ckpt"
    before, classifier = path.read_bytes(), load_classifier(path)
    config = configure("data=files", f"data.train={corpus}", *QUICK)
    assert mixing.mix(config, classifier, make_data(config), path) is classifier
    assert path.read_bytes() == before
    assert not path.with_name(mixing.MIXED).exists()
