from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, Features, Sequence, Value

from data.readers import read
from data.rows import ROWS
from errors import UserError

WRITERS = {
    "mine.parquet": pq.write_table,
    "mine.feather": pa.feather.write_feather,
    "file.arrow": lambda table, path: _ipc(table, path, pa.ipc.new_file),
    "stream.arrow": lambda table, path: _ipc(table, path, pa.ipc.new_stream),
}
NAMES = ["neg", "pos"]


def _ipc(table: pa.Table, path: Path, new) -> None:
    with new(str(path), table.schema) as writer:
        writer.write_table(table)


def columns(path: Path) -> dict[str, list[Any]]:
    """The whole file by column."""
    found: dict[str, list[Any]] = {}
    for rows in read(path):
        for name, values in rows.columns.items():
            assert len(values) == len(rows.numbers) <= ROWS
            found.setdefault(name, []).extend(values)
    return found


@pytest.fixture(params=WRITERS)
def write(request, tmp_path):
    """Write an Arrow table in each format."""

    def to_file(table: pa.Table) -> Path:
        path = tmp_path / request.param
        WRITERS[request.param](table, path)
        return path

    return to_file


def typed(features: Features, **values: list) -> pa.Table:
    """A table with the class names beside it, as `datasets` writes."""
    return Dataset.from_dict(values, features=features).with_format("arrow")[:]


def test_values_and_types_are_those_of_the_table(write):
    table = pa.table({"text": ["007", "NA", "", None, "é\0漢"], "label": [1, None, 3, 4, 5], "score": [0.5] * 5})
    assert columns(write(table)) == table.to_pydict()


def test_what_pandas_writes_is_read(tmp_path):
    frame = pd.DataFrame({"text": ["a", "b", "c"], "label": pd.Categorical(["x", "y", "x"])}, index=[7, 8, 9])
    frame.to_parquet(tmp_path / "mine.parquet")
    found = columns(tmp_path / "mine.parquet")
    assert {name: found[name] for name in ("text", "label")} == {"text": ["a", "b", "c"], "label": ["x", "y", "x"]}


def test_many_rows_come_a_thousand_at_a_time_and_know_their_number(write):
    table = pa.table({"text": [f"text {i}" for i in range(2500)], "label": list(range(2500))})
    path = write(table)
    parts = list(read(path))
    assert all(0 < len(part.numbers) <= 1000 for part in parts)
    assert columns(path) == table.to_pydict()
    places = [part.where(row) for part in parts for row in range(len(part.numbers))]
    assert places == [f"{path}: row {row}" for row in range(1, 2501)]


def test_class_numbers_become_class_names_and_minus_one_a_missing_label(write):
    features = Features({"text": Value("string"), "label": ClassLabel(names=NAMES)})
    table = typed(features, text=["a", "b", "c", "d"], label=[1, 0, -1, None])
    assert columns(write(table)) == {"text": ["a", "b", "c", "d"], "label": ["pos", "neg", None, None]}


def test_lists_of_class_numbers_become_lists_of_names(write):
    features = Features({"text": Value("string"), "label": Sequence(ClassLabel(names=["joy", "fear", "love"]))})
    table = typed(features, text=["a", "b", "c", "d"], label=[[2, 0], [], [1], None])
    assert columns(write(table))["label"] == [["love", "joy"], [], ["fear"], None]


def test_other_lists_and_numbers_stay_what_they_are(write):
    table = pa.table({"text": ["a", "b"], "tags": [["x", "y"], []], "numbers": [[1, 2], None], "label": [-1, 2]})
    assert columns(write(table)) == table.to_pydict()


def test_a_saved_dataset_is_read_from_its_arrow_file(tmp_path):
    features = Features({"text": Value("string"), "label": ClassLabel(names=NAMES)})
    Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features).save_to_disk(tmp_path / "saved")
    (path,) = (tmp_path / "saved").glob("*.arrow")
    assert columns(path) == {"text": ["a", "b"], "label": ["pos", "neg"]}


def test_a_column_of_a_type_that_datasets_does_not_know_is_no_hindrance(write):
    pairs = pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64()))
    found = columns(write(pa.table({"text": ["a", "b"], "label": ["x", "y"], "pairs": pairs})))
    assert {name: found[name] for name in ("text", "label")} == {"text": ["a", "b"], "label": ["x", "y"]}


@pytest.mark.parametrize("damage", [b"", b"text,label\na,x\n" * 20, None], ids=["empty", "a CSV", "half"])
def test_an_unreadable_table_is_named(write, damage):
    path = write(pa.table({"text": [f"text {i * i}" for i in range(3000)], "label": ["x"] * 3000}))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    with pytest.raises(UserError, match="unreadable") as error:
        columns(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_a_table_without_rows_yields_none(write):
    path = write(pa.table({"text": pa.array([], pa.string()), "label": pa.array([], pa.string())}))
    assert [value for rows in read(path) for value in rows.columns["text"]] == []
