import os

import pytest
import torch

from model import device
from model.device import bf16_is_faster, choose_precision, physical_cores, recurs


@pytest.fixture
def processor(monkeypatch):
    return lambda **units: monkeypatch.setattr(device, "capabilities", lambda: units)


def test_bf16_is_chosen_where_the_processor_has_units_for_it_and_the_network_is_wide(processor):
    for units in ({"amx_bf16": True}, {"avx512_bf16": True}):
        processor(**units)
        assert choose_precision("auto", "cpu", d_model=256) == "bf16-mixed"
        assert choose_precision("auto", "cpu", d_model=64) == "32-true"
    for units in ({"amx_bf16": False, "avx512_bf16": False}, {}):
        processor(**units)
        assert choose_precision("auto", "cpu", d_model=256) == "32-true"


def test_a_precision_that_is_asked_for_stays(processor):
    processor(amx_bf16=True)
    assert choose_precision("32-true", "cpu", d_model=256) == "32-true"
    assert choose_precision("bf16-mixed", "cpu", d_model=16) == "bf16-mixed"


@pytest.mark.parametrize("supported", [True, False])
def test_a_gpu_computes_in_bf16_where_it_has_units_for_it(monkeypatch, supported):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported)
    assert bf16_is_faster("cuda", d_model=64) is supported


def test_threads_are_the_physical_cores_that_may_be_used(processor):
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    processor(num_physical_cores=1)
    assert physical_cores() == 1
    processor(num_physical_cores=10**6)
    assert physical_cores() == usable
    processor()
    assert physical_cores() == usable


@pytest.mark.parametrize(
    ("device_", "precision", "expected"),
    [("cpu", "bf16-mixed", True), ("cpu", "32-true", False), ("cuda", "bf16-mixed", False)],
)
def test_shapes_recur_where_kernels_are_made_for_each(device_, precision, expected):
    assert recurs(device_, precision) is expected
