"""What validation teaches about how far probabilities can be trusted: temperature, abstention, label sets, thresholds.

R texts of validation, C classes. All are fitted on the validation split that also chose the epoch, so that they are
a little too hopeful; the report measures them on the test split.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

COLDEST, HOTTEST = 0.05, 20.0  # temperatures that are looked at
COVERAGE = 0.9  # share of texts whose label set is to hold the truth
ANSWERED_RIGHT = 0.95  # accuracy asked of the texts that are answered, at least


def fit_temperature(logits: Tensor, targets: Tensor) -> float:
    """The T by which `logits (R, C)` are divided so that the likelihood of `targets (R,)` is largest (Guo et al. 2017,
    arXiv:1706.04599).

    In 1/T the negative log-likelihood is convex: its slope, the mean of E_p[z] - z_y, is brought to 0 by bisection. Where
    every text is classified right no T is best, the colder the likelier: T stays 1, since nothing is known about errors.
    """
    logits = logits.double()
    of_truth = logits.gather(1, targets.unsqueeze(1)).squeeze(1)  # (R,)
    if bool((of_truth == logits.amax(dim=1)).all()):
        return 1.0
    low, high = math.log(COLDEST), math.log(HOTTEST)
    for _ in range(40):
        middle = (low + high) / 2
        expected = ((logits / math.exp(middle)).softmax(dim=1) * logits).sum(dim=1)  # (R,) E_p[z]
        if float((expected - of_truth).mean()) > 0:  # too sure of itself
            low = middle
        else:
            high = middle
    return math.exp((low + high) / 2)


def fit_abstention(probabilities: Tensor, targets: Tensor) -> float:
    """The lowest probability of the answer, of `probabilities (R, C)`, from which the answers are right often enough.

    Often enough is 95 %, or half as many errors as without abstaining where that is more. The threshold lies halfway
    between the last text that is answered and the next. 1 where no threshold suffices; 0 where every text is answered.
    """
    confidence, chosen = probabilities.max(dim=1)
    confidence, order = confidence.sort(descending=True)
    right = (chosen == targets)[order].double()
    wanted = max(ANSWERED_RIGHT, (1 + float(right.mean())) / 2)
    accuracy = right.cumsum(dim=0) / torch.arange(1, len(right) + 1)  # (R,) when the first so many are answered
    accuracy[:-1][confidence[:-1] == confidence[1:]] = -1.0  # equal ones are answered together
    enough = (accuracy >= wanted).nonzero()
    if not len(enough):
        return 1.0
    last = int(enough[-1])
    return float(confidence[last : last + 2].mean()) if last + 1 < len(right) else 0.0


def fit_label_set(probabilities: Tensor, targets: Tensor) -> float:
    """The least probability with which a class is in a text's label set, so that 90 % of the sets hold the truth.

    Split conformal prediction with 1 - p of the truth as score (Sadinle et al. 2019, arXiv:1609.00451): its quantile of rank
    ⌈(R + 1) · 0.9⌉. With fewer texts than that rank every class is in every set.
    """
    of_truth = probabilities.gather(1, targets.unsqueeze(1)).squeeze(1)  # (R,)
    rank = math.ceil(round((len(of_truth) + 1) * COVERAGE, 9))
    return float(of_truth.sort(descending=True).values[rank - 1]) if rank <= len(of_truth) else 0.0


def best_thresholds(probabilities: Tensor, targets: Tensor) -> list[float]:
    """For each column of `probabilities (R, C)` the threshold whose F1 against `targets (R, C)` is best: halfway between the
    last probability taken and the next. A label that never occurs keeps 0.5."""
    thresholds = []
    for column, truth in zip(probabilities.T, targets.T, strict=True):
        values, order = column.sort(descending=True)
        hits = truth[order].cumsum(dim=0)  # (R,) true positives when the first so many are taken
        f1 = 2 * hits / (torch.arange(1, len(values) + 1) + truth.sum())
        f1[:-1][values[:-1] == values[1:]] = 0.0  # equal probabilities are taken together
        best = int(f1.argmax())
        nearest = values[best + 1] if best + 1 < len(values) else torch.tensor(0.0)
        thresholds.append(float((values[best] + nearest) / 2) if bool(truth.any()) else 0.5)
    return thresholds
