"""The page of app.py in a real browser, and its mistakes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from model import load_classifier
from model.explain import attention_maps
from tests.servers import Running, assert_stopped, write_checkpoint

pytest.importorskip("gradio")
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
TEXT = "a heavy hammer and a sweet pear"
ERRORS = [
    {"split": "test", "row": 3, "text": "plum <b>jam</b>…", "truth": "fruit", "predicted": "tool", "how_far": 0.9},
    {"split": "test", "row": 4, "text": "rusty nail", "truth": "tool", "predicted": "fruit", "how_far": 0.6},
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    path = write_checkpoint(tmp_path_factory.mktemp("app") / "best.ckpt", seed=0)
    (path.parent / "report").mkdir()
    report = {"errors": ERRORS, "summary": {"test": {"accuracy": 0.875}}}
    (path.parent / "report" / "report.json").write_text(json.dumps(report))
    return path


@pytest.fixture(scope="module")
def app(checkpoint):
    running = Running("app.py", checkpoint)
    try:
        yield running.wait()
        os.killpg(running.process.pid, signal.SIGINT)
        assert_stopped(running)
    finally:
        running.kill()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(app, browser):
    """The page on a phone; afterwards: nothing came from elsewhere, and no error was logged."""
    page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    asked, logged = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: logged.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: logged.append(str(error)))
    page.goto(f"http://127.0.0.1:{app.port}/")
    page.wait_for_selector("textarea")
    yield page
    assert [url for url in asked if not url.startswith((f"http://127.0.0.1:{app.port}/", "data:", "blob:"))] == []
    assert logged == []
    page.context.close()


def classify(page, text: str) -> None:
    page.fill("textarea", text)
    page.get_by_role("button", name="Classify").click()
    page.wait_for_selector(".heed .tokens")


def percents(page) -> dict[str, float]:
    bars = page.locator(".heed .bar").all()
    return {bar.locator("span").inner_text(): float(bar.locator("b").inner_text().rstrip(" %")) for bar in bars}


def test_bars_tokens_and_maps_are_those_of_the_classifier(page, checkpoint):
    classify(page, TEXT)
    classifier = load_classifier(checkpoint, device="cpu")
    (prediction,) = classifier.predict([TEXT])
    assert percents(page) == pytest.approx(
        {k: round(100 * p, 1) for k, p in prediction.probabilities.items()}, abs=0.11
    )
    assert page.locator(".heed .bar .said").all_inner_texts() == [prediction.label]
    tokens, maps = attention_maps(classifier, TEXT)
    assert page.locator(".heed .tokens span").all_inner_texts() == tokens
    for layer, head in ((2, 1), (1, 3)):
        for name, value in (("Layer", layer), ("Head", head)):
            page.get_by_label(name).click()
            page.get_by_role("option", name=str(value), exact=True).click()
            playwright.expect(page.get_by_role("option")).to_have_count(0)  # the list folds up slowly
        weight = maps[layer - 1, head - 1, 0, 1]
        page.wait_for_selector(f"svg title:text-is('{tokens[0]} → {tokens[1]}: {weight:.3f}')", state="attached")


def test_it_fits_a_phone_in_dark_and_light(page):
    classify(page, " ".join([TEXT] * 20))
    page.wait_for_selector(".heed svg .frame")
    colours = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.reload()
        classify(page, " ".join([TEXT] * 20) + " averylongwordwithoutanyblank" * 5 + "x" * 300)
        page.get_by_text("All of them").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        colours[scheme] = [
            page.evaluate(f"getComputedStyle(document.querySelector('{of}')).{what}")
            for of, what in (("body", "backgroundColor"), (".heed", "color"))
        ]
    lightness = {k: [sum(map(float, re.findall(r"[\d.]+", c)[:3])) for c in pair] for k, pair in colours.items()}
    assert lightness["light"][0] > 600 > 300 > lightness["light"][1]
    assert lightness["dark"][0] < 300 < 600 < lightness["dark"][1]


def test_the_keyboard_is_enough(page):
    page.keyboard.press("Tab")
    for _ in range(5):
        if page.evaluate("document.activeElement.tagName") == "TEXTAREA":
            break
        page.keyboard.press("Tab")
    page.keyboard.type("a sweet pear")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Classify"
    page.keyboard.press("Enter")
    page.wait_for_selector(".heed .tokens")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Layer"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector(".heed svg .frame")


def test_texts_that_do_not_work_are_one_sentence(page):
    paste = "text => {document.querySelector('textarea').focus(); document.execCommand('insertText', false, text)}"
    for text, words in ((" \n ", "There is no text"), ("ab " * 3_300_000, "more than 100,000 characters")):
        page.evaluate(paste, text)
        page.get_by_role("button", name="Classify").click()
        page.wait_for_selector(f".heed [role=alert]:has-text('{words}')")
    classify(page, TEXT)
    assert page.locator(".heed [role=alert]").count() == 0


def test_what_the_test_got_wrong_can_be_tried(page):
    assert page.get_by_text("The 2 most confident mistakes on the test texts. Test accuracy 87.5 %.").is_visible()
    page.get_by_text("All of them").click()
    assert page.locator(".heed .wrong").all_inner_texts() == [
        "said tool, is fruit\nplum <b>jam</b>…",
        "said fruit, is tool\nrusty nail",
    ]
    page.get_by_label("Try one of them").click()
    page.get_by_role("option").first.click()
    playwright.expect(page.locator("textarea")).to_have_value("plum <b>jam</b>")


def test_its_screen_is_quiet(app):
    assert [line.split()[0] for line in app.log.read_text().splitlines()] == ["checkpoint", "page"]


def test_where_there_is_no_report_it_says_so(checkpoint, tmp_path):
    from serving.page import errors_of_the_test

    assert errors_of_the_test(tmp_path / "best.ckpt")[0].startswith("There is no ")
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "report.json").write_text("{")
    assert errors_of_the_test(tmp_path / "best.ckpt")[0].endswith("or no report of train.py.")
    assert errors_of_the_test(checkpoint)[1] == ERRORS


def test_mistakes_are_one_sentence(command, checkpoint, app):
    for arguments, words in (
        ((str(checkpoint), "--port", str(app.port)), "cannot be opened"),
        ((), "no checkpoint given"),
    ):
        result = command("app.py", *arguments)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
        assert words in result.stderr
