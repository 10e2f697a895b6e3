"""Lines of Python that run an exported folder: what its README shows.

They do what `encoding.py` and `model/task.py` do, for one text: its pieces are as long as each other, so that nothing
is padded.
"""

from __future__ import annotations

import json
from textwrap import indent

from errors import UserError
from model.text_classifier import TextClassifier

ONNX = """import json
import numpy as np, onnxruntime, tokenizers

facts = json.load(open("heed.json", encoding="utf-8"))
tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
tokenizer.encode_special_tokens = True  # "[SEP]" in a text is text
network = onnxruntime.InferenceSession("model.onnx")


def predict(text):
{read}
    ids = np.array({rows}, np.int64)
    logits = network.run(None, {{"ids": ids, "mask": np.ones(ids.shape, bool)}})[0].mean(axis=0)
{answer}


print(predict({example}))
"""
TORCH = """import json
import tokenizers, torch
{network}
facts = json.load(open("heed.json", encoding="utf-8"))
tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
tokenizer.encode_special_tokens = True  # "[SEP]" in a text is text
{load}


@torch.inference_mode()
def predict(text):
{read}
    ids = torch.tensor({rows})
    logits = network(ids, torch.ones_like(ids, dtype=torch.bool)).mean(dim=0)
{answer}


print(predict({example}))
"""
PT2 = {"network": "", "load": 'network = torch.export.load("model.pt2").module()'}
WEIGHTS = {
    "network": "from model import build_classifier  # Heed's: a file of weights is no network\n"
    "from safetensors.torch import load_file\n",
    "load": 'network = build_classifier(**facts["architecture"]).eval()\n'
    'network.load_state_dict(load_file("model.safetensors"))',
}
HUGGING_FACE = """import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
network = AutoModelForSequenceClassification.from_pretrained(".").eval()
with torch.inference_mode():
    logits = network(**tokenizer({example}, truncation=True, return_tensors="pt")).logits[0]
{answer}
"""
CHECKPOINT = """from model import load_classifier  # Heed's

classifier = load_classifier("best.ckpt")
print(classifier.predict([{example}]))
"""
ONE = """tokens = tokenizer.encode(text, add_special_tokens=False).ids or [facts["unk_id"]]
{cut}"""
ROOM = 'room = facts["max_len"] - 2\n'
PIECES = {  # of one text, as `truncation.py` says
    "head": 'pieces = [tokens[: facts["max_len"] - 2]]',
    "head_tail": ROOM
    + "pieces = [tokens if len(tokens) <= room else tokens[: room // 4] + tokens[room // 4 - room :]]",
    "windows": ROOM
    + """starts = [*range(0, len(tokens) - room, room), max(0, len(tokens) - room)]
pieces = [tokens[start : start + room] for start in starts]""",
}
SEVERAL = """parts = [tokenizer.encode(part, add_special_tokens=False).ids for part in text]
parts = parts if any(parts) else [[facts["unk_id"]], *parts[1:]]
room = facts["max_len"] - 2 - len(facts["between_ids"]) * (len(parts) - 1)
for left, tokens in zip(range(len(parts), 0, -1), sorted(parts, key=len)):  # the longest are cut
    {cut}
    room -= len(tokens)"""
SHARES = {  # of each part of a text
    "head": "del tokens[room // left :]",
    "head_tail": "tokens[:] = tokens if len(tokens) <= (share := room // left) else "
    "tokens[: share // 4] + tokens[share // 4 - share :]",
}
ANSWERS = {  # from numpy's logits, and from torch's
    "single_label": (
        """scores = np.exp((logits - logits.max()) / facts["temperature"])
chances = dict(zip(facts["labels"], (scores / scores.sum()).tolist()))
return max(chances, key=chances.get), chances""",
        """chances = dict(zip(facts["labels"], (logits / facts["temperature"]).softmax(dim=0).tolist()))
return max(chances, key=chances.get), chances""",
    ),
    "multi_label": (
        """chances = dict(zip(facts["labels"], (1 / (1 + np.exp(-logits))).tolist()))
return [label for label, least in zip(chances, facts["thresholds"]) if chances[label] >= least], chances""",
        """chances = dict(zip(facts["labels"], logits.sigmoid().tolist()))
return [label for label, least in zip(chances, facts["thresholds"]) if chances[label] >= least], chances""",
    ),
    "regression": ('return float(logits[0]) * facts["spread"] + facts["mean"]',) * 2,
}
TRANSFORMERS_ANSWERS = {
    "single_label": "print(dict(zip(network.config.id2label.values(), logits.softmax(dim=0).tolist())))",
    "multi_label": "print(dict(zip(network.config.id2label.values(), logits.sigmoid().tolist())))",
    "regression": "print(float(logits[0]))",
}


def usage(classifier: TextClassifier, kind: str) -> str:
    """The lines for a folder of the `kind` onnx, pt2, safetensors or hf, or for a checkpoint.

    `predict(text)` gives what `TextClassifier.predict` gives: the answer, and every label's probability. Raises `UserError` for
    texts of several columns that the lines cannot read.
    """
    several = classifier.n_parts > 1
    example = json.dumps([f"column {n + 1}" for n in range(classifier.n_parts)] if several else "your text")
    if kind == "checkpoint":
        return CHECKPOINT.format(example=example)
    if kind == "hf":
        if classifier.n_parts > 2:
            raise UserError(f"transformers' tokenizers read two columns, not {classifier.n_parts}: export --to onnx")
        pair = example.strip("[]") if classifier.n_parts == 2 else example
        return HUGGING_FACE.format(example=pair, answer=TRANSFORMERS_ANSWERS[classifier.task.name])
    if several and classifier.truncation not in SHARES:
        raise UserError(
            f"truncation={classifier.truncation} of several columns is not exported: train with truncation=head"
        )
    cut = (SHARES if several else PIECES)[classifier.truncation]
    one = '[[facts["cls_id"], *piece, facts["sep_id"]] for piece in pieces]'
    parts = '[sum([[*facts["between_ids"], *part] for part in parts[1:]], [facts["cls_id"], *parts[0]]) + [facts["sep_id"]]]'
    numpy = kind == "onnx"
    return (ONNX if numpy else TORCH).format(
        read=indent((SEVERAL if several else ONE).format(cut=cut), "    "),
        rows=parts if several else one,
        answer=indent(ANSWERS[classifier.task.name][0 if numpy else 1], "    "),
        example=example,
        **({} if numpy else PT2 if kind == "pt2" else WEIGHTS),
    )
