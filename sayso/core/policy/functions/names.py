"""The lists and constants of a rules file by name."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from sayso.core.canonical_json import digest_json

MOST_ENTRY_CHARS = 1_000

Scalar = Annotated[str, Field(max_length=MOST_ENTRY_CHARS)] | bool | int | float
"""An entry of a list, or a constant."""

Stamp = tuple[int, int, int] | None
"""The time of change, size and inode of a file; None for one that cannot be read."""


class Names(NamedTuple):
    """The lists and constants that conditions may read."""

    lists: Mapping[str, tuple[Scalar, ...]]
    constants: Mapping[str, Scalar]

    def digest(self) -> dict[str, Any]:
        """Return what the version of the rules covers of the names; nothing without any."""
        lists = {name: digest_json(entries) for name, entries in self.lists.items()}
        return ({"lists": lists} if lists else {}) | ({"constants": dict(self.constants)} if self.constants else {})


NO_NAMES = Names({}, {})
