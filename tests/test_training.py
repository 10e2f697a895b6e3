import json
import re
from pathlib import Path
from unittest import mock

import pytest
import torch
from sklearn.metrics import accuracy_score

from data.batching import EncodedTexts
from errors import UserError
from model import load_classifier
from tests.conftest import FRUIT, QUICK, ROOT, TOOLS
from training.assembly import make_data
from training.monitoring import choose_monitor
from training.run import train

CHOICES = [f"{path.parent.name}={path.stem}" for path in sorted((ROOT / "conf").glob("*/[!_]*.yaml"))]
WEIGHTS = ["model=minilm", "model=pretrained", "tokenizer=pretrained"]  # run in test_finetuning.py
ELSEWHERE = ["trainer=ddp", "trainer=fsdp", "logger=tensorboard", "logger=wandb", "logger=mlflow", "hparams=optuna"]
REFUSED = ["task=multi_label", "task=regression"]  # by these labels: see the mistakes below


def weights(folder: Path) -> torch.Tensor:
    return torch.cat([p.flatten() for p in load_classifier(folder / "best.ckpt").network.parameters()])


def test_a_run_leaves_checkpoint_configuration_and_metrics(run):
    folder = run()
    files = {"README.md", "best.ckpt", "check.json", "config.yaml", "metrics.csv", "metrics.json", "report"}
    assert {path.name for path in folder.iterdir()} == files
    metrics = json.loads((folder / "metrics.json").read_text())
    keys = {"test/accuracy", "test/macro_f1", "baseline/accuracy", "majority/accuracy", "seconds/total"}
    assert keys <= metrics.keys()
    assert metrics["majority/accuracy"] == 0.5


def test_the_test_metric_is_the_reloaded_checkpoints_metric(run, tmp_path):
    unseen = [("a red apple", "fruit"), ("hammer and nail", "tool"), ("pear jam", "fruit"), ("fruit drill", "tool")]
    rows = "".join(f"{text},{label}\n" for text, label in unseen)
    (tmp_path / "test.csv").write_text("text,label\n" + rows)
    folder = run(f"data.test={tmp_path / 'test.csv'}", "trainer.max_epochs=3", "optimizer.lr=0.01")
    predictions = load_classifier(folder / "best.ckpt").predict([text for text, _ in unseen])
    expected = accuracy_score([label for _, label in unseen], [prediction.label for prediction in predictions])
    assert json.loads((folder / "metrics.json").read_text())["test/accuracy"] == expected


def test_it_learns(run, corpus):
    folder = run(
        f"data.validation={corpus}",
        "data.drop_leaks=false",
        "trainer.max_epochs=60",
        "patience=60",
        "optimizer.lr=0.01",
    )
    labels = [prediction.label for prediction in load_classifier(folder / "best.ckpt").predict(FRUIT + TOOLS)]
    assert accuracy_score(["fruit"] * 6 + ["tool"] * 6, labels) >= 0.8


def test_a_seed_fixes_the_result(run):
    first, again, other = run(name="1"), run(name="2"), run("seed=1", name="3")
    assert torch.equal(weights(first), weights(again))
    assert not torch.equal(weights(first), weights(other))


def test_the_checkpoint_opens_with_weights_only_and_holds_no_configuration_object(run):
    content = torch.load(run() / "best.ckpt", weights_only=True)
    task = content["heed"]["task"]
    assert (task["name"], task["labels"]) == ("single_label", ["fruit", "tool"])
    assert all(isinstance(task[key], float) for key in ("temperature", "abstain_below", "in_set_from"))
    assert "optimizer_states" not in content


@pytest.mark.parametrize(
    "choice", [c for c in CHOICES if not c.startswith("data=") and c not in WEIGHTS + ELSEWHERE + REFUSED]
)
def test_every_choice_of_the_configuration_runs_one_step(run, choice):
    size = () if choice.startswith("experiment=") else ("trainer.max_epochs=1",)
    run(choice, "+trainer.limit_train_batches=1", *size)


