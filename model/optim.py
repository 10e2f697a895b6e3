"""AdamW with decay groups, and the learning rate's course over the steps of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from torch import nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from errors import UserError


def decay_groups(module: nn.Module, weight_decay: float) -> list[dict]:
    """Split the parameters in two: weights of linear maps decay; embeddings, norms and biases do not."""
    no_decay = {id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)}
    parameters = [p for p in module.parameters() if p.requires_grad]
    decayed = [p for p in parameters if p.ndim > 1 and id(p) not in no_decay]
    others = [p for p in parameters if p.ndim <= 1 or id(p) in no_decay]
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def cosine(progress: float) -> float:
    """Fall from 1 to 0 along half a cosine (Loshchilov and Hutter 2017, arXiv:1608.03983)."""
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def linear(progress: float) -> float:
    """Fall from 1 to 0 along a line (Devlin et al. 2019, arXiv:1810.04805)."""
    return 1.0 - progress


SCHEDULES = {"cosine": cosine, "linear": linear}


def rate_factor(step: int, *, total_steps: int, warmup: float, decay: Callable[[float], float]) -> float:
    """The share of the peak rate at `step`: rises from 0 over the first `warmup` share of the steps, then follows `decay`."""
    warmup_steps = round(warmup * total_steps)
    if step < warmup_steps:
        return step / warmup_steps
    return decay(min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps)))


def adamw(
    module: nn.Module,
    total_steps: int,
    *,
    lr: float,
    weight_decay: float,
    betas: Sequence[float],
    warmup: float,
    schedule: str,
) -> tuple[Optimizer, LambdaLR]:
    """AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) and its schedule, to be stepped once an optimizer step.

    `lr` is the peak rate, `warmup` a share of `total_steps`, `schedule` a name in `SCHEDULES`. Raises `UserError` for a
    value out of range.
    """
    if schedule not in SCHEDULES:
        raise UserError(f"optimizer.schedule={schedule} is unknown: choose one of {', '.join(SCHEDULES)}")
    if not 0 <= warmup < 1:
        raise UserError(f"optimizer.warmup={warmup} is not a share of the steps: give a number from 0 to below 1")
    optimizer = AdamW(decay_groups(module, weight_decay), lr=lr, betas=(betas[0], betas[1]), fused=True)
    factor = partial(rate_factor, total_steps=total_steps, warmup=warmup, decay=SCHEDULES[schedule])
    return optimizer, LambdaLR(optimizer, factor)
