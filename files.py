"""A file, or a folder, is written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


@contextmanager
def folder_written_whole(folder: Path) -> Iterator[Path]:
    """A folder beside `folder` to write into, which takes its name at the end, and goes if something fails.

    Raises `UserError` when it cannot be written, as on a full disk.
    """
    unfinished = folder.with_name(f"{folder.name}.unfinished")  # one name, as above
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        yield unfinished
        unfinished.rename(folder)
    except OSError as error:
        raise UserError(
            f"{folder}: cannot be written ({error.strerror or error}); make room, or choose another"
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
