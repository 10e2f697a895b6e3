"""The second reading of a source: each row into the split it goes to, on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from data.columns import Columns
from data.labels import label_values
from data.scan import Scan
from data.sources import Source
from data.splits import SPLITS


def write_splits(
    source: Source,
    columns: Columns,
    scans: dict[str, Scan],
    split: dict[str, np.ndarray],
    folder: Path,
    *,
    task: str,
    labels: list[str],
    conflict: np.ndarray,
) -> str:
    """Write each row to the split it goes to; return a text that carries different labels, or ""."""
    text_type = pa.large_string() if len(columns.text) == 1 else pa.list_(pa.large_string())
    label_type = {
        "single_label": pa.large_string(),
        "multi_label": pa.list_(pa.large_string()),
        "regression": pa.float64(),
        "mlm": pa.null(),
    }
    schema = pa.schema({"text": text_type, "label": label_type[task]})
    writers = [pa.ipc.new_stream(str(folder / f"{name}.arrow"), schema) for name in SPLITS]
    known, contradicting, example = set(labels), set(conflict.tolist()), ""
    for name, s in scans.items():
        start = 0
        for rows in source.splits[name]():
            end = start + len(rows.numbers)
            texts, goes = columns.texts(rows), split[name][start:end]
            values = list(label_values(rows, s.labels[start:end], task, known, part=name))
            for part, writer in enumerate(writers):
                chosen = np.flatnonzero(goes == part)
                batch = {"text": [texts[i] for i in chosen], "label": [values[i] for i in chosen]}
                writer.write_batch(pa.record_batch(batch, schema=schema))
            if not example and contradicting:
                example = next(
                    (str(t) for t, h in zip(texts, s.texts[start:end], strict=True) if int(h) in contradicting), ""
                )
            start = end
    for writer in writers:
        writer.close()
    return example
