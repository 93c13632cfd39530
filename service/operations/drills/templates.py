"""The drills file: templates of false calls, and how often one is planted.

    every_h: 0
    drills:
      - id: unknown-recipient
        agent: support
        requested_by: support-bot
        tool: refund
        args: {order: A-7731, amount: 480, recipient: DE02120300000000202051}
        signs: ["No order A-7731 exists."]

Every fault is reported with its line; a program with a faulty file does not start.
"""

from functools import cache
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import OUR_NAMES
from sayso.core.records.terms import LONGEST_WAIT_S
from sayso.errors import InvalidInput, NotFound
from service.settings.plans import read_plan


class InvalidDrills(InvalidInput):
    """The drills file is invalid; correct it and start again."""


class DrillTemplate(BaseModel):
    """A false call that looks like a real one, and the signs by which a careful reviewer knows it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern="^[a-z][a-z0-9-]{0,39}$")
    agent: str = Field(min_length=1, max_length=200)
    requested_by: str = Field(min_length=1, max_length=64)
    title: str = Field(default="", max_length=200)
    tool: str = Field(min_length=1, max_length=200)
    description: str = Field(default="", max_length=2000)
    args: JsonObject
    rule: str | None = Field(default=None, max_length=100)
    reason: str | None = Field(default=None, max_length=2000)
    timeout_s: int | None = Field(default=None, ge=60, le=LONGEST_WAIT_S)
    signs: tuple[str, ...] = Field(min_length=1, max_length=20)


class DrillPlan(BaseModel):
    """The content of the file. Every `every_h` hours one drill is planted by chance; 0 plants none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    every_h: int = Field(default=0, ge=0, le=8760)
    drills: tuple[DrillTemplate, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        ids = [drill.id for drill in self.drills]
        if twice := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"two drills have the id {min(twice)}; rename one")
        if self.every_h and not self.drills:
            raise ValueError("every_h plants drills, but the file has none; add one or set every_h: 0")
        if ours := {drill.requested_by for drill in self.drills} & OUR_NAMES:
            raise ValueError(f"requested_by {min(ours)} is a name of Sayso's own; choose another")
        return self

    def find(self, template: str) -> DrillTemplate:
        """Return the template of that id; raises `NotFound`."""
        for drill in self.drills:
            if drill.id == template:
                return drill
        known = ", ".join(drill.id for drill in self.drills) or "none; set SAYSO_DRILLS to a file with some"
        raise NotFound(f"There is no drill {template[:80]!r}. Drills in the file: {known}.")


@cache
def drills_of(path: Path | None) -> DrillPlan:
    """Return the plan of a file, read once in each process."""
    return read_drills(path)


def read_drills(path: Path | None) -> DrillPlan:
    """Return the plan of a file, an empty one without a file; raises `InvalidDrills` with all faults."""
    return read_plan(path, DrillPlan, "SAYSO_DRILLS", InvalidDrills)
