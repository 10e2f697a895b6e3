"""What broke comparable tools, fed to this one: one test a kind, its names say what must happen."""

import csv
import itertools
import json
import os
import sys
import time
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score

from errors import UserError
from evaluation.metrics import SCORES
from model import load_classifier
from model.lightning_module import METRICS
from tests.conftest import FRUIT, TOOLS
from training.assembly import make_data
from training.run import train

QUICK = ("data=files", "experiment=quick", "tokenizer.min_frequency=1", "trainer.accelerator=cpu")
ROWS = [(text, "fruit") for text in FRUIT] + [(text, "tool") for text in TOOLS]
DELIMITERS = {".csv": ",", ".tsv": "\t"}
KINDS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
TYPED = (".json", ".jsonl", ".parquet")  # a cell may be more than a string
SPELLED = ("null", "NA", "nan", "007", "None", "1.50", "true")


@pytest.fixture
def write(tmp_path):
    """Write rows, or what the file holds literally, and return its path."""

    def file(name: str, rows, header=("text", "label")) -> Path:
        path, kind = tmp_path / name, Path(name).suffix
        if isinstance(rows, (str, bytes)):
            path.write_bytes(rows if isinstance(rows, bytes) else rows.encode())
        elif kind in DELIMITERS:
            with open(path, "w", encoding="utf-8", newline="") as opened:
                csv.writer(opened, delimiter=DELIMITERS[kind]).writerows([header, *rows])
        elif kind == ".parquet":
            columns = [pa.array(column) for column in zip(*rows, strict=True)]
            pq.write_table(pa.Table.from_arrays(columns, names=list(header)), path)
        else:
            objects = [json.dumps(dict(zip(header, row, strict=True))) for row in rows]
            path.write_text("[" + ",\n".join(objects) + "]" if kind == ".json" else "\n".join(objects))
        return path

    return file


@pytest.fixture
def read(configure):
    """Read, split and tokenise; train nothing."""
    return lambda path, *overrides: make_data(configure(*QUICK, f"data.train={path}", *overrides))


@pytest.fixture
def run(configure, tmp_path):
    """Train in this process and return the run's folder."""

    def training(path: Path, *overrides: str, name: str = "run") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        train(configure(*QUICK, f"data.train={path}", *overrides), folder, started=time.perf_counter())
        return folder

    return training


@pytest.fixture
def refused(configure, tmp_path):
    """Expect a `UserError` that says `sentence`, and a run's folder that stays empty."""

    def check(sentence: str, path: Path, *overrides: str) -> None:
        folder = tmp_path / "refused"
        folder.mkdir()
        with pytest.raises(Exception, match=sentence) as caught:
            train(configure(*QUICK, f"data.train={path}", *overrides), folder, started=0.0)
        assert isinstance(caught.value, UserError) or isinstance(caught.value.__cause__, UserError)
        assert list(folder.iterdir()) == []

    return check


def content(data) -> list[tuple[str, str]]:
    """All rows of all splits."""
    return sorted((row["text"], row["label"]) for part in data.splits.values() for row in part)


# Network


def test_empty_and_blank_texts_get_a_finite_answer_alone_and_first_in_a_batch(run, write):
    classifier = load_classifier(run(write("mine.csv", ROWS)) / "best.ckpt")
    assert classifier.predict_proba([""]).isfinite().all()
    together = classifier.predict_proba(["", "  ", "\t\n", "a red apple"])
    assert together.isfinite().all()
    torch.testing.assert_close(together[3:], classifier.predict_proba(["a red apple"]), atol=1e-6, rtol=1e-5)


# Files


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_text_is_an_empty_text_and_counted(read, write, kind):
    missing = "" if kind in DELIMITERS else None
    data = read(write(f"mine{kind}", [(missing, "fruit"), *ROWS, (missing, "fruit")]))
    assert content(data) == sorted([*ROWS, ("", "fruit"), ("", "fruit")])
    assert data.facts["empty"] == {"train": 2}


