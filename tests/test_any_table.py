"""Whatever table comes in: a step of training, or one sentence and nothing left behind."""

import csv
import functools
import io
import json
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig

from errors import exit_on_user_error
from tests.conftest import ROOT
from training import train

OVERRIDES = (
    *("data=files", "experiment=quick", "tokenizer.min_frequency=1", "trainer.accelerator=cpu"),
    *("+trainer.limit_train_batches=1", "+trainer.limit_val_batches=1"),
)
DELIMITERS = {".csv": ",", ".tsv": "\t"}
KINDS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
ODD = (
    *("\ud83d", "\udc00", "\0", "\n", "\r", "\r\n", "\t", " ", '"', '""', ",", "'", "\\", "\x1a", "\x85", "\u2028"),
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
    *("[PAD]", "[UNK]", "<s>", "${seed}", "%s", "{}", "null", "NA", "nan", "007", "-1", "1e999", "9" * 5000),
)
WORDS = st.sampled_from(("red", "apple", "saw", "a", "I", *ODD)) | st.text(max_size=8)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
NAMES = st.text("abcXYZ", min_size=1, max_size=6) | WORDS.map(str.strip)
CELLS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.lists(TEXTS, max_size=3)
COLUMNS = st.sampled_from(("id", "Text", "label ", "", "a,b", 'q"', "טקסט", "text", "label")) | st.text(max_size=4)
LABELS = {  # what a column of labels may hold, the most usual first
    "names": st.sampled_from(("fruit", "tool", "1", "0")) | NAMES,
    "whole numbers": st.integers(-2, 5),
    "any integers": st.integers(-(10**30), 10**30),
    "scores": st.floats(-10, 10),
    "any floats": st.floats(),
    "lists": st.lists(st.sampled_from("abc"), max_size=3),
    "anything": CELLS,
}


class Table(NamedTuple):
    """A table with the names of its columns, of which two are read."""

    header: tuple[str, ...]
    rows: list[tuple]
    text: str
    label: str
    garble: Callable[[bytes], bytes] = bytes  # what happens to the file

    def __repr__(self) -> str:
        cells = [tuple(c if len(str(c)) < 99 else f"{str(c)[:9]!r} * {len(str(c))}" for c in row) for row in self.rows]
        return f"{self.header} {cells} text={self.text!r} label={self.label!r}"


@st.composite
def tables(draw) -> Table:
    """Mostly a sound table: two or three labels, six texts or more of each. Sometimes with a flaw, seldom with several."""
    flaws = draw(st.sets(st.sampled_from(FLAWS), max_size=2)) if draw(st.integers(0, 2)) == 0 else set()
    kind = draw(st.sampled_from(("names", "names", *LABELS))) if "labels" in flaws or draw(st.booleans()) else "names"
    if kind in ("names", "whole numbers", "any integers", "lists"):
        pool = draw(st.lists(LABELS[kind], min_size=2, max_size=3, unique_by=str))
        labels = [pool[i % len(pool)] for i in range(draw(st.integers(12, 24)))]
    else:
        labels = draw(st.lists(LABELS[kind], min_size=12, max_size=24))
    texts = [f"{text} {i}" for i, text in enumerate(draw(st.lists(TEXTS, min_size=len(labels), max_size=len(labels))))]
    if "cells" in flaws:
        texts[: len(texts) // 2] = draw(st.lists(CELLS, min_size=len(texts) // 2, max_size=len(texts) // 2))
    if "missing labels" in flaws:
        labels[draw(st.integers(0, len(labels) - 1))] = draw(st.sampled_from((None, "", [], float("nan"))))
    if "few rows" in flaws:
        keep = draw(st.integers(0, 5))
        texts, labels = texts[:keep], labels[:keep]
    more = draw(st.lists(COLUMNS, max_size=2)) if "columns" in flaws or draw(st.integers(0, 3)) == 0 else []
    text, label = draw(st.tuples(COLUMNS, COLUMNS)) if "header" in flaws else ("text", "label")
    rows = [(t, lab, *draw(st.tuples(*[CELLS] * len(more)))) for t, lab in zip(texts, labels, strict=True)]
    asked = draw(st.sampled_from(((text, label), ("text", "label"))))
    return Table((text, label, *more), rows, *asked, draw(GARBLES) if "bytes" in flaws else bytes)


FLAWS = ("labels", "cells", "missing labels", "few rows", "columns", "header", "bytes")
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
        writer = csv.writer(out, delimiter=DELIMITERS[kind], lineterminator="\n")
        writer.writerows([table.header, *(["" if c is None else plain(c) for c in row] for row in table.rows)])
        raw = out.getvalue().encode("utf-8", "replace")
    elif kind == ".parquet":
        columns = [column(cells) for cells in zip(*table.rows, strict=True)] or [pa.array([], pa.string())] * len(
            table.header
        )
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(columns, names=[plain(name) for name in table.header]), sink)
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
        return pa.array(cells)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError):
        return pa.array([None if cell is None else plain(cell) for cell in cells])


@functools.cache
def configuration() -> DictConfig:
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", overrides=list(OVERRIDES))


def outcome(raw: bytes, kind: str, *, text: str = "text", label: str = "label") -> str:
    """Feed a file; return "trained" or the sentence of the refusal. Anything else is raised."""
    with tempfile.TemporaryDirectory() as folder:
        path, run_dir = Path(folder, f"mine{kind}"), Path(folder, "run")
        path.write_bytes(raw)
        run_dir.mkdir()
        config = configuration().copy()
        config.cache_dir, config.data.train = str(Path(folder, "cache")), str(path)
        config.data.text, config.data.label = text, label
        said = io.StringIO()
        try:
            with redirect_stderr(said), exit_on_user_error():
                train(config, run_dir, started=0.0)
        except SystemExit as stopped:
            assert stopped.code == 2
            assert list(run_dir.iterdir()) == []
            (line,) = said.getvalue().split("\n")[:-1]
            assert line.startswith("error: ")
            assert len(line) > len("error: ")
            return line
        assert {"best.ckpt", "metrics.json"} <= {left.name for left in run_dir.iterdir()}
        assert said.getvalue() == ""
        return "trained"


@pytest.mark.parametrize("kind", KINDS)
def test_any_table_trains_a_step_or_is_refused_in_one_sentence(kind):
    outcomes: Counter[bool] = Counter()

    @settings(derandomize=True, deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
    @given(tables())
    def feed(table: Table) -> None:
        text, label = (plain(name).replace("$", "") for name in (table.text, table.label))
        outcomes[outcome(written(table, kind), kind, text=text, label=label) == "trained"] += 1

    feed()
    assert outcomes[True] > outcomes.total() / 3  # else the tables tell little


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.binary(max_size=200), st.sampled_from(KINDS))
@example(b"", ".csv")
@example(b"text,label\n", ".csv")
@example(b"PK\x03\x04" + bytes(range(256)), ".csv")
@example(b"[" * 100_000, ".json")
@example(b'{"text":' * 100_000, ".jsonl")
@example(b"PAR1" * 9, ".parquet")
def test_any_bytes_are_refused_in_one_sentence(raw, kind):
    assert outcome(raw, kind).startswith("error: ")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["x", "漢", "e\u0301", "٣", "ab ", "🜁", '"'])
def test_a_text_of_a_million_characters_is_read(kind, word):
    rows = [(f"{'ab'[i % 2]} text number {i}", "ab"[i % 2]) for i in range(12)]
    long = Table(("text", "label"), [*rows, (word * (10**6 // len(word)), "a")], "text", "label")
    assert outcome(written(long, kind), kind) == "trained"
