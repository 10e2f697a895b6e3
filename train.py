"""Train a Transformer encoder on labelled texts: `python train.py`; `python train.py --help` says what can be chosen.

compose → data → network → Lightning module → trainer → test → report; the steps after composing stand in `training.py`.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from configuration import check_ranges, hydra_sentences
from errors import exit_on_user_error, remove_empty
from resume import configuration_to_resume, folder_to_resume

STARTED = time.perf_counter()


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> float:
    """Run one configuration; return the best value of its monitor, for sweepers."""
    hydra_config, resumed = HydraConfig.get(), config.resume is not None
    run_dir = Path(hydra_config.runtime.output_dir)
    if run_dir.is_relative_to(Path.cwd()):
        run_dir = run_dir.relative_to(Path.cwd())  # shorter to read and to paste
    with exit_on_user_error(empty_folder=run_dir):
        if resumed:
            remove_empty(run_dir)  # Hydra made it
            run_dir = folder_to_resume(str(config.resume))
            config = configuration_to_resume(run_dir, hydra_config.overrides.task)
        check_ranges(config)
        from training import train  # not above: torch and Lightning take seconds to import, and --help needs neither

        return train(config, run_dir, started=STARTED, resumed=resumed)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    os.environ["HYDRA_FULL_ERROR"] = "1"  # a user's mistake becomes a sentence here, any other error stays whole
    with exit_on_user_error(), hydra_sentences():
        main()
