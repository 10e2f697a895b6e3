"""What is odd about the data, found before training and said in at most ten lines.

R rows.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from data.batching import EncodedTexts

ALIKE = 0.85  # difflib's ratio from which two labels look like one
RARE = 0.1  # and the rarer has at most this share of the other's texts
MOST_LABELS = 300  # of more, no pairs are compared


def conflicting(texts: np.ndarray, labels: Sequence[Hashable]) -> np.ndarray:
    """The fingerprints of the texts that carry different labels; `texts (R,)`, missing labels do not count."""
    numbers: dict[Hashable, int] = {None: -1}
    codes = np.array([numbers.setdefault(label, len(numbers)) for label in labels])  # (R,)
    texts, codes = texts[codes >= 0], codes[codes >= 0]
    order = np.lexsort((codes, texts))
    texts, codes = texts[order], codes[order]
    return np.unique(texts[1:][(texts[1:] == texts[:-1]) & (codes[1:] != codes[:-1])])


def typos(counts: Counter[str]) -> list[list[str]]:
    """Pairs of labels that look like one spelt in two ways, the rarer first."""
    if len(counts) > MOST_LABELS:
        return []
    ordered = [label for label, _ in counts.most_common()]
    return [
        [rare, common]
        for i, rare in enumerate(ordered)
        for common in ordered[:i]
        if _plain(rare) == _plain(common) or (counts[rare] <= RARE * counts[common] and _alike(rare, common))
    ]


def _plain(label: str) -> str:
    return "".join(filter(str.isalnum, label.casefold())) or label


def _alike(a: str, b: str) -> bool:
    a, b = ("".join(c for c in label.casefold() if not c.isdecimal()) for label in (a, b))
    return a != b and difflib.SequenceMatcher(None, a, b).ratio() >= ALIKE


def text_lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What the first lines of a run say of the texts and labels, each with its head."""
    sizes = " / ".join(f"{n:,}" for n in facts["rows"].values())
    origin = f", {' and '.join(facts['cut_from_train'])} cut from train" if facts["cut_from_train"] else ""
    yield "splits", f"{sizes} texts (train / validation / test){origin}"
    yield "task", "mlm: tokens are guessed, labels not read" if facts["task"] == "mlm" else _posed(facts)
    if copies := "; ".join(_copies(facts)):
        yield "copies", copies
    if labels := "; ".join(_labels(facts)):
        yield "labels", labels


def token_lines(facts: dict[str, Any], *, max_len: int) -> Iterator[tuple[str, str]]:
    """What they say of the tokens."""
    lengths = facts["lengths"]
    cut = f"{100 * facts['truncated']:.0f} % are longer than model.max_len={max_len}"
    cut += f", {lengths['99 %']} would hold 99 %" if lengths["99 %"] > max_len else ""
    yield (
        "lengths",
        f"half of the texts have up to {lengths['50 %']:,} tokens, 90 % {lengths['90 %']:,}, 99 % {lengths['99 %']:,}; {cut}",
    )
    unknown = " / ".join(f"{100 * share:.1f}" for share in facts["unknown"].values())
    yield "unknown", f"{unknown} % of the tokens are not in the vocabulary (train / validation / test)"


def _posed(facts: dict[str, Any]) -> str:
    return f"{facts['task']}, {_classes(facts['classes'])}"


def _classes(classes: dict[str, int]) -> str:
    if not classes:
        return "one number a text"
    total, largest = sum(classes.values()), sorted(classes, key=classes.__getitem__, reverse=True)
    shown = [f"{name} {classes[name]:,} ({100 * classes[name] / total:.0f} %)" for name in largest[:6]]
    more = [f"{len(largest) - 7} more", f"{largest[-1]} {classes[largest[-1]]:,}"] if len(largest) > 7 else largest[6:7]
    ratio = classes[largest[0]] / classes[largest[-1]]
    return f"{len(classes)} classes: {', '.join(shown + more)}; largest / smallest {ratio:.1f}"


def _copies(facts: dict[str, Any]) -> Iterator[str]:
    if within := sum(facts["duplicates"].values()):
        yield f"{within:,} texts stand twice in their split"
    if found := facts["leaks"]["found"]:
        what = "dropped from there" if facts["leaks"]["dropped"] else "left there (data.drop_leaks=false)"
        yield f"{found:,} of train or validation stand in a later split too, {what}"
    for name, rows in facts["near_duplicates"].items():
        if rows:
            yield f"{len(rows):,} of {name} are nearly in train"


def _labels(facts: dict[str, Any]) -> Iterator[str]:
    if n := facts["conflicts"]["texts"]:
        yield f'{n:,} texts carry different labels, as "{" ".join(facts["conflicts"]["example"].split())[:40]}"'
    for rare, common in facts["typos"][:3]:
        yield f"{rare!r} ({facts['classes'][rare]:,}) looks like {common!r} ({facts['classes'][common]:,})"
    if facts["task"] != "mlm" and (n := sum(facts["unlabelled"].values())):
        yield f"{n:,} of test have none: predicted, not scored"
    if n := sum(facts["empty"].values()):
        yield f"{n:,} texts are empty"


def token_facts(encoded: dict[str, EncodedTexts], *, max_len: int, unknown: int) -> dict[str, Any]:
    """Lengths of the texts in tokens, the share that is cut, and the share of unknown tokens in each split."""
    n_tokens = torch.cat([part.tokens.n_tokens for part in encoded.values()]).numpy()
    return {
        "lengths": {f"{p} %": int(np.ceil(np.percentile(n_tokens, p))) for p in (50, 90, 99, 100)},
        "truncated": float((n_tokens > max_len).mean()),
        "unknown": {name: float((part.tokens.ids == unknown).float().mean()) for name, part in encoded.items()},
    }
