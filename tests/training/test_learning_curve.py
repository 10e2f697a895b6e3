import itertools
import json

import numpy as np
import pytest
import torch

from training.learning_curve import PARTS, nested, spread


def test_parts_are_nested_and_have_each_class_alike():
    labels = torch.tensor([0] * 100 + [1] * 50 + [2] * 3)
    rows = nested(labels, "single_label", seed=0)
    counts = [labels[part].bincount(minlength=3).tolist() for part in rows]
    assert counts == [[10, 5, 1], [20, 10, 1], [40, 20, 2], [70, 35, 3], [100, 50, 3]]
    for smaller, larger in itertools.pairwise(rows):
        assert set(smaller.tolist()) < set(larger.tolist()) or len(larger) == len(smaller)
    assert rows[-1].tolist() == list(range(153))
    assert not np.array_equal(rows[0], nested(labels, "single_label", seed=1)[0])


def test_parts_of_scores_and_of_several_labels_are_drawn_from_all():
    assert [len(part) for part in nested(torch.rand(50), "regression", seed=0)] == [5, 10, 20, 35, 50]
    assert [len(part) for part in nested(torch.ones(50, 3), "multi_label", seed=0)] == [5, 10, 20, 35, 50]


def test_chance_is_the_spread_of_a_difference_of_two_shares():
    truth, first = ["a"] * 400, ["a"] * 300 + ["b"] * 100
    second = ["a"] * 340 + ["b"] * 60
    p = 40 / 400  # texts on which the two differ, always for the better
    assert spread("single_label", "accuracy", truth, first, second, seed=0) == pytest.approx(
        np.sqrt(p * (1 - p) / 400), rel=0.15
    )


def test_a_run_draws_both_curves_on_the_same_test_texts(run, tmp_path):
    rows = [f"{'apple pear' if i % 2 else 'saw nail'} word{i},{'fruit' if i % 2 else 'tool'}" for i in range(120)]
    (tmp_path / "rows.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    folder = run(
        "only=learning_curve", f"data.train={tmp_path / 'rows.csv'}", "optimizer.lr=0.02", "trainer.max_epochs=3"
    )
    names = {path.name for path in folder.iterdir()}
    assert names == {"check.json", "config.yaml", "learning_curve.json", "learning_curve.svg"}
    found = json.loads((folder / "learning_curve.json").read_text())
    assert [point["per_cent"] for point in found["points"]] == list(PARTS)
    texts = [point["texts"] for point in found["points"]]
    assert texts == sorted(texts)
    assert texts[-1] == json.loads((folder / "check.json").read_text())["rows"]["train"]
    assert all(0 <= point["accuracy"] <= 1 and 0 <= point["baseline/accuracy"] <= 1 for point in found["points"])
    assert found["more_data_likely_to_help"] == (found["gain"] > 2 * found["chance"])
