import gzip
import json
from pathlib import Path

import pytest

from data.rows import Rows, bad_line, lines, readable
from errors import UserError


@pytest.fixture(params=["plain", "gzip"])
def write(request, tmp_path):
    """Write a file, once as it is and once packed."""

    def to_file(content: bytes) -> Path:
        path = tmp_path / ("mine.csv" if request.param == "plain" else "mine.csv.gz")
        path.write_bytes(content if request.param == "plain" else gzip.compress(content))
        return path

    return to_file


def test_a_row_says_where_it_stands():
    assert Rows("mine.csv: line", (2, 5), {"text": ["a", "b"]}).where(1) == "mine.csv: line 5"
    assert Rows("", [Path("sport/1.txt")], {"text": ["a"]}).where(0) == str(Path("sport/1.txt"))


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_file_is_read_as_utf8_with_its_line_ends_and_without_its_byte_order_mark(write, mark):
    content = "naïve,漢字\r\nsecond\nthird"
    with readable(write((mark + content).encode())) as file:
        assert file.read() == content


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_named_with_and_without_its_mark(write, encoding, mark):
    path = write((mark + "text,label\n").encode(encoding))
    with pytest.raises(UserError, match="UTF-16") as error, readable(path) as file:
        list(lines(path, file))
    assert str(error.value).startswith(f"{path}: ")
    assert "UTF-8" in str(error.value)


@pytest.mark.parametrize("line", [1, 2, 5000])
def test_a_byte_that_is_not_utf8_is_named_with_its_line(write, line):
    path = write("é ok\n".encode() * (line - 1) + b"caf\xe9\n" + b"fine\n" * 9)
    with pytest.raises(UserError, match=rf"line {line} is not UTF-8 \(byte 0xe9\)"), readable(path) as file:
        file.read()


def test_a_character_cut_off_at_the_end_is_named_with_its_line(write):
    with pytest.raises(UserError, match=r"line 3 is not UTF-8 \(byte 0xc3\)"), readable(write(b"a\nb\n\xc3")) as file:
        file.read()


def test_a_nul_byte_is_named_with_its_line(write):
    path = write(b"text,label\na,x\nb\0,y\n")
    with pytest.raises(UserError, match="line 3 holds a NUL byte"), readable(path) as file:
        list(lines(path, file))


def test_lines_come_as_they_are(write):
    path = write(b"a\r\n\n b")
    with readable(path) as file:
        assert list(lines(path, file)) == ["a\r\n", "\n", " b"]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "none"])
def test_damaged_gzip_is_unreadable_by_name(tmp_path, damage):
    content = b"".join(b"%d\n" % (i * i) for i in range(5000))
    packed = gzip.compress(content)
    path = tmp_path / "mine.csv.gz"
    path.write_bytes(
        {
            "truncated": packed[:-2000],
            "flipped": packed[:500] + bytes(255 - byte for byte in packed[500:600]) + packed[600:],
            "none": content,  # no gzip at all
        }[damage]
    )
    with pytest.raises(UserError, match="unreadable") as error, readable(path) as file:
        file.read()
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_what_a_library_says_becomes_one_short_line(write):
    with pytest.raises(UserError, match=r"unreadable .a b a b") as error, readable(write(b"a")):
        raise OSError("a\n b " * 1000)
    assert len(str(error.value)) < 1000
    assert "\n" not in str(error.value)


def test_a_users_error_within_passes_through(write):
    with pytest.raises(UserError, match=r"^mine$"), readable(write(b"a")):
        raise UserError("mine")


def test_the_first_line_that_cannot_be_parsed_is_found(write):
    assert bad_line(write(b"1\n[2]\n{3\n4"), json.loads) == 3
    assert bad_line(write(b"1\n2\n"), json.loads) == "?"
