"""An explanation for the eye: tokens coloured by what they did, and attention as heat maps.

L layers, H heads, T tokens.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text
from torch import Tensor

from model.explain import Attribution, attention_maps, attributions
from model.text_classifier import TextClassifier

MOST_NAMES = 40  # tokens whose names still fit beside a heat map
MOST_TOKENS = 80  # tokens of a long text that are drawn
BEST = 5  # tokens named as the strongest on either side


def explain(classifier: TextClassifier, text: str | list[str], *, picture: Path) -> None:
    """Print the tokens coloured by attribution and the strongest of them, and draw the attention."""
    attribution = attributions(classifier, text)
    Console(highlight=False).print(coloured_tokens(attribution), soft_wrap=True)
    print(strongest_tokens(attribution))
    draw_attention(*attention_maps(classifier, text), picture)
    print(f"attention by layer and head: {picture}")


def coloured_tokens(attribution: Attribution) -> Text:
    """The tokens on green where they spoke for the label and on red where against, the stronger the deeper."""
    strongest = float(attribution.scores.abs().max()) or 1.0
    line = Text()
    for token, score in zip(attribution.tokens, attribution.scores.tolist(), strict=True):
        depth = round(abs(score) / strongest * 160)
        colour = f"rgb(0,{depth},0)" if score >= 0 else f"rgb({depth},0,0)"
        line.append(token, style=f"white on {colour}" if depth > 16 else "")
        line.append(" ")
    return line


def strongest_tokens(attribution: Attribution) -> str:
    """The tokens that did most for and against the label, with their share of its logit."""
    ranked = sorted(zip(attribution.scores.tolist(), attribution.tokens, strict=True), reverse=True)
    spoke_for = [f"{token} {score:+.2f}" for score, token in ranked[:BEST] if score > 0]
    spoke_against = [f"{token} {score:+.2f}" for score, token in ranked[::-1][:BEST] if score < 0]
    return f"for {attribution.label}: {', '.join(spoke_for) or '-'}; against: {', '.join(spoke_against) or '-'}"


def draw_attention(tokens: Sequence[str], maps: Tensor, path: Path) -> None:
    """Write a picture of `maps (L, H, T, T)`: a row of heat maps a layer, a column a head, one scale for all."""
    from matplotlib.figure import Figure  # not above: the tokens need no matplotlib

    tokens, weights = tokens[:MOST_TOKENS], maps[:, :, :MOST_TOKENS, :MOST_TOKENS].numpy()
    n_layers, n_heads = weights.shape[:2]
    named = len(tokens) <= MOST_NAMES
    side = max(2.6, 0.19 * len(tokens)) if named else 5.0
    figure = Figure(figsize=(side * n_heads + 1.6, side * n_layers + 0.8), layout="constrained")
    axes = figure.subplots(n_layers, n_heads, squeeze=False)
    top = weights.max()
    for layer in range(n_layers):
        for head in range(n_heads):
            axis = axes[layer, head]
            image = axis.imshow(weights[layer, head], cmap="viridis", vmin=0, vmax=top)
            axis.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=9)
            if named:
                axis.set_xticks(range(len(tokens)), tokens, rotation=90, fontsize=7, parse_math=False)
                axis.set_yticks(range(len(tokens)), tokens, fontsize=7, parse_math=False)
    figure.supylabel("this token", fontsize=9)
    figure.supxlabel("weighs this one", fontsize=9)
    figure.colorbar(image, ax=axes, label="weight", shrink=0.8)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box stands for what the font lacks
        figure.savefig(path, dpi=120)
