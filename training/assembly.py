"""The parts of a run from its configuration: texts, network, optimizer."""

from __future__ import annotations

import logging
import warnings
from functools import partial

from datasets import DatasetDict
from hydra.utils import instantiate
from omegaconf import DictConfig, ListConfig
from pytorch_lightning import seed_everything

from data.columns import Columns
from data.datamodule import TextDataModule
from data.hub import from_datasets
from data.prepare import Prepared, prepared
from errors import UserError
from model.checkpoint import checkpoint_content, load_encoder_of, load_tokenizer_of
from model.classifier import Classifier
from model.lightning_module import LightningClassifier
from model.mlm import LightningPretraining, MaskedLanguage, tie
from model.r_drop import LightningRDrop
from model.task import SingleLabel, make_task
from model.text_classifier import Columns as TrainedOn
from training.token_vectors import add_token_vectors

log = logging.getLogger("heed")
COLUMNS = (
    "text",
    "label",
    "group",
    "separator",
    "split_seed",
    "drop_leaks",
)  # of config.data; the rest is its source's


def make_data(config: DictConfig) -> TextDataModule:
    """Texts, tokenizer and batches, ready: the network's sizes depend on them."""
    init_from = config.model.get("init_from")
    data = TextDataModule(
        prepare=partial(prepare_data, config),
        train_tokenizer=partial(load_tokenizer_of, init_from) if init_from else partial(instantiate, config.tokenizer),
        max_len=config.model.max_len,
        truncation=config.truncation,
        batch_tokens=config.batch_tokens,
        sampler=config.sampler,
        seed=config.seed,
        cache_dir=config.cache_dir,
    )
    data.setup()
    return data


def prepare_data(config: DictConfig) -> Prepared:
    """The configured source, split and checked; a source of one's own may be a `DatasetDict`."""
    source = instantiate({key: value for key, value in config.data.items() if key not in COLUMNS})
    if isinstance(source, DatasetDict):
        source = from_datasets(config.data._target_, source)
    columns = Columns(
        text=text_columns(config),
        label=None if config.task == "mlm" else str(config.data.label),
        group=None if config.data.group is None else str(config.data.group),
        separator=config.data.separator,
    )
    if not columns.text:
        raise UserError(
            "data.text=[] names no column: give one, as data.text=text, or several, as data.text=[title,body]"
        )
    if columns.separator == "":
        raise UserError("data.separator='' parts nothing: give what stands between two labels, as data.separator=';'")
    return prepared(
        source,
        columns,
        task=config.task,
        split_seed=config.data.split_seed,
        drop_leaks=config.data.drop_leaks,
        cache_dir=config.cache_dir,
    )


def text_columns(config: DictConfig) -> tuple[str, ...]:
    """The columns that hold the text."""
    return tuple(map(str, config.data.text if isinstance(config.data.text, ListConfig) else [config.data.text]))


def make_module(config: DictConfig, data: TextDataModule) -> LightningClassifier:
    """The network with weights drawn from the seed, or taken from `model.init_from`, its optimizer, and its checkpoint."""
    seed_everything(config.seed, verbose=False)
    warnings.filterwarnings("ignore", message=".*will save all targets.*")  # a number for each text of validation
    warnings.filterwarnings("ignore", message=".*variance of predictions or target.*")  # as before the first epoch
    warnings.filterwarnings("ignore", message=".*overridden `on_before_batch_transfer`.*")  # the module's is meant
    network = make_network(config, data)
    task = make_task_of(config, data)
    settings = {
        "task": task,
        "make_optimizer": instantiate(config.optimizer, _partial_=True),
        "label_smoothing": config.label_smoothing,
        "checkpoint": checkpoint_content(
            network,
            task=task,
            tokenizer=data.tokenizer,
            truncation=config.truncation,
            n_parts=data.n_parts,
            columns=TrainedOn(text_columns(config), str(config.data.label), config.data.separator),
        ),
    }
    if data.task == "mlm":
        seen = data.encoded["train"].tokens.ids
        return LightningPretraining(network, tokenizer=data.tokenizer, seen=seen, **settings)
    targets = data.encoded["train"].labels
    class_weight = None if config.class_weight is None else task.class_weight(targets)
    module = partial(LightningRDrop, weight=config.r_drop) if config.r_drop else LightningClassifier
    return module(network, class_weight=class_weight, **settings)


def make_network(config: DictConfig, data: TextDataModule) -> Classifier:
    """The configured network for these data; says how large it is."""
    network = instantiate(
        {key: value for key, value in config.model.items() if key != "init_from"},
        vocab_size=data.vocab_size,
        n_classes=data.vocab_size if data.task == "mlm" else len(data.labels),
        pad_id=data.pad_id,
        sep_id=data.sep_id,
        n_segments=data.n_parts,
    )
    if data.task == "mlm":
        tie(network)
    if config.model.get("init_from"):
        load_encoder_of(network, config.model.init_from)
    elif config.token_vectors:
        add_token_vectors(network.encoder.embedding, data)
    millions = sum(parameter.numel() for parameter in network.parameters()) / 1e6
    sizes = network.architecture
    log.info(
        "network     %s layers, d_model %s, %.2f million parameters", sizes["n_layers"], sizes["d_model"], millions
    )
    return network


def make_task_of(config: DictConfig, data: TextDataModule) -> SingleLabel:
    """What the outputs mean. Raises `UserError` for a `class_weight` or an `r_drop` that the task does not know."""
    targets = data.encoded["train"].labels
    score = {"mean": float(targets.mean()), "spread": float(targets.std())} if data.task == "regression" else {}
    if config.class_weight not in (None, "balanced"):
        raise UserError(f"class_weight={config.class_weight} is unknown: choose null or balanced")
    if config.class_weight is not None and data.task in ("regression", "mlm"):
        raise UserError(f"class_weight=balanced needs classes, and the task is {data.task}: leave it out")
    if data.task == "mlm":
        if config.r_drop:
            raise UserError(f"r_drop={config.r_drop} needs labels, and task=mlm has none: leave it out")
        return MaskedLanguage(labels=[str(number) for number in range(data.vocab_size)])
    return make_task(data.task, labels=data.labels, **score)
