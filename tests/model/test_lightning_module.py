import numpy as np
import pytest
import torch
import torch.nn.functional as F
from pytorch_lightning import Callback, Trainer
from sklearn.metrics import accuracy_score, f1_score
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader

from data.batching import EncodedTexts, LengthBatchSampler
from encoding import TokenIds
from model.lightning_module import LightningClassifier
from model.optim import adamw
from model.task import SingleLabel

QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}


@pytest.fixture
def loader() -> DataLoader:
    """Ten texts of one length in batches of four, four and two."""
    ids = torch.from_numpy(np.random.default_rng(0).integers(1, 50, 60)).int()
    tokens = TokenIds(ids, torch.arange(0, 61, 6), torch.arange(11), torch.full((10,), 6))
    data = EncodedTexts(tokens, torch.tensor([0, 1, 0, 0, 1, 0, 2, 0, 1, 1]), pad_id=0)
    return DataLoader(
        data, sampler=LengthBatchSampler(tokens.lengths, max_tokens=24, seed=0, shuffle=False), batch_size=None
    )


@pytest.fixture
def module(network):
    def build(label_smoothing: float = 0.0, **changes) -> LightningClassifier:
        settings = {"lr": 0.1, "weight_decay": 0.0, "betas": (0.9, 0.98), "warmup": 0.5, "schedule": "linear"}
        return LightningClassifier(
            network(**changes),
            task=SingleLabel(labels=["a", "b", "c"]),
            make_optimizer=lambda net, steps: adamw(net, steps, **settings),
            label_smoothing=label_smoothing,
            checkpoint={"format": 2},
        )

    return build


def test_epoch_metrics_equal_scikit_learn_on_all_rows(module, loader):
    classifier = module()
    (logged,) = Trainer(**QUIET).validate(classifier, loader, verbose=False)
    batches = [batch.values() for batch in loader]
    assert [len(labels) for _, _, _, labels in batches] == [4, 4, 2]
    with torch.no_grad():
        logits = torch.cat([classifier.classifier(ids, mask) for ids, mask, _, _ in batches])
    labels = torch.cat([labels for _, _, _, labels in batches])
    assert logged["val/accuracy"] == pytest.approx(accuracy_score(labels, logits.argmax(1)))
    assert logged["val/macro_f1"] == pytest.approx(f1_score(labels, logits.argmax(1), average="macro", zero_division=0))
    assert logged["val/loss"] == pytest.approx(F.cross_entropy(logits, labels).item(), abs=1e-6)


def test_the_training_loss_is_the_mean_over_the_texts_of_the_epoch(module, loader):
    sums: list[float] = []

    class Sum(Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, number) -> None:
            sums.append(float(outputs["loss"]) * len(batch["labels"]))

        def on_validation_end(self, trainer, module) -> None:
            logged = float(trainer.callback_metrics["train/loss"])
            assert logged == pytest.approx(sum(sums) / 10, abs=1e-6)
            sums.clear()

    trainer = Trainer(max_epochs=2, accelerator="cpu", num_sanity_val_steps=0, callbacks=[Sum()], **QUIET)
    trainer.fit(module(), loader, loader)
    assert trainer.global_step == 6


def test_the_schedule_is_stepped_once_a_batch_over_the_whole_run(module, loader):
    classifier, trainer = module(), Trainer(max_epochs=2, accelerator="cpu", **QUIET)
    trainer.fit(classifier, loader)
    assert trainer.global_step == 6
    assert trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(0.0)
    assert trainer.lr_scheduler_configs[0].scheduler.last_epoch == 6


def test_label_smoothing_changes_the_training_loss_as_torch_defines_it(module, loader):
    classifier = module(label_smoothing=0.2)
    classifier.log = lambda *args, **kwargs: None
    batch = next(iter(loader))
    expected = F.cross_entropy(classifier.classifier(batch["ids"], batch["mask"]), batch["labels"], label_smoothing=0.2)
    torch.testing.assert_close(classifier.training_step(batch, 0), expected)


def test_the_checkpoint_carries_what_it_was_given(module, loader):
    checkpoint, classifier = {}, module()
    Trainer(**QUIET).validate(classifier, loader, verbose=False)
    classifier.on_save_checkpoint(checkpoint)
    taught = classifier.task.calibrated(*(torch.cat(parts) for parts in zip(*classifier.validated, strict=True)))
    assert taught.temperature != 1.0
    assert checkpoint == {"heed": {"format": 2, "task": taught.facts()}}


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_gradients_are_clipped_to_one_norm(module, loader, precision):
    norms = []

    class Watch(Callback):
        def on_train_batch_end(self, trainer, pl_module, *_):
            gradients = [p.grad.flatten() for p in pl_module.parameters() if p.grad is not None]
            norms.append(float(torch.cat(gradients).norm()))

    settings = {**QUIET, "accelerator": "cpu", "max_epochs": 1, "precision": precision, "callbacks": [Watch()]}
    Trainer(gradient_clip_val=0.01, **settings).fit(module(), loader)
    Trainer(**settings).fit(module(), loader)
    assert norms[:3] == pytest.approx([0.01] * 3, rel=1e-2)
    assert min(norms[3:]) > 0.02


def test_no_step_waits_for_a_value(module):
    """On the meta device tensors have no values: whatever asks for one, as a GPU would be stalled by, raises."""
    classifier = module(dropout=0.1).to("meta")
    batch = {
        "ids": torch.zeros(4, 9, dtype=torch.long, device="meta"),
        "mask": torch.ones(4, 9, dtype=torch.bool, device="meta"),
        "text": torch.zeros(4, dtype=torch.long, device="meta"),
        "labels": torch.zeros(3, dtype=torch.long, device="meta"),
    }
    classifier.training_step(batch, 0).backward()
    clip_grad_norm_(classifier.parameters(), 1.0)
