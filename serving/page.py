"""The page to try a checkpoint, in Gradio: a text in; label bars, coloured tokens, attention maps and the test's errors out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio
import torch

from model import TextClassifier
from model.explain import attention_maps, attributions
from serving.checks import Limits
from serving.pictures import (
    MOST_TOKENS,
    STYLE,
    around,
    attention_map,
    coloured_tokens,
    faint,
    label_bars,
    sentence,
    shown,
    wrong_examples,
)

ONE_AT_A_TIME: dict[str, Any] = {"concurrency_id": "network", "concurrency_limit": 1, "show_progress": "minimal"}
SYSTEM_FONTS = ("system-ui", "sans-serif")  # Gradio's own would come from elsewhere
MOST = Limits().characters
NOTHING = around(faint("Classify a text to see how its tokens look at each other."))


class Page:
    """What happens on the page, on one classifier."""

    def __init__(self, classifier: TextClassifier) -> None:
        self.classifier = classifier

    def problem(self, parts: Sequence[str | None]) -> str | None:
        """Why these parts of a text cannot be classified, or None."""
        if not any((part or "").strip() for part in parts):
            return "There is no text: write one above."
        if sum(len(part or "") for part in parts) > MOST:
            return f"The text has more than {MOST:,} characters, which are the most that can be read here."
        return None

    def text(self, parts: Sequence[str | None]) -> Any:
        """The text as the classifier reads it."""
        return (parts[0] or "") if self.classifier.n_parts == 1 else [part or "" for part in parts]

    def classify(self, *parts: str | None) -> str:
        """The label bars, or what is wrong with the text."""
        if problem := self.problem(parts):
            return sentence(problem)
        tokens = self.classifier.encode([self.text(parts)])
        (prediction,) = self.classifier.predictions(self.classifier.logits_of(tokens))
        return label_bars(prediction, self.classifier, truncated=bool(self.classifier.truncated(tokens)[0]))

    def explain(self, layer: int, head: int, *parts: str | None) -> tuple[str, Any, str]:
        """The coloured tokens, the attention of all layers and heads to choose from, and the chosen map."""
        if self.problem(parts):
            return "", None, NOTHING
        text = self.text(parts)
        tokens, maps = attention_maps(self.classifier, text)
        kept = tokens[:MOST_TOKENS], maps[:, :, :MOST_TOKENS, :MOST_TOKENS].to(torch.float32), len(tokens)
        return coloured_tokens(attributions(self.classifier, text)), kept, self.draw(layer, head, kept)

    def draw(self, layer: int, head: int, kept: Any) -> str:
        """The map of one layer and head."""
        if kept is None:
            return NOTHING
        tokens, maps, n_tokens = kept
        return attention_map(tokens, maps[layer - 1, head - 1], n_tokens=n_tokens)


def errors_of_the_test(checkpoint: Path) -> tuple[str, list[dict[str, Any]]]:
    """What to say of the report beside the checkpoint, and the errors that it lists."""
    path = checkpoint.parent / "report" / "report.json"
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        errors = report.get("errors")
        if errors is None:
            return f"{path} has no test texts with labels.", []
        accuracy = report.get("summary", {}).get("test", {}).get("accuracy")
        of = f" Test accuracy {100 * accuracy:.1f} %." if accuracy is not None else ""
        return f"The {len(errors)} most confident mistakes on the test texts.{of}" if errors else "None." + of, errors
    except FileNotFoundError:
        return f"There is no {path}: the examples come from the report that train.py leaves beside its checkpoint.", []
    except (OSError, ValueError, AttributeError):
        return f"{path} cannot be read: it is damaged, or no report of train.py.", []


def make_page(classifier: TextClassifier, checkpoint: Path) -> gradio.Blocks:
    """The page, ready to launch."""
    page, parts = Page(classifier), classifier.n_parts
    network = classifier.network.architecture
    summary, errors = errors_of_the_test(checkpoint)
    with gradio.Blocks(title=f"Heed: {checkpoint.name}", analytics_enabled=False) as blocks:
        gradio.Markdown(f"# Heed\n`{checkpoint}`")
        names = ["Text"] if parts == 1 else [f"Part {number + 1} of the text" for number in range(parts)]
        look: dict[str, Any] = {"lines": 3, "max_lines": 12, "placeholder": "Write or paste one"}
        boxes = [gradio.Textbox(label=name, max_length=MOST + 1, **look) for name in names]  # one too many, to be told
        button = gradio.Button("Classify", variant="primary")
        result = gradio.HTML(label="Labels")
        tokens = gradio.HTML(label="Tokens")
        gradio.Markdown("## Attention")
        with gradio.Row():
            layers, heads = list(range(1, network["n_layers"] + 1)), list(range(1, network["n_heads"] + 1))
            layer = gradio.Dropdown(layers, value=layers[-1], label="Layer", min_width=120)
            head = gradio.Dropdown(heads, value=1, label="Head", min_width=120)
        picture, kept = gradio.HTML(NOTHING, label="Attention"), gradio.State()
        gradio.Markdown(f"## Wrong in the test\n{summary}")
        if errors and parts == 1:
            choices = [(f"{n + 1}. {shown(e['truth'])}: {e['text'][:60]}", e["text"]) for n, e in enumerate(errors)]
            taken = gradio.Dropdown(choices, value=None, label="Try one of them")
            taken.input(lambda text: (text or "").removesuffix("…").strip(), taken, boxes[0])
        if errors:
            with gradio.Accordion("All of them", open=False):
                gradio.HTML(wrong_examples(errors))
        asked = button.click(page.classify, boxes, result, **ONE_AT_A_TIME)
        asked.then(page.explain, [layer, head, *boxes], [tokens, kept, picture], **ONE_AT_A_TIME)
        for choice in (layer, head):
            choice.input(page.draw, [layer, head, kept], picture, show_progress="hidden")
    return blocks


def launch(blocks: gradio.Blocks, *, host: str, port: int) -> None:
    """Serve the page from a thread, without anything from other machines."""
    blocks.launch(
        server_name=host,
        server_port=port,
        share=False,
        quiet=True,
        prevent_thread_lock=True,
        footer_links=[],
        ssr_mode=False,
        theme=gradio.themes.Base(font=SYSTEM_FONTS, font_mono=("ui-monospace", "monospace")),
        css=STYLE,
    )
