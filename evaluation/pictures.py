"""The report's pictures, as SVG that stands inside a page and takes the page's colours, light or dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

SIZE = (5.4, 3.3)  # inches; at 72 dots each about a phone's width
COLOURS = {name: f"#0a0b{number:02x}" for number, name in enumerate(("text", "faint", "one", "two"), 1)}
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "heed",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.5,
    "grid.color": COLOURS["faint"],
    "axes.edgecolor": COLOURS["faint"],
    "legend.frameon": False,
    "text.parse_math": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), COLOURS["text"]),
}


def picture(name: str, draw: Callable[[Any], None], *, x: str, y: str) -> str:
    """One pair of axes drawn by `draw(axes)`, as an `<svg>` whose ids begin with `name`."""
    from matplotlib import rc_context  # not above: a run that is only tested needs no pictures
    from matplotlib.figure import Figure

    file = io.StringIO()
    with rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        draw(axes)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return in_page(name, file.getvalue())


def in_page(name: str, svg: str) -> str:
    """Leave what a page needs: no addresses, ids of its own, and the page's colours."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"| (width|height)="[\d.]+pt"| version="1.1"', "", svg, count=5)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    for colour, value in COLOURS.items():
        svg = svg.replace(value, f"var(--{colour})")
    return svg


def curves(history: Sequence[dict[str, float]], names: dict[str, str], *, y: str) -> str:
    """One line for each of `names`, metric → what it is called, over the epochs (or steps, of a stream)."""
    when = "epoch" if len({entry["epoch"] for entry in history}) == len(history) else "step"

    def draw(axes: Any) -> None:
        for (metric, shown), colour in zip(names.items(), ("one", "two"), strict=False):
            points = [(entry[when], entry[metric]) for entry in history if metric in entry]
            label = shown if len(names) > 1 else None
            if points:  # all may have been no numbers
                axes.plot(*zip(*points, strict=True), "o-", color=COLOURS[colour], label=label, markersize=4)
        axes.xaxis.get_major_locator().set_params(integer=True)

    return picture(f"curves-{y.replace(' ', '-')}", draw, x=when, y=y)


def reliability(name: str, bins: Sequence[tuple[int, float, float]]) -> str:
    """Accuracy against confidence in bins `(texts, confidence, accuracy)`; the larger a point, the more texts."""
    total = sum(n for n, _, _ in bins)

    def draw(axes: Any) -> None:
        axes.plot([0, 1], [0, 1], "--", color=COLOURS["faint"], label="as sure as right")
        n, confidence, accuracy = zip(*bins, strict=True)
        axes.plot(confidence, accuracy, color=COLOURS["one"], alpha=0.5)
        axes.scatter(confidence, accuracy, s=[20 + 200 * k / total for k in n], color=COLOURS["one"])
        axes.set(xlim=(-0.02, 1.04), ylim=(-0.02, 1.08))

    return picture(f"reliability-{name}", draw, x="probability of the answer", y="share that is right")


def coverage(curve: Sequence[tuple[float, float]], *, answered: float) -> str:
    """Accuracy among the answered texts against their share; a line where the threshold lies."""

    def draw(axes: Any) -> None:
        axes.plot(*zip(*curve, strict=True), color=COLOURS["one"])
        axes.set_xlim(0, 1.02)
        axes.axvline(answered, color=COLOURS["two"], linestyle="--", label="the threshold")

    return picture("coverage", draw, x="share of texts answered, the surest first", y="accuracy among them")


def lengths(parts: Sequence[dict[str, float]], *, y: str) -> str:
    """A bar for each fifth of the texts by length."""

    def draw(axes: Any) -> None:
        names = [f"{part['from']}–{part['to']}" if part["from"] < part["to"] else part["to"] for part in parts]
        bars = axes.bar(range(len(parts)), [part["value"] for part in parts], color=COLOURS["one"], width=0.7)
        axes.bar_label(bars, [f"{part['value']:.2f}" for part in parts], padding=2)
        axes.set_xticks(range(len(parts)), names)
        axes.grid(axis="x", visible=False)
        axes.margins(y=0.12)

    return picture("lengths", draw, x="words", y=y)


def scatter(points: Sequence[tuple[float, float]], *, residuals: bool) -> str:
    """Predicted scores, or what they miss, against true ones."""

    def draw(axes: Any) -> None:
        truth, predicted = zip(*points, strict=True)
        shown = [p - t for t, p in points] if residuals else predicted
        axes.scatter(truth, shown, s=14, alpha=0.6, color=COLOURS["one"], linewidths=0)
        if residuals:
            axes.axhline(0, color=COLOURS["two"], linestyle="--")
        else:
            axes.axline((truth[0], truth[0]), slope=1, color=COLOURS["two"], linestyle="--")

    y = "predicted minus true score" if residuals else "predicted score"
    return picture("residuals" if residuals else "scatter", draw, x="true score", y=y)
