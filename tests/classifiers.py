"""Small classifiers that nobody trained, and their checkpoints."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from encoding import SPECIAL_TOKENS
from model import TextClassifier, build_classifier
from model.checkpoint import checkpoint_content
from model.task import make_task
from tests.conftest import SMALL

WORDS = [*SPECIAL_TOKENS, *(f"w{i}" for i in range(45))]
BERT = {"position": "learned", "block": "post_norm", "embedding_norm": True, "pooling": "cls", "norm_eps": 1e-12}
MODERNBERT = {
    **{"position": "rotary", "embedding_norm": True, "mask": "window", "window": 3, "global_every": 2, "n_layers": 3},
    **{"rotary_bases": [160_000.0, 10_000.0], "bias": False, "feed_forward": "geglu", "pooling": "cls"},
}
TASKS = {
    "single_label": {"labels": ["a", "b", "ü"], "temperature": 0.7, "abstain_below": 0.5},
    "multi_label": {"labels": ["a", "b", "ü"], "thresholds": [0.4, 0.5, 0.6]},
    "regression": {"labels": ["score"], "mean": 5.0, "spread": 3.0},
}
TEXTS = ["w1", "w2 w3 w4", "w5 w6 w7 " * 30, "", "   ", "unseen w9 [SEP] w10 [MASK]", " ".join(WORDS[5:])]


def classifier(
    task: str = "single_label", *, truncation: str = "head", n_parts: int = 1, **architecture
) -> TextClassifier:
    """Its words are `w0` to `w44`; its weights are random and not small."""
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    facts = TASKS[task]
    torch.manual_seed(0)
    network = build_classifier(**{**SMALL, "sep_id": 3, **architecture, "n_classes": len(facts["labels"])})
    for weight in network.parameters():
        if weight.dim() > 1:  # norms stay as they are
            torch.nn.init.normal_(weight, std=0.3)
    settings = {"truncation": truncation, "n_parts": n_parts, "precision": "32-true", "device": "cpu"}
    return TextClassifier(network, task=make_task(task, **facts), tokenizer=tokenizer, **settings)


def write_checkpoint(classifier: TextClassifier, path: Path) -> Path:
    """What training would leave."""
    content = checkpoint_content(
        classifier.network,
        task=classifier.task,
        tokenizer=classifier.tokenizer,
        truncation=classifier.truncation,
        n_parts=classifier.n_parts,
    )
    torch.save({"heed": content, "state_dict": classifier.network.state_dict()}, path)
    return path
