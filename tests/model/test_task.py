import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score
from sklearn.utils.class_weight import compute_class_weight

from model.task import MultiLabel, Regression, SingleLabel, best_thresholds, make_task

LABELS = ["a", "b", "c"]
torch.manual_seed(0)
LOGITS = torch.randn(40, 3)
CLASSES = torch.arange(40) % 4 % 3
SEVERAL = torch.rand(40, 3) < torch.tensor([0.5, 0.3, 0.1])


def test_a_class_of_several_has_the_cross_entropy_of_torch_averaged_over_the_texts():
    task = SingleLabel(labels=LABELS)
    torch.testing.assert_close(task.loss(LOGITS, CLASSES), F.cross_entropy(LOGITS, CLASSES))
    smooth = F.cross_entropy(LOGITS, CLASSES, label_smoothing=0.1)
    torch.testing.assert_close(task.loss(LOGITS, CLASSES, label_smoothing=0.1), smooth)
    weight = torch.tensor([1.0, 2.0, 5.0])
    each = F.cross_entropy(LOGITS, CLASSES, reduction="none") * weight[CLASSES]
    torch.testing.assert_close(task.loss(LOGITS, CLASSES, weight=weight), each.mean())


def test_balanced_weights_are_scikit_learns():
    expected = compute_class_weight("balanced", classes=np.arange(3), y=CLASSES.numpy())
    torch.testing.assert_close(SingleLabel(labels=LABELS).class_weight(CLASSES).double(), torch.tensor(expected))


def test_balanced_weights_of_several_labels_make_both_sides_of_each_weigh_alike():
    weight = MultiLabel(labels=LABELS).class_weight(SEVERAL)
    positive = SEVERAL.sum(dim=0)
    torch.testing.assert_close(weight * positive, (40 - positive).float())


def test_several_labels_have_the_binary_cross_entropy_of_torch():
    task = MultiLabel(labels=LABELS)
    expected = F.binary_cross_entropy_with_logits(LOGITS, SEVERAL.float())
    torch.testing.assert_close(task.loss(LOGITS, SEVERAL), expected)
    smooth = F.binary_cross_entropy_with_logits(LOGITS, SEVERAL.float() * 0.8 + 0.1)
    torch.testing.assert_close(task.loss(LOGITS, SEVERAL, label_smoothing=0.2), smooth)


def test_no_threshold_has_a_better_f1_on_the_texts_it_was_tuned_on():
    task = MultiLabel(labels=LABELS).calibrated(LOGITS, SEVERAL)
    probabilities = LOGITS.sigmoid()
    for column, threshold in enumerate(task.thresholds):
        tuned = f1_score(SEVERAL[:, column], probabilities[:, column] >= threshold)
        others = [f1_score(SEVERAL[:, column], probabilities[:, column] >= t) for t in torch.linspace(0, 1, 501)]
        assert tuned >= max(others) - 1e-12


def test_equal_probabilities_are_decided_alike_and_a_label_that_never_occurs_keeps_a_half():
    probabilities = torch.tensor([[0.9, 0.2], [0.4, 0.7], [0.4, 0.1], [0.1, 0.3]])
    truth = torch.tensor([[True, False], [True, False], [False, False], [False, False]])
    first, second = best_thresholds(probabilities, truth)
    assert 0.1 < first < 0.4  # taking both of 0.4 has F1 0.8, taking neither 0.67
    assert second == 0.5


def test_a_prediction_names_the_labels_that_reach_their_thresholds():
    task = MultiLabel(labels=LABELS, thresholds=[0.5, 0.1, 0.9])
    label, probabilities = task.prediction(torch.tensor([0.6, 0.2, 0.8]))
    assert label == ["a", "b"]
    assert list(probabilities) == ["c", "a", "b"]
    assert task.prediction(torch.tensor([0.1, 0.05, 0.1])).label == []


def test_a_score_is_learned_on_a_scale_of_spread_one_and_said_on_its_own():
    task = Regression(labels=["score"], mean=300.0, spread=50.0)
    loss = task.loss(torch.tensor([[1.0], [0.0]]), torch.tensor([350.0, 200.0]))
    assert loss.item() == pytest.approx((0.0 + 2.0**2) / 2)
    assert task.outputs(torch.tensor([[1.0], [-2.0]])).tolist() == [350.0, 200.0]
    assert task.prediction(task.probabilities(torch.tensor([[1.0]]))[0]) == (350.0, {})


@pytest.mark.parametrize(
    "task",
    [
        SingleLabel(labels=LABELS),
        MultiLabel(labels=LABELS, thresholds=[0.1, 0.2, 0.3]),
        Regression(labels=["score"], mean=1.0, spread=2.0),
    ],
)
def test_a_task_comes_back_from_what_a_checkpoint_keeps(task):
    again = make_task(**task.facts())
    assert type(again) is type(task)
    assert again.facts() == task.facts()
