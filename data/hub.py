"""Where texts come from: datasets of the Hugging Face Hub, and any `DatasetDict`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from datasets import Dataset, load_dataset

from data.rows import ROWS, Rows
from data.sources import Source
from data.splits import SPLITS
from data.tables import typed
from errors import UserError, hub_sentence


def hub(
    *,
    name: str | None,
    config: str | None,
    revision: str | None,
    train: str,
    validation: str | None,
    test: str | None,
    streaming: bool,
    head: int,
) -> Source:
    """A dataset of the Hugging Face Hub by its id (or a local folder laid out like one), through `datasets`.

    `train`, `validation` and `test` are split expressions as `train[:90%]`. Where neither of the last two is given, those
    that the dataset has are used. With `streaming`, the first `head` rows of each split are read, and those of train
    behind them while training. Raises `UserError` when it cannot be had.
    """
    if name is None:
        raise UserError("data.name is not set: give a Hugging Face dataset id, data.name=fancyzhx/ag_news")
    wanted = {split: part for split, part in zip(SPLITS, (train, validation, test), strict=True) if part is not None}
    splits = load(name, config, revision=revision, splits=wanted, streaming=streaming)
    if len(wanted) == 1:
        others = load(name, config, revision=revision, splits=None, streaming=streaming)
        splits |= {split: others[split] for split in SPLITS[1:] if split in others and split not in train}
    if not streaming:
        return from_datasets(f"{name} from the Hugging Face Hub", splits)
    heads = {split: Dataset.from_list(list(rows.take(head)), features=rows.features) for split, rows in splits.items()}
    rest = splits["train"].skip(head)
    source = from_datasets(f"{name}, streamed from the Hugging Face Hub", heads)
    return source._replace(stream=partial(_table_rows, f"{name} (train): row {head:,} +", rest))


def load(
    name: str, config: str | None, *, revision: str | None, splits: dict[str, str] | None, streaming: bool = False
) -> dict[str, Dataset]:
    """Load the splits by their expressions, all there are for None. Raises `UserError` when they cannot be had."""
    load_split = partial(load_dataset, name, config, revision=revision, streaming=streaming)
    advice = "check id, config, splits and the network, or download it and use data=files data.train=FILE"
    with hub_sentence(f"data.name={name}", advice):
        if splits is None:
            return dict(load_split())
        return {split: load_split(split=expression) for split, expression in splits.items()}


def from_datasets(name: str, splits: dict[str, Dataset]) -> Source:
    """A `DatasetDict`, or part of one, as a source. Raises `UserError` when it has no split train."""
    if "train" not in splits:
        raise UserError(f"{name}: it has no split 'train', only {', '.join(splits)}; say which with data.train=SPLIT")
    key = " ".join(f"{split} {table._fingerprint}" for split, table in splits.items())
    readers = {
        split: partial(_table_rows, f"{name} ({split}): row", splits[split]) for split in SPLITS if split in splits
    }
    return Source(name, key, readers)


def _table_rows(place: str, table: Dataset) -> Iterator[Rows]:
    return typed(place, table.features or {}, table.with_format(None).iter(ROWS))  # a stream may not know its features
