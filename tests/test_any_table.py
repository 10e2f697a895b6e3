"""Whatever table comes in: a step of training, or one sentence and nothing left behind."""

import csv
import functools
import io
import json
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hydra import compose, initialize_config_dir
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig

from errors import exit_on_user_error
from tests.conftest import ROOT
from training.run import train

OVERRIDES = (
    *("data=files", "experiment=quick", "tokenizer.min_frequency=1", "trainer.accelerator=cpu"),
    *("+trainer.limit_train_batches=1", "+trainer.limit_val_batches=1"),
)
DELIMITERS = {".csv": ",", ".tsv": "\t"}
KINDS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
ODD = (
    *("\ud83d", "\udc00", "\n", "\r", "\r\n", "\t", " ", '"', '""', ",", "'", "\\", "\x1a", "\x85", "\u2028", "\ufffe"),
    *(
        "e\u0301",
        "\u0323" * 9,
        "שלום",
        "مرحبا",
        "\u202e",
        "\u200b",
        "\ufeff",
        "👩\u200d👩\u200d👧",
        "🜁",
        "漢字",
        "ไทย",
        "İ",
        "ß",
        "٣",
    ),
    *("[PAD]", "[UNK]", "<s>", "${seed}", "%s", "{}", "null", "NA", "nan", "007", "-1", "1e999"),
)
WORDS = st.sampled_from(("red", "apple", "saw", "a", "I", *ODD)) | st.text(
    st.characters(exclude_characters="\0"), max_size=8
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
CELLS = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(TEXTS, SCALARS, max_size=2)
COLUMNS = st.sampled_from(("id", "Text", "label ", "", "a,b", 'q"', "טקסט", "text", "label")) | st.text(max_size=4)
HEADERS = (("text", "label"), ("text", "label"), ("", 'q"'), ("a,b", "טקסט"), ("label", "text"), ("${seed}", "0"))
LABELS = {  # what a column of labels may hold
    "names": st.sampled_from(("fruit", "tool", "1", "0", "-1", "[PAD]", "שלום", "a b", "\ud83d", "🜁"))
    | st.text("aB1é漢", min_size=1),
    "whole numbers": st.integers(-2, 5) | st.integers(-(10**30), 10**30),
    "whole floats": st.integers(-2, 5).map(float),
    "lists": st.lists(st.sampled_from("abc"), max_size=3),
    "scores": st.floats(-10, 10),
    "any floats": st.floats(),
    "anything": CELLS,
}
SOUND = ("names", "names", "whole numbers")
FLAWS = ("labels", "cells", "columns", "header", "missing labels", "few rows", "NUL", "bytes")


class Table(NamedTuple):
    """A table with the names of its columns, of which two are read; `test` are rows of a file of its own."""

    header: tuple[str, ...]
    rows: list[tuple]
    test: list[tuple] = []  # noqa: RUF012
    text: str = "text"
    label: str = "label"
    garble: Callable[[bytes], bytes] = bytes  # what happens to the file

    def __repr__(self) -> str:
        return (
            f"{self.header} {shortened(self.rows)} test={shortened(self.test)} text={self.text!r} label={self.label!r}"
        )


def shortened(rows: list[tuple]) -> list[tuple]:
    return [tuple(c if len(repr(c)) < 99 else f"{repr(c)[:20]}… of {len(repr(c))}" for c in row) for row in rows]


@st.composite
def tables(draw, *, sound: bool) -> Table:
    """Two or three labels with four texts or more each; with a flaw or two where it need not be sound."""
    flaws = set() if sound else draw(st.sets(st.sampled_from(FLAWS), min_size=1, max_size=2))
    kind, n = draw(st.sampled_from(tuple(LABELS) if "labels" in flaws else SOUND)), draw(st.integers(12, 24))
    if kind in ("scores", "any floats", "anything"):
        labels = draw(st.lists(LABELS[kind], min_size=n, max_size=n))
    else:
        pool = draw(st.lists(LABELS[kind], min_size=2, max_size=3, unique_by=plain))
        labels = [pool[i % len(pool)] for i in range(n)]
    texts = [f"{text} {i}" for i, text in enumerate(draw(st.lists(TEXTS, min_size=n, max_size=n)))]
    if "cells" in flaws:
        texts = [draw(CELLS) if i % 3 == 0 else text for i, text in enumerate(texts)]
    if "missing labels" in flaws:
        labels[draw(st.integers(0, n - 1))] = draw(st.sampled_from((None, "", [], float("nan"), " ")))
    if "NUL" in flaws:
        texts[-1] = "a\0b"
    more = draw(st.lists(COLUMNS, max_size=2)) if "columns" in flaws else draw(st.sampled_from(([], ["id"])))
    header = draw(st.tuples(COLUMNS, COLUMNS) if "header" in flaws else st.sampled_from(HEADERS))
    rows = [(t, lab, *draw(st.tuples(*[CELLS] * len(more)))) for t, lab in zip(texts, labels, strict=True)]
    test: list[tuple] = []
    if draw(st.integers(0, 3)) == 0:
        instead = draw(st.sampled_from((None, rows[0][1]) if sound else (None, rows[0][1], "", -1, [], "new")))
        test = [(f"{row[0]} test", draw(st.sampled_from((row[1], instead))), *row[2:]) for row in rows[:4]]
    return Table(
        (*header, *more),
        rows[: draw(st.integers(0, 5))] if "few rows" in flaws else rows,
        test,
        *(("text", "label") if "header" in flaws and draw(st.booleans()) else header),
        draw(GARBLES) if "bytes" in flaws else bytes,
    )


BITS = st.binary(min_size=1, max_size=9) | st.sampled_from(
    (b"\0", b'"', b"\n", b"\xef\xbb\xbf", b"\xff\xfe", b"[", b"{", b",")
)
GARBLES = st.builds(
    lambda bits, share, cut: lambda raw: raw[: int(share * len(raw))] + bits + raw[int((share + cut) * len(raw)) :],
    *(BITS, st.sampled_from((0.0, 0.01, 0.1, 0.5, 0.9, 1.0)), st.sampled_from((0.0, 0.0, 0.01, 1.0))),
)


def written(table: Table, kind: str) -> bytes:
    """The table as a file of this kind; what the kind cannot hold becomes a string."""
    if kind in DELIMITERS:
        out = io.StringIO(newline="")
        rows = (["" if cell is None else plain(cell) for cell in row] for row in table.rows)
        csv.writer(out, delimiter=DELIMITERS[kind]).writerows([map(plain, table.header), *rows])
        raw = out.getvalue().encode()
    elif kind == ".parquet":
        columns = (
            map(column, zip(*table.rows, strict=True))
            if table.rows
            else [pa.array([], pa.string())] * len(table.header)
        )
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(list(columns), names=list(map(plain, table.header))), sink)
        raw = sink.getvalue()
    else:
        objects = [json.dumps(dict(zip(table.header, row, strict=True))) for row in table.rows]
        raw = ("[" + ",\n".join(objects) + "]" if kind == ".json" else "\n".join(objects)).encode()
    return table.garble(raw)


