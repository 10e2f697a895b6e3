"""AdamW with decay groups, and the learning rate's course over the steps of a run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial

from torch import nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from errors import UserError

BLOCK = re.compile(r"encoder\.blocks\.(\d+)\.")


def parameter_groups(
    module: nn.Module, *, lr: float, weight_decay: float, head_lr: float | None, layer_decay: float
) -> list[dict]:
    """Sort the parameters that learn by rate and decay: weights of linear maps decay; embeddings, norms and biases do not.

    The topmost block learns at `lr`, each below `layer_decay` times slower than the one above it, the embeddings slowest
    (Clark et al. 2020, arXiv:2003.10555, appendix A); what lies above the encoder at `head_lr` (None: `lr`).
    """
    embeddings = {id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)}
    named = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
    top = max((int(number) + 1 for name, _ in named for number in BLOCK.findall(name)), default=0)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in named:
        depth = depth_of(name, top=top)
        rate = (head_lr or lr) if depth is None else lr * layer_decay ** (top - depth)
        decays = parameter.ndim > 1 and id(parameter) not in embeddings
        groups.setdefault((rate, weight_decay if decays else 0.0), []).append(parameter)
    return [{"params": params, "lr": rate, "weight_decay": decay} for (rate, decay), params in groups.items()]


def depth_of(name: str, *, top: int) -> int | None:
    """How high a parameter lies: 0 for embeddings, i + 1 in block i, `top` for the encoder's last norm; None above it."""
    block = BLOCK.search(name)
    if block is not None:
        return int(block[1]) + 1
    if "encoder.norm." in name:
        return top
    return 0 if "encoder." in name else None


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
    head_lr: float | None = None,
    layer_decay: float = 1.0,
) -> tuple[Optimizer, LambdaLR]:
    """AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) and its schedule, to be stepped once an optimizer step.

    `lr` is the peak rate (`head_lr` and `layer_decay` as in `parameter_groups`), `warmup` a share of `total_steps`,
    `schedule` a name in `SCHEDULES`. Raises `UserError` for a value out of range.
    """
    if schedule not in SCHEDULES:
        raise UserError(f"optimizer.schedule={schedule} is unknown: choose one of {', '.join(SCHEDULES)}")
    if not 0 <= warmup < 1:
        raise UserError(f"optimizer.warmup={warmup} is not a share of the steps: give a number from 0 to below 1")
    groups = parameter_groups(module, lr=lr, weight_decay=weight_decay, head_lr=head_lr, layer_decay=layer_decay)
    optimizer = AdamW(groups, lr=lr, betas=(betas[0], betas[1]), fused=True)
    factor = partial(rate_factor, total_steps=total_steps, warmup=warmup, decay=SCHEDULES[schedule])
    return optimizer, LambdaLR(optimizer, factor)