@pytest.mark.parametrize("kind", [".json", ".jsonl"])
@pytest.mark.parametrize(("number", "text"), [(7, "7"), (7.5, "7.5"), (-1, "-1"), (True, "True")])
def test_a_number_among_the_texts_becomes_its_string(read, write, kind, number, text):
    assert content(read(write(f"mine{kind}", [*ROWS, (number, "fruit")]))) == sorted([*ROWS, (text, "fruit")])


def test_a_column_of_numbers_is_read_as_strings(read, write):
    numbers = [(i, label) for i, (_, label) in enumerate(ROWS)]
    assert content(read(write("mine.parquet", numbers))) == sorted((str(i), label) for i, label in numbers)


@pytest.mark.parametrize("kind", TYPED)
def test_what_is_no_text_is_refused_with_its_row(refused, write, kind):
    lists = [([text], label) for text, label in ROWS]
    refused(rf"mine\{kind}: (row|line) 1: text is list .*not a text", write(f"mine{kind}", lists))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["train", "validation"])
def test_a_missing_label_is_refused_with_its_line(refused, write, kind, part):
    rows = [*ROWS[:3], ("a peach", "" if kind in DELIMITERS else None), *ROWS[3:]]
    path, sound = write(f"mine{kind}", rows), write("sound.csv", ROWS)
    place = {".csv": "line 5", ".tsv": "line 5", ".jsonl": "line 4"}.get(kind, "row 4")
    given = [path] if part == "train" else [sound, f"data.validation={path}"]
    refused(rf"mine\{kind}: {place}: no label", *given)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_label_in_test_means_unlabelled(run, write, kind):
    missing = "" if kind in DELIMITERS else None
    test = write(f"test{kind}", [("a peach", missing), ("a red hammer", "tool"), ("a chisel", missing)])
    folder = run(write("mine.csv", ROWS), f"data.test={test}")
    answers = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    assert [answer["row"] for answer in answers] == [1, 3]
    predicted = load_classifier(folder / "best.ckpt").predict(["a peach", "a red hammer", "a chisel"])
    assert [answer["label"] for answer in answers] == [predicted[0].label, predicted[2].label]
    assert json.loads((folder / "metrics.json").read_text())["test/accuracy"] == float(predicted[1].label == "tool")


@pytest.mark.parametrize("kind", KINDS)
def test_texts_and_labels_spelled_like_nothing_or_numbers_stay_what_they_are(read, write, kind):
    rows = sorted(itertools.product(SPELLED, SPELLED))
    data = read(write(f"mine{kind}", rows))
    assert content(data) == rows
    assert sorted(data.labels) == sorted(SPELLED)


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".json", ".jsonl"])
def test_a_byte_order_mark_is_no_part_of_the_first_column_or_row(read, write, kind):
    plain = write(f"plain{kind}", ROWS)
    assert content(read(write(f"marked{kind}", b"\xef\xbb\xbf" + plain.read_bytes()))) == sorted(ROWS)


@pytest.mark.parametrize("kind", [".csv", ".tsv"])
def test_a_quoted_cell_keeps_quotes_delimiters_and_newlines(read, write, kind):
    sound = write(f"sound{kind}", ROWS).read_bytes()
    path = write(
        f"mine{kind}", sound + b'"a ""b"", c\n\td\r\n",fruit\n'.replace(b",fruit", DELIMITERS[kind].encode() + b"fruit")
    )
    assert content(read(path)) == sorted([*ROWS, ('a "b", c\n\td\r\n', "fruit")])


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".parquet"])
def test_a_column_that_is_there_twice_is_refused_by_name(refused, write, kind):
    rows = [(text, text, label) for text, label in ROWS]
    refused(
        rf"mine\{kind}: the column text is there more than once", write(f"mine{kind}", rows, ("text", "text", "label"))
    )


def test_files_with_their_columns_in_another_order_fit_together(run, write):
    rows = [(1, label, text) for text, label in [("a peach", "fruit"), ("a chisel", "tool")]]
    test = write("test.csv", rows, ("id", "label", "text"))
    metrics = json.loads((run(write("train.csv", ROWS), f"data.test={test}") / "metrics.json").read_text())
    assert metrics["majority/accuracy"] == 0.5


