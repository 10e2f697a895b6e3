"""What a network's outputs mean: one class of several, any number of labels, or a score.

B batch, C outputs (the labels; one for a score).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor

from model.calibration import best_thresholds, fit_abstention, fit_label_set, fit_temperature


class Prediction(NamedTuple):
    """The answer for a text (None: abstained), and every label's probability, the largest first (none for a score)."""

    label: str | list[str] | float | None
    probabilities: dict[str, float]


class SingleLabel:
    """One class of C: softmax and cross-entropy. Validation teaches it the `temperature` that divides the logits, the
    probability below which to abstain, and the one from which a class is in the label set (None: not known)."""

    name = "single_label"
    calibrates = True  # whether validation teaches it something

    def __init__(
        self,
        *,
        labels: Sequence[str],
        temperature: float = 1.0,
        abstain_below: float | None = None,
        in_set_from: float | None = None,
    ) -> None:
        self.labels = list(labels)
        self.temperature, self.abstain_below, self.in_set_from = temperature, abstain_below, in_set_from

    def facts(self) -> dict[str, Any]:
        """What a checkpoint keeps: the arguments of `make_task`."""
        return {"name": self.name, **vars(self)}

    def class_weight(self, targets: Tensor) -> Tensor:
        """Weights `(C,)` by which every class counts alike: all texts / (C · texts of the class), as in scikit-learn."""
        counts = targets.bincount(minlength=len(self.labels))
        return len(targets) / (len(self.labels) * counts)

    def loss(
        self, logits: Tensor, targets: Tensor, *, weight: Tensor | None = None, label_smoothing: float = 0.0
    ) -> Tensor:
        """The mean over the texts, of `logits (B, C)` and `targets (B,)` class numbers."""
        return F.cross_entropy(logits, targets, weight=weight, label_smoothing=label_smoothing, reduction="none").mean()

    def probabilities(self, logits: Tensor) -> Tensor:
        """`(B, C)` → `(B, C)`; for a score, its value."""
        return (logits / self.temperature).softmax(dim=-1)

    def outputs(self, logits: Tensor) -> Tensor:
        """What metrics compare with the targets: the logits' probabilities `(B, C)`, or scores `(B,)`."""
        return self.probabilities(logits)

    def calibrated(self, logits: Tensor, targets: Tensor) -> SingleLabel:
        """The task with what validation's `logits (R, C)` and `targets` teach."""
        task = SingleLabel(labels=self.labels, temperature=fit_temperature(logits, targets))
        probabilities = task.probabilities(logits)
        task.abstain_below = fit_abstention(probabilities, targets)
        task.in_set_from = fit_label_set(probabilities, targets)
        return task

    def prediction(self, row: Tensor) -> Prediction:
        """The answer that `row (C,)` of `probabilities` stands for."""
        named = dict(sorted(zip(self.labels, row.tolist(), strict=True), key=lambda item: -item[1]))
        return Prediction(self.choose(row, named), named)

    def choose(self, row: Tensor, named: dict[str, float]) -> Any:
        """The most probable class."""
        return next(iter(named))


class MultiLabel(SingleLabel):
    """Any number of C labels: a sigmoid and binary cross-entropy each, and a threshold each, tuned on validation."""

    name = "multi_label"

    def __init__(self, *, labels: Sequence[str], thresholds: Sequence[float] | None = None) -> None:
        super().__init__(labels=labels)
        self.thresholds = list(thresholds or [0.5] * len(labels))

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "labels": self.labels, "thresholds": self.thresholds}

    def class_weight(self, targets: Tensor) -> Tensor:
        """Texts without the label for each with it, `(C,)`: how much more the latter count."""
        positive = targets.sum(dim=0)
        return (len(targets) - positive) / positive

    def loss(
        self, logits: Tensor, targets: Tensor, *, weight: Tensor | None = None, label_smoothing: float = 0.0
    ) -> Tensor:
        """The mean over texts and labels; `targets (B, C)` are 0 or 1."""
        smooth = targets.to(logits.dtype) * (1 - label_smoothing) + label_smoothing / 2
        return F.binary_cross_entropy_with_logits(logits, smooth, pos_weight=weight)

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()

    def calibrated(self, logits: Tensor, targets: Tensor) -> MultiLabel:
        """Take for each label the threshold with the best F1 on validation (Yang 2001, doi:10.1145/383952.383975)."""
        return MultiLabel(labels=self.labels, thresholds=best_thresholds(self.probabilities(logits), targets))

    def choose(self, row: Tensor, named: dict[str, float]) -> list[str]:
        """The labels that reach their thresholds, in their order."""
        return [label for label, p, least in zip(self.labels, row.tolist(), self.thresholds, strict=True) if p >= least]


class Regression(SingleLabel):
    """A score: the squared error, on a scale where training's scores have mean 0 and spread 1."""

    name = "regression"
    calibrates = False

    def __init__(self, *, labels: Sequence[str], mean: float, spread: float) -> None:
        super().__init__(labels=labels)
        self.mean, self.spread = mean, spread

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "labels": self.labels, "mean": self.mean, "spread": self.spread}

    def loss(
        self, logits: Tensor, targets: Tensor, *, weight: Tensor | None = None, label_smoothing: float = 0.0
    ) -> Tensor:
        """The mean over the texts; `targets (B,)` are scores."""
        return F.mse_loss(logits.squeeze(-1), (targets - self.mean) / self.spread)

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits * self.spread + self.mean

    def outputs(self, logits: Tensor) -> Tensor:
        return self.probabilities(logits).squeeze(-1)

    def prediction(self, row: Tensor) -> Prediction:
        return Prediction(float(row), {})


TASKS = {task.name: task for task in (SingleLabel, MultiLabel, Regression)}


def make_task(name: str, **facts: Any) -> SingleLabel:
    """The task from what a checkpoint keeps (`SingleLabel.facts`)."""
    return TASKS[name](**facts)