def plain(cell: object) -> str:
    return str(cell).encode("utf-8", "replace").decode()


def column(cells: tuple) -> pa.Array:
    """A typed column where the cells allow one."""
    try:
        array = pa.array(cells)
        pq.write_table(pa.table({"column": array}), io.BytesIO())  # there are types that Parquet lacks
    except (pa.ArrowException, UnicodeEncodeError, OverflowError):
        return pa.array([None if cell is None else plain(cell) for cell in cells], pa.string())
    return array


@functools.cache
def configuration() -> DictConfig:
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", overrides=list(OVERRIDES))


def outcome(raw: bytes, kind: str, *, test: bytes | None = None, **columns: str) -> str:
    """Feed a file; return "trained" or the sentence of the refusal. Anything else is raised."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir, config, said = Path(folder, "run"), configuration().copy(), io.StringIO()
        run_dir.mkdir()
        config.cache_dir = str(Path(folder, "cache"))
        for name, content in (("train", raw), ("test", test)):
            if content is not None:
                config.data[name] = str(Path(folder, f"{name}{kind}"))
                Path(folder, f"{name}{kind}").write_bytes(content)
        config.data.update(columns)
        code: object = 0
        try:
            with redirect_stderr(said), exit_on_user_error():
                train(config, run_dir, started=0.0)
        except SystemExit as stopped:
            code = stopped.code
        left, lines = {path.name for path in run_dir.iterdir()}, said.getvalue().splitlines()
        if code == 0:
            assert lines == []
            assert {"best.ckpt", "metrics.json"} <= left
            return "trained"
        assert (code, left, len(lines)) == (2, set(), 1)
        assert lines[0].startswith("error: ")
        assert len(lines[0]) > len("error: a few words")
        return lines[0]


@pytest.fixture(scope="module", autouse=True)
def _quick():
    """One thread, since tensors of a few numbers are slower on several and a run would choose itself; few bootstrap samples."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "set_num_threads", lambda _: None)
        patch.setattr("evaluation.compare.DRAWS", 0)
        yield
    torch.set_num_threads(before)


