"""Several processes that train one network: which one this is, and what only the first may do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig
from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.strategies import ModelParallelStrategy
from torch.distributed.fsdp import fully_shard

from errors import UserError, is_first_process
from model.device import physical_cores
from model.lightning_module import LightningClassifier

OF_LIGHTNING = ("LOCAL_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")  # what its launcher sets


def n_processes(config: DictConfig) -> int:
    """How many processes train, on all machines together."""
    return local_processes(config) * config.trainer.num_nodes


def local_processes(config: DictConfig) -> int:
    """How many processes train on this machine. Raises `UserError` for several without a strategy, or GPUs that lack."""
    devices = config.trainer.devices
    if isinstance(devices, ListConfig):
        count = len(devices)
    elif str(devices) in ("auto", "-1"):
        count = max(1, torch.cuda.device_count()) if config.trainer.accelerator in ("auto", "gpu", "cuda") else 1
    else:
        count = devices if isinstance(devices, int) else 0
    if count < 1:
        raise UserError(f"trainer.devices={devices} does not work: give a whole number of at least 1, auto, or a list")
    if count * config.trainer.num_nodes > 1 and config.trainer.get("strategy") is None:
        raise UserError(f"trainer.devices={devices} are several processes: add trainer=ddp")
    if config.trainer.accelerator in ("gpu", "cuda") and count > torch.cuda.device_count():
        raise UserError(
            f"trainer.devices={devices}, and {torch.cuda.device_count()} GPUs are here: give fewer, or trainer=ddp "
            "trainer.accelerator=cpu for processes without a GPU"
        )
    return count


def share_cores(config: DictConfig) -> None:
    """Give each process of this machine its part of the cores."""
    threads = max(1, physical_cores() // local_processes(config))
    torch.set_num_threads(threads)
    if local_processes(config) > 1:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # else Lightning counts two threads of a core as two


@contextmanager
def several_processes() -> Iterator[None]:
    """Around training: Lightning starts the other processes by this one's command line, and leaves them and what it set.

    In a sweep that command line becomes the present run's alone; afterwards the next run can start processes of its own.
    """
    arguments, ours = sys.argv[1:], "LOCAL_RANK" not in os.environ
    if HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN:
        sys.argv[1:] = [*HydraConfig.get().overrides.task, "hydra.mode=RUN"]
    try:
        yield
    finally:
        sys.argv[1:] = arguments
        if dist.is_available() and dist.is_initialized():
            dist.destroy_process_group()
        for name in OF_LIGHTNING if ours else ():
            os.environ.pop(name, None)


class OwnNoise(Callback):
    """Let each process drop other values: all have drawn their weights from one seed."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        torch.manual_seed(torch.initial_seed() + trainer.global_rank)


@contextmanager
def first_process_first() -> Iterator[None]:
    """Of processes that torchrun started, let the others wait here until the first is through: it fills the cache for all.

    Those that Lightning starts come later anyway; Slurm's build the same at once, and the first to finish stays.
    """
    if int(os.environ.get("WORLD_SIZE", 1)) == 1 or "RANK" not in os.environ:
        yield
        return
    dist.init_process_group("gloo")
    if not is_first_process():
        dist.barrier()
    try:
        yield
    finally:
        if is_first_process():
            dist.barrier()
        dist.destroy_process_group()  # Lightning makes its own, for GPUs where there are some


def shard_if_asked(trainer: Trainer, module: LightningClassifier) -> None:
    """With trainer=fsdp, leave each process its part of every block's weights and of the rest, once the processes are there.

    The parts are spread over the processes of a machine, and all machines hold the same.
    """

    def configure_model() -> None:
        for part in (*module.classifier.encoder.blocks, module.classifier):
            fully_shard(part, mesh=module.device_mesh)

    if isinstance(trainer.strategy, ModelParallelStrategy):
        module.__dict__["configure_model"] = configure_model  # Lightning calls it
