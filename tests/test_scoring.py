"""Files in, the same files with answers out: against csv, json and pyarrow, and `predict` on the same texts in a list."""

import csv
import gzip
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score

from data.tokenizer import train_tokenizer
from errors import UserError
from evaluation import labelled
from files import whole_file
from model import TextClassifier, build_classifier, load_classifier
from model.checkpoint import checkpoint_content
from model.task import make_task
from model.text_classifier import Columns
from scoring.job import Job, score
from scoring.sheets import ahead
from tests.conftest import FRUIT, ROOT, SMALL, TOOLS

LABELS = ["fruit", 'a "tool", 100 %', "other"]
ADDED = ["predicted", "probability", *(f"p({label})" for label in LABELS)]
ODD = [
    ["007", 'say "apple", twice\nor thrice', "NA", ""],
    ["1.0", "", "null", " x "],
    ["", "hammer\tand nail 🜁", "-1", "é"],
    ["x", "a red apple " * 30, "", '"'],
]
NAMES = ["id", "text", "note", "more"]
FACTS = {
    "single_label": {"labels": LABELS, "temperature": 1.3, "abstain_below": 0.5},
    "multi_label": {"labels": LABELS, "thresholds": [0.9, 0.05, 0.6]},
    "regression": {"labels": ["score"], "mean": 3.0, "spread": 2.0},
}


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """A classifier with random weights, of any task and number of columns."""
    tokenizer = train_tokenizer(
        FRUIT + TOOLS,
        key="",
        kind="words",
        vocab_size=99,
        min_frequency=1,
        lowercase=True,
        cache_dir=str(tmp_path_factory.mktemp("cache")),
    )

    def build(task: str = "single_label", n_parts: int = 1) -> TextClassifier:
        torch.manual_seed(0)
        facts = FACTS[task]
        sizes = {"vocab_size": tokenizer.get_vocab_size(), "n_classes": len(facts["labels"])}
        network = build_classifier(**{**SMALL, **sizes, "n_segments": n_parts, "sep_id": 3})
        torch.nn.init.normal_(network.head.weight)
        return TextClassifier(network, task=make_task(task, **facts), tokenizer=tokenizer, n_parts=n_parts)

    return build


def save(classifier: TextClassifier, path: Path, **content) -> Path:
    facts = checkpoint_content(
        classifier.network,
        task=classifier.task,
        tokenizer=classifier.tokenizer,
        truncation="head",
        n_parts=classifier.n_parts,
        **content,
    )
    weights = {f"classifier.{name}": value for name, value in classifier.network.state_dict().items()}
    torch.save({"state_dict": weights, "heed": facts}, path)
    return path


def as_csv(rows: list[list[str]], names: list[str] = NAMES, **options) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, **options).writerows([names, *rows])
    return buffer.getvalue()


def read_csv(path: Path, **options) -> list[dict[str, str]]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, **options))


def check_answers(
    rows: list[dict], classifier: TextClassifier, texts: list, *, each=lambda row, label: row[f"p({label})"]
):
    """The added values are those of `predict`."""
    for row, prediction in zip(rows, classifier.predict(texts), strict=True):
        assert row["predicted"] == prediction.label
        assert float(row["probability"]) == pytest.approx(prediction.probabilities[prediction.label], rel=1e-5)
        for label in LABELS:
            assert float(each(row, label)) == pytest.approx(prediction.probabilities[label], rel=1e-4)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["in.csv", "in.tsv", "in.csv.gz", "in.CSV"])
