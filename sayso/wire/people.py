"""Views of groups, contacts, preferences, absences and saved views, and of who is asked when."""

from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sayso.core.calendar import Hours, TimeZone, WorkingHours
from sayso.wire.models import Timestamp, View


class GroupView(View):
    """Reviewers under one name, which rules write as `group:<name>`."""

    name: str
    members: tuple[str, ...]
    editors: tuple[str, ...]
    working_hours: WorkingHours | None
    created_at: Timestamp = Field(validation_alias="created_at_ms")


class GroupList(View):
    """All groups by name."""

    groups: list[GroupView]


class RoleView(View):
    """A role: what it lets a person do, and which items they decide by it. Empty lists limit nothing."""

    name: str
    permissions: tuple[str, ...]
    tools: tuple[str, ...] = Field(default=(), description="Patterns of the tools whose calls they decide.")
    agents: tuple[str, ...] = Field(default=(), description="Patterns of the agents whose calls they decide.")
    groups: tuple[str, ...] = Field(default=(), description="Groups; they decide what one of these is asked.")
    built_in: bool = False


class RoleList(View):
    """The built-in roles, then those that admins made, by name."""

    roles: list[RoleView]


class EmergencyView(View):
    """The emergency rights of one person."""

    person: str
    reason: str
    since: Timestamp = Field(validation_alias="at_ms")
    until: Timestamp = Field(validation_alias="until_ms")
    informed: tuple[str, ...] = Field(description="Who was informed at once.")


class EmergencyList(View):
    """The emergency rights that last, the earliest first."""

    emergencies: list[EmergencyView]


class ContactView(View):
    """An address in a channel that is linked to a person."""

    id: str
    channel: str
    address: str
    label: str = Field(description="What the channel calls the address.")
    linked_at: Timestamp = Field(validation_alias="linked_at_ms")


class ContactList(View):
    """A person's contacts, the oldest first."""

    contacts: list[ContactView]


class CodeView(View):
    """A code that links one address to you, once. Send it to Sayso in the channel."""

    code: str
    channel: str
    expires_at: Timestamp = Field(validation_alias="expires_at_ms")


class AbsenceView(View):
    """A time in which a person is absent, and who decides for them then."""

    id: str
    person: str
    starts_at: Timestamp = Field(validation_alias="from_ms")
    ends_at: Timestamp = Field(validation_alias="to_ms")
    delegate: str | None


class AbsenceList(View):
    """Absences by start."""

    absences: list[AbsenceView]


class Preferences(View):
    """How a person is notified."""

    model_config = ConfigDict(extra="forbid", defer_build=False)  # it is a body, and stored, too

    time_zone: TimeZone = Field(default="UTC", examples=["Europe/Berlin"])
    quiet_hours: Hours | None = Field(default=None, description="When only urgent items interrupt.")
    working_hours: WorkingHours | None = Field(default=None, description="Replaces the hours of the person's groups.")
    digest: Literal["off", "hourly", "daily"] = "off"
    cap_per_hour: int | None = Field(default=None, ge=1, le=1000, description="Most interruptions an hour.")
    language: str = Field(default="en", pattern=r"^[a-z]{2,3}(-[A-Z]{2})?$", examples=["en"])

    @model_validator(mode="after")
    def _check_quiet_hours(self) -> Self:
        if self.quiet_hours is not None and self.quiet_hours.is_always:
            raise ValueError("quiet hours over the whole week leave no time to notify; omit a weekday, or shorten them")
        return self


class AskedView(View):
    """A person who is asked in a step, over a channel."""

    step: int = Field(description="0 for the rule's reviewers, then the steps of escalate.")
    at: Timestamp = Field(validation_alias="at_ms")
    reviewer: str = Field(description="The name or group in the rule; empty for everybody.")
    person: str = Field(description="A reviewer or their delegate; empty for the channel's own destination.")
    channel: str
    sent_at: Timestamp | None = Field(validation_alias="sent_at_ms", description="Null if no card is sent.")
    reason: str


class WhoView(View):
    """Everybody who is asked, and the effect of the deadline."""

    asked: list[AskedView]
    deadline_at: Timestamp
    end: str


class LikelyView(View):
    """A person who may decide, and is present."""

    name: str
    share: float = Field(description="Their share of the decisions that those present took of such items.")
    at_work_from: Timestamp = Field(description="Now, or when their hours begin again.")


class ForecastView(View):
    """When an item will probably be decided. It rests on how long items waited in the last 30 days."""

    item_id: str
    tool: str
    measured: int = Field(description="Of how many items the waits are known; below 10 nothing else is said.")
    of_tool: bool = Field(description="Whether they are of this tool, not of all.")
    overdue: bool = Field(description="Whether it has waited longer than nearly all of them.")
    half_by: Timestamp | None = Field(description="In one case of two it is decided before; null if unknown.")
    most_by: Timestamp | None = Field(description="In nine cases of ten it is decided before; null if unknown.")
    deadline_at: Timestamp
    people: list[LikelyView] | None = Field(description="Who probably decides, at most three; null for agents.")


class ForecastPage(View):
    """The forecast of the open items of a suspension."""

    items: list[ForecastView]


class SavedViewView(View):
    """A search of the inbox that you saved under a name."""

    id: str
    name: str
    search: str


class SavedViewList(View):
    """Saved views, sorted by name."""

    views: list[SavedViewView]
