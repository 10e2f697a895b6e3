"""The files that a run leaves beside its checkpoint, read again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import OmegaConf

from evaluation.metrics import NAMES, WHO
from model.text_classifier import TextClassifier

FILES = {"metrics": "metrics.json", "report": "report/report.json", "check": "check.json"}
ON_THE_HUB = re.compile(r"\w[\w.-]*/\w[\w.-]*")  # owner/name


class Run(NamedTuple):
    """What a run left beside its checkpoint; a part that is not there is empty. `lacks` says why, where all are."""

    metrics: dict[str, Any]
    report: dict[str, Any]
    check: dict[str, Any]
    lacks: str = ""

    @property
    def config(self) -> Any:
        return OmegaConf.create(self.report.get("configuration") or "{}")

    @property
    def scores(self) -> dict[str, dict[str, float]]:
        """What was measured of each that was tested, by their names in `WHO`."""
        named = [(*key.split("/", 1), value) for key, value in self.metrics.items()]
        parts = {who: {name: value for whose, name, value in named if whose == who} for who in WHO}
        return {who: of for who, of in parts.items() if of.keys() & NAMES.keys()}

    @property
    def dataset(self) -> str | None:
        """The data's id on the Hugging Face Hub."""
        name = str(self.config.get("data", {}).get("name") or "")
        return name if ON_THE_HUB.fullmatch(name) else None

    @property
    def streamed(self) -> bool:
        """Whether training read a stream, of which only the beginning was counted."""
        return bool(self.config.get("data", {}).get("streaming"))

    @property
    def origin(self) -> str:
        """The data's name, without the folders it lay in: they are nobody's business."""
        source = self.dataset or self.check.get("source", "unknown")
        return source if self.dataset else re.sub(r"(?<![^ ,])\S*[/\\](?=[^/\\])", "", source)


def run_of(classifier: TextClassifier, folder: Path) -> Run:
    """Read what the run left in the checkpoint's `folder`; another run's files are left out."""
    found = {name: read_json(folder / file) for name, file in FILES.items()}
    if not found["metrics"] and not found["report"]:
        return Run({}, {}, {}, "`metrics.json` and `report/report.json` were not beside the checkpoint")
    temperature = found["metrics"].get("test/temperature", classifier.task.temperature)
    check = {"labels": classifier.labels, "task": classifier.task.name, **found["check"]}
    here = (classifier.task.temperature, classifier.labels, classifier.task.name)
    if (temperature, check["labels"], check["task"]) != here:
        return Run({}, {}, {}, "the files beside the checkpoint are those of another run")
    return Run(found["metrics"], found["report"], found["check"])


def read_json(path: Path) -> dict[str, Any]:
    """What a file says; nothing where it is not there or damaged."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
