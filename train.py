"""Train a Transformer encoder on labelled texts: `python train.py`; `python train.py --help` says what can be chosen.

compose → data → network → Lightning module → trainer → test → report; the steps after composing stand in `training/run.py`.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from errors import exit_on_user_error, is_first_process, remove_empty
from training.configuration import check_ranges, hydra_sentences
from training.resume import configuration_to_resume, folder_to_resume

STARTED = time.perf_counter()


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> float | None:
    """Run one configuration; return the best value of its monitor, its negative where less is better, for sweepers.

    None where there is no value, as in a trial of a search that cannot work.
    """
    hydra_config, resumed = HydraConfig.get(), config.resume is not None
    run_dir = Path(hydra_config.runtime.output_dir)
    if run_dir.is_relative_to(Path.cwd()):
        run_dir = run_dir.relative_to(Path.cwd())  # shorter to read and to paste
    searching = "OptunaSweeper" in hydra_config.sweeper._target_ and hydra_config.mode == RunMode.MULTIRUN
    with exit_on_user_error(empty_folder=run_dir, go_on=searching):
        if resumed:
            remove_empty(run_dir)  # Hydra made it
            run_dir = folder_to_resume(str(config.resume))
            config = configuration_to_resume(run_dir, hydra_config.overrides.task, known=map(str, config))
        check_ranges(config)
        from training.run import train  # not above: torch and Lightning take seconds, and --help needs neither

        best = train(config, run_dir, started=STARTED, resumed=resumed)
        return None if math.isnan(best) else best
    return None


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    os.environ["HYDRA_FULL_ERROR"] = "1"  # a user's mistake becomes a sentence here, any other error stays whole
    if not is_first_process():  # one of several that train together is silent, and has no folder of its own
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        sys.argv.append("hydra.run.dir=.")
    with exit_on_user_error(), hydra_sentences():
        main()