def test_a_task_is_chosen_by_its_name_and_hidden_tokens_take_longer(configure):
    tasks = {
        choice: configure(f"task={choice}").task for choice in ("auto", "single_label", "multi_label", "regression")
    }
    assert tasks == {
        "auto": None,
        "single_label": "single_label",
        "multi_label": "multi_label",
        "regression": "regression",
    }
    for guessing in (configure("task=mlm", "model=small"), configure("model=small", "task=mlm")):
        assert (guessing.task, guessing.model.dropout, guessing.model.d_model) == ("mlm", 0.1, 256)
        assert guessing.steps > configure().steps
        assert guessing.trainer.most_epochs > configure().trainer.most_epochs


@pytest.mark.parametrize("choice", WEIGHTS[:2])
def test_pretrained_weights_bring_their_tokenizer_and_optimizer(configure, choice):
    config = configure(choice)
    assert (config.tokenizer._target_, config.optimizer.head_lr) == ("data.tokenizer.load_tokenizer", 1e-3)
    assert config.trainer.fewest_epochs == 2


@pytest.mark.parametrize("choice", [c for c in CHOICES if c.startswith("data=")])
def test_every_source_of_the_configuration_composes(configure, choice):
    assert configure(choice).data._target_ in ("data.sources.bbc_news", "data.sources.files", "data.hub.hub")


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_in_bf16_batches_have_lengths_that_recur(run, configure, corpus, tmp_path, precision):
    texts = "\n".join(f"{'apple ' * (17 + i % 30)}word{i},{'fruit' if i % 2 else 'tool'}" for i in range(120))
    (tmp_path / "long.csv").write_text(f"text,label\n{texts}\n")
    seen: set[int] = set()
    with mock.patch.object(EncodedTexts, "__getitem__", autospec=True, side_effect=spy(seen, EncodedTexts.__getitem__)):
        run(f"data.train={tmp_path / 'long.csv'}", f"trainer.precision={precision}", "batch_tokens=128")
    others = seen - {20, 24, 28, 32, 40, 48}
    assert len(others) <= 2 if precision == "bf16-mixed" else len(others) > 5  # the longest of train and of validation


def spy(seen: set[int], pad):
    """What `EncodedTexts` does, and the lengths of its batches noted."""

    def get(self, rows):
        batch = pad(self, rows)
        seen.add(batch["ids"].shape[1])
        return batch

    return get


def test_only_check_looks_at_the_data_and_trains_nothing(run):
    folder = run("only=check")
    assert {path.name for path in folder.iterdir()} == {"check.json", "config.yaml"}
    facts = json.loads((folder / "check.json").read_text())
    assert facts["classes"].keys() == {"fruit", "tool"}
    assert facts["lengths"]["100 %"] == 7  # "an apple and a pear" with [CLS] and [SEP]


@pytest.mark.parametrize("uneven", [False, True])
def test_macro_f1_chooses_the_epoch_where_classes_are_uneven(configure, tmp_path, uneven):
    sizes = {"a": 33 if uneven else 24, "b": 10}
    rows = [f"{label} text {i},{label}" for label, size in sizes.items() for i in range(size)]
    (tmp_path / "train.csv").write_text("text,label\n" + "\n".join(rows))
    (tmp_path / "other.csv").write_text("text,label\nx,a\ny,b\n")
    given = [f"data.{name}={tmp_path}/{name if name == 'train' else 'other'}.csv" for name in ("train", "validation")]
    config = configure("data=files", *given, f"data.test={tmp_path}/train.csv", "data.drop_leaks=false", *QUICK)
    assert choose_monitor(config, make_data(config)) == ("val/macro_f1" if uneven else "val/accuracy")


