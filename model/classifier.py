"""Token ids → one logit a class, and the one function that builds the network from plain values.

B batch, T tokens, D d_model, C classes.
"""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from errors import UserError
from model.encoder import Encoder, EncoderBlock
from model.pooling import POOLINGS
from model.position import POSITIONS


class Classifier(nn.Module):
    """Encode, pool, and map linearly to the classes."""

    architecture: dict[str, Any]  # what `build_classifier` was called with; goes into the checkpoint

    def __init__(self, *, encoder: Encoder, pooling: nn.Module, d_model: int, n_classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.head = nn.Linear(d_model, n_classes)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map `ids (B, T)` and `mask (B, T)`, True = real token, to logits `(B, C)`."""
        pooled = self.pooling(self.encoder(ids, mask), mask)  # (B, D)
        return self.head(pooled)  # (B, C)


def build_classifier(
    *,
    vocab_size: int,
    n_classes: int,
    pad_id: int,
    d_model: int,
    n_heads: int,
    n_layers: int,
    d_ff: int,
    max_len: int,
    dropout: float,
    position: str,
    pooling: str,
) -> Classifier:
    """Build the network from plain values alone, so that a checkpoint can say how; the weights come from torch's generator.

    `position` and `pooling` are names in `POSITIONS` and `POOLINGS`. Raises `UserError` for an unknown name or widths
    that do not fit.
    """
    architecture = dict(locals())
    encoder = Encoder(
        embedding=nn.Embedding(vocab_size, d_model, padding_idx=pad_id),
        position=choose("position", position, POSITIONS)(d_model=d_model, max_len=max_len),
        blocks=[EncoderBlock(d_model=d_model, n_heads=n_heads, d_ff=d_ff, dropout=dropout) for _ in range(n_layers)],
        dropout=dropout,
    )
    pool = choose("pooling", pooling, POOLINGS)()
    classifier = Classifier(encoder=encoder, pooling=pool, d_model=d_model, n_classes=n_classes)
    classifier.architecture = architecture
    initialise(classifier, n_layers=n_layers)
    return classifier


def choose(key: str, name: str, table: dict[str, Any]) -> Any:
    """Return the class that `name` stands for. Raises `UserError` that lists the names there are."""
    if name not in table:
        raise UserError(f"model.{key}={name} is unknown: choose one of {', '.join(table)}")
    return table[name]


def initialise(classifier: Classifier, *, n_layers: int) -> None:
    """Draw every weight.

    | tensor                                  | distribution                                                     |
    |-----------------------------------------|------------------------------------------------------------------|
    | embeddings (tokens, learned positions)  | N(0, 0.02²) (Devlin et al. 2019); the row of `[PAD]` is zero      |
    | weights of linear maps                  | N(0, 1/fan_in): keeps the variance (LeCun et al. 1998)            |
    | … that end a residual branch (`output`) | N(0, 1/fan_in) / √(2 n_layers) (Radford et al. 2019, section 2.3) |
    | the classes' head                       | zero: the first loss is ln C                                     |
    | biases                                  | zero                                                             |
    | norms                                   | scale one, shift zero (torch's own)                              |
    """
    for name, module in classifier.named_modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
            if module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
            nn.init.zeros_(module.bias)
            if name.endswith(".output"):
                module.weight.data /= math.sqrt(2 * n_layers)
    nn.init.zeros_(classifier.head.weight)
