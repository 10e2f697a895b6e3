"""How long the commands take to start, each in a cold process, beside the imports that they cannot do without.

    python -m benchmarks.startup

Medians of several starts taken in turns. Writes `benchmarks/results/startup.json`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import ROOT, write_result

REPEATS = 7
TEXT = "The striker scored twice in the final."
START = """
import time; started = time.perf_counter()
import pytorch_lightning, torch, datasets, hydra
imported = time.perf_counter()
import sys; sys.argv = ["train.py"]
from hydra import compose, initialize_config_dir
from training import run
from training.assembly import make_data, make_module
from training.monitoring import make_keep_best
from training.trainer import make_trainer
from pathlib import Path
with initialize_config_dir(str(Path.cwd() / "conf"), version_base="1.3"):
    config = compose("config", overrides=OVERRIDES)
data = make_data(config)
module = make_module(config, data)
make_trainer(config, data, make_keep_best(config, data, Path("FOLDER")), d_model=64, on_start=lambda: None)
print(time.perf_counter() - imported)
"""


def seconds(*command: str) -> tuple[float, str]:
    start = time.perf_counter()
    result = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, result.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run, cache = Path(folder, "run"), f"cache_dir={folder}/cache"
        seconds("train.py", "trainer.max_epochs=1", "+trainer.limit_train_batches=2", cache, f"hydra.run.dir={run}")
        script = START.replace("OVERRIDES", repr([cache])).replace("FOLDER", folder)
        commands = {
            "train_help_s": ("train.py", "--help"),
            "predict_s": ("predict.py", str(run / "best.ckpt"), TEXT),
            "import_torch_and_tokenizers_s": ("-c", "import torch, tokenizers"),
            "import_lightning_s": ("-c", "import pytorch_lightning"),
        }
        found: dict[str, list[float]] = {name: [] for name in [*commands, "train_start_over_imports_s"]}
        for _ in range(REPEATS):
            for name, command in commands.items():
                found[name].append(seconds(*command)[0])
            found["train_start_over_imports_s"].append(float(seconds("-c", script)[1].splitlines()[-1]))
    figures = {name: statistics.median(values) for name, values in found.items()}
    figures["predict_ratio"] = figures["predict_s"] / figures["import_torch_and_tokenizers_s"]
    write_result("startup", figures)
    print("| figure | value |\n|---|---|")
    for name, value in figures.items():
        print(f"| {name} | {value:.3g} |")


if __name__ == "__main__":
    main()