def jsonl(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_several_labels_are_trained_scored_and_predicted(run, tmp_path):
    words = {"fruit": "apple", "tool": "hammer", "old": "rusty"}
    rows = []
    for i in range(240):
        labels = [label for bit, label in enumerate(words) if i >> bit & 1]
        rows.append({"text": " ".join([words[label] for label in labels] + [f"word{i}"]), "label": labels})
    learned = ("trainer.max_epochs=40", "patience=40", "optimizer.lr=0.02", "mix_linear=false")
    folder = run(f"data.train={jsonl(tmp_path / 'rows.jsonl', rows)}", *learned)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["test/micro_f1"] > 0.9
    assert metrics.keys() >= {"test/macro_f1", "test/exact_match", "baseline/micro_f1", "majority/micro_f1"}
    classifier = load_classifier(folder / "best.ckpt")
    assert classifier.predict(["rusty hammer"])[0].label == ["old", "tool"]
    assert len(torch.load(folder / "best.ckpt", weights_only=True)["heed"]["task"]["thresholds"]) == 3


def test_a_score_is_trained_scored_and_predicted(run, tmp_path):
    worth = {"bad": 0.5, "fair": 10.0, "good": 20.5}
    names = list(worth)
    rows = [{"text": f"a {names[i % 3]} film {i}", "label": worth[names[i % 3]] + i % 2 / 10} for i in range(120)]
    folder = run(f"data.train={jsonl(tmp_path / 'rows.jsonl', rows)}", "trainer.max_epochs=40", "optimizer.lr=0.02")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["test/spearman"] > 0.8
    assert metrics["test/mse"] < metrics["majority/mse"]
    good, bad = (
        prediction.label for prediction in load_classifier(folder / "best.ckpt").predict(["a good film", "a bad film"])
    )
    assert bad < 10 < good


def test_two_columns_are_joined_trained_and_predicted(run, tmp_path):
    words = ("up", "down")
    rows = [{"title": t, "body": f"{b} {i}", "label": t == b} for i in range(10) for t in words for b in words]
    data = jsonl(tmp_path / "rows.jsonl", rows)
    folder = run(f"data.train={data}", "data.text=[title,body]", "data.split_seed=1")
    classifier = load_classifier(folder / "best.ckpt")
    assert classifier.n_parts == 2
    assert classifier.predict([["up", "down"]])[0].label in ("True", "False")
    with pytest.raises(UserError, match="text 1: this classifier reads 2 parts a text"):
        classifier.predict(["up"])


def test_unlabelled_test_texts_are_predicted_and_not_scored(run, tmp_path):
    (tmp_path / "test.csv").write_text("text,label\na red apple,fruit\na saw,\nhammer,-1\n")
    folder = run(f"data.test={tmp_path / 'test.csv'}")
    lines = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    assert [line["row"] for line in lines] == [2, 3]
    assert all(line["label"] in ("fruit", "tool") for line in lines)
    expected = load_classifier(folder / "best.ckpt").predict(["a red apple"])[0].label == "fruit"
    assert json.loads((folder / "metrics.json").read_text())["test/accuracy"] == float(expected)


def test_a_test_split_without_any_label_is_predicted(run, tmp_path):
    (tmp_path / "test.csv").write_text("text\na red apple\n")
    folder = run(f"data.test={tmp_path / 'test.csv'}")
    assert "test/accuracy" not in json.loads((folder / "metrics.json").read_text())
    assert len((folder / "predictions.jsonl").read_text().splitlines()) == 1


def test_the_score_is_also_given_without_near_copies_of_training_texts(run, tmp_path, corpus):
    long = "one two three four five six seven eight nine ten eleven twelve " * 3
    with corpus.open("a") as file:
        file.write(f"{long} end,fruit\n")
    (tmp_path / "test.csv").write_text(f"text,label\n{long} fin,fruit\na red saw,tool\n")
    folder = run(f"data.test={tmp_path / 'test.csv'}")
    right = load_classifier(folder / "best.ckpt").predict(["a red saw"])[0].label == "tool"
    assert json.loads((folder / "metrics.json").read_text())["apart/accuracy"] == float(right)


def test_two_passes_of_each_batch_lead_to_other_weights(run):
    twice, once = weights(run("r_drop=1.5", name="twice")), weights(run(name="once"))
    assert twice.isfinite().all()
    assert not torch.equal(twice, once)


@pytest.mark.parametrize("override", ["class_weight=balanced", "sampler=balanced"])
def test_uneven_classes_can_be_weighed_alike(run, override):
    assert (run(override) / "best.ckpt").exists()


def test_a_stream_trains_for_so_many_steps(configure, tmp_path):
    (tmp_path / "hub").mkdir()
    for name, size in (("train", 300), ("test", 30)):
        texts = [f"{['saw nail', 'apple pear'][i % 2]} {name} {i}" for i in range(size)]
        rows = [{"text": text, "label": ["tool", "fruit"][i % 2]} for i, text in enumerate(texts)]
        jsonl(tmp_path / "hub" / f"{name}.jsonl", rows)
    stream = ("data=hub", f"data.name={tmp_path / 'hub'}", "data.streaming=true", "data.head=50", "batch_tokens=64")
    endless = configure(*stream, *QUICK, "trainer.max_epochs=null")
    (tmp_path / "run").mkdir()
    with pytest.raises(UserError, match=r"say how long to train with trainer\.max_steps=N"):
        train(endless, tmp_path / "run", started=0.0)
    assert list((tmp_path / "run").iterdir()) == []
    train(configure(*stream, *QUICK, "trainer.max_steps=40", "optimizer.lr=0.02"), tmp_path / "run", started=0.0)
    assert json.loads((tmp_path / "run" / "check.json").read_text())["rows"]["train"] < 50
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["test/accuracy"] > 0.9


def test_a_compiled_run_leaves_the_names_of_the_weights(run, monkeypatch):
    compile_with = torch.nn.Module.compile
    eager = lambda self, **options: compile_with(self, backend="eager", **options)  # noqa: E731, no C compiler needed
    monkeypatch.setattr(torch.nn.Module, "compile", eager)
    compiled, plain = run("trainer.compile=true", name="compiled"), run(name="plain")
    names = [torch.load(folder / "best.ckpt", weights_only=True)["state_dict"].keys() for folder in (compiled, plain)]
    assert names[0] == names[1]
    torch.testing.assert_close(weights(compiled), weights(plain), atol=1e-4, rtol=1e-3)


def test_mixed_precision_leaves_weights_in_full_precision(run):
    found = weights(run("trainer.precision=bf16-mixed"))
    assert found.dtype == torch.float32
    assert found.isfinite().all()


def test_help_lists_every_group_and_choice():
    text = (ROOT / "conf" / "config.yaml").read_text()
    for choice in CHOICES:
        group, name = choice.split("=")
        block = re.split(rf"\n {{8}}{group}  ", text)[1]  # up to the next group, which is as far to the left
        assert name in re.split(r"\n {8}\S|\n\n", block)[0].split(), choice


def test_fast_dev_run_does_not_crash(run):
    assert list(run("+trainer.fast_dev_run=true").glob("*.ckpt")) == []


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.d_model=33", "d_model=33 is not divisible by n_heads=2"),
        ("model.position=typo", "model.position=typo is unknown: choose one of learned, sinusoidal"),
        ("monitor=val/acc", "monitor=val/acc is not measured: choose one of val/accuracy, val/macro_f1"),
        ("batch_tokens=10", "batch_tokens=10 holds no text of max_len=64"),
        ("optimizer.schedule=step", "optimizer.schedule=step is unknown"),
        ("data.train=nowhere.csv", "nowhere.csv: no such file"),
        ("task=multi_label", "the labels are no lists; say what parts them"),
        ("task=regression", "corpus.csv: line 2: the label 'fruit' is no number"),
        ("only=look", "only=look is unknown: choose null, check, find_lr, learning_curve"),
        ("class_weight=high", "class_weight=high is unknown: choose null or balanced"),
        ("r_drop=1 model.dropout=0", "r_drop=1 needs two passes that differ"),
        ("r_drop=1 task=mlm", "r_drop=1 needs labels, and task=mlm has none"),
        ("sampler=high", "sampler=high is unknown: choose null or balanced"),
        ("data.text=[text,label,text,label]", "model.max_len=3 has no room for 4 columns: give 12"),
    ],
)
def test_a_mistake_is_a_sentence_and_leaves_nothing(run, tmp_path, override, sentence):
    with pytest.raises(Exception, match=sentence) as caught:
        run(*override.split(), *(["model.max_len=3"] if override.startswith("data.text") else []))
    assert isinstance(caught.value, UserError) or isinstance(caught.value.__cause__, UserError)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_folder_that_holds_a_run_is_kept(run, tmp_path, configure, corpus):
    folder = run()
    before = (folder / "best.ckpt").read_bytes()
    with pytest.raises(UserError, match="already holds a run"):
        train(configure("data=files", f"data.train={corpus}", *QUICK), folder, started=0.0)
    assert (folder / "best.ckpt").read_bytes() == before
