"""Requests a second of `serve.py` with batching, times those of the same server with batching off, on loopback.

    pip install -c constraints.txt -e '.[serve]' && python -m benchmarks.serving

64 clients, each on a connection of its own, ask about one short text at a time and wait for the answer: the first twelve
words of the test texts of `trec` where it lies beside the project, else of the bundled articles. `model=small`, untrained. An
answer that is not 200 with a label is an error. Clients, HTTP process and worker share the machine's cores. Writes
`benchmarks/results/serving.json`; with `--requests 2000` it is a trial and writes nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import uvloop

from benchmarks.common import ROOT, write_result
from benchmarks.corpus import configuration
from model.checkpoint import checkpoint_content
from model.task import SingleLabel
from training.assembly import make_data, make_module

REQUESTS, CLIENTS, WORDS, WARM_UP = 20_000, 64, 12, 1000


def checkpoint(path: Path) -> list[str]:
    """Write one of `model=small` that was never trained; return the texts to ask about."""
    config = configuration(corpus="trec")
    data = make_data(config)
    network = make_module(config, data).classifier
    torch.nn.init.normal_(network.head.weight)  # zero before training
    facts = checkpoint_content(
        network, task=SingleLabel(labels=data.labels), tokenizer=data.tokenizer, truncation=config.truncation
    )
    torch.save({"heed": facts, "state_dict": network.state_dict()}, path)
    assert data.splits is not None
    return [" ".join(text.split()[:WORDS]) for text in data.splits["test"]["text"]]


@contextmanager
def server(path: Path, *options: str) -> Iterator[int]:
    """`python serve.py` in a process of its own; gives its port."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "serve.py", str(path), f"--port={port}", *options], cwd=ROOT)
    try:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.2)
        yield port
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


class Client(asyncio.Protocol):
    """Sends the next of `requests` when the answer to the last is there; notes seconds and errors."""

    def __init__(self, requests: Iterator[bytes], seconds: list[float], errors: list[bytes]) -> None:
        self.requests, self.seconds, self.errors = requests, seconds, errors
        self.buffer, self.finished = b"", asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        request = next(self.requests, None)
        self.sent = time.perf_counter()
        if request is None:
            self.finished.set_result(None)
            self.transport.close()
        else:
            self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, gap, body = self.buffer.partition(b"\r\n\r\n")
        if gap and len(body) >= int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]):
            self.seconds.append(time.perf_counter() - self.sent)
            if b" 200 " not in head[:14] or b'"label":"' not in body:
                self.errors.append(self.buffer)
            self.buffer = b""
            self.ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.finished.done():
            self.errors.append(b"connection lost")
            self.finished.set_result(None)


async def load(port: int, texts: list[str], count: int) -> tuple[float, list[float], list[bytes]]:
    """Seconds in all, seconds of each answer, and the answers that were errors."""
    bodies = [json.dumps({"text": text}).encode() for text in texts]
    made = [b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(b), b) for b in bodies]
    requests = islice(cycle(made), count)
    seconds: list[float] = []
    errors: list[bytes] = []
    loop, start = asyncio.get_running_loop(), time.perf_counter()
    opened = [
        await loop.create_connection(lambda: Client(requests, seconds, errors), "127.0.0.1", port)
        for _ in range(CLIENTS)
    ]
    await asyncio.gather(*(client.finished for _, client in opened))
    return time.perf_counter() - start, seconds, errors


def measure(path: Path, texts: list[str], count: int, *options: str) -> dict[str, Any]:
    """The figures of one server."""
    with server(path, *options) as port:
        uvloop.run(load(port, texts, min(count, WARM_UP)))
        took, seconds, errors = uvloop.run(load(port, texts, count))
    for error in errors[:3]:
        print(error.decode(errors="replace"), file=sys.stderr)
    p50, p99 = (float(np.quantile(seconds, q)) * 1000 for q in (0.5, 0.99))
    return {"requests_a_second": count / took, "errors": len(errors), "p50_ms": p50, "p99_ms": p99}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=REQUESTS, help="to each server (default: %(default)s)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.ckpt")
        texts = checkpoint(path)
        alone = measure(path, texts, arguments.requests, "--max-batch=1")
        batched = measure(path, texts, arguments.requests)
    figures = {
        "ratio": batched["requests_a_second"] / alone["requests_a_second"],
        "errors": alone["errors"] + batched["errors"],
        "p99_ms": batched["p99_ms"],
        "requests": arguments.requests,
        "clients": CLIENTS,
        "batched": batched,
        "one_by_one": alone,
    }
    if arguments.requests >= REQUESTS:
        write_result("serving", figures)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
