"""Did a change slow the default path? Training steps per second of this checkout against another, in turns.

    git worktree add /tmp/before COMMIT
    python -m benchmarks.step --against /tmp/before

Each side builds the default network from its own `conf/` and steps on the same random batches (8 texts of 512 tokens).
Writes `benchmarks/results/step.json`; the ratio is this checkout's speed over the other's, pair by pair.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.common import ROOT, write_result

SCRIPT = """
import sys, time
sys.path.insert(0, sys.argv[1])
import torch, torch.nn.functional as F
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
with initialize_config_dir(sys.argv[1] + "/conf", version_base="1.3"):
    config = compose("config")
torch.manual_seed(0)
parts = {key: value for key, value in config.model.items() if key != "init_from"}
network = instantiate(parts, vocab_size=17000, n_classes=5, pad_id=0)
optimizer, schedule = instantiate(config.optimizer, _partial_=True)(network, 10**6)
ids, mask = torch.randint(4, 17000, (8, 512)), torch.arange(512) < torch.linspace(400, 512, 8)[:, None]
labels = torch.arange(8) % 5
def step():
    F.cross_entropy(network(ids, mask), labels).backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step(); schedule.step(); optimizer.zero_grad()
for _ in range(10):
    step()
start = time.perf_counter()
for _ in range(60):
    step()
print(60 / (time.perf_counter() - start))
"""


def steps_per_second(checkout: Path) -> float:
    command = [sys.executable, "-c", SCRIPT, str(checkout)]
    return float(subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, required=True, help="another checkout")
    parser.add_argument("--pairs", type=int, default=7, help="how many times the two take turns (default: %(default)s)")
    arguments = parser.parse_args()
    pairs = [(steps_per_second(ROOT), steps_per_second(arguments.against.resolve())) for _ in range(arguments.pairs)]
    commit = ["git", "-C", str(arguments.against), "rev-parse", "--short", "HEAD"]
    figures = {
        "against": subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip(),
        "steps_per_second": statistics.median(ours for ours, _ in pairs),
        "ratio": statistics.median(ours / theirs for ours, theirs in pairs),
        "ratios": [ours / theirs for ours, theirs in pairs],
    }
    write_result("step", figures)
    print(f"against {figures['against']}: ratio {figures['ratio']:.3f}, {figures['steps_per_second']:.1f} steps/s")


if __name__ == "__main__":
    main()
