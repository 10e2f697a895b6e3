"""A server of the command line in a process of its own, and a checkpoint for it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from encoding import SPECIAL_TOKENS
from model import build_classifier
from model.checkpoint import checkpoint_content
from model.task import SingleLabel
from tests.conftest import FRUIT, ROOT, SMALL, TOOLS

WORDS = sorted({word for text in FRUIT + TOOLS for word in text.split()})


def write_checkpoint(path: Path, *, seed: int, n_parts: int = 1) -> Path:
    vocabulary = {word: number for number, word in enumerate([*SPECIAL_TOKENS, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    torch.manual_seed(seed)
    network = build_classifier(**{**SMALL, "n_segments": n_parts})
    torch.nn.init.normal_(network.head.weight)
    task = SingleLabel(labels=["fruit", "tool", "Gemüse"])
    facts = checkpoint_content(network, task=task, tokenizer=tokenizer, truncation="head", n_parts=n_parts)
    torch.save({"heed": facts, "state_dict": network.state_dict()}, path)
    return path


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Running:
    """A server in a process group of its own."""

    def __init__(self, script: str, checkpoint: Path, *options: str) -> None:
        self.port, self.last_line = free_port(), {"serve.py": "try ", "app.py": "page "}[script]
        self.log = checkpoint.with_suffix(".log")
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / script), str(checkpoint), "--port", str(self.port), *options],
            cwd=checkpoint.parent,
            env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "COLUMNS": "120"},
            stdout=self.log.open("w"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait(self) -> Running:
        for _ in range(600):
            assert self.process.poll() is None, self.log.read_text()
            if self.last_line in self.log.read_text():
                return self
            time.sleep(0.1)
        raise AssertionError(self.log.read_text())

    def ask(self, path: str, body: bytes | None = None, method: str | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method or ("GET" if body is None else "POST"), path, body)
        answer = connection.getresponse()
        with closing(connection):
            return answer.status, answer.read()

    def predict(self, **content) -> list[dict]:
        status, body = self.ask("/predict", json.dumps(content).encode())
        assert status == 200, body
        return json.loads(body)["predictions"]

    def workers(self) -> list[int]:
        found = []
        for each in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if "spawn_main" in each.read_text() and os.getsid(int(each.parent.name)) == self.process.pid:
                    found.append(int(each.parent.name))
            except OSError:
                pass
        return found

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)


def assert_stopped(running: Running) -> None:
    assert running.process.wait(30) == 0
    assert running.log.read_text().splitlines()[-1] == "stopped"
    assert running.workers() == []
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", running.port))
