"""What the page shows, as HTML that takes the page's colours, light or dark. Whatever comes from the user is escaped.

T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from torch import Tensor

from model import Prediction, TextClassifier
from model.explain import Attribution

MOST_LABELS, MOST_TOKENS, LONGEST = 10, 48, 12  # bars; tokens of a map, and letters of their names
STYLE = """
.heed{--for:37,99,235;--against:217,119,6;font-size:1rem;line-height:1.5;color:var(--body-text-color)}
.dark .heed{--for:96,165,250;--against:245,158,11}
.heed p{margin:.2rem 0 .6rem}.heed .faint{color:color-mix(in srgb,var(--body-text-color) 75%,transparent);font-size:.9rem}
.heed .bar{display:grid;grid-template-columns:min(10rem,42%) 1fr 4rem;gap:.7rem;align-items:center;margin:.3rem 0}
.heed .bar>*{overflow:hidden;text-overflow:ellipsis}
.heed .bar b{font-variant-numeric:tabular-nums;font-weight:400;text-align:right;white-space:nowrap}
.heed .bar i{height:.8rem;border-radius:.2rem;background:rgba(var(--for),.14)}
.heed .bar i i{display:block;height:100%;background:rgb(var(--for))}.heed .said{font-weight:700}
.heed .tokens{display:flex;flex-wrap:wrap;gap:.25rem;font-size:1.02rem}
.heed .tokens span{padding:.05rem .3rem;border-radius:.25rem;overflow-wrap:anywhere}
.heed .key{display:inline-block;width:.8rem;height:.8rem;border-radius:.2rem;margin:0 .3rem 0 .8rem;vertical-align:-.05rem}
.heed .map{width:0;min-width:100%;overflow-x:auto}.heed .map svg{display:block;max-width:100%;height:auto}
.heed .map text{fill:var(--body-text-color);font:11px system-ui,sans-serif}
.heed .map rect{fill:rgb(var(--for))}
.heed .map .frame{fill:none;stroke:var(--border-color-primary)}
.heed .wrong{padding:.6rem 0;border-top:1px solid var(--border-color-primary);overflow-wrap:anywhere}
.gradio-container{max-width:60rem!important;margin:0 auto!important}
"""


def around(html: str) -> str:
    """What all pieces share."""
    return f'<div class="heed">{html}</div>'


def sentence(text: str) -> str:
    """A sentence to the user, which a screen reader says at once."""
    return around(f'<p role="alert">{escape(text)}</p>')


def label_bars(prediction: Prediction, classifier: TextClassifier, *, truncated: bool = False) -> str:
    """A bar a label, the most probable first, what was decided in bold; a score as a number. Says where a text was cut."""
    if isinstance(prediction.label, float):
        return around(f'<p>{escape(classifier.labels[0])} <b class="said">{prediction.label:.4g}</b></p>')
    decided = [prediction.label] if isinstance(prediction.label, str) else prediction.label or []
    bars = "".join(
        f'<div class="bar"><span{" class=said" * (label in decided)}>{escape(label)}</span>'
        f'<i><i style="width:{100 * p:.1f}%"></i></i><b>{100 * p:.1f} %</b></div>'
        for label, p in list(prediction.probabilities.items())[:MOST_LABELS]
    )
    more = len(prediction.probabilities) - MOST_LABELS
    cut = f"Only the first {classifier.max_len:,} tokens were read." if truncated else ""
    none = "" if decided else "None of the labels reaches its threshold."
    return around(bars + faint(f"And {more} less probable labels." if more > 0 else "") + faint(none) + faint(cut))


def faint(text: str) -> str:
    """A remark, where there is one."""
    return f'<p class="faint">{escape(text)}</p>' if text else ""


def coloured_tokens(attribution: Attribution) -> str:
    """The tokens, one colour where they spoke for the label and another where against, the stronger the deeper."""
    strongest = float(attribution.scores.abs().max()) or 1.0
    spans = []
    for token, score in zip(attribution.tokens, attribution.scores.tolist(), strict=True):
        colour, depth = "--for" if score >= 0 else "--against", abs(score) / strongest * 0.65
        style = f' style="background:rgba(var({colour}),{depth:.2f})"' if depth >= 0.02 else ""
        spans.append(f'<span{style} title="{score:+.3f}">{escape(token)}</span>')
    keys = (
        f'<p class="faint">What each token did for <b>{escape(attribution.label)}</b>:'
        '<i class="key" style="background:rgba(var(--for),.65)"></i>for'
        '<i class="key" style="background:rgba(var(--against),.65)"></i>against</p>'
    )
    return around(f'{keys}<div class="tokens">{"".join(spans)}</div>')


def attention_map(tokens: Sequence[str], weights: Tensor, *, n_tokens: int) -> str:
    """How each token, a row, weighs each, a column: `weights (T, T)` of one layer and head, `n_tokens` in the whole text."""
    deepest = float(weights.max())
    names = [token if len(token) <= LONGEST else token[: LONGEST - 1] + "…" for token in tokens]
    cell = 26 if len(names) <= 12 else 18
    left = 16 + 6.4 * max(map(len, names))
    size = left + cell * len(names)
    parts = [
        f'<rect class="frame" x="{left:.0f}" y="{left:.0f}" width="{size - left:.0f}" height="{size - left:.0f}"/>'
    ]
    for i, (name, row) in enumerate(zip(names, weights.tolist(), strict=True)):
        at = left + cell * (i + 0.5)
        parts.append(f'<text x="{left - 6:.0f}" y="{at + 4:.0f}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<text transform="translate({at + 4:.0f},{left - 6:.0f}) rotate(-90)">{escape(name)}</text>')
        for j, w in enumerate(row):
            if w >= 0.01 * deepest:
                x, y = left + cell * j, left + cell * i
                what = escape(f"{tokens[i]} → {tokens[j]}: {w:.3f}")
                parts.append(
                    f'<rect x="{x:.0f}" y="{y:.0f}" width="{cell - 1}" height="{cell - 1}" fill-opacity="{w / deepest:.2f}">'
                    f"<title>{what}</title></rect>"
                )
    fit = f'width="{size:.0f}" viewBox="0 0 {size:.0f} {size:.0f}" style="min-width:{0.75 * size:.0f}px"'
    picture = f'<svg {fit} role="img" aria-label="attention">{"".join(parts)}</svg>'
    beyond = f" Of {n_tokens:,} tokens the first {len(tokens)} are drawn." if n_tokens > len(tokens) else ""
    legend = f"How much each token, a row, takes from each, a column; the deepest is {deepest:.2f}.{beyond}"
    return around(faint(legend) + f'<div class="map" tabindex="0">{picture}</div>')


def wrong_examples(errors: Sequence[dict[str, Any]]) -> str:
    """The texts of the test set whose label was wrong, the most confident mistakes first, as `report.json` holds them."""
    rows = "".join(
        f'<div class="wrong">said <b>{escape(shown(error["predicted"]))}</b>, is <b>{escape(shown(error["truth"]))}</b>'
        f"<br>{escape(error['text'])}</div>"
        for error in errors
    )
    return around(rows)


def shown(label: Any) -> str:
    """A label, several, or a score, in a word."""
    if isinstance(label, list):
        return ", ".join(label) or "none"
    return f"{label:.4g}" if isinstance(label, float) else str(label)
