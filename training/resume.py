"""Going on with a run that was stopped: which folder, what configuration, and whether they fit together."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from errors import UserError
from training.configuration import override

log = logging.getLogger("heed")
LAST = "last.ckpt"
MIXED = "mixed.ckpt"  # takes the best one's name when the run has ended


def folder_to_resume(asked: str) -> Path:
    """The folder of the run that `resume=` means: a folder, its `last.ckpt`, or `last` for the newest unfinished one.

    Raises `UserError` when there is none, or nothing to go on with.
    """
    if asked == "last":
        unfinished = [path for path in Path("outputs").rglob(LAST) if not is_finished(path.parent)]
        if not unfinished:
            raise UserError("resume=last: no unfinished run under outputs/; give its folder as resume=FOLDER")
        return max(unfinished, key=lambda path: path.stat().st_mtime).parent
    path = Path(asked)
    folder = path.parent if path.name == LAST else path
    if path.is_file() and path.name != LAST:
        raise UserError(f"resume={path}: not the state of a run; give the run's folder, or the {LAST} in it")
    if not folder.is_dir():
        raise UserError(f"resume={path}: there is no such folder; give that of a run, as outputs/DATE/TIME")
    if is_finished(folder):
        raise UserError(f"resume={path}: the run is finished, see {folder / 'metrics.json'}; start another one")
    if not (folder / LAST).exists():
        raise UserError(
            f"resume={path}: there is no {LAST}, training had not begun or cannot go on; start the run anew"
        )
    return folder


def is_finished(folder: Path) -> bool:
    """Whether the scores are written and `best.ckpt` is what they are of."""
    return (folder / "metrics.json").exists() and not (folder / MIXED).exists()


def configuration_to_resume(folder: Path, overrides: Sequence[str], *, known: Iterable[str]) -> DictConfig:
    """The configuration that the run began with. Raises `UserError` where something else is asked for beside `resume=`, and
    where it lacks one of the keys `known` here, as one does that another version wrote."""
    others = [override for override in overrides if not override.startswith("resume=")]
    if others:
        raise UserError(
            f"{' '.join(others)}: a run goes on with the configuration in {folder / 'config.yaml'}; leave it out, or start anew"
        )
    try:
        config = OmegaConf.load(folder / "config.yaml")
    except Exception as error:  # YAML's own and the file system's
        raise UserError(
            f"{folder / 'config.yaml'}: cannot be read ({type(error).__name__}); start the run anew"
        ) from error
    if not isinstance(config, DictConfig) or "trainer" not in config:
        raise UserError(f"{folder / 'config.yaml'}: not the configuration of a run; start the run anew")
    missing = [key for key in known if key not in config]
    if missing:
        raise UserError(
            f"{folder / 'config.yaml'}: it lacks {', '.join(missing)}, so another version began the run; "
            "go on with that one, or start anew"
        )
    return config


def check_fit(path: Path, *, architecture: dict[str, Any], data_key: str) -> dict[str, Any]:
    """Return what a state says beside Lightning's own. Raises `UserError` for a damaged one, another network, other data."""
    import torch  # not above: --help needs none of it

    from model.checkpoint import read_checkpoint
    from training.checkpointing import KEY

    facts, _ = read_checkpoint(path)
    state = torch.load(path, map_location="cpu", weights_only=True, mmap=True).get(KEY)
    if state is None:
        raise UserError(f"resume={path}: it holds weights alone, no state of training; give the run's own {LAST}")
    if state["data_key"] != data_key:
        raise UserError(f"resume={path}: the data are no longer those it began with; give them back, or start anew")
    theirs = facts["architecture"]
    differ = [key for key in {**theirs, **architecture} if theirs.get(key) != architecture.get(key)]
    if differ:
        wanted = ", ".join(f"{key}={theirs.get(key)} (here {architecture.get(key)})" for key in differ)
        raise UserError(f"resume={path}: its network is another, {wanted}; give back its config.yaml, or start anew")
    return state


def say_stopped(run_dir: Path, *, step: int) -> None:
    """What a stopped run leaves, and how it goes on."""
    left = [str(run_dir / name) for name in ("best.ckpt", LAST) if (run_dir / name).exists()]
    log.info("stopped     after step %d; there is %s", step, " and ".join(left) or "no checkpoint yet")
    if (run_dir / LAST).exists():
        log.info("resume      python train.py %s", shlex.quote(override("resume", str(run_dir))))
