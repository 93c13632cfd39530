"""Tables that readers sort by a link in a heading, so that it works without scripts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
Keys = Mapping[str, Callable[[T], Any]]
"""The columns of a table, each with the value that it is sorted by. A row where that is None comes last."""


@dataclass(frozen=True)
class Sorting:
    """The column by which a table is sorted, empty for its own order, and the direction."""

    column: str = ""
    descending: bool = False

    def __bool__(self) -> bool:
        return bool(self.column)

    @property
    def written(self) -> str:
        """The value of a link's parameter."""
        return f"-{self.column}" if self.descending else self.column

    def find_next(self, column: str, first: str = "") -> str:
        """Return the parameter that sorts by a column: first downwards with `-`, and in the other direction after."""
        if self.column != column:
            return f"{first}{column}"
        return column if self.descending else f"-{column}"

    def sort(self, rows: Iterable[T], keys: Keys[T]) -> list[T]:
        """Return the rows in this order; equal ones keep theirs."""
        if not self:
            return [*rows]
        valued = [(keys[self.column](row), row) for row in rows]
        known = [pair for pair in valued if pair[0] is not None]
        known.sort(key=lambda pair: pair[0], reverse=self.descending)
        return [row for _, row in known] + [row for value, row in valued if value is None]


UNSORTED = Sorting()


def read_sorting(text: str, columns: Iterable[str]) -> Sorting:
    """Return the sorting that a link names; an unknown column sorts nothing."""
    column = text.removeprefix("-")
    return Sorting(column, text.startswith("-")) if column in columns else UNSORTED
