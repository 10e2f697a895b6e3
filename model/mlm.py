"""Masked-language pretraining: hide some tokens, guess them from the others (Devlin et al. 2019, arXiv:1810.04805, 3.1).

B batch, T tokens, D d_model, V vocab_size, M hidden tokens, N tokens of the training texts.
"""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from encoding import CLS, MASK, SEP, special_id
from model.classifier import Classifier
from model.lightning_module import LightningClassifier
from model.task import SingleLabel

CHOSEN = 0.15  # share of the tokens that are to be guessed
AS_MASK, AS_ANOTHER = 0.8, 0.1  # of these: shown as [MASK], as a token drawn at random; the rest as they are
UNSEEN = 0.5  # how often a token counts as seen that never was


class MaskedLanguage(SingleLabel):
    """One token of V: cross-entropy, as one class of many."""

    name = "mlm"
    calibrates = False

    def facts(self) -> dict[str, Any]:
        return {"name": self.name}  # the tokens stand in the checkpoint's tokenizer

    def outputs(self, logits: Tensor) -> Tensor:
        """The tokens guessed, `(M, V)` → `(M,)`."""
        return logits.argmax(dim=-1)


class LightningPretraining(LightningClassifier):
    """Train a `Classifier` of V classes, tied by `tie`, to guess the tokens of `tokenizer` that are hidden from it.

    It begins with the shares of the tokens `seen (N,)`, those of the training texts.
    """

    def __init__(self, classifier: Classifier, *, tokenizer: Tokenizer, seen: Tensor, **settings: Any) -> None:
        super().__init__(classifier, **settings)
        classifier.pooling.requires_grad_(False)  # not used here, and several processes wait for every gradient
        self.mask_id = special_id(tokenizer, MASK)
        self.never = torch.tensor([special_id(tokenizer, CLS), special_id(tokenizer, SEP)])
        begin_with_shares(classifier.head, seen, never=self.never)

    def on_before_batch_transfer(self, batch: dict[str, Tensor], _: int) -> dict[str, Tensor]:
        """Hide tokens while the batch is on the CPU, where counting them stalls nothing; in validation always the same."""
        ids, generator = batch["ids"], None if self.training else torch.Generator().manual_seed(0)
        may = batch["mask"] & ~torch.isin(ids, self.never)  # (B, T)
        shown, places = hide(
            ids, may, mask_id=self.mask_id, vocab_size=self.classifier.head.out_features, generator=generator
        )
        return {**batch, "ids": shown, "places": places, "labels": ids.flatten()[places]}

    def logits(self, batch: dict[str, Tensor]) -> Tensor:
        """The hidden tokens' logits `(M, V)`, in full precision; nothing is computed for the others."""
        x = self.classifier.encoder(batch["ids"], batch["mask"])  # (B, T, D)
        return self.classifier.head(x.flatten(0, 1)[batch["places"]]).float()  # (M, V)


def hide(
    ids: Tensor, may: Tensor, *, mask_id: int, vocab_size: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Return `ids (B, T)` with some of those that `may (B, T)` be hidden, and their places `(M,)`, counted over `B · T`.

    At least one is.
    """
    draw = torch.rand(ids.shape, generator=generator).masked_fill(~may, 2.0)  # (B, T)
    share = max(CHOSEN, float(draw.min()))
    another = torch.randint(vocab_size, ids.shape, generator=generator)  # (B, T)
    shown = torch.where(draw <= share * (AS_MASK + AS_ANOTHER), another, ids)
    shown = torch.where(draw <= share * AS_MASK, mask_id, shown)
    return shown, (draw <= share).flatten().nonzero().squeeze(1)


def tie(classifier: Classifier) -> None:
    """Let the head read tokens off by the vectors that stand for them (Press and Wolf 2017, arXiv:1608.05859)."""
    classifier.head.weight = classifier.encoder.embedding.weight


@torch.no_grad()
def begin_with_shares(head: nn.Linear, seen: Tensor, *, never: Tensor) -> None:
    """Let the head's bias `(V,)` be the logarithm of each token's share in `seen (N,)`, those of `never` aside (Meister et al.
    2023, arXiv:2212.09686), so that the vectors need not learn which tokens are frequent: what else they would hold is little.
    """
    counts = torch.bincount(seen, minlength=head.out_features).float().index_fill(0, never, 0.0) + UNSEEN  # (V,)
    head.bias.copy_((counts / counts.sum()).log())
