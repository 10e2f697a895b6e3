"""serve.py on a real server: answers equal predict's, refusals have reasons, and nothing is left when it stops."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from model import load_classifier
from serving.checks import Limits, Refused, check
from tests.conftest import FRUIT, TOOLS
from tests.servers import Running, assert_stopped, free_port, write_checkpoint

pytest.importorskip("litserve")
PATIENCE = 2


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("serve") / "best.ckpt", seed=0)


@pytest.fixture(scope="module")
def server(checkpoint):
    served = checkpoint.with_name("served.ckpt")
    shutil.copy(checkpoint, served)
    running = Running("serve.py", served, f"--patience={PATIENCE}")
    try:
        yield running.wait()
        os.killpg(running.process.pid, signal.SIGINT)  # as Ctrl-C in a terminal does
        assert_stopped(running)
    finally:
        running.kill()


def close_to(predictions: list[dict], checkpoint: Path, texts: list) -> bool:
    expected = load_classifier(checkpoint, device="cpu").predict(texts)
    for got, wanted in zip(predictions, expected, strict=True):
        assert got["label"] == wanted.label
        assert got["probabilities"] == pytest.approx(wanted.probabilities, abs=1e-5)
        assert list(got["probabilities"]) == list(wanted.probabilities)
    return True


def test_answers_are_those_of_predict(server, checkpoint):
    assert close_to(server.predict(text="ripe red apple"), checkpoint, ["ripe red apple"])
    texts = ["", "  ", "🍌 香蕉", "lone \ud83d surrogate", "apple " * 5000, *FRUIT, *TOOLS]
    assert close_to(server.predict(texts=texts), checkpoint, texts)


def test_the_first_screen_is_quiet_and_its_command_works(server, checkpoint):
    lines = server.log.read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["checkpoint", "task", "serving", "try"]
    assert "fruit, tool, Gemüse" in lines[1]
    assert f"http://127.0.0.1:{server.port}" in lines[2]
    if shutil.which("curl"):
        answer = subprocess.run(lines[3][4:].strip(), shell=True, capture_output=True, text=True)
        assert close_to(
            json.loads(answer.stdout)["predictions"], checkpoint, ["The striker scored twice in the final."]
        )


def test_health_and_info(server, checkpoint):
    assert server.ask("/health") == (200, b"ok")
    model = json.loads(server.ask("/info")[1])["model"]
    assert model["labels"] == ["fruit", "tool", "Gemüse"]
    assert (model["task"], model["d_model"], model["n_layers"], model["parts"]) == ("single_label", 16, 2, 1)
    assert model["limits"] == {"bytes": 2_000_000, "texts": 256, "characters": 100_000, "seconds": PATIENCE}
    assert model["parameters"] == sum(p.numel() for p in load_classifier(checkpoint, device="cpu").network.parameters())


REFUSALS = {
    "no body": (b"", 400, "empty"),
    "blanks": (b" \n", 400, "empty"),
    "not UTF-8": (b'{"text": "\xff"}', 400, "not UTF-8 (byte 11)"),
    "not JSON": (b'{"text": ', 400, "not JSON"),
    "deep": (b"[" * 200_000, 400, "not JSON"),
    "a list": (b'["a"]', 400, "a list"),
    "another key": (b'{"txt": "a"}', 400, "'txt'"),
    "both": (b'{"text": "a", "texts": ["a"]}', 400, "'texts'"),
    "null": (b'{"text": null}', 400, "null"),
    "a number among texts": (b'{"texts": ["a", 7]}', 400, "text 2 is a number"),
    "a part too many": (b'{"text": ["a", "b"]}', 400, "a list, not a string"),
    "no texts": (b'{"texts": []}', 400, "empty list"),
    "texts as a string": (b'{"texts": "a"}', 400, "texts is a string"),
    "too many": (json.dumps({"texts": ["a"] * 257}).encode(), 413, "257"),
    "too long": (json.dumps({"text": "a" * 100_001}).encode(), 413, "100,001"),
    "10 MB": (json.dumps({"text": "a" * 10_000_000}).encode(), 413, "2,000,000 bytes"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_requests_are_refused_with_a_reason_and_the_server_goes_on(server, name):
    body, expected, words = REFUSALS[name]
    status, answer = server.ask("/predict", body)
    detail = json.loads(answer)["detail"]
    assert (status, words in detail) == (expected, True), detail
    assert "Traceback" not in detail
    assert server.predict(text="plum jam")[0]["label"]


def test_unknown_routes_and_methods(server):
    for path, body, expected in (
        ("/", None, 404),
        ("/docs", None, 404),
        ("/predict", None, 405),
        ("/info", b"{}", 405),
    ):
        status, answer = server.ask(path, body)
        assert (status, "POST /predict" in json.loads(answer)["detail"]) == (expected, True)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b"408"),
        (b"POST /predict HT", b"408"),
        (b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{", b"408"),
        (b"\x16\x03\x01 no HTTP\r\n\r\n", b"400"),
    ],
    ids=["nothing", "half a head", "half a body", "no HTTP"],
)
def test_a_slow_client_is_told_so_and_let_go(server, sent, status):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        client.sendall(sent)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.split()[1] == status
    assert json.loads(answer.split(b"\r\n\r\n")[1])["detail"]


def test_many_clients_at_once_get_their_own_answers(server, checkpoint):
    texts = [f"{a} {b}" for a in FRUIT for b in TOOLS]
    with ThreadPoolExecutor(16) as pool:
        answers = [answer for (answer,) in pool.map(lambda text: server.predict(text=text), texts)]
    assert close_to(answers, checkpoint, texts)


def test_a_killed_worker_is_replaced_and_a_swapped_checkpoint_is_not_read(server, checkpoint):
    served, before = checkpoint.with_name("served.ckpt"), json.loads(server.ask("/info")[1])["model"]
    write_checkpoint(served, seed=1)
    assert not torch.equal(
        load_classifier(served, device="cpu").logits(FRUIT), load_classifier(checkpoint, device="cpu").logits(FRUIT)
    )
    (worker,) = server.workers()
    os.kill(worker, signal.SIGKILL)
    while server.workers() in ([], [worker]):
        time.sleep(0.1)
    assert close_to(server.predict(texts=FRUIT), checkpoint, FRUIT)  # waits until the new worker is ready
    assert json.loads(server.ask("/info")[1])["model"] == before


def test_what_went_wrong_stays_off_the_screen(server):
    assert len(server.log.read_text().splitlines()) == 4


def test_two_workers_stop_at_sigterm(checkpoint):
    running = Running("serve.py", checkpoint, "--workers=2").wait()
    try:
        assert len(running.workers()) == 2
        assert running.predict(text="plum jam")
        running.process.send_signal(signal.SIGTERM)
        assert_stopped(running)
    finally:
        running.kill()


def test_mistakes_are_one_sentence(command, checkpoint, server):
    for arguments, words in (
        ((str(checkpoint), "--port", str(server.port)), "cannot be opened"),
        ((str(checkpoint), "--port", "80"), "1024"),
        (("missing.ckpt", "--port", str(free_port())), "no such file"),
        ((), "no checkpoint given"),
    ):
        result = command("serve.py", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.count("\n") == 1
        assert words in result.stderr


def test_texts_of_two_parts():
    limits = Limits()
    check(b'{"text": ["a", "b"]}', limits, 2)
    check(b'{"texts": [["a", "b"], ["c", "d"]]}', limits, 2)
    for body in (b'{"text": "ab"}', b'{"text": ["a"]}', b'{"texts": ["ab"]}', b'{"text": ["a", 1]}'):
        with pytest.raises(Refused):
            check(body, limits, 2)
