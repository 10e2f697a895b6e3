"""Our head, one linear map of the pooled vector, said in the heads that `transformers` has, logits unchanged.

Its heads put a tanh or a norm before the last map, and BERT's read off `[CLS]` alone; all of it can be made to do nothing.
D d_model, C classes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from errors import UserError

SMALL = 1e-4  # tanh(SMALL · x) / SMALL is x to seven digits
LOUD, LOUDER = 1e7, 1e11  # beside which [CLS]'s own vector counts for nothing; which makes a norm's scale a constant
TINY = 1e-8  # x whose variance is nothing beside the norm's ε, so that the norm divides by √ε whatever x is


def bert_cls(weight: Tensor, bias: Tensor) -> dict[str, Tensor]:
    """BERT's pooler and head for `weight (C, D)` and `bias (C,)` on `[CLS]`: so small that the tanh between changes nothing."""
    return {
        "bert.pooler.dense.weight": torch.eye(weight.shape[1]) * SMALL,
        "bert.pooler.dense.bias": torch.zeros(weight.shape[1]),
        "classifier.weight": weight / SMALL,
        "classifier.bias": bias,
    }


def bert_mean(weight: Tensor, bias: Tensor, *, d_ff: int, layer: str) -> dict[str, Tensor]:
    """The same for the mean over the tokens, by one more block named `layer`: attention whose scores are all zero is a mean.

    It carries the C logits and their negatives, `LOUD`, to `[CLS]`; the other coordinates are constants so much `LOUDER` that
    they alone decide what the norm divides by. Raises `UserError` where these have no room beside 2 C coordinates.
    """
    pair = in_pairs(weight)
    (n_classes, d_model), used = weight.shape, 2 * len(weight)
    constant = torch.zeros(d_model)
    constant[used : d_model - d_model % 2] = torch.tensor([LOUDER, -LOUDER]).repeat((d_model - used) // 2)
    if not constant.any():
        raise UserError(
            f"{n_classes} classes need model.d_model={used + 2} or more to be averaged in BERT: use pooling=cls"
        )
    scale = LOUD / float(constant.std(correction=0))  # what the norm makes of a logit
    zeros, ones, square = torch.zeros(d_model), torch.ones(d_model), torch.zeros(d_model, d_model)
    block = {
        **{f"attention.self.{name}": (square, zeros) for name in ("query", "key")},
        "attention.self.value": (pair * LOUD, zeros),
        "attention.output.dense": (torch.eye(d_model), constant),
        "attention.output.LayerNorm": (ones, zeros),
        "intermediate.dense": (torch.zeros(d_ff, d_model), torch.zeros(d_ff)),
        "output.dense": (torch.zeros(d_model, d_ff), zeros),
        "output.LayerNorm": (ones, zeros),
    }
    tensors = {f"{layer}.{name}.weight": both[0].clone() for name, both in block.items()}
    tensors |= {f"{layer}.{name}.bias": both[1].clone() for name, both in block.items()}
    return tensors | bert_cls(differences(n_classes, d_model) / (2 * scale), bias)


def modernbert(weight: Tensor, bias: Tensor, *, eps: float, norm_bias: bool) -> dict[str, Tensor]:
    """ModernBERT's head: a linear map, a norm of `eps`, and the last map.

    The logits and their negatives have the mean 0 that the norm takes away. Raises `UserError` where they have no room.
    """
    n_classes, d_model = weight.shape
    if 2 * n_classes > d_model:
        raise UserError(f"{n_classes} classes need model.d_model={2 * n_classes} or more in ModernBERT's head")
    zeros = torch.zeros(d_model)
    return {
        "head.dense.weight": in_pairs(weight) * TINY,
        "head.dense.bias": zeros,
        "head.norm.weight": torch.ones(d_model),
        **({"head.norm.bias": zeros.clone()} if norm_bias else {}),
        "classifier.weight": differences(n_classes, d_model) * (math.sqrt(eps) / (2 * TINY)),
        "classifier.bias": bias,
    }


def in_pairs(weight: Tensor) -> Tensor:
    """`weight (C, D)`, its negative below, zeros below that: `(D, D)`."""
    n_classes, d_model = weight.shape
    return torch.cat([weight, -weight, weight.new_zeros(max(0, d_model - 2 * n_classes), d_model)])


def differences(n_classes: int, d_model: int) -> Tensor:
    """The map `(C, D)` from such pairs back: twice what was paired."""
    return torch.eye(n_classes, d_model) - torch.eye(n_classes, d_model).roll(n_classes, dims=1)