@pytest.mark.parametrize("part", ["validation", "test"])
def test_a_file_that_lacks_the_column_is_named_with_those_it_has(refused, write, part):
    other = write("other.csv", ROWS, ("body", "label"))
    refused("other.csv: no column 'text', only body, label", write("train.csv", ROWS), f"data.{part}={other}")


@pytest.mark.parametrize(("header", "column"), [(("body", "label"), "text"), (("text", "topic"), "label")])
def test_a_second_training_file_that_lacks_the_column_is_named_too(refused, write, header, column):
    other, mine = write("other.csv", ROWS, header), write("train.csv", ROWS)
    refused(f"other.csv: no column '{column}', only {', '.join(header)}", f"[{mine},{other}]")


@pytest.mark.parametrize("part", ["validation", "test"])
def test_a_label_that_training_lacks_is_refused_by_name(refused, write, part):
    other = write("other.csv", [("a peach", "fruit"), ("beef", "meat")])
    refused(
        r"other.csv: line 3: the label 'meat' is not in train \(fruit, tool\)",
        write("m.csv", ROWS),
        f"data.{part}={other}",
    )


def test_a_class_absent_from_test_counts_in_macro_f1_as_in_scikit_learn(run, write):
    rows = [*ROWS, ("beef", "meat"), ("a lamb chop", "meat"), ("raw ham", "meat"), ("minced meat", "meat")]
    texts, truth = ["a red peach", "an apple pie", "a chisel", "beef hammer"], ["fruit", "fruit", "fruit", "tool"]
    folder = run(write("mine.csv", rows), f"data.test={write('test.csv', zip(texts, truth, strict=True))}")
    predicted = [prediction.label for prediction in load_classifier(folder / "best.ckpt").predict(texts)]
    expected = f1_score(truth, predicted, average="macro", zero_division=0)
    assert json.loads((folder / "metrics.json").read_text())["test/macro_f1"] == pytest.approx(expected)


@pytest.mark.parametrize("predicted", [[0, 0, 1, 1], [0, 2, 1, 1], [1, 1, 0, 0]])
def test_a_class_absent_from_validation_counts_in_macro_f1_as_in_scikit_learn(predicted):
    truth, metric = [0, 0, 0, 1], METRICS["single_label"](3)["macro_f1"]
    value = float(metric(torch.eye(3)[predicted], torch.tensor(truth)))
    assert value == pytest.approx(f1_score(truth, predicted, average="macro", zero_division=0))


def test_one_class_only_is_refused(refused, write):
    refused(r"one class only \(fruit\)", write("mine.csv", ROWS[:6]))


def test_one_example_of_a_class_is_refused_where_splits_are_cut_and_works_where_they_are_given(refused, run, write):
    path = write("mine.csv", [*ROWS, ("beef", "meat")])
    refused("class 'meat' has 1 example", path)
    others = write("validation.csv", [("a peach", "fruit")]), write("test.csv", [("a chisel", "tool")])
    folder = run(path, f"data.validation={others[0]}", f"data.test={others[1]}")
    assert load_classifier(folder / "best.ckpt").labels == ["fruit", "meat", "tool"]


@pytest.mark.parametrize(("kind", "make"), [*((kind, int) for kind in KINDS), *((kind, float) for kind in TYPED)])
def test_labels_1_to_5_as_numbers_are_five_classes_with_these_names(read, write, kind, make):
    rows = [(f"word{i} text", make(i % 5 + 1)) for i in range(40)]
    data = read(write(f"mine{kind}", rows))
    assert (data.task, data.labels) == ("single_label", ["1", "2", "3", "4", "5"])
    assert data.encoded["train"].labels.unique().tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_of_minus_one_in_test_is_no_label(run, write, kind):
    rows = [(text, int(label == "tool")) for text, label in ROWS]
    test = write(f"test{kind}", [("a peach", -1), ("a red hammer", 1), ("a chisel", -1)])
    folder = run(write("mine.csv", rows), f"data.test={test}")
    answers = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    assert [answer["row"] for answer in answers] == [1, 3]
    assert all(set(answer["probabilities"]) == {"0", "1"} for answer in answers)


