"""The building blocks of a page: its style, tables, pictures beside each other. Whatever comes from the user is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

STYLE = """
:root{color-scheme:light dark;--text:#1c2330;--back:#fff;--faint:#8b94a3;--line:#d9dee6;--one:#3b7dd8;--two:#d9772b}
@media(prefers-color-scheme:dark){:root{--text:#e4e8ee;--back:#14181f;--faint:#8b94a3;--line:#333b47;--one:#6aa5f2;--two:#eb9650}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--back);color:var(--text);
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.2rem;margin:2.2rem 0 .4rem}p{max-width:46rem;margin:.4rem 0 .8rem}
.pictures{display:flex;flex-wrap:wrap;gap:1rem}figure{margin:0;flex:1 1 20rem;max-width:34rem}
figcaption{font-weight:600}svg{width:100%;height:auto}svg text{font-family:inherit!important}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.92rem}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td.text{min-width:16rem;overflow-wrap:anywhere}
.confusion td{text-align:center;border:1px solid var(--line);min-width:2.6rem}
.confusion thead th{writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;vertical-align:middle}
pre{overflow-x:auto;padding:.8rem;border:1px solid var(--line);border-radius:.4rem;font-size:.85rem}
"""


def document(title: str, body: str) -> str:
    """A page that needs nothing else."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<title>{escape(title)}</title><style>{STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1>\n{body}</body></html>\n"
    )


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; numbers stand to the right, in as many digits as are told apart."""
    rows = [list(row) for row in rows]
    right = [bool(rows) and isinstance(value, (int, float)) for value in rows[0]] if rows else [False] * len(head)
    names = "".join(f"<th{' class=n' * n}>{escape(name)}</th>" for name, n in zip(head, right, strict=True))
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>\n" for row in rows)
    return f'<div class="wide"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def cell(value: Any) -> str:
    """One value of a table."""
    if isinstance(value, (int, float)):
        return f"<td class=n>{value:,}</td>" if isinstance(value, int) else f"<td class=n>{value:.3f}</td>"
    text = ", ".join(value) or "-" if isinstance(value, list) else str(value)
    return f"<td{' class=text' * (len(text) > 40)}>{escape(text)}</td>"


def figures(*drawn: tuple[str, str]) -> str:
    """Pictures with their captions, beside each other where there is room."""
    parts = "".join(f"<figure><figcaption>{escape(name)}</figcaption>{svg}</figure>" for name, svg in drawn)
    return f'<div class="pictures">{parts}</div>'


def heat_table(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    """A square of counts, coloured by their share of the row, the diagonal otherwise than the rest."""
    rows = []
    for i, (label, row) in enumerate(zip(labels, counts, strict=True)):
        cells = []
        for j, n in enumerate(row):
            colour = "59,125,216" if i == j else "217,119,43"
            cells.append(f'<td style="background:rgba({colour},{0.75 * n / max(1, sum(row)):.2f})">{n or ""}</td>')
        rows.append(f"<tr><th>{escape(label)}</th>{''.join(cells)}</tr>")
    head = "".join(f"<th>{escape(label)}</th>" for label in labels)
    return (
        f'<div class="wide"><table class="confusion"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