def test_csv_rows_come_back_byte_for_byte_with_the_answers_behind(make, tmp_path, name, end):
    delimiter = "\t" if "tsv" in name else ","
    content = "\ufeff" + as_csv(ODD, quoting=csv.QUOTE_ALL, lineterminator=end, delimiter=delimiter)
    (tmp_path / name).write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    out = tmp_path / f"out{'.tsv' if 'tsv' in name else '.csv'}"
    score(make(), Job(str(tmp_path / name), out))
    rows = read_csv(out, delimiter=delimiter)
    assert list(rows[0]) == [*NAMES, *ADDED]
    assert [[row[name] for name in NAMES] for row in rows] == ODD
    check_answers(rows, make(), [row[1] for row in ODD])
    raw = out.read_bytes().decode()
    assert raw.startswith("\ufeff" + delimiter.join(NAMES))
    for line in content.removeprefix("\ufeff").split(f'{end}"')[1:]:  # each row begins with a quote, no other line does
        assert f'"{line.removesuffix(end)}{delimiter}' in raw
    assert raw.count("\r\n") == (len(ODD) + 1) * (end == "\r\n")


def test_json_lines_keep_numbers_order_and_spelling(make, tmp_path):
    lines = [
        '{"n": 7, "x": 1.10, "text": "a red apple", "big": 12345678901234567890, "e": 1e5}',
        '{"text":"h\\u00e4mmer \\ud83d","deep":{"a":[1,{"b":null}]}}',
        "{}",
        '  {"text": "{", "last": "}"}  ',
    ]
    (tmp_path / "in.jsonl").write_text("\n\n".join(lines) + "\n")
    score(make(), Job(str(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"))
    written = (tmp_path / "out.jsonl").read_text().splitlines()
    for line, original in zip(written, lines, strict=True):
        assert line.startswith(original.strip()[:-1].rstrip())
        assert list(json.loads(line))[-3:] == ["predicted", "probability", "probabilities"]
        assert {**json.loads(original), **json.loads(line)} == json.loads(line)
    rows = [json.loads(line) for line in written]
    texts = ["a red apple", "hämmer ?", "", "{"]
    check_answers(rows, make(), texts, each=lambda row, label: row["probabilities"][label])


def test_parquet_keeps_its_types(make, tmp_path):
    table = pa.table(
        {
            "when": pa.array([0, None, 86_400], pa.timestamp("s")),
            "text": pa.array(["a red apple", None, "saw"], pa.large_string()),
            "n": pa.array([7, 8, None], pa.int16()),
            "many": pa.array([[1.5], [], None], pa.list_(pa.float32())),
        }
    ).replace_schema_metadata({"mine": "kept"})
    pq.write_table(table, tmp_path / "in.parquet")
    score(make(), Job(str(tmp_path / "in.parquet"), tmp_path / "out.parquet"))
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.select(table.column_names).equals(pq.read_table(tmp_path / "in.parquet"))
    assert found.schema.metadata[b"mine"] == b"kept"
    assert found.column_names[4:] == ADDED
    assert [str(found.schema.field(name).type) for name in ADDED] == ["string", *["float"] * 4]
    check_answers(found.to_pylist(), make(), ["a red apple", "", "saw"])
    score(make(), Job(str(tmp_path / "in.parquet"), tmp_path / "out.csv"))
    assert [row["n"] for row in read_csv(tmp_path / "out.csv")] == ["7", "8", ""]
    assert read_csv(tmp_path / "out.csv")[0]["when"] == "1970-01-01 00:00:00"


def test_plain_lines_become_a_table(make, tmp_path):
    lines = ["a red apple", "", 'say "no"', "tab\there"]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    for name in ("out.csv", "out.tsv", "out.jsonl", "out.parquet"):
        score(make(), Job(str(tmp_path / "in.txt"), tmp_path / name))
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    check_answers(rows, make(), lines)
    tables = [read_csv(tmp_path / "out.csv"), read_csv(tmp_path / "out.tsv", delimiter="\t"), rows]
    assert [[row["text"] for row in table] for table in tables] == [lines] * 3
    assert [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == lines


def test_rows_of_many_chunks_keep_their_order(make, tmp_path, monkeypatch):
    monkeypatch.setattr("scoring.sheets.CHUNK", 2500)
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(FRUIT + TOOLS, random.integers(1, 4))) for _ in range(6001)]
    (tmp_path / "in.csv").write_text(as_csv([[str(i), text] for i, text in enumerate(texts)], ["id", "text"]))
    counts = score(make(), Job(str(tmp_path / "in.csv"), tmp_path / "out.csv"))
    rows = read_csv(tmp_path / "out.csv")
    assert [row["id"] for row in rows] == list(map(str, range(6001)))
    check_answers(rows, make(), texts)
    assert counts.texts == 6001
    assert counts.truncated == sum(len(text.split()) > 22 for text in texts)


def test_several_labels_scores_and_several_columns(make, tmp_path):
    pairs = [
        ["ripe red apple", "saw"],
        ["", "drill"],
        *([text, text[::-1]] for text in FRUIT + TOOLS),
        ["plum jam", ""],
    ]
    (tmp_path / "in.csv").write_text(as_csv(pairs, ["title", "body"]))
    for task in ("multi_label", "regression"):
        classifier = make(task, n_parts=2)
        for out in ("csv", "jsonl", "parquet"):
            job = Job(str(tmp_path / "in.csv"), tmp_path / f"{task}.{out}", text=["title", "body"])
            score(classifier, job)
        predictions = classifier.predict(pairs)
        cells, rows = read_csv(tmp_path / f"{task}.csv"), pq.read_table(tmp_path / f"{task}.parquet").to_pylist()
        objects = [json.loads(line) for line in (tmp_path / f"{task}.jsonl").read_text().splitlines()]
        assert [[row["title"], row["body"]] for row in cells] == pairs
        for cell, row, one, prediction in zip(cells, rows, objects, predictions, strict=True):
            if task == "regression":
                assert [float(cell["predicted"]), row["predicted"], one["predicted"]] == pytest.approx(
                    [prediction.label] * 3
                )
                assert len(cell) == len(row) == len(one) == 3
            else:
                assert row["predicted"] == one["predicted"] == prediction.label
                assert cell["predicted"] == ";".join(prediction.label)
                assert one["probabilities"] == pytest.approx(prediction.probabilities, rel=1e-4)
                assert "probability" not in {*cell, *row, *one}
    (tmp_path / "in.txt").write_text("apple\tsaw\nno tab\n")
    with pytest.raises(UserError, match=r"in\.txt: line 2 has not 2 parts \(title, body\); part them by tabs"):
        score(make(n_parts=2), Job(str(tmp_path / "in.txt"), text=["title", "body"]))


def test_abstaining_leaves_the_cell_empty(make, tmp_path):
    classifier = make()
    texts = FRUIT + TOOLS
    classifier.task.abstain_below = float(classifier.predict_proba(texts).amax(dim=1).median())
    (tmp_path / "in.txt").write_text("\n".join(texts))
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        counts = score(classifier, Job(str(tmp_path / "in.txt"), tmp_path / name, abstain=True))
    expected = [p.label for p in classifier.predict(texts, abstain=True)]
    assert 0 < expected.count(None) == counts.abstained < 12
    assert [row["predicted"] or None for row in read_csv(tmp_path / "out.csv")] == expected
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["predicted"] for line in lines] == expected
    assert pq.read_table(tmp_path / "out.parquet")["predicted"].to_pylist() == expected
    with pytest.raises(UserError, match="has no threshold"):
        score(make("regression"), Job(str(tmp_path / "in.txt"), abstain=True))


def labels_beside(classifier: TextClassifier, path: Path, n_rows: int) -> tuple[list[str], list[str]]:
    """Write texts of which a third is labelled otherwise than the classifier says, one not at all, one unknown."""
    texts = [f"{(FRUIT + TOOLS)[i % 12]} {'pear ' * (i % 5)}" for i in range(n_rows)]
    truth = [p.label if i % 3 else LABELS[i % 2] for i, p in enumerate(classifier.predict(texts))]
    rows = [*map(list, zip(texts, truth, strict=True)), ["saw", ""], ["plum", "novel"]]
    path.write_text(as_csv(rows, ["text", "label"]))
    return texts, truth


def test_labels_are_judged_as_training_judges_its_test_split(make, tmp_path, capsys):
    classifier = make()
    texts, truth = labels_beside(classifier, tmp_path / "in.csv", 60)
    score(classifier, Job(str(tmp_path / "in.csv"), tmp_path / "out.csv"))
    said = capsys.readouterr().out.splitlines()
    predicted = [p.label for p in classifier.predict(texts)]
    accuracy, f1 = accuracy_score(truth, predicted), f1_score(truth, predicted, average="macro", zero_division=0)
    assert said[0].startswith("scored      62 texts in ")
    assert said[1] == "unknown     1 texts have a label that the classifier does not know ('novel'): not scored"
    shown = rf"test        accuracy {100 * accuracy:.1f} % \(95 % interval .*macro-F1 {100 * f1:.1f} %  on 60 texts"
    assert re.fullmatch(shown, said[2])
    folder = tmp_path / "out.report"
    assert said[3] == f"report      {folder / 'index.html'}"
    found = json.loads((folder / "report.json").read_text())
    assert found["summary"]["test"]["accuracy"] == pytest.approx(accuracy)
    page = (folder / "index.html").read_text()
    assert "confusion" in page
    assert "linear model" not in page
    with pytest.raises(UserError, match=r"out\.report: this exists"):
        score(classifier, Job(str(tmp_path / "in.csv"), tmp_path / "other.csv", report=folder))
    assert not (tmp_path / "other.csv").exists()
    score(classifier, Job(str(tmp_path / "in.csv"), tmp_path / "quiet.csv", label=""))
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert not (tmp_path / "quiet.report").exists()


def test_of_many_labels_a_sample_is_judged_and_said_so(make, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(labelled, "MOST", 50)
    texts, truth = labels_beside(make(), tmp_path / "in.csv", 300)
    score(make(), Job(str(tmp_path / "in.csv"), tmp_path / "out.csv"))
    assert "on 50 texts of the 300 with a label, drawn at random" in capsys.readouterr().out
    judge = labelled.Judge(make().task, source="", folder=None)
    logits = make().logits(texts)
    for start in range(0, 300, 30):
        judge.add(start, texts[start : start + 30], truth[start : start + 30], logits[start : start + 30])
    answers = judge.answers()
    assert len(set(answers.rows)) == 50
    assert list(answers.rows) == sorted(answers.rows)
    assert 100 < answers.rows.mean() < 200
    assert answers.truth == [truth[row] for row in answers.rows]
    assert answers.predicted == [p.label for p in make().predict([texts[row] for row in answers.rows])]


@pytest.mark.parametrize(("task", "label"), [("multi_label", "fruit;other"), ("regression", "2.5")])
def test_every_task_has_a_report_on_a_file(make, tmp_path, task, label):
    classifier = make(task)
    classifier.columns = Columns(separator=";" if task == "multi_label" else None)
    rows = [[text, label if i % 2 else {"multi_label": "", "regression": "1"}[task]] for i, text in enumerate(FRUIT)]
    (tmp_path / "in.csv").write_text(as_csv(rows, ["text", "label"]))
    score(classifier, Job(str(tmp_path / "in.csv"), tmp_path / "out.csv", report=tmp_path / "a" / "b"))
    found = json.loads((tmp_path / "a" / "b" / "report.json").read_text())
    assert set(found["summary"]["test"]) >= {"multi_label": {"micro_f1"}, "regression": {"mse"}}[task]
    assert len(read_csv(tmp_path / "out.csv")) == 6


MISTAKES = [
    ("in.csv", {"output": "there.csv"}, r"there\.csv: this exists; give another name, or --force"),
    ("in.csv", {"output": "out.xlsx"}, r"out\.xlsx: the name must end in one of \.csv \.tsv"),
    ("in.csv", {"output": "out.csv.gz"}, r"out\.csv\.gz: the name must end in one of"),
    ("in.csv", {"output": "no/out.csv"}, "there is no folder"),
    ("in.csv", {"text": ["txet"]}, r"in\.csv: no column 'txet', only id, text; say --text COLUMN"),
    ("in.csv", {"text": ["id", "text"]}, "reads 1 columns of it, not 2; give --text COLUMN"),
    ("in.csv", {"label": "lebal"}, "no column 'lebal', only id, text"),
    ("missing.csv", {}, "no such file"),
    (".", {}, "this is a folder"),
    ("in.doc", {}, r"the name must end in one of \.csv .*\.txt"),
    ("empty.csv", {}, "the file is empty"),
    ("empty.txt", {}, "there is no row in it"),
    ("header.csv", {}, "there is no row in it"),
    ("added.csv", {}, "the column 'predicted', which is to be added, is there already"),
    ("added.jsonl", {"output": "out.jsonl"}, "the column 'probabilities', which is to be added, is there already"),
    ("array.json", {"output": "out.jsonl"}, "one array; write one object a line"),
    ("lines.jsonl", {"output": "out.csv"}, r"need not have the same columns; let the name end in \.jsonl"),
    ("torn.csv", {}, "line 1502 has 1 cells and the header 2"),
]


@pytest.mark.parametrize(("name", "options", "sentence"), MISTAKES, ids=[sentence for *_, sentence in MISTAKES])
def test_a_mistake_is_a_sentence_and_leaves_nothing(make, tmp_path, name, options, sentence):
    for file, content in {
        "in.csv": "id,text\n1,apple\n",
        "there.csv": "as it was",
        "in.doc": "",
        "empty.csv": "",
        "empty.txt": "",
        "header.csv": "id,text\n",
        "added.csv": "text,predicted\na,b\n",
        "added.jsonl": '{"text": "a"}\n' * 1500 + '{"text": "a", "probabilities": 1}\n',
        "array.json": '[{"text": "a"}]',
        "lines.jsonl": '{"text": "a"}\n',
        "torn.csv": "id,text\n" + "1,apple\n" * 1500 + "2\n",
    }.items():
        (tmp_path / file).write_text(content)
    before = sorted(tmp_path.iterdir())
    options = {"output": "out.csv", **options}
    with pytest.raises(UserError, match=sentence) as error:
        score(make(), Job(str(tmp_path / name), **{**options, "output": tmp_path / options["output"]}))
    assert len(str(error.value)) < 400
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "there.csv").read_text() == "as it was"


def test_force_replaces_the_output_even_the_input_itself(make, tmp_path):
    (tmp_path / "in.csv").write_text(as_csv([[f"apple {i}"] for i in range(3000)], ["text"]))
    score(make(), Job(str(tmp_path / "in.csv"), tmp_path / "in.csv", force=True))
    assert [row["text"] for row in read_csv(tmp_path / "in.csv")] == [f"apple {i}" for i in range(3000)]


def test_on_a_full_disk_nothing_is_left(make, tmp_path):
    (tmp_path / "in.csv").write_text(as_csv([[f"apple {i}"] for i in range(3000)], ["text"]))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, hard))
        try:
            with pytest.raises(UserError, match=rf"{name}: cannot be written \(File too large\); make room"):
                score(make(), Job(str(tmp_path / "in.csv"), tmp_path / name))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def stop(file) -> None:
    file.write(b"other")
    raise KeyboardInterrupt


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "a.csv"
    with whole_file(path) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"
    with pytest.raises(KeyboardInterrupt), whole_file(path) as file:
        stop(file)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert path.read_bytes() == b"half"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_stopped_leaves_no_file_under_the_final_name(make, tmp_path, how):
    checkpoint = save(make(), tmp_path / "best.ckpt")
    command = [sys.executable, str(ROOT / "predict.py"), str(checkpoint), "--input", "-", "--output", "out.csv"]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # which a shell's background job does not
    with subprocess.Popen(command, cwd=tmp_path, preexec_fn=heard, **pipes) as process:
        process.stdin.write(b"a red apple\n" * 20_000)
        process.stdin.flush()
        unfinished, until = tmp_path / "out.csv.unfinished", time.monotonic() + 60
        while not (unfinished.exists() and unfinished.stat().st_size) and time.monotonic() < until:
            time.sleep(0.05)
        assert unfinished.stat().st_size > 0
        process.send_signal(how)
        process.wait(timeout=60)
        said = process.stderr.read()
    left = {path.name for path in tmp_path.iterdir()} - {"best.ckpt"}
    assert left == ({"out.csv.unfinished"} if how == signal.SIGKILL else set())
    assert (process.returncode, said) == ((-how, b"") if how == signal.SIGKILL else (130, b"stopped\n"))


