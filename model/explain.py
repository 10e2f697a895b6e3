"""What the network looked at and what moved its answer: attention maps and token attributions of one text.

L layers, H heads, T tokens, D d_model, S steps of the integral.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from encoding import CLS, SEP, UNK, encode, special_id
from errors import UserError
from model.attention import ATTENTIONS
from model.classifier import Classifier
from model.text_classifier import TextClassifier
from padding import pad


def tokenise(classifier: TextClassifier, text: str | list[str]) -> tuple[list[str], Tensor, Tensor]:
    """Return the tokens the network reads of `text` (its beginning, beyond `max_len`), `ids (1, T)` and `mask (1, T)`."""
    tokens = encode(classifier.tokenizer, [text], max_len=classifier.max_len)
    ids, mask, _ = pad(tokens, [0], pad_id=classifier.network.architecture["pad_id"])
    ids, mask = ids.to(classifier.device), mask.to(classifier.device)
    return [classifier.tokenizer.id_to_token(number) or "" for number in ids[0].tolist()], ids, mask


def own_modules(network: Classifier) -> Classifier:
    """The network with the same weights in modules of its own: no other thread meets the hooks that are put into them."""
    return copy.deepcopy(network, {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())})


@torch.inference_mode()
def attention_maps(classifier: TextClassifier, text: str | list[str]) -> tuple[list[str], Tensor]:
    """Return the tokens of `text` and how each (row) weighs each (column): `(L, H, T, T)`, rows summing to one.

    The weights are what the network's own attention makes of the identity matrix in the place of the values.
    """
    tokens, ids, mask = tokenise(classifier, text)
    maps: list[Tensor] = []

    def keep(score, arguments, output) -> None:
        q, k, v, visible = arguments
        identity = torch.eye(k.shape[-2], dtype=v.dtype, device=v.device).expand(*k.shape[:2], -1, -1)  # (1, H, T, T)
        maps.append(score.forward(q, k, identity, visible)[0])  # (H, T, T)

    network = own_modules(classifier.network)
    for module in network.modules():
        if isinstance(module, tuple(ATTENTIONS.values())):
            module.register_forward_hook(keep)
    network(ids, mask)
    return tokens, torch.stack(maps).cpu()  # (L, H, T, T)


class Attribution(NamedTuple):
    """How much each token moved the logit of `label`; the scores add up to `change`."""

    label: str
    tokens: list[str]
    scores: Tensor  # (T,)
    change: float  # the label's logit for the text, less that for as many unknown tokens


def attributions(classifier: TextClassifier, text: str | list[str], *, label: str | None = None) -> Attribution:
    """Integrated gradients (Sundararajan et al. 2017, arXiv:1703.01365, equation 1) from unknown tokens to the text.

    `label` is the most probable one by default. The steps of Gauss and Legendre's rule are doubled until the scores add up
    to the change within 1 % (2,048 at most: norms bend sharply where an embedding passes near zero). Raises `UserError` for
    a label the classifier does not know, and in int8.
    """
    if classifier.precision == "int8":
        raise UserError("explain: int8 has no gradients; load the classifier with another precision")
    label = label or next(iter(classifier.predict([text])[0].probabilities), classifier.labels[0])
    if label not in classifier.labels:
        raise UserError(f"label {label!r} is unknown: choose one of {', '.join(classifier.labels)}")
    tokens, ids, mask = tokenise(classifier, text)
    network, target = own_modules(classifier.network), classifier.labels.index(label)
    unknown, cls, sep = (special_id(classifier.tokenizer, token) for token in (UNK, CLS, SEP))
    start_ids = torch.where((ids == cls) | (ids == sep), ids, unknown)  # (1, T)
    with torch.no_grad():
        start, end = network.encoder.embedding(start_ids), network.encoder.embedding(ids)  # (1, T, D) each
        change = float(network(ids, mask)[0, target] - network(start_ids, mask)[0, target])
        moved = network.beside(ids, mask) - network.beside(start_ids, mask)  # (1, T, C) no gradient tells it

    def gradients(points: Tensor) -> Tensor:
        """The logit's gradient at embeddings `(S, T, D)`, which take the place of the tokens' own."""
        hook = network.encoder.embedding.register_forward_hook(lambda *_: points)
        try:
            pooled = network.pooled(ids.expand(len(points), -1), mask.expand(len(points), -1))  # (S, D)
            logits = network.head(pooled)[:, target]  # (S,) without what stands beside, which has no gradient
        finally:
            hook.remove()
        return torch.autograd.grad(logits.sum(), points)[0]  # (S, T, D)

    for steps in (32, 64, 128, 256, 512, 1024, 2048):
        nodes, weights = (
            torch.tensor(a / 2, dtype=end.dtype, device=end.device)[:, None, None]
            for a in np.polynomial.legendre.leggauss(steps)
        )
        chunks = zip(nodes.split(16), weights.split(16), strict=True)
        path = [
            (weight * gradients((start + (node + 0.5) * (end - start)).requires_grad_())).sum(0)
            for node, weight in chunks
        ]
        scores = moved[0, :, target] + ((end - start)[0] * torch.stack(path).sum(0)).sum(dim=-1)  # (T,)
        if abs(float(scores.sum()) - change) <= 0.01 * abs(change):
            break
    return Attribution(label, tokens, scores, change)
