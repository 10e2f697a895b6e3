"""LitServe around a checkpoint: what the processes are given, how they start, and how they stop."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
import shutil
import signal
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import litserve
import torch

from errors import UserError
from model import TextClassifier
from model.device import physical_cores
from serving.checks import Limits
from serving.gate import Gate, patient
from serving.queues import Answers, RequestQueue
from serving.worker import Predictor

WAIT = 20.0  # seconds a request may wait for a worker before it is given up
STOPS = (signal.SIGINT, signal.SIGTERM)


class Server(litserve.LitServer):
    """LitServe with the queues of `queues.py`, whose workers leave Ctrl-C to the first process, also while they start."""

    def __init__(self, predictor: Predictor, folder: Path, **options: Any) -> None:
        super().__init__(predictor, **options)
        self.folder = folder

    def _init_manager(self, num_api_servers: int) -> Any:
        manager = super()._init_manager(num_api_servers)
        self.litapi_request_queues = {"/predict": RequestQueue(self.folder)}
        self._transport = Answers(self.folder)
        return manager

    def launch_inference_worker(self, lit_api: litserve.LitAPI) -> list:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which a new process inherits
        try:
            return super().launch_inference_worker(lit_api)
        finally:
            signal.signal(signal.SIGINT, before)


def make_server(
    checkpoint: Path,
    *,
    info: dict[str, Any],
    n_parts: int,
    limits: Limits,
    workers: int,
    max_batch: int,
    precision: str,
) -> litserve.LitServer:
    """A server whose workers read `checkpoint`; `/info` answers `info`."""
    cuda = torch.cuda.is_available()
    threads = max(
        1, (physical_cores() - 1) // workers
    )  # a core for HTTP: threads that wait for a core they share are slow
    predictor = Predictor(str(checkpoint), precision=precision, threads=threads, max_batch=max_batch)
    return Server(
        predictor,
        checkpoint.parent,
        accelerator="cuda" if cuda else "cpu",
        workers_per_device=workers,
        timeout=WAIT,
        restart_workers=True,
        disable_openapi_url=True,
        model_metadata={**info, "limits": limits._asdict()},
        middlewares=[(Gate, {"limits": limits, "n_parts": n_parts})],
    )


def run_server(server: litserve.LitServer, *, host: str, port: int, limits: Limits) -> None:
    """Serve until SIGINT or SIGTERM, then leave no process behind. Raises `UserError` where the workers cannot start."""
    first = os.getpid()

    def stop(number: int, frame: Any) -> None:
        if os.getpid() == first:
            logging.getLogger("litserve").setLevel(logging.CRITICAL)  # its threads stumble over what is being closed
            for each in STOPS:
                signal.signal(each, signal.SIG_IGN)
            raise KeyboardInterrupt
        if number == signal.SIGTERM:  # a forked process, which leaves Ctrl-C to the first
            os._exit(0)

    for each in STOPS:
        signal.signal(each, stop)
    try:
        server.run(
            host=host,
            port=port,
            num_api_servers=1,
            log_level="error",
            generate_client_file=False,
            access_log=False,
            http=patient(limits.seconds),
            ws="none",
        )
    except KeyboardInterrupt:
        pass  # while the workers were starting; later LitServe sees to it
    except (RuntimeError, EOFError) as error:
        raise UserError(
            f"a process of the server did not start or has gone ({error}); see above what it said"
        ) from error
    finally:
        for child in multiprocessing.active_children():
            child.terminate()
            child.join(timeout=5)
            child.kill()


def copy_checkpoint(path: Path, folder: Path) -> tuple[Path, str]:
    """Copy the file, so that all workers, also those started later, read the same; return the copy and its SHA-256."""
    copy = folder / path.name
    try:
        shutil.copyfile(path, copy)
    except OSError as error:
        raise UserError(
            f"checkpoint {path}: cannot be copied to {folder} ({error.strerror}); make room there"
        ) from error
    return copy, hashlib.sha256(copy.read_bytes()).hexdigest()


def facts_of(classifier: TextClassifier, path: Path, key: str) -> dict[str, Any]:
    """What `/info` says of the model."""
    network = classifier.network
    sizes = ("n_layers", "d_model", "n_heads", "d_ff", "vocab_size")
    modified = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    return {
        "checkpoint": str(path),
        "modified": modified.isoformat(timespec="seconds"),
        "sha256": key,
        "version": version("heed"),
        "task": classifier.task.name,
        "labels": classifier.labels,
        **{name: network.architecture[name] for name in sizes},
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "max_len": classifier.max_len,
        "parts": classifier.n_parts,
    }
