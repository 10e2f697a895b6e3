import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.readers import READERS, read
from data.rows import ROWS
from errors import UserError

ODD = [("007", "NA"), ("null", "nan"), ("", "None"), ("1.50", "true"), (" blank ", "-1"), ("1e5", "é漢🜁")]
HARD = [('say "no", twice', "a,b"), ("two\nlines", "x"), ("three\r\nlines\n", "y"), ("tab\there", '"'), ("#", "'")]
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
cells = st.text(characters, max_size=12)
tables = st.lists(st.tuples(cells, cells), max_size=20)
many = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def write(tmp_path):
    """Write a file of this name; where it ends in .gz, packed."""

    def to_file(name: str, content: str | bytes) -> Path:
        content = content if isinstance(content, bytes) else content.encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return to_file


def columns(path: Path) -> dict[str, list[Any]]:
    """The whole file by column."""
    found: dict[str, list[Any]] = {}
    for rows in read(path):
        for name, values in rows.columns.items():
            assert len(values) == len(rows.numbers) <= ROWS
            found.setdefault(name, []).extend(values)
    return found


def pairs(path: Path) -> list[tuple[Any, Any]]:
    found = columns(path)
    return list(zip(found.get("text", []), found.get("label", []), strict=True))


def places(path: Path) -> list[str]:
    return [rows.where(row) for rows in read(path) for row in range(len(rows.numbers))]


