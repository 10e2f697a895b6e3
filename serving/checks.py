"""What may be asked of the server: the body of a request → texts, or a refusal with its reason."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

SHAPES = '{"text": "…"} or {"texts": ["…", …]}'
SHAPES_OF_PARTS = '{"text": ["…", …]} or {"texts": [["…", …], …]}'


class Limits(NamedTuple):
    """How much one request may hold, and how many seconds its client may take to send it."""

    bytes: int = 2_000_000
    texts: int = 256
    characters: int = 100_000  # of a text, all its parts together
    seconds: float = 10.0


class Refused(Exception):  # noqa: N818  (an answer more than an error)
    """A request that cannot be answered: the HTTP status, and one sentence that says why."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(status, detail)
        self.status, self.detail = status, detail


def texts_of(content: dict[str, Any]) -> list[Any]:
    """The texts of a request that `check` let pass."""
    return content["texts"] if "texts" in content else [content["text"]]


def check(body: bytes, limits: Limits, n_parts: int) -> None:
    """Raise `Refused` unless the body is a JSON object with one or several texts of `n_parts` parts, within the limits."""
    shapes = SHAPES if n_parts == 1 else SHAPES_OF_PARTS
    if not body.strip():
        raise Refused(400, f"the body is empty: send {shapes}")
    try:
        content = json.loads(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is not UTF-8 (byte {error.start + 1}): send {shapes} in UTF-8") from None
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deep"
        raise Refused(400, f"the body is not JSON ({reason}): send {shapes}") from None
    if not isinstance(content, dict) or list(content) not in (["text"], ["texts"]):
        found = f"an object with the keys {list(content)!r:.200}" if isinstance(content, dict) else kind(content)
        raise Refused(400, f"the body is {found}: send {shapes}")
    texts = content.get("texts", [content.get("text")])
    if not isinstance(texts, list) or not texts:
        found = "an empty list" if texts == [] else kind(texts)
        raise Refused(400, f"texts is {found}: send {shapes}")
    if len(texts) > limits.texts:
        raise Refused(413, f"texts holds {len(texts):,}, at most {limits.texts:,} may come at once: send them in parts")
    for row, text in enumerate(texts):
        name = "text" if "text" in content else f"text {row + 1}"
        check_text(text, name, limits, n_parts)


def check_text(text: Any, name: str, limits: Limits, n_parts: int) -> None:
    """Raise `Refused` unless the text has `n_parts` parts, each a string, and is not too long."""
    parts = text if n_parts > 1 else [text]
    if not isinstance(parts, list) or len(parts) != n_parts:
        found = f"a list of {len(parts)}" if isinstance(parts, list) else kind(parts)
        raise Refused(400, f"{name} is {found}: this classifier reads {n_parts} parts a text, send {SHAPES_OF_PARTS}")
    for part in parts:
        if not isinstance(part, str):
            raise Refused(
                400, f"{name} is {kind(part)}, not a string: send {SHAPES if n_parts == 1 else SHAPES_OF_PARTS}"
            )
    if (length := sum(map(len, parts))) > limits.characters:
        raise Refused(413, f"{name} has {length:,} characters, at most {limits.characters:,} are read: send less of it")


def kind(value: Any) -> str:
    """What JSON calls a value."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
