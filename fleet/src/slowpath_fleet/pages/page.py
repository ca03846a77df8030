"""A page that stands alone: no script, no request, its only style allowed by hash. Everything from data is escaped."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from html import escape
from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #c62828; --quiet: #777; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .7rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
p.quiet { color: var(--quiet); } code { background: #8882; padding: .1rem .3rem; }
svg { max-width: 100%; height: auto; } svg text { fill: currentColor; font: 12px system-ui, sans-serif; }
""".strip()


@dataclass(frozen=True, slots=True)
class Cell:
    """Text of a cell, and what it means: `good`, `bad` or nothing."""

    text: str
    meaning: str = ""


def heading(text: str) -> str:
    """A heading of a part."""
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str, quiet: bool = False) -> str:
    """A sentence or two."""
    return f"<p{' class=quiet' if quiet else ''}>{escape(text)}</p>"


def code(text: str) -> str:
    """A command."""
    return f"<p><code>{escape(text)}</code></p>"


def table(head: list[str], rows: list[list[Cell | str]]) -> str:
    """A table whose first column is text."""
    top = "".join(f"<th scope=col>{escape(one)}</th>" for one in head)
    lines = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>'


def cell(one: Cell | str) -> str:
    """A cell of a table."""
    if isinstance(one, str):
        return f"<td>{escape(one)}</td>"
    kind = one.meaning if one.meaning in ("good", "bad") else ""
    return f"<td{f' class={kind}' if kind else ''}>{escape(one.text)}</td>"


def page(title: str, parts: list[str]) -> str:
    """The whole document; `parts` are results of the functions above."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
