"""The model card: what the classifier is, and what its run measured, as a README that the Hugging Face Hub reads.

Every figure is one of the files that the run left beside the checkpoint; where they are not there, the card says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from huggingface_hub import EvalResult, ModelCardData
from omegaconf import OmegaConf

from evaluation.metrics import NAMES, WHO, shown, with_interval
from evaluation.run_files import Run, run_of
from model.text_classifier import TextClassifier
from model.usage import usage

THEIRS = {
    "macro_f1": "f1",
    "micro_f1": "f1",
    "pearson": "pearsonr",
    "spearman": "spearmanr",
    "exact_match": "exact_match",
}
WHAT = {
    "single_label": "gives a text one of {n} labels",
    "multi_label": "gives a text any of {n} labels",
    "regression": "gives a text a score",
}
MOST_LABELS = 30  # that are named


def model_card(classifier: TextClassifier, folder: Path, *, name: str, kind: str, notes: Sequence[str] = ()) -> str:
    """The card of a checkpoint in `folder`: a YAML header, how to run it, numbers, data, limits, training and versions.

    `kind` is what it is exported to, as in `model/usage.py`; `notes` are sentences about that.
    """
    run, code = run_of(classifier, folder), usage(classifier, kind)
    task, n = classifier.task.name, len(classifier.labels)
    named = ", ".join(f"`{label}`" for label in classifier.labels[:MOST_LABELS]) + ", …" * (n > MOST_LABELS)
    what = f"A Transformer encoder that {WHAT[task].format(n=n)}" + f": {named}" * (task != "regression")
    sections = {
        "Use": "\n".join([f"```python\n{code.rstrip()}\n```\n", *notes]).rstrip(),
        "Numbers": numbers(run),
        "Data": data(run),
        "Limits": bullets(limits(classifier, run)),
        "Training": bullets(training(classifier, run)),
    }
    body = "\n".join(f"## {title}\n\n{text}\n" for title, text in sections.items())
    return f"---\n{header(classifier, run, name=name, kind=kind)}\n---\n\n# {name}\n\n{what}.\n\n{body}"


def header(classifier: TextClassifier, run: Run, *, name: str, kind: str) -> str:
    """What the Hub reads. Language and licence are not known here."""
    results = [
        EvalResult(
            task_type="text-classification",
            dataset_type=run.dataset or "custom",
            dataset_name=run.origin,
            dataset_split="test",
            metric_type=THEIRS.get(key, key),
            metric_name=NAMES[key],
            metric_value=run.scores["test"][key],
        )
        for key in NAMES
        if key in run.scores.get("test", {})
    ]
    return ModelCardData(
        pipeline_tag="text-classification",
        library_name="transformers" if kind == "hf" else None,
        tags=["heed", *(["onnx"] if kind == "onnx" else [])],
        datasets=[run.dataset] if run.dataset else None,
        metrics=sorted({result.metric_type for result in results}) or None,
        model_name=name if results else None,
        eval_results=results or None,
    ).to_yaml()


def numbers(run: Run) -> str:
    """The scores of ours and of the baselines, with their intervals, and what the difference is worth."""
    if not run.scores.get("test"):
        return f"Not known: {run.lacks or 'the run had no test texts with labels'}."
    names = [name for name in NAMES if any(name in of for of in run.scores.values())]
    rows = [["", *(NAMES[name] for name in names)], ["---"] * (len(names) + 1)]
    rows += [[WHO[who], *(with_interval(name, of) for name in names)] for who, of in run.scores.items()]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    said = "On the test texts; in brackets 95 % intervals (bootstrap over them)."
    verdict = f" It is {run.report['verdict']}." if "verdict" in run.report else ""
    return f"{table}\n\n{said}{verdict}"


def data(run: Run) -> str:
    """Where the texts came from, and how many there were of each label."""
    if not run.check:
        return f"Not known: {run.lacks or '`check.json` was not beside the checkpoint'}."
    rows, near, leaks = (run.check.get(key, {}) for key in ("rows", "near_duplicates", "leaks"))
    cut = [name for name in run.check.get("cut_from_train", ()) if name in rows]
    facts = [
        f"{run.origin}: {rows['train']:,} texts to train on, {rows['validation']:,} to validate, {rows['test']:,} to test"
        + (f"; {' and '.join(cut)} cut from train" if cut else "")
        + ("; trained on a stream, of which this is the beginning" if run.streamed else ""),
        ", ".join(f"`{label}` {count:,}" for label, count in list(run.check["classes"].items())[:MOST_LABELS]),
        f"{len(near['test']):,} test texts are nearly in train" if near.get("test") else "",
    ]
    if leaks.get("found") != leaks.get("dropped"):
        facts.append(f"{leaks['found']:,} texts of train are in validation or test too")
    return bullets(filter(None, facts))


def limits(classifier: TextClassifier, run: Run) -> list[str]:
    """What it cannot do."""
    read = "a text in pieces of {:,} tokens" if classifier.truncation == "windows" else "{:,} tokens of a text"
    found = [f"It reads {read.format(classifier.max_len)} (truncation `{classifier.truncation}`)."]
    if run.check.get("truncated"):
        found[0] += f" {shown('accuracy', run.check['truncated'])} of the training texts were longer."
    if classifier.task.name == "single_label":
        found.append("A text that none of the labels fits gets one of them all the same.")
    if 0.0 < (least := classifier.task.abstain_below or 0.0) < 1.0:
        found.append(f"An answer less probable than {least:.3f} is better not given: what validation taught.")
    if classes := [of for of in run.report.get("classes", ()) if of["count"]]:
        least_f1 = min(classes, key=lambda of: of["f1"])
        f1 = shown("macro_f1", least_f1["f1"])
        found.append(f"Weakest on `{least_f1['label']}`: F1 {f1} on {least_f1['count']} test texts.")
    if "test/ece" in run.metrics:
        error = shown("accuracy", run.metrics["test/ece"])
        found.append(f"Calibration error: its probabilities are off by {error} on average.")
    return [*found, "Language, licence and whom the texts speak of are not known to the program: write them here."]


def training(classifier: TextClassifier, run: Run) -> list[str]:
    """How it came about, and with which versions."""
    sizes, config = classifier.network.architecture, run.config
    millions = sum(weight.numel() for weight in classifier.network.parameters()) / 1e6
    parts = ", ".join(str(sizes[key]) for key in ("block", "norm", "position", "attention", "mask", "feed_forward"))
    found = [
        f"{sizes['n_layers']} layers, d_model {sizes['d_model']}, {sizes['n_heads']} heads, {millions:.2f} million weights; "
        f"{parts}; pooling {sizes['pooling']}"
    ]
    if begun := config.get("model", {}).get("name"):
        found.append(f"from the weights of {begun if begun.count('/') == 1 else Path(begun).name}")
    if run.report:
        chosen = {key: OmegaConf.select(config, key) for key in ("optimizer.lr", "batch_tokens", "seed")}
        settings = ", ".join(f"`{key}={value}`" for key, value in chosen.items() if value is not None)
        epochs, minutes = len(run.report.get("history", ())), run.report["seconds"] / 60
        found.append(f"{epochs} epochs in {minutes:.1f} minutes, the best by `{run.report['monitor']}`; {settings}")
        found.append(", ".join(f"{name} {version}" for name, version in run.report["versions"].items()))
    else:
        found.append(f"the rest is not known: {run.lacks or '`report/report.json` was not beside the checkpoint'}")
    return found


def bullets(facts: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {fact}" for fact in facts)
