"""Rows of CSV files that no spreadsheet evaluates."""

import csv
import io
import json
import re
from collections.abc import Iterable

from pydantic import JsonValue

from sayso.core.text.invisible import write_signs

_FORMULA = "=+-@|;\uff1d\uff0b\uff0d\uff20"

_LATER = re.compile(r"([;\t\r\n\v\f\x85\u2028\u2029][\s\"]*)([=+\-@\uff1d\uff0b\uff0d\uff20])?")
"""Where a spreadsheet separates cells by `;`, as in many countries, by tabs or lines; and a formula that begins there.

It also matches without a formula, so that a text of many line breaks is searched once.
"""


def write_row(values: Iterable[JsonValue]) -> str:
    """Return a line with a cell for each value. Hidden characters have signs; what could begin a formula, a quote."""
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow(map(_write_cell, values))
    return line.getvalue()


def _write_cell(value: JsonValue) -> str:
    if value is None:
        return ""
    text = write_signs(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    text = _LATER.sub(lambda match: f"{match[1]}'{match[2]}" if match[2] else match[1], text)
    return f"'{text}" if (text.lstrip()[:1] in _FORMULA and text.strip()) or text[:1] in "\t\n" else text
