"""The one file that training leaves: what it holds, and a classifier of texts made from it without Lightning.

R texts, B texts in a batch of P pieces, C classes.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from encoding import TokenIds, cut_by_budget, encode, pad
from errors import UserError
from model.build import build_classifier
from model.classifier import Classifier, mean_over_pieces
from model.device import choose_precision
from model.task import Prediction, SingleLabel, make_task

FORMAT = 2  # raised when an older file can no longer be read
BF16_TOKENS = 256  # tokens of a batch from which bf16 pays: the weights are turned into bf16 for each


class TextClassifier:
    """A trained network with the tokenizer and the task that belong to it: texts in, labels (or scores) out.

    A text is a string, or a list of them where the network was trained on several columns (`n_parts`). `max_len`
    tokens are read of it, by default as many as in training; positions that are not learned take more.
    """

    def __init__(
        self,
        network: Classifier,
        *,
        task: SingleLabel,
        tokenizer: Tokenizer,
        truncation: str = "head",
        max_len: int | None = None,
        precision: str = "auto",
    ) -> None:
        self.network = network.eval()
        self.bf16 = choose_precision(precision, "cpu", d_model=network.architecture["d_model"]) == "bf16-mixed"
        self.task, self.tokenizer, self.truncation = task, tokenizer, truncation
        self.labels = task.labels
        self.n_parts: int = network.architecture["n_segments"]
        longest = network.encoder.position.longest
        self.max_len: int = max_len or network.architecture["max_len"]
        if longest is not None:
            self.max_len = min(self.max_len, longest)
        self.n_truncated = 0  # texts of the latest call of which something was cut off

    def encode(self, texts: Sequence[str | Sequence[str]]) -> TokenIds:
        """Tokenise as in training. Raises `UserError` for a text with other than `n_parts` parts."""
        for row, text in enumerate(texts):
            if (1 if isinstance(text, str) or not isinstance(text, (list, tuple)) else len(text)) != self.n_parts:
                raise UserError(
                    f"text {row + 1}: this classifier reads {self.n_parts} part{'s' * (self.n_parts > 1)} a text, as "
                    f"{['…'] * self.n_parts if self.n_parts > 1 else '…'!r}; give as many"
                )
        return encode(self.tokenizer, texts, max_len=self.max_len, truncation=self.truncation)

    @torch.inference_mode()
    def predict_proba(self, texts: Sequence[str | Sequence[str]], *, max_tokens: int = 8192) -> Tensor:
        """Return probabilities `(R, C)`, rows as the texts are given, columns as `labels`; of a score, its value `(R, 1)`.

        Texts of similar length share batches of at most `max_tokens` padded tokens. Raises `UserError` for a text
        that is not a string.
        """
        tokens = self.encode(texts)
        self.n_truncated = int((tokens.n_tokens > self.max_len).sum()) if self.truncation != "windows" else 0
        lengths, order = tokens.lengths.sort(stable=True)
        probabilities = torch.empty(len(texts), len(self.labels))
        ends = cut_by_budget(lengths.numpy(), max_tokens=max_tokens)
        for rows in order.tensor_split(ends[:-1]) if ends else ():
            ids, mask, text = pad(tokens, rows, pad_id=self.network.architecture["pad_id"])
            with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16 and mask.numel() >= BF16_TOKENS):
                pieces = self.network(ids, mask).float()  # (P, C)
            logits = mean_over_pieces(pieces, text, len(rows))  # (B, C)
            probabilities[rows] = self.task.probabilities(logits)
        return probabilities

    def predict(self, texts: Sequence[str | Sequence[str]]) -> list[Prediction]:
        """Return label and probabilities for each text, in the order given. Raises as `predict_proba` does."""
        if isinstance(texts, str):
            raise UserError("predict takes a list of texts, not one string: write predict([text])")
        return [self.task.prediction(row) for row in self.predict_proba(texts)]


def checkpoint_content(
    network: Classifier, *, task: SingleLabel, tokenizer: Tokenizer, truncation: str
) -> dict[str, Any]:
    """What a checkpoint says beside the weights: plain strings, numbers, lists and dicts, and never code to run."""
    return {
        "format": FORMAT,
        "architecture": dict(network.architecture),
        "task": task.facts(),
        "tokenizer": tokenizer.to_str(),
        "truncation": truncation,
        "versions": {name: version(name) for name in ("torch", "tokenizers")},
    }


def load_classifier(path: str | Path, *, max_len: int | None = None, precision: str = "auto") -> TextClassifier:
    """Read a checkpoint written by `train.py`; `max_len` tokens are read of a text (None: as many as in training).

    `precision` is 32-true, bf16-mixed, or auto: what the processor computes faster.

    Raises `UserError` when the file is missing, damaged, or another's.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"checkpoint {path}: no such file; give the path of a file that train.py wrote")
    if not zipfile.is_zipfile(path):  # what torch.save writes is a zip; nothing else is given to a pickle reader
        raise UserError(f"checkpoint {path}: refused, it is damaged or no checkpoint; copy it again or train anew")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UserError(f"checkpoint {path}: refused, it holds more than plain values and could run code") from error
    except Exception as error:  # a damaged file fails in many ways
        raise UserError(f"checkpoint {path}: damaged ({type(error).__name__}); copy it again or train anew") from error
    if not isinstance(content, dict) or not isinstance(content.get("heed"), dict) or "state_dict" not in content:
        raise UserError(
            f"checkpoint {path}: not written by Heed (it lacks the key 'heed'); give a file that train.py wrote"
        )
    facts = content["heed"]
    if facts.get("format") != FORMAT:
        raise UserError(
            f"checkpoint {path}: format {facts.get('format')}, this version reads {FORMAT}; use the version that wrote it"
        )
    try:
        network = build_classifier(**facts["architecture"])
        network.load_state_dict({_plain_name(name): weight for name, weight in content["state_dict"].items()})
        return TextClassifier(
            network,
            task=make_task(**facts["task"]),
            tokenizer=Tokenizer.from_str(facts["tokenizer"]),
            truncation=facts["truncation"],
            max_len=max_len,
            precision=precision,
        )
    except Exception as error:  # tokenizers raises a bare Exception for JSON it cannot read
        raise UserError(
            f"checkpoint {path}: its parts do not fit together ({type(error).__name__}); train anew"
        ) from error


def _plain_name(name: str) -> str:
    """Drop what Lightning and torch.compile put around the network's own parameter names."""
    return name.removeprefix("classifier.").replace("_orig_mod.", "")
