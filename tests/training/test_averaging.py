"""Gradient accumulation, averaged weights, early stopping: each one override."""

import json

import pytest
import torch
import torch.nn.functional as F
from pytorch_lightning import Callback, Trainer

from data.shares import dealt
from model import load_classifier
from tests.model.test_lightning_module import QUIET, loader, module  # noqa: F401 fixtures
from training.averaging import AveragedWeights
from training.run import train


class Noted(Callback):
    """Weights and gradients after each batch."""

    def __init__(self) -> None:
        self.weights: list[torch.Tensor] = []
        self.gradients: list[torch.Tensor] = []

    def on_before_optimizer_step(self, trainer, pl_module, optimizer) -> None:
        self.gradients.append(torch.cat([p.grad.flatten() for p in pl_module.parameters()]).clone())

    def on_train_batch_end(self, trainer, pl_module, *_) -> None:
        self.weights.append(flat(pl_module))


def flat(network) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in network.parameters()]).clone()


def test_accumulated_batches_give_the_gradient_of_the_mean_over_their_texts(module, loader):  # noqa: F811
    classifier, noted = module(), Noted()
    parameters = [*classifier.parameters()]
    batches = [*loader]  # of four, four and two texts: the last step has one batch
    expected = []
    losses = [
        F.cross_entropy(classifier.classifier(b["ids"], b["mask"]), b["labels"], reduction="none") for b in batches
    ]
    for loss in (torch.cat(losses[:2]).mean(), losses[2].mean()):
        gradients = torch.autograd.grad(loss, parameters, retain_graph=True)
        expected.append(torch.cat([gradient.flatten() for gradient in gradients]))
    texts, sampler = dealt(loader.dataset, loader.sampler, rank=0, world=1, window=2)
    shared = torch.utils.data.DataLoader(texts, sampler=sampler, batch_size=None)
    frozen = torch.optim.lr_scheduler.LambdaLR
    classifier.make_optimizer = lambda net, steps: (
        o := torch.optim.SGD(net.parameters(), lr=0.0),
        frozen(o, lambda _: 1.0),
    )
    trainer = Trainer(max_epochs=1, accelerator="cpu", accumulate_grad_batches=2, callbacks=[noted], **QUIET)
    trainer.fit(classifier, shared)
    assert trainer.global_step == 2
    for ours, theirs in zip(noted.gradients, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert float(classifier.train_loss.compute()) == pytest.approx(float(torch.cat(losses).mean()))


def test_the_schedule_has_a_step_for_each_step_of_several_batches(run):
    folder = run("trainer.accumulate_grad_batches=3", "trainer.max_epochs=2", "batch_tokens=64", "model.max_len=8")
    assert torch.load(folder / "best.ckpt", weights_only=True)["global_step"] in (1, 2)


def test_averaged_weights_are_those_of_the_formula_validated_and_kept(module, loader, tmp_path):  # noqa: F811
    from pytorch_lightning.callbacks import ModelCheckpoint

    classifier, noted = module(), Noted()
    whole = ModelCheckpoint(tmp_path, filename="whole")
    alone = ModelCheckpoint(tmp_path, filename="alone", save_weights_only=True, every_n_epochs=2)
    callbacks = [AveragedWeights(0.9), noted, whole, alone]
    quiet = {**QUIET, "enable_checkpointing": True}
    trainer = Trainer(max_epochs=2, accelerator="cpu", num_sanity_val_steps=0, callbacks=callbacks, **quiet)
    trainer.fit(classifier, loader, loader)
    expected = noted.weights[0]  # the first average is the weights themselves
    for weights in noted.weights[1:]:
        expected = 0.9 * expected + 0.1 * weights
    assert not torch.allclose(expected, noted.weights[-1])
    files = [torch.load(tmp_path / f"{name}.ckpt", weights_only=True) for name in ("whole", "alone")]
    names = [name for name, _ in classifier.named_parameters()]
    for file in files:
        torch.testing.assert_close(torch.cat([file["state_dict"][name].flatten() for name in names]), expected)
    now = torch.cat([files[0]["current_model_state"][name].flatten() for name in names])
    torch.testing.assert_close(now, noted.weights[-1])  # from which training would go on
    assert int(files[0]["averaging_state"]["n_averaged"]) == 6
    (again,) = Trainer(accelerator="cpu", **QUIET).validate(classifier, loader, verbose=False)
    assert again["val/loss"] == pytest.approx(float(trainer.callback_metrics["val/loss"]))


def test_a_run_with_averaged_weights_leaves_a_file_that_predicts(run):
    folder = run("ema=0.5", "trainer.max_epochs=2")
    assert load_classifier(folder / "best.ckpt").predict(["a red apple"])
    assert "val/accuracy" in (folder / "metrics.csv").read_text()


@pytest.mark.parametrize(("patience", "epochs"), [("1", 2), ("null", 6)])
def test_training_stops_when_patience_ends(run, patience, epochs):
    folder = run(f"patience={patience}", "trainer.max_epochs=6", "optimizer.lr=0.0")
    assert (folder / "metrics.csv").read_text().count("\n") == epochs + 1  # and the head


def test_train_returns_what_sweepers_maximise(configure, corpus, tmp_path):
    (tmp_path / "run").mkdir()
    config = configure(
        "data=files", f"data.train={corpus}", "monitor=val/loss", "experiment=quick", "trainer.accelerator=cpu"
    )
    value = train(config, tmp_path / "run", started=0.0)
    lines = (tmp_path / "run" / "metrics.csv").read_text().splitlines()
    logged = dict(zip(lines[0].split(","), lines[-1].split(","), strict=True))
    assert value == pytest.approx(-float(logged["val/loss"]))
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())
