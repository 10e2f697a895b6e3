"""The README's commands: each composes; the main job, shortened, and what follows from it run as printed."""

import re
import shlex

import pytest

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for kind, block in BLOCKS if kind == "bash" for line in block.splitlines()]
COMMANDS += re.findall(r"`(python \S+\.py [^`]*)`", README)
TRAIN = [
    shlex.split(c.split("&&")[-1])[2:] for c in COMMANDS if c.split("&&")[-1].strip().startswith("python train.py")
]
PREDICT = [shlex.split(c)[2:] for c in COMMANDS if c.startswith("python predict.py")]
SCORE = [arguments for arguments in PREDICT if "--input" in arguments]
SHORT = ["experiment=quick", "trainer.accelerator=cpu"]


def test_the_readme_has_the_commands_it_promises():
    assert "pip install -c constraints.txt -e . && python train.py" in COMMANDS
    assert "pip install -c constraints.txt -e '.[dev]' && pytest" in COMMANDS
    assert len(TRAIN) >= 5
    assert len(PREDICT) >= 3
    assert SCORE
    assert "pip install --quiet -c constraints.txt -e '.[dev]'\n" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("overrides", TRAIN, ids=" ".join)
def test_every_training_command_composes(configure, overrides):
    if "hparams=optuna" in overrides:
        pytest.importorskip("optuna")
    plain = [override for override in overrides if not override.startswith("-") and "," not in override]
    configure(*plain)


def test_the_main_job_and_the_predictions_run_as_printed(command, tmp_path):
    result = command("train.py", *SHORT)
    assert (result.returncode, result.stderr) == (0, "")
    for arguments in (arguments for arguments in PREDICT if arguments not in SCORE):
        answer = command("predict.py", *arguments)
        assert answer.returncode == 0, answer.stderr
        assert re.fullmatch(
            "note: using .*\n" + "note: . of 2 texts have no label: .*\n" * ("--abstain" in arguments), answer.stderr
        )
        assert answer.stdout.split()[0] in {"-", "business", "entertainment", "politics", "sports", "tech"}
    (tmp_path / "texts.csv").write_text("text\nThe striker scored twice in the final.\n")
    for arguments in SCORE:
        assert command("predict.py", *arguments).returncode == 0
        assert (tmp_path / arguments[-1]).read_text().startswith("text,predicted,probability,p(business),")
    (checkpoint,) = tmp_path.glob("outputs/*/*/best.ckpt")
    (block,) = [block for kind, block in BLOCKS if kind == "python" and "load_classifier" in block]
    exec(block.replace("best.ckpt", str(checkpoint)), {})
