import threading
from pathlib import Path

import pytest

from data.cache import cached, digest
from errors import UserError


def write(content: str):
    return lambda folder: (folder / "content").write_text(content, encoding="utf-8")


def read(folder: Path) -> str:
    """Raises where the content is damaged."""
    content = (folder / "content").read_text(encoding="utf-8")
    if not content:
        raise ValueError("damaged")
    return content


def never(folder: Path) -> None:
    raise AssertionError("built once more")


def test_a_key_differs_when_any_part_does():
    parts = [("a", "b"), ("ab",), ("b", "a"), ("a", "b", None), ("a", ("b",)), ("1",), (1,), (True,), (None,), ()]
    assert len({digest(*part) for part in parts}) == len(parts)
    assert digest("a", 1, None) == digest("a", 1, None)
    assert digest("\ud83d") != digest("?")


def test_what_was_built_once_is_read_the_next_time(tmp_path):
    assert cached(str(tmp_path), "a", build=write("one"), read=read) == ("one", False)
    assert cached(str(tmp_path), "a", build=never, read=read) == ("one", True)
    assert cached(str(tmp_path), "b", build=write("two"), read=read) == ("two", False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_the_folder_is_made_and_a_tilde_is_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    cached("~/deep/cache", "a", build=write("one"), read=read)
    assert (tmp_path / "deep" / "cache" / "a" / "content").read_text(encoding="utf-8") == "one"


@pytest.mark.parametrize("error", [UserError("wrong"), RuntimeError("wrong"), KeyboardInterrupt()])
def test_a_build_that_fails_leaves_nothing(tmp_path, error):
    def build(folder: Path) -> None:
        write("half")(folder)
        raise error

    with pytest.raises(type(error)):
        cached(str(tmp_path), "a", build=build, read=read)
    assert list(tmp_path.iterdir()) == []
    assert cached(str(tmp_path), "a", build=write("whole"), read=read) == ("whole", False)


@pytest.mark.parametrize("damage", ["emptied", "removed", "more"])
def test_what_is_damaged_is_built_anew(tmp_path, damage):
    cached(str(tmp_path), "a", build=write("one"), read=read)
    content = tmp_path / "a" / "content"
    if damage == "removed":
        content.unlink()
    else:
        content.write_text("", encoding="utf-8")
    if damage == "more":
        (tmp_path / "a" / "deeper").mkdir()
    assert cached(str(tmp_path), "a", build=write("two"), read=read) == ("two", False)
    assert cached(str(tmp_path), "a", build=never, read=read) == ("two", True)
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "content"]


def test_of_two_builders_at_once_the_first_to_finish_stays(tmp_path):
    both = threading.Barrier(2)
    found: dict[str, tuple[str, bool]] = {}

    def run(name: str) -> None:
        def build(folder: Path) -> None:
            write(name)(folder)
            both.wait(timeout=20)  # neither is done before both are at work

        found[name] = cached(str(tmp_path), "a", build=build, read=read)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    stayed = read(tmp_path / "a")
    assert stayed in ("one", "two")
    assert found == {"one": (stayed, False), "two": (stayed, False)}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("place", ["file", "file/cache", "file/deep/cache"])
def test_a_cache_that_cannot_be_written_is_a_users_error(tmp_path, place):
    (tmp_path / "file").touch()
    folder = str(tmp_path / place)
    with pytest.raises(UserError, match=r"cannot be written .*choose another folder") as error:
        cached(folder, "a", build=write("one"), read=read)
    assert str(error.value).startswith(f"cache_dir={folder}: ")
