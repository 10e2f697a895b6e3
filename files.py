"""A file is written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from errors import UserError


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that whoever looks finds the old content or the new: also after a kill at any moment.

    Raises `UserError` when it cannot be written, as on a full disk; what stood there before stays.
    """
    unfinished = path.with_name(f"{path.name}.unfinished")  # one name, so that a killed run's is replaced, not kept
    try:
        with open(unfinished, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        kept = "; the one written before stays" if path.exists() else ""
        raise UserError(f"{path}: cannot be written ({error.strerror}){kept}; make room on the disk") from error
