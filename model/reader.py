"""A network with its tokenizer: texts in batches of similar length → logits or pooled vectors.

R texts, B texts in a batch of P pieces, C classes, D d_model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from encoding import TokenIds, encode
from errors import UserError
from model.classifier import Classifier, mean_over_pieces
from model.device import choose_precision, recurs
from padding import cut_by_budget, pad

PRECISIONS = ("auto", "32-true", "bf16-mixed", "int8")
BF16_TOKENS = 256  # tokens of a batch from which bf16 pays on a CPU: the weights are turned into bf16 for each
BATCH_TOKENS = 8192  # of a batch, padding included


class Reader:
    """What `TextClassifier` reads texts with. No call changes it, so that threads may share one."""

    def __init__(
        self,
        network: Classifier,
        *,
        tokenizer: Tokenizer,
        truncation: str = "head",
        n_parts: int = 1,
        max_len: int | None = None,
        precision: str = "auto",
        device: str | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise UserError(f"precision={precision} is unknown: choose one of {', '.join(PRECISIONS)}")
        self.device = device or ("cuda" if precision != "int8" and torch.cuda.is_available() else "cpu")
        precision = choose_precision(precision, self.device, d_model=network.architecture["d_model"])
        self.precision, self.bf16 = precision, precision == "bf16-mixed"
        self.network: Classifier = (in_int8(network) if precision == "int8" else network).eval().to(self.device)
        self.tokenizer, self.truncation, self.n_parts = tokenizer, truncation, n_parts
        longest = network.encoder.position.longest
        self.max_len: int = max_len or network.architecture["max_len"]
        if longest is not None:
            self.max_len = min(self.max_len, longest)
        self.limit = self.max_len if recurs(self.device, precision) else None  # of padding to lengths that recur

    def encode(self, texts: Sequence[str | Sequence[str]]) -> TokenIds:
        """Tokenise as in training. Raises `UserError` for a text with other than `n_parts` parts."""
        for row, text in enumerate(texts):
            if (1 if isinstance(text, str) or not isinstance(text, (list, tuple)) else len(text)) != self.n_parts:
                raise UserError(
                    f"text {row + 1}: this classifier reads {self.n_parts} part{'s' * (self.n_parts > 1)} a text, as "
                    f"{['…'] * self.n_parts if self.n_parts > 1 else '…'!r}; give as many"
                )
        return encode(self.tokenizer, texts, max_len=self.max_len, truncation=self.truncation)

    def truncated(self, tokens: TokenIds) -> Tensor:
        """Of which texts something was cut off, `(R,)` True or False."""
        return (tokens.n_tokens > self.max_len) & (self.truncation != "windows")

    def logits_of(self, tokens: TokenIds, *, max_tokens: int = BATCH_TOKENS) -> Tensor:
        """Return the network's outputs `(R, C)` for tokenised texts, in batches of at most `max_tokens` padded tokens."""
        return self.outputs_of(
            self.network, tokens, width=self.network.architecture["n_classes"], max_tokens=max_tokens
        )

    def vectors_of(self, tokens: TokenIds, *, max_tokens: int = BATCH_TOKENS) -> Tensor:
        """Return what the head reads off, one pooled vector a text `(R, D)`; the rest as `logits_of`."""
        width = self.network.architecture["d_model"]
        return self.outputs_of(self.network.pooled, tokens, width=width, max_tokens=max_tokens)

    def outputs_of(
        self,
        run: Callable[[Tensor, Tensor], Tensor],
        tokens: TokenIds,
        *,
        width: int,
        max_tokens: int = BATCH_TOKENS,
    ) -> Tensor:
        """Return what `run(ids, mask)`, a part of the network, makes of each text, `(R, width)`, in fp32 on the CPU; of
        pieces, their mean."""
        lengths, order = tokens.lengths.sort(stable=True)
        found = torch.empty(len(lengths), width)  # not in inference mode: others may learn from these
        ends = cut_by_budget(lengths.numpy(), max_tokens=max_tokens)
        for rows in order.tensor_split(ends[:-1]) if ends else ():
            ids, mask, text = pad(tokens, rows, pad_id=self.network.architecture["pad_id"], limit=self.limit)
            bf16 = self.bf16 and (self.device == "cuda" or mask.numel() >= BF16_TOKENS)
            with torch.inference_mode(), torch.autocast(self.device, torch.bfloat16, enabled=bf16):
                pieces = run(ids.to(self.device), mask.to(self.device)).float().cpu()  # (P, C or D)
                found[rows] = mean_over_pieces(pieces, text, len(rows))  # (B, C or D)
        return found


def in_int8(network: Classifier) -> Classifier:
    """A copy whose linear maps hold their weights in a byte each and turn what comes in to bytes as it comes (Jacob et al.
    2018, arXiv:1712.05877); a quarter of the memory."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*quantized tensor creation.*")  # torchao is to take its place
        return torch.ao.quantization.quantize_dynamic(network, {nn.Linear}, dtype=torch.qint8)
