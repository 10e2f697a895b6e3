"""How every weight is drawn, by one table."""

from __future__ import annotations

import math

from torch import nn

from model.classifier import Classifier
from model.position import EMBEDDING_STD


def initialise(classifier: Classifier, *, n_layers: int) -> None:
    """Draw every weight.

    | tensor                                  | distribution                                                     |
    |-----------------------------------------|------------------------------------------------------------------|
    | embeddings (tokens, positions, segments)| N(0, 0.02²) (Devlin et al. 2019); the row of `[PAD]` is zero      |
    | … of tokens, where texts are at hand    | to which a run adds what `training/token_vectors.py` makes of them|
    | weights of linear maps                  | N(0, 1/fan_in): keeps the variance (LeCun et al. 1998)            |
    | … that end a residual branch (`output`) | N(0, 1/fan_in) / √(2 n_layers) (Radford et al. 2019, section 2.3) |
    | the classes' head                       | zero: the first loss is ln C                                     |
    | biases                                  | zero                                                             |
    | norms                                   | scale one, shift zero (torch's own)                              |
    """
    for name, module in classifier.named_modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=EMBEDDING_STD)
            if module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
            if name.endswith(".output"):
                module.weight.data /= math.sqrt(2 * n_layers)
    nn.init.zeros_(classifier.head.weight)
