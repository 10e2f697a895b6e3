"""A file, or a folder, is written whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from errors import UserError


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that whoever looks finds the old content or the new: also after a kill at any moment.

    Raises `UserError` when it cannot be written, as on a full disk; what stood there before stays.
    """
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write into, which takes its name when all is written; an error or Ctrl-C on the way leaves nothing of it.

    Raises `UserError` as `write_whole` does.
    """
    unfinished = path.with_name(f"{path.name}.unfinished")  # one name, so that a killed run's is replaced, not kept
    try:
        with open(unfinished, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException as error:
        with suppress(OSError):
            unfinished.unlink()
        if not isinstance(error, OSError):
            raise
        kept = "; the one written before stays" if path.exists() else ""
        raise UserError(f"{path}: cannot be written ({error.strerror}){kept}; make room on the disk") from error


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Standard output for bytes; where its reader has gone (`| head`) the process ends without a word."""
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left has nowhere to go
        if isinstance(error, BrokenPipeError):
            sys.exit(141)  # 128 + SIGPIPE, as shells have it
        raise UserError(f"standard output cannot be written ({error.strerror}); make room on the disk") from error


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
