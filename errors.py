"""A user's mistake ends as one sentence and exit code 2, never as a traceback."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class UserError(ValueError):
    """Something the user gave cannot work; the message names it, what was found, and what to do."""


class Stopped(SystemExit):
    """Somebody stopped the run, and it ended in good order; the process exits with its code."""


def is_first_process() -> bool:
    """Whether this is the one of several processes that speaks and writes, as torchrun, Slurm or Lightning number them."""
    ranks = [os.environ.get(name) for name in ("RANK", "SLURM_PROCID")]  # over all machines
    known = [rank for rank in ranks if rank is not None]
    here = [os.environ.get(name, "0") for name in ("NODE_RANK", "LOCAL_RANK")]
    return int(known[0]) == 0 if known else all(int(rank) == 0 for rank in here)


@contextmanager
def exit_on_user_error(*, empty_folder: Path | None = None, go_on: bool = False) -> Iterator[None]:
    """Turn a `UserError`, also one that a library wrapped, into one line on stderr and exit code 2; Ctrl-C into 130.

    `empty_folder` is removed on the way out as `remove_empty` does. With `go_on` nothing exits at a mistake: one trial of a
    search could not work, and others follow.
    """
    try:
        yield
    except KeyboardInterrupt:
        remove_empty(empty_folder)
        print("stopped", file=sys.stderr)
        sys.exit(130)  # 128 + SIGINT, as shells have it
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, UserError):
            cause = cause.__cause__
        if cause is None:
            raise
        remove_empty(empty_folder)
        if is_first_process():  # of several that train together, each has found the same mistake
            print(f"error: {' '.join(str(cause).split())}", file=sys.stderr)
        if not go_on:
            sys.exit(2)


def remove_empty(folder: Path | None) -> None:
    """Remove a folder and the two above it, where they hold nothing."""
    with suppress(OSError):  # a folder that holds something stays
        if folder is not None:
            for each in (folder, *folder.parents[:2]):
                each.rmdir()


@contextmanager
def hub_sentence(what: str, advice: str) -> Iterator[None]:
    """Turn whatever the Hugging Face Hub's client raises into a `UserError` about `what`, which ends with `advice`."""
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # its retries; what came of them is said below
    try:
        yield
    except Exception as error:  # a dozen unrelated types
        reason = " ".join(str(error).split())[:160]
        raise UserError(
            f"{what}: not to be had from the Hugging Face Hub ({type(error).__name__}: {reason}); {advice}"
        ) from error