def test_the_command_line(make, command, tmp_path):
    checkpoint = str(save(make(), tmp_path / "best.ckpt", columns=Columns(["review"], "stars", None)))
    assert load_classifier(checkpoint).columns == (["review"], "stars", None)
    (tmp_path / "in.csv").write_text(as_csv([["007", "a red apple", "other"]] * 9, ["id", "review", "stars"]))
    named = command("predict.py", checkpoint, "--input", "in.csv", "--output", "out.csv")
    assert (named.returncode, named.stderr) == (0, "")
    assert [line.split()[0] for line in named.stdout.splitlines()] == ["scored", "test", "report"]
    assert [row["id"] for row in read_csv(tmp_path / "out.csv")] == ["007"] * 9
    streamed = command("predict.py", checkpoint, "--input", "in.csv")
    assert streamed.stdout == (tmp_path / "out.csv").read_text()
    assert [line.split()[0] for line in streamed.stderr.splitlines()] == ["test"]
    piped = command("predict.py", checkpoint, "--input", "-", input="a red apple\nsaw\n")
    assert [line.split("\t")[0] for line in piped.stdout.splitlines()] == ["review", "a red apple", "saw"]
    again = command("predict.py", checkpoint, "--input", "in.csv", "--output", "out.csv")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == "error: --output out.csv: this exists; give another name, or --force to replace it\n"
    assert command("predict.py", checkpoint, "--input", "in.csv", "--output", "out.csv", "--force").returncode == 0
    for wrong in (["a text", "--input", "in.csv"], ["--input", "in.csv", "--json"], ["a text", "--output", "o.csv"]):
        assert command("predict.py", checkpoint, *wrong).returncode == 2
    between = command("predict.py", checkpoint, "--abstain", "saw", "--max-len", "9", "plum")
    assert between.returncode == 0
    assert len(between.stdout.splitlines()) == 2