def test_where_minus_one_is_a_class_it_is_scored_and_a_missing_label_is_still_none(read, write):
    rows = [(text, -1 if label == "tool" else 1) for text, label in ROWS]
    test = write("test.csv", [("a peach", -1), ("a red hammer", 1), ("a chisel", "")])
    data = read(write("mine.csv", rows), f"data.test={test}")
    assert data.splits["test"]["label"][:] == ["-1", "1", None]


def test_an_edited_file_of_the_same_size_and_time_is_read_anew(read, write):
    path = write("mine.csv", ROWS)
    before = os.stat(path)
    assert content(read(path)) == sorted(ROWS)
    edited = [(text.replace("apple", "melon"), label) for text, label in ROWS]
    os.utime(write("mine.csv", edited), ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat(path).st_size == before.st_size
    data = read(path)
    assert content(data) == sorted(edited)
    assert data.tokenizer.token_to_id("melon") is not None
    assert data.tokenizer.token_to_id("apple") is None


@pytest.mark.parametrize(
    ("blanks", "sentence"),
    [
        ([""], r"every text is empty; check data\.text=text"),
        (["", " ", "\t", "\u3000", "\n", "\u200b"], "no text holds a word"),
    ],
)
def test_empty_texts_alone_are_refused(refused, write, blanks, sentence):
    rows = [(blank * times, label) for label in ("fruit", "tool") for blank in blanks for times in (1, 2, 3)]
    refused(sentence, write("mine.csv", rows))


# Text


def test_characters_never_seen_are_answered(run, write):
    classifier = load_classifier(run(write("mine.csv", ROWS)) / "best.ckpt")
    unseen = ["🜁", "漢字", "\ud83d", "a \udc00 red apple", "e\u0301\u0323", "\u202eabc", "\0", "👩‍👩‍👧"]
    assert classifier.predict_proba(unseen).isfinite().all()
    torch.testing.assert_close(*classifier.predict_proba(["🜁", "漢"]))  # each is one [UNK]


@pytest.mark.parametrize("kind", [".json", ".jsonl"])
def test_half_a_surrogate_pair_in_the_data_becomes_a_question_mark(run, read, write, kind):
    path = write(f"mine{kind}", [*ROWS, ("half \ud83d pair", "fruit")])
    assert ("half ? pair", "fruit") in content(read(path))
    assert (run(path) / "metrics.json").exists()


@pytest.mark.parametrize("tokenizer", ["words", "bpe"])
def test_five_megabytes_without_a_blank_take_bounded_time_and_memory(run, write, tokenizer):
    resource = pytest.importorskip("resource")
    path = write("mine.csv", [*ROWS, ("xy" * 2_500_000, "fruit")])
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (run(path, f"tokenizer={tokenizer}") / "metrics.json").exists()
    assert time.perf_counter() - start < 60  # not a speed: quadratic time would take hours
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 2 * 10**9


# Training and command line


@pytest.mark.parametrize("task", ["single_label", "multi_label", "regression"])
def test_twenty_rows_train_without_worker_processes_and_without_a_warning(run, read, write, task):
    label = {
        "single_label": lambda i: "ab"[i % 2],
        "multi_label": lambda i: [*"ab"][i % 3 :],
        "regression": lambda i: i + 0.5,
    }
    path = write("mine.jsonl", [(f"text number {i}", label[task](i)) for i in range(20)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder = run(path, "trainer.max_epochs=2")
    assert [str(warning.message) for warning in caught] == []
    assert json.loads((folder / "check.json").read_text())["task"] == task
    data = read(path)
    assert [loader.num_workers for loader in (data.train_dataloader(), data.val_dataloader())] == [0, 0]


def test_accuracy_of_uneven_classes_is_accuracy_and_not_recall():
    truth, predicted = [0] * 95 + [1] * 5, [0] * 100
    logged = METRICS["single_label"](2)["accuracy"](torch.eye(2)[predicted], torch.tensor(truth))
    reported = SCORES["single_label"]([str(i) for i in truth], [str(i) for i in predicted])["accuracy"]
    assert float(logged) == pytest.approx(0.95)
    assert reported == pytest.approx(0.95) == accuracy_score(truth, predicted)