def feed(table: Table, kind: str) -> str:
    columns = {
        name: plain(column).replace("${", "\\${") for name, column in (("text", table.text), ("label", table.label))
    }
    test = written(table._replace(rows=table.test, garble=bytes), kind) if table.test else None
    return outcome(written(table, kind), kind, test=test, **columns)


@pytest.mark.parametrize("kind", [".csv", ".jsonl", ".parquet"])
def test_a_sound_table_trains_a_step(kind):
    @settings(derandomize=True, deadline=None, max_examples=7, suppress_health_check=list(HealthCheck))
    @given(tables(sound=True))
    def check(table: Table) -> None:
        assert feed(table, kind) == "trained"

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_any_table_trains_a_step_or_is_refused_in_one_sentence(kind):
    @settings(derandomize=True, deadline=None, max_examples=14, suppress_health_check=list(HealthCheck))
    @given(tables(sound=False))
    def check(table: Table) -> None:
        feed(table, kind)

    check()


TWELVE = [(f"{'ab'[i % 2]} text number {i}", "ab"[i % 2]) for i in range(12)]
HARD = {
    "words of one letter": [(chr(97 + i) + " a", "ab"[i % 2]) for i in range(12)],
    "emoji alone": [(chr(0x1F600 + i), "ab"[i % 2]) for i in range(12)],
    "labels of digits without end": [(text, "9" * 5000 if label == "a" else "7") for text, label in TWELVE],
    "labels longer than texts": [(text, label * 100_000) for text, label in TWELVE],
    "scores too large to square": [(text, (i + 0.5) * 1e20) for i, (text, _) in enumerate([*TWELVE, ("more", "a")])]
    + [("less", 0.5)],
    "scores beyond 32 bits": [(text, (i + 0.5) * 1e300) for i, (text, _) in enumerate(TWELVE)] + [("less", 0.5)],
    "scores that differ in the last digits": [(text, 0.5 + i * 1e-12) for i, (text, _) in enumerate(TWELVE)],
    "infinite scores": [(text, float("inf") if label == "a" else 0.5) for text, label in TWELVE],
    "labels that all texts have": [(text, ["a"] if label == "a" else ["a", "b"]) for text, label in TWELVE],
    "no text twice": [("one", label) for _, label in TWELVE],
}


@pytest.mark.parametrize("rows", HARD.values(), ids=HARD)
def test_hard_tables_train_a_step_or_are_refused_in_one_sentence(rows):
    feed(Table(("text", "label"), rows), ".jsonl")


def test_a_test_file_without_any_of_several_labels_is_scored():
    rows = [(text, [label] if i < 6 else []) for i, (text, label) in enumerate([*TWELVE, *TWELVE])]
    assert feed(Table(("text", "label"), rows, test=[("new", []), ("newer", [])]), ".jsonl") == "trained"


@pytest.mark.parametrize(
    "unread",
    [
        pa.array([[("key", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([2**62], pa.timestamp("us")),  # centuries after the last year that Python knows
        pa.array([1], pa.timestamp("ns", "Europe/Berlin")),
        pa.array([2**30], pa.date32()),
        pa.array([1], pa.duration("us")),
        pa.array([b"\xff"]),
        pa.array([{"a": [1]}]),
        pa.array(["a"]).dictionary_encode(),
        pa.array([None]),
    ],
    ids=lambda array: str(array.type),
)
def test_a_column_that_is_not_read_may_be_of_any_type(unread):
    text, label = zip(*TWELVE, strict=True)
    table = pa.table({"text": text, "label": label, "unread": unread.take(pa.array([0] * len(text)))})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    assert outcome(sink.getvalue(), ".parquet") == "trained"


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.binary(max_size=200), st.sampled_from(KINDS))
@example(b"", ".csv")
@example(b"text,label\n", ".csv")
@example(b"PK\x03\x04" + bytes(range(256)), ".csv")
@example(b'{"text": "a", "label": ' + b"9" * 5000 + b"}", ".json")
@example(b'{"text": "a", "label": ' + b"9" * 5000 + b"}", ".jsonl")
@example(b"[" * 100_000, ".json")
@example(b'{"text":' * 100_000, ".jsonl")
@example(b"PAR1" * 9, ".parquet")
def test_any_bytes_are_refused_in_one_sentence(raw, kind):
    assert outcome(raw, kind).startswith("error: ")


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (".csv", "x"),
        (".tsv", "e\u0301"),
        (".json", "\ud83d"),
        (".jsonl", "\0"),
        (".parquet", "漢"),
        (".csv", '"'),
        (".csv", "👧\n"),
    ],
)
def test_a_text_of_a_million_characters_is_read(kind, word):
    rows = [*TWELVE, (word * (10**6 // len(word)), "a")]
    assert feed(Table(("text", "label"), rows), kind) == "trained"
