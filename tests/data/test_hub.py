"""`data.hub` on local folders laid out like datasets of the Hub, which `datasets` opens without a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml
from datasets import ClassLabel, Dataset, DatasetDict, Features, Sequence, Value

from data.hub import from_datasets, hub
from data.sources import Source
from errors import UserError
from tests.conftest import ROOT
from training.assembly import make_data

NAMES = ["neg", "pos"]
FEATURES = Features({"text": Value("string"), "label": ClassLabel(names=NAMES)})


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")


def table(name: str, n: int) -> Dataset:
    """`n` texts that stand nowhere else, neg and pos in turn."""
    return Dataset.from_dict({"text": [f"{name} {i}" for i in range(n)], "label": [i % 2 for i in range(n)]}, FEATURES)


@pytest.fixture
def on_hub(tmp_path) -> Callable[..., str]:
    """Lay out a folder as the Hub does: configurations and splits in the head of README.md, the data as Parquet."""

    def lay_out(splits: dict[str, Dataset], *others: tuple[str, dict[str, Dataset]], config: str = "default") -> str:
        folder = tmp_path / "dataset"
        configs = []
        for name, tables in ((config, splits), *others):
            for split, data in tables.items():
                (folder / name).mkdir(parents=True, exist_ok=True)
                data.to_parquet(folder / name / f"{split}-00000-of-00001.parquet")
            parts = [{"split": split, "path": f"{name}/{split}-*"} for split in tables]
            configs.append({"config_name": name, "data_files": parts})
        (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': configs})}---\n", encoding="utf-8")
        return str(folder)

    return lay_out


@pytest.fixture
def folder(on_hub) -> str:
    return on_hub({"train": table("train", 20), "validation": table("validation", 4), "test": table("test", 6)})


def load(name: str | None, **changes) -> Source:
    settings = {"config": None, "revision": None, "train": "train", "validation": None, "test": None}
    return hub(**{**settings, "name": name, "streaming": False, "head": 5, **changes})


def rows(reader: Callable) -> list[tuple[Any, Any]]:
    return [pair for part in reader() for pair in zip(part.columns["text"], part.columns["label"], strict=True)]


def expected(name: str, start: int, end: int) -> list[tuple[str, str]]:
    return [(f"{name} {i}", NAMES[i % 2]) for i in range(start, end)]


def contents(source: Source) -> dict[str, list]:
    return {split: rows(reader) for split, reader in source.splits.items()}


def test_all_splits_are_read_with_the_names_of_their_classes(folder):
    source = load(folder)
    assert contents(source) == {
        "train": expected("train", 0, 20),
        "validation": expected("validation", 0, 4),
        "test": expected("test", 0, 6),
    }
    assert contents(source) == contents(source)  # to be read as often as wished
    assert source.stream is None
    assert folder in source.name


def test_a_row_says_where_it_stands(folder):
    (part,) = load(folder).splits["test"]()
    assert folder in part.where(2)
    assert part.where(2).endswith("(test): row 3")


def test_many_rows_come_a_thousand_at_a_time(on_hub):
    source = load(on_hub({"train": table("train", 2500)}))
    parts = list(source.splits["train"]())
    assert [len(part.numbers) for part in parts] == [1000, 1000, 500]
    assert parts[2].where(0).endswith(": row 2001")
    assert rows(source.splits["train"]) == expected("train", 0, 2500)


@pytest.mark.parametrize(
    ("expressions", "found"),
    [
        (
            {"train": "train[:50%]"},
            {"train": ("train", 0, 10), "validation": ("validation", 0, 4), "test": ("test", 0, 6)},
        ),
        ({"train": "train[:50%]", "test": "train[50%:75%]"}, {"train": ("train", 0, 10), "test": ("train", 10, 15)}),
        ({"validation": "validation"}, {"train": ("train", 0, 20), "validation": ("validation", 0, 4)}),
        ({"test": "validation"}, {"train": ("train", 0, 20), "test": ("validation", 0, 4)}),
        ({"validation": "test[:2]", "test": "test[2:]"}, None),
        ({"train": "test"}, {"train": ("test", 0, 6), "validation": ("validation", 0, 4)}),
        ({"train": "validation[1:]"}, {"train": ("validation", 1, 4), "test": ("test", 0, 6)}),
    ],
)
def test_splits_are_expressions_and_the_datasets_own_are_taken_where_neither_is_given(folder, expressions, found):
    found = found or {"train": ("train", 0, 20), "validation": ("test", 0, 2), "test": ("test", 2, 6)}
    assert contents(load(folder, **expressions)) == {split: expected(*part) for split, part in found.items()}


def test_several_splits_can_be_trained_on(folder):
    source = load(folder, train="train+validation")
    assert contents(source) == {
        "train": expected("train", 0, 20) + expected("validation", 0, 4),
        "test": expected("test", 0, 6),
    }


def test_splits_that_are_missing_are_absent_and_others_are_left_out(on_hub):
    assert list(load(on_hub({"train": table("train", 4), "unsupervised": table("more", 3)})).splits) == ["train"]


def test_a_configuration_is_chosen_by_its_name(on_hub):
    name = on_hub({"train": table("a", 4), "test": table("b", 2)}, ("other", {"train": table("c", 3)}), config="mine")
    assert contents(load(name, config="mine")) == {"train": expected("a", 0, 4), "test": expected("b", 0, 2)}
    assert contents(load(name, config="other")) == {"train": expected("c", 0, 3)}
    for wrong in (None, "yours"):
        with pytest.raises(UserError, match=r"mine.*other.*check id, config, splits"):
            load(name, config=wrong)


def test_a_missing_label_and_lists_of_labels_are_read(on_hub):
    features = Features({"text": Value("string"), "label": Sequence(ClassLabel(names=NAMES))})
    many = Dataset.from_dict({"text": ["a", "b"], "label": [[1, 0], []]}, features)
    missing = Dataset.from_dict({"text": ["c", "d"], "label": [-1, 1]}, FEATURES)
    assert rows(load(on_hub({"train": many})).splits["train"]) == [("a", ["pos", "neg"]), ("b", [])]
    assert rows(from_datasets("mine", {"train": missing}).splits["train"]) == [("c", None), ("d", "pos")]


def test_the_key_changes_with_the_rows_that_are_read(folder):
    keys = [load(folder, **c).key for c in ({}, {"train": "train[:50%]"}, {"train": "train[:9]"}, {"test": "test"})]
    assert len(set(keys)) == 4
    assert load(folder).key == keys[0]


def test_a_dataset_dict_is_a_source():
    splits = DatasetDict(train=table("train", 4), test=table("test", 2), more=table("more", 2))
    source = from_datasets("mine", splits)
    assert contents(source) == {"train": expected("train", 0, 4), "test": expected("test", 0, 2)}
    assert source.name == "mine"
    assert source.key == from_datasets("mine", splits).key
    assert source.key != from_datasets("mine", DatasetDict(train=table("train", 5), test=table("test", 2))).key
    with pytest.raises(UserError, match=r"^mine: it has no split 'train', only test; say which with data\.train"):
        from_datasets("mine", DatasetDict(test=table("test", 2)))


def test_a_stream_reads_the_head_and_then_the_rest(folder):
    source = load(folder, streaming=True, head=5)
    assert contents(source) == {
        "train": expected("train", 0, 5),
        "validation": expected("validation", 0, 4),
        "test": expected("test", 0, 5),
    }
    assert source.stream is not None
    assert rows(source.stream) == rows(source.stream) == expected("train", 5, 20)
    assert "streamed" in source.name
    assert source.key == load(folder, streaming=True, head=5).key
    assert source.key != load(folder, streaming=True, head=6).key


def test_a_stream_shorter_than_its_head_ends_there(folder):
    source = load(folder, streaming=True, head=50)
    assert rows(source.splits["train"]) == expected("train", 0, 20)
    assert source.stream is not None
    assert rows(source.stream) == []


def test_a_stream_takes_the_splits_that_are_named(folder):
    source = load(folder, streaming=True, head=3, train="test", test="validation")
    assert contents(source) == {"train": expected("test", 0, 3), "test": expected("validation", 0, 3)}
    assert source.stream is not None
    assert rows(source.stream) == expected("test", 3, 6)


def test_a_stream_whose_split_is_not_there_says_so(folder):
    for train in ("trian", "train[:50%]"):
        with pytest.raises(UserError, match=r"^data\.name=.*splits"):
            load(folder, streaming=True, train=train)


def test_a_stream_of_a_file_without_types_is_read(tmp_path):
    lines = [f"text {i},{NAMES[i % 2]}" for i in range(9)]
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "train.csv").write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    source = load(str(tmp_path / "plain"), streaming=True, head=4)
    assert rows(source.splits["train"]) == expected("text", 0, 4)
    assert source.stream is not None
    assert rows(source.stream) == expected("text", 4, 9)


def test_what_cannot_be_had_names_the_local_route(folder, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    for changes in ({"name": "someone/something"}, {"name": folder, "train": "trian"}):
        with pytest.raises(UserError, match=r"^data\.name=.*: not to be had .*data=files data\.train=FILE") as error:
            load(**changes)
        assert len(str(error.value)) < 600
    with pytest.raises(UserError, match=r"^data\.name is not set"):
        load(None)


def classes(*names: str) -> ClassLabel:
    return ClassLabel(names=list(names))


STRING, NUMBER = Value("string"), Value("int32")
EMOTIONS = ["sadness", "joy", "love", "anger", "fear", "surprise"]
QUESTIONS = ["ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"]
ONTOLOGY = [f"Kind{i}" for i in range(14)]
GROUPS = [f"group.{i}" for i in range(20)]
TOPICS = ["World", "Sports", "Business", "Sci/Tech"]
# What each dataset holds on the Hub: its columns in their order, its splits, and the column whose names are the classes.
SHAPES: dict[str, tuple[dict[str, Any], str, str]] = {
    "ag_news": ({"text": STRING, "label": classes(*TOPICS)}, "train test", "label"),
    "imdb": ({"text": STRING, "label": classes("neg", "pos")}, "train test unsupervised", "label"),
    "sst2": (
        {"idx": NUMBER, "sentence": STRING, "label": classes("negative", "positive")},
        "train validation unlabelled",
        "label",
    ),
    "trec": (
        {"text": STRING, "coarse_label": classes(*QUESTIONS), "fine_label": classes(*(f"{q}:x" for q in QUESTIONS))},
        "train test",
        "coarse_label",
    ),
    "dbpedia": ({"label": classes(*ONTOLOGY), "title": STRING, "content": STRING}, "train test", "label"),
    "yelp_polarity": ({"text": STRING, "label": classes("1", "2")}, "train test", "label"),
    "emotion": ({"text": STRING, "label": classes(*EMOTIONS)}, "train validation test", "label"),
    "tweet_eval": (
        {"text": STRING, "label": classes("negative", "neutral", "positive")},
        "train validation test",
        "label",
    ),
    "20_newsgroups": ({"text": STRING, "label": NUMBER, "label_text": STRING}, "train test", "label_text"),
}
CONFIGS = {"emotion": "split", "tweet_eval": "sentiment"}


def names_of(kind: Any) -> list[str]:
    return kind.names if isinstance(kind, ClassLabel) else GROUPS


def made_up(features: dict[str, Any], split: str, n: int) -> Dataset:
    """Rows with these columns, the classes in turn; no text stands twice anywhere."""
    n_classes = len(names_of(features.get("coarse_label", features.get("label"))))
    number = -1 if split in ("unsupervised", "unlabelled") else None
    columns: dict[str, list] = {}
    for name, kind in features.items():
        if name == "label_text":
            columns[name] = [GROUPS[i % n_classes] for i in range(n)]
        elif kind == STRING:
            columns[name] = [f"some {name} of class {i % n_classes} in {split} {i}" for i in range(n)]
        else:
            columns[name] = [i % n_classes if number is None else number for i in range(n)]
    return Dataset.from_dict(columns, Features(features))


def test_every_ready_dataset_has_its_shape_here():
    ready = {
        path.stem
        for path in (ROOT / "conf" / "data").glob("*.yaml")
        if "hub" in yaml.safe_load(path.read_text(encoding="utf-8")).get("defaults", [])
    }
    assert ready == set(SHAPES)


@pytest.mark.parametrize("choice", SHAPES)
def test_every_ready_dataset_is_loaded_from_start_to_batch(configure, on_hub, choice):
    features, splits, label = SHAPES[choice]
    sizes = {"train": 240, "validation": 60, "test": 40, "unsupervised": 10, "unlabelled": 10}
    tables = {split: made_up(features, split, sizes[split]) for split in splits.split()}
    if "unlabelled" in tables:
        tables["test"] = tables.pop("unlabelled")
    name = on_hub(tables, ("other", {"train": made_up(features, "other", 5)}), config=CONFIGS.get(choice, "default"))
    data = make_data(configure(f"data={choice}", f"data.name={name}"))

    names = names_of(features[label])
    assert data.task == "single_label"
    assert sorted(data.labels) == sorted(names)
    given = {"test": "validation"} if choice == "sst2" else {part: part for part in ("validation", "test")}
    given = {part: split for part, split in given.items() if split in tables}
    columns = {"sst2": ["sentence"], "dbpedia": ["title", "content"]}.get(choice, ["text"])
    for part, split in given.items():
        whole = tables[split].to_dict()
        parts = list(zip(*(whole[column] for column in columns), strict=True))
        assert data.splits[part]["text"][:] == [list(p) if len(p) > 1 else p[0] for p in parts]
        assert data.splits[part]["label"][:] == [names[i % len(names)] for i in range(len(parts))]
    cut = [part for part in ("validation", "test") if part not in given]
    assert data.facts["cut_from_train"] == cut
    n_rows = {part: len(data.splits[part]) for part in ("train", *cut)}
    assert sum(n_rows.values()) == 240
    assert all(len(names) <= n_rows[part] < 80 for part in cut)
    assert all(data.facts["unlabelled"][part] == 0 for part in data.splits)

    assert data.n_parts == len(columns)
    batch = next(iter(data.train_dataloader()))
    assert batch["ids"].shape == batch["mask"].shape
    seps = (batch["ids"] == data.sep_id).sum(dim=1)
    assert seps.tolist() == [len(columns)] * len(seps)
    assert set(batch["labels"].tolist()) <= set(range(len(names)))


def test_a_ready_dataset_is_streamed_from_start_to_batch(configure, on_hub):
    features, _, _ = SHAPES["ag_news"]
    tables = {"train": made_up(features, "train", 240), "test": made_up(features, "test", 40)}
    name = on_hub(tables)
    data = make_data(configure("data=ag_news", f"data.name={name}", "data.streaming=true", "data.head=100"))
    batches = list(data.train_dataloader())
    held = len(data.splits["validation"])
    assert len(data.splits["train"]) + held == 100
    assert len(data.splits["test"]) == 40
    assert sum(len(batch["labels"]) for batch in batches) == 240 - held


@pytest.mark.parametrize("choice", SHAPES)
def test_every_ready_dataset_out_of_reach_names_the_local_route(configure, choice, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    config = configure(f"data={choice}")
    with pytest.raises(Exception, match="not to be had") as error:
        make_data(config)
    cause = error.value if isinstance(error.value, UserError) else error.value.__cause__
    assert isinstance(cause, UserError)
    assert str(cause).startswith(f"data.name={config.data.name}: ")
    assert Path(config.data.name).parts[0] != config.data.name  # an owner and a name
