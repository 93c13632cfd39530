"""Frozen model for an earlier denial of the same call."""

from sayso.records.base import Immutable


class EarlierDenial(Immutable):
    """A person's denial of a call, with the run and thread in which the agent requested it."""

    by: str
    at_ms: int
    message: str = ""
    suspension_id: str = ""
    item_id: str = ""
    run_id: str
    thread_id: str | None = None
    agent: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """The suspension and the item that was denied."""
        return self.suspension_id, self.item_id
