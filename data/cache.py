"""Prepared once, kept on disk: one folder a key, written whole or not at all."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from errors import UserError

T = TypeVar("T")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def digest(*parts: object) -> str:
    """A key that differs when any of the parts does."""
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def cached(cache_dir: str, name: str, *, build: Callable[[Path], object], read: Callable[[Path], T]) -> tuple[T, bool]:
    """Read the folder `name` of the cache; where it is missing or damaged, `build` it first. Returns also whether it was there.

    Two runs at once both build, and the first to finish stays. Raises `UserError` when the cache cannot be written.
    """
    folder = Path(cache_dir).expanduser() / name
    if folder.exists():
        try:
            return read(folder), True
        except Exception:  # damaged: half a disk, another version; it is built anew
            shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder.parent))
    except OSError as error:
        raise UserError(
            f"cache_dir={cache_dir}: cannot be written ({error.strerror}); choose another folder"
        ) from error
    try:
        try:
            build(unfinished)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise UserError(
                f"cache_dir={cache_dir}: no room for what is prepared there ({error.strerror}); choose another folder"
            ) from error
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.exists():  # else another run was faster
                raise
        return read(folder), False
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
