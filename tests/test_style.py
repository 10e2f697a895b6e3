"""What the design's rules allow to be checked by a program."""

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

ROOMS = ("model", "data", "training", "evaluation", "scoring", "serving")
PRODUCT = sorted([*ROOT.glob("*.py"), *(path for room in ROOMS for path in (ROOT / room).glob("*.py"))])
FOREIGN = re.compile(r"\b(hidden_size|n_embd|embed_dim|num_heads|nhead|num_layers|intermediate_size|dim_feedforward)\b")
NETWORK = ("attention", "mask", "feed_forward", "position", "pooling", "encoder", "classifier")

MAPS = (
    "pretrained_arguments.py",
    "pretrained.py",
    "hugging_face_config.py",
)  # where the names of others are mapped to ours


def imports(path: Path) -> set[str]:
    """The top-level packages a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("path", PRODUCT, ids=lambda path: path.name)
def test_names_and_sizes(path):
    text = path.read_text()
    assert path.name in MAPS or not FOREIGN.search(text)
    assert "1e9" not in text
    assert len(text.splitlines()) <= 155
    for function in functions(path):
        docstring = ast.get_docstring(function, clean=False) or ""
        lines = (function.end_lineno or 0) - function.body[0].lineno + 1 - len(docstring.splitlines())
        assert lines <= 40, f"{function.name} has {lines} lines"
        if function.name == "__init__":
            assert len(function.args.args + function.args.kwonlyargs) - 1 <= 8


def code_lines(path: Path) -> int:
    """Lines that are neither blank nor comment nor docstring."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return len(ast.unparse(tree).splitlines())


def test_the_network_is_small():
    assert sum(code_lines(ROOT / "model" / f"{name}.py") for name in NETWORK) <= 430  # with every alternative


def test_the_rooms_know_only_what_they_may():
    for path in (ROOT / "model").glob("*.py"):
        forbidden = {*ROOMS, "hydra", "omegaconf", "datasets", "sklearn", "scipy"} - {"model"}
        if path.name != "lightning_module.py":
            forbidden |= {"pytorch_lightning", "torchmetrics"}
        assert not imports(path) & forbidden, path.name
    for path in (ROOT / "data").glob("*.py"):
        assert not imports(path) & ({*ROOMS, "hydra", "omegaconf"} - {"data"}), path.name
    assert not imports(ROOT / "predict.py") & {"data", "hydra", "pytorch_lightning", "datasets", "sklearn", "scipy"}


def test_the_network_has_no_branch_on_a_kind_in_a_forward():
    for name in NETWORK:
        for function in functions(ROOT / "model" / f"{name}.py"):
            compared = [node for node in ast.walk(function) if isinstance(node, ast.Compare)]
            if function.name == "forward":
                constants = [c.value for node in compared for c in ast.walk(node) if isinstance(c, ast.Constant)]
                assert not any(isinstance(value, str) for value in constants), name


def test_the_readmes_tree_names_what_is_there():
    readme = (ROOT / "README.md").read_text()
    for path in [*PRODUCT, *(ROOT / d for d in ("conf", "notebooks", "benchmarks", "docs", "tests"))]:
        if path.name != "__init__.py":
            assert path.name in readme, path.name


def test_every_direct_dependency_is_pinned():
    project = (ROOT / "pyproject.toml").read_text()
    block = project[project.index("dependencies = [") : project.index("[tool.setuptools]")]
    declared = {name.lower() for name in re.findall(r'"([A-Za-z0-9_-]+)[=<>]', block)}
    pinned = set(re.findall(r"^([a-z0-9_-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert declared == pinned
