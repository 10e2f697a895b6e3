"""Training texts that are never all here: read from a stream, some thousand at a time, tokenised and batched on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch.utils.data import IterableDataset

from data.batching import Batch, EncodedTexts, LengthBatchSampler
from encoding import TokenIds

BUFFER = 8192  # texts among which batches of similar length are made


class StreamedTexts(IterableDataset):
    """Yield batches of the `head`, then of the texts that `stream()` yields with their labels; in a new order each time.

    `encode(texts)` returns their token ids, `targets(labels)` what the loss compares with; `recur` as in `LengthBatchSampler`;
    `deal(texts, sampler)` returns what of them is this process's (`data/shares.py`).
    """

    def __init__(
        self,
        *,
        head: EncodedTexts,
        stream: Callable[[], Iterator[tuple[Any, Any]]],
        encode: Callable[[Sequence[Any]], TokenIds],
        targets: Callable[[list[Any]], Any],
        max_tokens: int,
        seed: int,
        recur: bool = False,
        deal: Callable[[EncodedTexts, LengthBatchSampler], tuple[Any, Any]] = lambda *both: both,
    ) -> None:
        self.head, self.stream, self.encode, self.targets, self.recur = head, stream, encode, targets, recur
        self.max_tokens, self.seed, self.passes, self.deal = max_tokens, seed, 0, deal

    def __iter__(self) -> Iterator[Batch]:
        yield from self._batches(self.head)
        buffer: list[tuple[Any, Any]] = []
        for row in self.stream():
            buffer.append(row)
            if len(buffer) == BUFFER:
                yield from self._batches(self._encoded(buffer))
                buffer = []
        if buffer:
            yield from self._batches(self._encoded(buffer))

    def _encoded(self, rows: list[tuple[Any, Any]]) -> EncodedTexts:
        texts, labels = zip(*rows, strict=True)
        return EncodedTexts(self.encode(texts), self.targets(list(labels)), pad_id=self.head.pad_id, recur=self.recur)

    def _batches(self, encoded: EncodedTexts) -> Iterator[Batch]:
        sampler = LengthBatchSampler(
            encoded.tokens.lengths, max_tokens=self.max_tokens, seed=self.seed, shuffle=True, recur=self.recur
        )
        sampler.set_epoch(self.passes)
        self.passes += 1
        texts, parts = self.deal(encoded, sampler)
        yield from (texts[rows] for rows in parts)
