"""What several processes hold together, put together in each."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor


def whole(tensor: Tensor) -> Tensor:
    """The tensor itself, put together where several processes hold a part each."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def gathered(parts: list[Tensor]) -> list[Tensor]:
    """The tensors with the rows of all processes, where several validate."""
    if not (dist.is_available() and dist.is_initialized()):
        return parts
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, parts)
    return [torch.cat(of_all) for of_all in zip(*found, strict=True)]
