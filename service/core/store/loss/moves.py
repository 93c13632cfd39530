"""The mark of a tenant that moves to another store: both copies have one, and a copy with one is not live."""

from typing import Literal

from pydantic import ValidationError

from sayso.core.records.base import Stored
from sayso.errors import Unavailable
from service.core.store.connection.connecting import text

State = Literal["draining", "held", "moved", "arriving", "ready"]
"""The old copy is `draining` while its workers end what they run, then `held`, then `moved`. The new copy is `arriving`
until the old one has moved, then `ready`: the first process that opens it removes the mark."""

_AFTER_S = 5
_MOVED_AFTER_S = 30
OPEN = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
"""Removes a mark that is still what its reader saw."""


class Move(Stored):
    """A move of a tenant, by the ids of the two stores."""

    id: str
    state: State
    source: str
    target: str
    at_ms: int

    def pack(self) -> str:
        """Return the stored text. A version of 1 stops all commits; while workers end their runs, it is 0."""
        return f"{int(self.state != 'draining')}|{self.model_dump_json()}"

    def describe(self, tenant: str) -> Unavailable:
        """Return the refusal of everything that would use this copy."""
        if self.state in ("moved", "ready"):
            return Unavailable(
                f"The tenant {tenant} was moved to another store, and this process still uses the old one. Nothing was "
                "changed. Ask the operator to change its redis_url as `sayso move-tenant` said, and to restart.",
                retry_after_s=_MOVED_AFTER_S,
            )
        if self.state == "arriving":
            return Unavailable(
                f"The tenant {tenant} has not arrived in this store: its move has not ended. Nothing was changed. Ask "
                "the operator to run `sayso move-tenant` again.",
                retry_after_s=_MOVED_AFTER_S,
            )
        return Unavailable(
            f"The tenant {tenant} is being moved to another store. Nothing was changed. Try again in a few seconds.",
            retry_after_s=_AFTER_S,
        )


def read_move(raw: bytes | str | None) -> Move | None:
    """Return the mark in a stored text; one that cannot be read stands for a copy that has moved."""
    if raw is None:
        return None
    try:
        return Move.model_validate_json(text(raw).partition("|")[2])
    except ValidationError:
        return Move(id="", state="moved", source="", target="", at_ms=0)