def as_csv(rows: list[tuple[str, str]], **options) -> str:
    """What Python's own writer makes of the rows."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, **options).writerows([("text", "label"), *rows])
    return buffer.getvalue()


def as_json_lines(rows: list[tuple[str, str]]) -> str:
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)


def as_json(rows: list[tuple[str, str]]) -> str:
    return json.dumps([{"text": text, "label": label} for text, label in rows], indent=1)


FORMATS = {
    "mine.csv": as_csv,
    "mine.CSV": as_csv,
    "mine.csv.gz": as_csv,
    "mine.tsv": lambda rows: as_csv(rows, delimiter="\t"),
    "mine.tsv.gz": lambda rows: as_csv(rows, delimiter="\t"),
    "mine.json": as_json,
    "mine.json.gz": as_json,
    "mine.jsonl": as_json_lines,
    "mine.ndjson": as_json_lines,
    "mine.jsonl.gz": as_json_lines,
    "lines.json": as_json_lines,
    "array.jsonl": as_json,
}


@pytest.mark.parametrize("rows", [ODD, HARD], ids=["odd", "hard"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_cell_stays_the_string_it_is(write, name, rows):
    assert pairs(write(name, FORMATS[name](rows))) == rows


@pytest.mark.parametrize("name", ["mine.csv", "mine.tsv", "mine.json", "mine.jsonl"])
def test_a_byte_order_mark_belongs_to_no_name(write, name):
    assert columns(write(name, "\ufeff" + FORMATS[name](ODD))) == {
        "text": [text for text, _ in ODD],
        "label": [label for _, label in ODD],
    }


@many
@given(
    rows=tables, style=st.sampled_from([(csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_ALL, "\r\n"), (csv.QUOTE_ALL, "\n")])
)
def test_whatever_pythons_csv_writes_is_read_back(write, rows, style):
    assert pairs(write("mine.csv", as_csv(rows, quoting=style[0], lineterminator=style[1]))) == rows


@many
@given(rows=tables, name=st.sampled_from(["mine.json", "mine.jsonl"]))
def test_whatever_pythons_json_writes_is_read_back(write, rows, name):
    assert pairs(write(name, FORMATS[name](rows))) == rows


def test_what_pandas_writes_is_read_as_pandas_reads_it(write):
    table = pd.DataFrame({"text": [text for text, _ in ODD + HARD], "label": [label for _, label in ODD + HARD]})
    path = write("mine.csv", table.to_csv(index=False))
    reference = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert columns(path) == reference.to_dict("list")
    lines = table.to_json(orient="records", lines=True, force_ascii=False)
    assert columns(write("mine.jsonl", lines)) == table.to_dict("list")


@pytest.mark.parametrize("name", ["mine.csv", "mine.tsv", "mine.json", "mine.jsonl", "mine.csv.gz"])
def test_a_text_of_millions_of_characters_is_read(write, name):
    assert pairs(write(name, FORMATS[name]([("x" * 3_000_000, "a")]))) == [("x" * 3_000_000, "a")]


def test_columns_come_in_any_order_and_number(write):
    assert columns(write("mine.csv", "label,id,text\nx,1,hello\n")) == {"label": ["x"], "id": ["1"], "text": ["hello"]}


def test_blank_lines_are_no_rows(write):
    assert pairs(write("mine.csv", "text,label\n\na,x\r\n\r\nb,y\n\n")) == [("a", "x"), ("b", "y")]
    assert pairs(write("mine.jsonl", '\n{"text": "a", "label": "x"}\n  \n')) == [("a", "x")]
    assert pairs(write("mine.json", '\n\n \t[{"text": "a", "label": "x"}]\n\n')) == [("a", "x")]


def test_blank_lines_above_the_header_are_no_header(write):
    assert pairs(write("mine.csv", "\n\ntext,label\na,x\n")) == [("a", "x")]


def test_rows_come_a_thousand_at_a_time_and_before_the_file_is_read_to_its_end(write):
    rows = [(f"text {i}", str(i % 7)) for i in range(2500)]
    for name in ("mine.csv", "mine.jsonl"):
        path = write(name, FORMATS[name](rows) + '"never closed')
        reader = read(path)
        assert [len(next(reader).numbers) for _ in range(2)] == [1000, 1000]
        with pytest.raises(UserError):
            next(reader)
    for name in FORMATS:
        path = write(name, FORMATS[name](rows))
        assert [len(part.numbers) for part in read(path)] == [1000, 1000, 500]
        assert pairs(path) == rows


def test_every_row_knows_its_line(write):
    path = write("mine.csv", 'text,label\na,x\n\n"two\nlines",y\nb,z\n')
    assert [places(path)[row] for row in (0, 2)] == [f"{path}: line 2", f"{path}: line 6"]
    path = write("mine.jsonl", '{"text": "a"}\n\n{"text": "b"}\n')
    assert places(path) == [f"{path}: line 1", f"{path}: line 3"]
    path = write("mine.json", '[{"text": "a"},\n\n{"text": "b"}]\n')
    assert places(path) == [f"{path}: row 1", f"{path}: row 2"]
    path = write("mine.csv", "text,label\n" + "a,x\n" * 1500)
    assert places(path) == [f"{path}: line {line}" for line in range(2, 1502)]


def test_a_key_that_a_row_lacks_is_missing_there(write):
    rows = '{"text": "a", "label": 1}\n{"label": [1.5, null], "more": true}\n'
    assert columns(write("mine.jsonl", rows)) == {
        "text": ["a", None],
        "label": ["1", [1.5, None]],
        "more": [None, True],
    }


def test_a_number_of_more_digits_than_python_takes_is_a_name(write):
    assert columns(write("mine.jsonl", '{"text": "a", "label": ' + "1" * 5000 + "}\n"))["label"] == ["1" * 5000]


LATIN = b"text,label\n" + b"a,x\n" * 3 + b"caf\xe9,x\n"


UNSOUND = [
    ("a.csv", "", "the file is empty"),
    ("a.csv", "\ufeff", "the file is empty"),
    ("a.csv", "\n\n", "the file is empty"),
    ("a.csv", "text,text,label,label\na,b,x,y\n", "the column label, text is there more than once"),
    ("a.csv", "text,label\na,x\n\nb\n", "line 4 has 1 cells and the header 2"),
    ("a.csv", "text,label\na, b,x\nc,x\n", "line 2 has 3 cells and the header 2"),
    ("a.csv", "text,label\n" + "a,x\n" * 2000 + "b\n", "line 2002 has 1 cells"),
    ("a.csv", 'text,label\n"never closed,x\na,x\n', "row that begins at line 2: .*close every double quote"),
    ("a.csv", 'text,label\na,x\n\n"b\nb",y\n"open,x\n' + "c,x\n" * 9, "row that begins at line 6"),
    ("a.csv", 'text,label\na,x\n"b"c,x\n', "row that begins at line 3"),
    ("a.csv", 'text,"label\na,x\n', "row that begins at line 1"),
    ("a.csv", "text,label\na,x\n".encode("utf-16"), "this is UTF-16; save the file as UTF-8"),
    ("a.csv", "text,label\na,x\n".encode("utf-16-le"), "line 1 holds a NUL byte.*UTF-16"),
    ("a.csv", LATIN, r"line 5 is not UTF-8 \(byte 0xe9\); save the file as UTF-8"),
    ("a.csv", b"text,label\na\0,x\n", "line 2 holds a NUL byte"),
    ("a.csv.gz", LATIN, r"line 5 is not UTF-8 \(byte 0xe9\)"),
    ("a.csv.gz", b"text,label\na\0,x\n", "line 2 holds a NUL byte"),
    ("a.tsv", "text,label\tmore\na\n", "line 2 has 1 cells and the header 2"),
    ("a.tsv", LATIN.replace(b",", b"\t"), "line 5 is not UTF-8"),
    ("a.json", '[{"text": "a"},\n {"text": tru}]', "line 2 is not JSON"),
    ("a.json", '[{"text": "a"},\n {"text": "b"}\n', "line [23] is not JSON"),
    ("a.json", '[{"text": "a"}, 5]', r'row 2 is no object; write it as {"text"'),
    ("a.json", "just words", "line 1 is not JSON"),
    ("a.json", '[{"text": "a"},\n'.encode("utf-16"), "UTF-16"),
    ("a.json", b'[{"text": "a"},\n{"text": "\xe9"}]', "line 2 is not UTF-8"),
    ("a.json", b'[{"text": "a"},\n{"text": "b\0"}]', "line 2 (is not JSON|holds a NUL byte)"),
    ("a.json", "[" * 200_000, "nested too deeply"),
    ("a.jsonl", '{"text": "a"}\n{"text": "b"\n', "line 2 is not JSON"),
    ("a.jsonl", '{"text": "a"}\n\n  \nno\n', "line 4 is not JSON"),
    ("a.jsonl", '{"text": "a"}\n["b", "x"]\n', "line 2 is no object"),
    ("a.jsonl", '{"text": "a"}\nnull\n', "line 2 is no object"),
    ("a.jsonl", '{"text": "a"}\n' * 1200 + "no\n", "line 1201 is not JSON"),
    ("a.jsonl", '\ufeff{"text": "a"}\nno\n', "line 2 is not JSON"),
    ("a.jsonl", b'{"text": "a"}\n{"text": "caf\xe9"}\n', "line 2 is not UTF-8"),
    ("a.jsonl", b'{"text": "a"}\n{"text": "b\0"}\n', "line 2 holds a NUL byte"),
    ("a.jsonl", '{"text": "a"}\n{"text": ' + "[" * 200_000, "nested too deeply"),
    ("a.xlsx", "text,label\na,x\n", r"the name must end in one of \.csv .*\.parquet"),
    ("a.gz", "text,label\na,x\n", r"the name must end in one of \.csv"),
    ("a", "text,label\na,x\n", r"the name must end in one of \.csv"),
]


@pytest.mark.parametrize(
    ("name", "content", "sentence"), UNSOUND, ids=[f"{name}: {sentence}" for name, _, sentence in UNSOUND]
)
def test_an_unsound_file_is_refused_with_its_name_and_one_sentence(write, name, content, sentence):
    path = write(name, content)
    with pytest.raises(UserError, match=sentence) as error:
        columns(path)
    assert str(error.value).startswith(f"{path}: ")
    assert len(str(error.value)) < 400


def test_a_header_alone_is_no_row(write):
    assert list(read(write("mine.csv", "text,label\n"))) == []
    assert list(read(write("mine.json", "[]"))) == list(read(write("mine.jsonl", ""))) == []


def test_gzip_cut_off_at_its_end_is_refused(tmp_path):
    whole = gzip.compress(as_csv([(f"text {i * i}", "x") for i in range(5000)]).encode())
    path = tmp_path / "mine.csv.gz"
    path.write_bytes(whole[:-9])
    with pytest.raises(UserError, match=r"mine\.csv\.gz: unreadable"):
        columns(path)


@pytest.fixture
def folder(tmp_path):
    """Two classes, three texts, and what is no text."""
    for name, content in {
        "sport/2.txt": "won\r\n",
        "sport/1.txt": '\ufefflost, "2:1"',
        "tech/a.md": "é",
        "tech/.hidden": "\0",
        "README.txt": "about",
    }.items():
        path = tmp_path / "classes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return tmp_path / "classes"


def test_a_folder_has_a_subfolder_a_class_and_a_file_a_text(folder):
    assert columns(folder) == {"text": ['lost, "2:1"', "won\r\n", "é"], "label": ["sport", "sport", "tech"]}
    assert places(folder) == [str(folder / name) for name in ("sport/1.txt", "sport/2.txt", "tech/a.md")]


def test_a_folder_of_many_files_comes_a_thousand_at_a_time(folder):
    for i in range(1998):
        (folder / "tech" / f"{i:04}.txt").write_text(str(i), encoding="utf-8")
    assert [len(rows.numbers) for rows in read(folder)] == [1000, 1000, 1]
    assert columns(folder)["text"][2:-1] == [str(i) for i in range(1998)]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"caf\xe9", r"line 1 is not UTF-8 \(byte 0xe9\)"),
        ("won".encode("utf-16"), "UTF-16"),
        (b"won\nby \0", "line 2 holds a NUL byte"),
    ],
)
def test_a_folders_file_that_is_no_text_is_named(folder, content, sentence):
    path = folder / "sport" / "3.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=sentence) as error:
        columns(folder)
    assert str(error.value).startswith(f"{path}: ")


def test_a_folder_without_classes_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("a")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no subfolder with texts") as error:
        columns(tmp_path)
    assert str(error.value).startswith(f"{tmp_path}: ")


def test_the_message_for_an_unknown_ending_names_every_known_one(tmp_path):
    (tmp_path / "a.doc").touch()
    with pytest.raises(UserError) as error:
        read(tmp_path / "a.doc")
    assert all(ending in str(error.value) for ending in READERS)
