"""What is read of a text that is longer than the network takes."""

from __future__ import annotations


def head(ids: list[int], room: int) -> list[list[int]]:
    """The beginning."""
    return [ids[:room]]


def head_tail(ids: list[int], room: int) -> list[list[int]]:
    """A quarter of the room for the beginning, the rest for the end (Sun et al. 2019, arXiv:1905.05583, section 5.3.1)."""
    return [ids if len(ids) <= room else ids[: room // 4] + ids[room // 4 - room :]]


def windows(ids: list[int], room: int) -> list[list[int]]:
    """Pieces side by side, the last one moved back to end with the text; their logits are averaged."""
    if len(ids) <= room:
        return [ids]
    starts = [*range(0, len(ids) - room, room), len(ids) - room]
    return [ids[start : start + room] for start in starts]


TRUNCATIONS = {"head": head, "head_tail": head_tail, "windows": windows}


def share_out(lengths: list[int], room: int) -> list[int]:
    """Share `room` tokens out among parts so long: short ones keep all, the longest are cut to one length."""
    shares = [0] * len(lengths)
    for left, part in zip(
        range(len(lengths), 0, -1), sorted(range(len(lengths)), key=lengths.__getitem__), strict=True
    ):
        shares[part] = min(lengths[part], room // left)
        room -= shares[part]
    return shares
