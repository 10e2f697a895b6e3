"""What the machine computes fastest with: how many threads, and whether bf16."""

from __future__ import annotations

import os

import torch

BF16_FROM = 128  # d_model from which bf16 pays on a CPU: smaller products are not what a step waits for


def capabilities() -> dict:
    """What torch knows of the processor; nothing before torch 2.12."""
    return getattr(torch.cpu, "get_capabilities", dict)()


def physical_cores() -> int:
    """The cores this process may use, two threads of one core counted once."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, capabilities().get("num_physical_cores") or usable)


def bf16_is_faster(device: str, *, d_model: int) -> bool:
    """Whether `device`, "cuda" or "cpu", has units for bf16 (Ampere, AMX, AVX512-BF16) and the network is wide enough."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    units = capabilities()
    return device == "cpu" and d_model >= BF16_FROM and bool(units.get("amx_bf16") or units.get("avx512_bf16"))


def choose_precision(precision: str, device: str, *, d_model: int) -> str:
    """Lightning's name of the precision that "auto" stands for on `device`; any other stays as it is."""
    if precision != "auto":
        return precision
    return "bf16-mixed" if bf16_is_faster(device, d_model=d_model) else "32-true"


def recurs(device: str, precision: str) -> bool:
    """Whether shapes of batches should recur: on a CPU in bf16, where kernels are made for each."""
    return device == "cpu" and precision == "bf16-mixed"
