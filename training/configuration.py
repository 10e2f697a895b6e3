"""The command line's mistakes as sentences: unknown keys with the nearest known one, numbers out of range."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import NoneType

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, InstantiationException
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from errors import UserError

INF = float("inf")
RANGES: dict[str, tuple[type, float, float]] = {  # key: type, smallest, largest
    "seed": (int, 0, 2**32 - 1),
    "batch_tokens": (int, 1, INF),
    "patience": (int, 1, INF),
    "steps": (int, 1, INF),
    "ema": (float, 0, 0.999999),
    "save_every": (int, 1, INF),
    "label_smoothing": (float, 0, 0.999),
    "r_drop": (float, 0, INF),
    "data.split_seed": (int, 0, INF),
    "data.head": (int, 1, INF),
    "tokenizer.vocab_size": (int, 5, INF),
    "tokenizer.min_frequency": (int, 0, INF),
    "model.d_model": (int, 1, INF),
    "model.n_heads": (int, 1, INF),
    "model.n_layers": (int, 1, INF),
    "model.d_ff": (int, 1, INF),
    "model.max_len": (int, 3, INF),
    "model.d_head": (int, 1, INF),
    "model.d_value": (int, 1, INF),
    "model.window": (int, 1, INF),
    "model.global_every": (int, 1, INF),
    "model.dropout": (float, 0, 0.999),
    "model.freeze": (int, 0, INF),
    "optimizer.lr": (float, 0, INF),
    "optimizer.head_lr": (float, 0, INF),
    "optimizer.layer_decay": (float, 0.01, 1),
    "optimizer.weight_decay": (float, 0, INF),
    "optimizer.warmup": (float, 0, 0.999),
    "trainer.max_epochs": (int, 1, INF),
    "trainer.max_steps": (int, -1, INF),
    "trainer.fewest_epochs": (int, 1, INF),
    "trainer.most_epochs": (int, 1, INF),
    "trainer.gradient_clip_val": (float, 0, INF),
    "trainer.accumulate_grad_batches": (int, 1, INF),
    "trainer.log_every_n_steps": (int, 1, INF),
    "trainer.num_nodes": (int, 1, INF),
}
SWITCHES = (
    "mix_linear",
    "token_vectors",
    "model.bias",
    "model.embedding_norm",
    "trainer.compile",
    "data.drop_leaks",
    "data.streaming",
    "tokenizer.lowercase",
)
SENTENCES = {  # part of a message of Hydra's: what is said instead
    "No trials are completed yet": "hparams=optuna: no trial could be completed; the sentences above say why",
    "hydra/sweeper/optuna": "hparams=optuna needs a package that is not installed: "
    "pip install -c constraints.txt -e '.[optuna]'",
    "Config group override must be a string": "a group has no choice null: leave GROUP=null out, "
    "or write ~GROUP for none of it",
}


def check_ranges(config: DictConfig) -> None:
    """Raise `UserError` for the first number that is none or out of its range, or a switch that is neither on nor off."""
    for key in SWITCHES:
        value = OmegaConf.select(config, key)
        if not isinstance(value, (bool, NoneType)):
            raise UserError(f"{key}={value} does not work: give true or false")
    for key, (kind, low, high) in RANGES.items():
        value = OmegaConf.select(config, key)
        if value is None:
            continue
        is_number = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
        if not (is_number and low <= value <= high):
            what = "a whole number" if kind is int else "a number"
            upper = "" if high == INF else f" and at most {high:g}"
            raise UserError(f"{key}={value} does not work: give {what} of at least {low:g}{upper}")


def override(key: str, value: str) -> str:
    """`KEY=VALUE` as the command line reads it, with marks around a value that it would not take as it is."""
    return f"{key}={value}" if re.fullmatch(r"[\w./\\:+-]+", value) else f"{key}='{value}'"


@contextmanager
def hydra_sentences() -> Iterator[None]:
    """Turn what Hydra and OmegaConf raise into a `UserError`, with the nearest key where one is unknown."""
    try:
        yield
    except InstantiationException:  # an error inside our code or the user's own: it stays whole
        raise
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        sentence = sentence_of(str(error))
        if sentence is None and not isinstance(error, (HydraException, OmegaConfBaseException)):
            raise
        raise UserError(sentence or str(error)) from error


def sentence_of(message: str) -> str | None:
    """What to say to the user instead of a message of Hydra's; None for one that is not known."""
    for part, sentence in SENTENCES.items():
        if part in message:
            return sentence
    choice = re.search(
        r"Could not find '(.+)/(.*?)'\s+Available options in '.+?':\s+(.+?)\s+Config", message, re.DOTALL
    )
    if choice is not None:
        names = ", ".join(name for name in choice[3].split() if not name.startswith("_"))
        return f"{choice[1]}={choice[2]} is unknown: choose one of {names}"
    unknown = re.search(r"Could not override '([\w./]+)'|Key '(\w+)' is not in struct", message)
    if unknown is None:
        return None
    key = unknown[1] or unknown[2]
    known = known_keys()
    if key in known:
        return f"{key} is needed: do not take it away"
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "python train.py --cfg job lists them"
    return f"{key}: there is no such key; {hint}"


def known_keys() -> list[str]:
    """Every key of the default configuration, dotted."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(Path(__file__).parent.parent / "conf"), version_base="1.3"):
        return list(_dotted(compose("config")))


def _dotted(config: DictConfig, prefix: str = "") -> Iterator[str]:
    for key in map(str, config):
        yield f"{prefix}{key}"
        node = config._get_node(key)
        if isinstance(node, DictConfig) and not isinstance(node, ListConfig):
            yield from _dotted(node, f"{prefix}{key}.")