def test_a_reader_that_goes_and_a_disk_that_is_full_behind_a_pipe(make, tmp_path):
    checkpoint = save(make(), tmp_path / "best.ckpt")
    (tmp_path / "in.csv").write_text(as_csv([[f"apple {i}"] for i in range(40_000)], ["text"]))
    command = f"{sys.executable} {ROOT / 'predict.py'} {checkpoint} --input in.csv"
    head = subprocess.run(
        ["bash", "-c", f"{command} | head -1"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (head.stdout.count("\n"), head.stderr) == (1, "")
    if os.path.exists("/dev/full"):
        full = subprocess.run(
            ["bash", "-c", f"{command} > /dev/full"], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert (full.returncode, full.stderr.count("\n")) == (2, 1)
        assert full.stderr.startswith("error: standard output cannot be written (No space left")


def test_an_older_checkpoint_reads_text_and_label(make, tmp_path):
    path = save(make(), tmp_path / "best.ckpt")
    content = torch.load(path, weights_only=True)
    del content["heed"]["columns"]
    torch.save(content, path)
    assert load_classifier(path).columns == (("text",), "label", None)


def test_pieces_of_a_file_are_read_ahead_in_their_order_with_their_error():
    def pieces():
        yield "first"
        yield "second"
        raise UserError("the third is broken")

    seen = []
    with pytest.raises(UserError, match="the third is broken"):
        seen.extend(ahead(pieces(), "in.csv"))
    assert seen == ["first", "second"]


def test_standard_input_is_not_read_ahead():
    read = []

    def pieces():
        for number in range(3):
            read.append(number)
            yield number

    assert next(ahead(pieces(), "-")) == 0
    assert read == [0]
