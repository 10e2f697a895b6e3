"""The two scripts as a person runs them, each in a process of its own."""

import json
import os
import re

import pytest

QUICK = ("data=files", "experiment=quick", "tokenizer.min_frequency=1", "trainer.accelerator=cpu")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return tmp_path_factory.mktemp("trained")


def test_train_then_predict(command, corpus, tmp_path):
    result = command("train.py", *QUICK, "data.train=corpus.csv", "hydra.run.dir='outputs/a=b/run'")
    assert (result.returncode, result.stderr) == (0, "")
    assert "\r" not in result.stdout
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        *("data", "splits", "task", "tokenizer", "lengths", "unknown", "network", "device", "epoch"),
        *("mixed", "test", "alone", "baseline", "majority", "compared", "report", "files", "predict"),
    ]
    assert re.fullmatch(
        r"compared    (level with|ahead of|behind) the linear model.* \(McNemar p = \d\.\d\d\)", lines[14]
    )
    assert lines[15] == "report      outputs/a=b/run/report/index.html"
    assert re.match(r"epoch  1/1  loss \d\.\d{3} \(val \d\.\d{3}\)  accuracy ", lines[8])
    assert lines[-1].endswith('python predict.py outputs/a=b/run/best.ckpt "your text"')

    one = command("predict.py", "outputs/a=b/run/best.ckpt", "a red apple, 5 % of @ | & # = it", "saw")
    assert (one.returncode, one.stderr) == (0, "")
    assert [line.split()[0] in {"fruit", "tool"} for line in one.stdout.splitlines()] == [True, True]

    newest = command("predict.py", "a red apple", "--json")
    assert newest.stderr == "note: using outputs/a=b/run/best.ckpt\n"
    answer = json.loads(newest.stdout)
    assert answer["text"] == "a red apple"
    assert set(answer["probabilities"]) == {"fruit", "tool"}

    assert set(answer["set"]) <= {"fruit", "tool"}
    assert answer["label"] in answer["set"]

    piped = command("predict.py", "-", "--top-k", "2", input="saw\n\n" + "apple " * 500 + "\n")
    assert len(piped.stdout.splitlines()) == 3
    assert all(len(line.split("\t")) == 2 for line in piped.stdout.splitlines())
    assert "1 of 3 texts are longer than 64 tokens" in piped.stderr

    explained = command("predict.py", "outputs/a=b/run/best.ckpt", "a red apple", "--explain", "--picture", "why.png")
    assert (explained.returncode, explained.stderr) == (0, "")
    label, tokens, strongest, picture = explained.stdout.splitlines()
    assert label.split()[0] in {"fruit", "tool"}
    assert tokens.split() == ["[CLS]", "a", "red", "apple", "[SEP]"]
    assert strongest.startswith(f"for {label.split()[0]}: ")
    assert picture == "attention by layer and head: why.png"
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    assert command("predict.py", "outputs/a=b/run/best.ckpt", "one", "two", "--explain").returncode == 2
    assert (
        command("predict.py", "outputs/a=b/run/best.ckpt", "one", "--explain", "--picture", "no/why.png").returncode
        == 2
    )
    int8 = command("predict.py", "outputs/a=b/run/best.ckpt", "a red apple", "--precision", "int8")
    alone = command("predict.py", "outputs/a=b/run/best.ckpt", "a red apple")
    assert (int8.returncode, int8.stdout.split()[0], int8.stderr) == (0, alone.stdout.split()[0], "")
    assert command("predict.py", "a red apple", "--explain", "--precision", "int8").returncode == 2
    longer = command("predict.py", "outputs/a=b/run/best.ckpt", "a red apple", "--max-len", "500")
    assert longer.stderr == "note: --max-len 500: learned positions end at 64, texts are cut there\n"

    missing = command("predict.py", "outputs/other.ckpt", "text")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.startswith("error: checkpoint outputs/other.ckpt: no such file")
    assert missing.stderr.count("\n") == 1


def test_predict_without_any_checkpoint_says_what_to_do(command):
    result = command("predict.py", "text")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: no checkpoint given and none under outputs/")
    assert command("predict.py", "--top-k", "0", "text").returncode == 2


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (("trainer.max_epoch=3",), "trainer.max_epoch: there is no such key; did you mean trainer.max_epochs?"),
        (("trainer.max_epochs=many",), "trainer.max_epochs=many does not work: give a whole number of at least 1"),
        (("token_vectors=off",), "token_vectors=off does not work: give true or false"),
        (("data=hub", "data.name=x", "data.streaming=maybe"), "data.streaming=maybe does not work: give true or false"),
        (("tokenizer.lowercase=1",), "tokenizer.lowercase=1 does not work: give true or false"),
        (("model.dropout=1.5",), "model.dropout=1.5 does not work"),
        (("model=huge",), "model=huge is unknown: choose one of base, minilm, pretrained, small, tiny"),
        (("task=ranking",), "task=ranking is unknown: choose one of auto, mlm, multi_label, regression, single_label"),
        (("experiment=null",), "a group has no choice null: leave GROUP=null out, or write ~GROUP for none of it"),
        (("data=files", "data.train=nowhere.csv"), "nowhere.csv: no such file"),
    ],
)
def test_a_mistake_is_one_line_exit_code_2_and_leaves_nothing(command, tmp_path, overrides, sentence):
    result = command("train.py", *overrides)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert [path for path in tmp_path.iterdir() if not path.name.startswith(".")] == []


def test_help_explains_the_groups_and_the_main_keys(command):
    result = command("train.py", "--help")
    assert (result.returncode, result.stderr) == (0, "")
    for word in (
        "tiny small base",
        "bbc_news files hub",
        "model.d_model",
        "optimizer.lr",
        "trainer.max_epochs",
        "seed",
    ):
        assert word in result.stdout


def test_help_imports_neither_torch_nor_lightning(command, tmp_path):
    for name in ("torch", "pytorch_lightning"):
        (tmp_path / "shadow" / name).mkdir(parents=True)
        (tmp_path / "shadow" / name / "__init__.py").write_text("raise ImportError('not now')")
    os.environ["PYTHONPATH"] = str(tmp_path / "shadow")
    try:
        for script in ("train.py", "predict.py"):
            assert command(script, "--help").returncode == 0
    finally:
        del os.environ["PYTHONPATH"]


def test_an_error_of_the_users_own_code_shows_its_line(command, corpus, tmp_path):
    (tmp_path / "mine.py").write_text("def source(**settings):\n    return 1 / 0  # my line\n")
    os.environ["PYTHONPATH"] = str(tmp_path)
    try:
        result = command("train.py", *QUICK, "data.train=corpus.csv", "data._target_=mine.source")
    finally:
        del os.environ["PYTHONPATH"]
    assert result.returncode == 1
    assert "# my line" in result.stderr


def test_a_sweep_runs_one_after_the_other(command, corpus, tmp_path):
    result = command("train.py", "--multirun", *QUICK, "data.train=corpus.csv", "seed=0,1", "hydra.sweep.dir=sweep")
    assert result.returncode == 0, result.stderr
    assert sorted(path.parent.name for path in tmp_path.glob("sweep/*/metrics.json")) == ["0", "1"]
