"""Request bodies and views of the protocol, and JSON as it was written.

Unknown, null and repeated members are refused. 1, 1.0 and 1e0 differ, because clients compare what they get with what
they sent.
"""

import json
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sayso.core.canonical_json import JsonObject
from sayso.core.records.tools import NAME_CHARACTERS, ToolName
from sayso.errors import InvalidJson
from service.core.store.instances import Instance, Registration
from service.edge.http.openapi import drop_null

DURATION = r"^[1-9][0-9]*(s|m|h)$"
UUID_FORM = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
TIMESTAMP = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def read_duration(text: str) -> int:
    """Return the seconds of a duration such as `10m`."""
    return int(text[:-1]) * _SECONDS[text[-1]]


def drop_default(schema: dict[str, Any]) -> None:
    """Remove the default: it must not be sent."""
    schema.pop("default", None)


def _drop_null(schema: dict[str, Any]) -> None:
    """Remove null from the schema: an optional member may be absent, but not null."""
    drop_default(schema)
    drop_null(schema)


_ABSENT: Any = Field(default=None, json_schema_extra=_drop_null)
Name = Annotated[str, Field(min_length=1, max_length=200)]
Note = Annotated[str, Field(min_length=1, max_length=2000)]
Timestamp = Annotated[str, Field(pattern=TIMESTAMP, examples=["2026-11-21T12:00:00.000Z"])]
Uuid = Annotated[str, Field(pattern=UUID_FORM, examples=["019aa4a2-f1e2-c3d4-e5f6-0718293a4b5c"])]


class ProtocolModel(BaseModel):
    """Base class for objects of the protocol."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Submitted(ProtocolModel):
    """Base class for request bodies. Optional members may be absent, but not null."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_null(cls, data: object) -> object:
        if isinstance(data, dict):
            for name, field in cls.model_fields.items():
                may_be_absent = not field.is_required() and name not in cls._nullable()
                if may_be_absent and name in data and data[name] is None:
                    raise ValueError(f"{name!r} is null; leave it out")
        return data

    @classmethod
    def _nullable(cls) -> tuple[str, ...]:
        return ()


class Delivery(Submitted):
    """The receiver of an instance's messages."""

    type: Literal["webhook"]
    url: str = Field(min_length=1, max_length=2000, examples=["https://agent.example.com/aap/events"])
    registration_id: str = Field(
        pattern=r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
        examples=["6f1d3b62-2c8a-4d3c-9a86-0b6f3c2d1e4f"],
    )
    signing_secret: str = Field(
        pattern=r"^whsec_[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$",
        description="`whsec_` and 32 random bytes in base64. It is never returned.",
        examples=["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="],
    )

    def register(self) -> Registration:
        return Registration(url=self.url, registration_id=self.registration_id, signing_secret=self.signing_secret)


class NewInstance(Submitted):
    """An instance to create."""

    instance_name: Name | None = _ABSENT
    delivery: Delivery | None = _ABSENT


class InstanceChange(Submitted):
    """Changes of an instance. A null delivery removes the receiver."""

    instance_name: Name | None = _ABSENT
    delivery: Delivery | None = Field(default=None, json_schema_extra=drop_default)

    @classmethod
    def _nullable(cls) -> tuple[str, ...]:
        return ("delivery",)


class NewRequest(Submitted):
    """A call that needs approval."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [{"tool": "refund", "arguments": {"order": "A-1", "amount": 20.5}, "timeout": "10m"}]
        },
    )

    tool: ToolName = Field(description=f"Rules and freezes use this name; it has {NAME_CHARACTERS}.")
    server: Name | None = _ABSENT
    arguments: JsonObject = Field(description="The exact arguments of the call.")
    timeout: str = Field(
        max_length=20, pattern=DURATION, description="How long the agent waits; rules may shorten it.", examples=["10m"]
    )
    agent_reasoning: Annotated[str, Field(max_length=20_000)] | None = _ABSENT
    context: JsonObject | None = _ABSENT


class NewOutcome(Submitted):
    """The outcome of a consumed call."""

    status: Literal["succeeded", "failed"]
    note: Note | None = _ABSENT


class DeliveryView(ProtocolModel):
    """The receiver of an instance, without its secret."""

    type: Literal["webhook"] = "webhook"
    url: str
    registration_id: str


class InstanceView(ProtocolModel):
    """An instance."""

    id: Uuid
    name: str
    delivery: DeliveryView | None = _ABSENT

    @classmethod
    def of(cls, instance: Instance) -> Self:
        saved = instance.delivery
        delivery = DeliveryView(url=saved.url, registration_id=saved.registration_id) if saved else None
        return cls(id=instance.id, name=instance.name, delivery=delivery)


class Credential(ProtocolModel):
    """The credential of an instance."""

    token: str
    expires_at: Timestamp | None = _ABSENT


class ProvisionedInstance(ProtocolModel):
    """A new instance and its credential."""

    instance: InstanceView
    credential: Credential


class DecisionView(ProtocolModel):
    """The outcome of a request. Only an approval has `expires_at`, which never changes."""

    status: Literal["approved", "denied", "expired", "cancelled"]
    note: str | None = _ABSENT
    decided_at: Timestamp
    expires_at: Timestamp | None = _ABSENT


class OutcomeView(ProtocolModel):
    """The outcome of the call."""

    status: Literal["succeeded", "failed"]
    note: str | None = _ABSENT
    reported_at: Timestamp


class ConsumptionView(ProtocolModel):
    """The consumption of an approval, and the reported outcome."""

    consumed_at: Timestamp
    outcome: OutcomeView | None = _ABSENT


class RequestView(ProtocolModel):
    """A request: the submitted members, unchanged, and its status."""

    id: Uuid
    tool: str
    server: str | None = _ABSENT
    arguments: JsonObject
    timeout: str
    agent_reasoning: str | None = _ABSENT
    context: JsonObject | None = _ABSENT
    status: Literal["pending", "approved", "denied", "expired", "cancelled"]
    created_at: Timestamp
    deadline_at: Timestamp
    decision: DecisionView | None = _ABSENT
    consumption: ConsumptionView | None = _ABSENT


_READER = json.JSONDecoder()


class _Number(str):
    __slots__ = ()


def split_members(raw: bytes) -> dict[str, str]:
    """Return the members of a JSON object with the original text of each value. `raw` must be valid."""
    text = raw.decode()
    members: dict[str, str] = {}
    offset = _skip(text, text.index("{") + 1)
    while text[offset] != "}":
        name, offset = _READER.raw_decode(text, offset)
        begin = _skip(text, text.index(":", offset) + 1)
        _, offset = _READER.raw_decode(text, begin)
        members[name] = text[begin:offset]
        offset = _skip(text, offset)
        if text[offset] == ",":
            offset = _skip(text, offset + 1)
    return members


def write_exactly(raw: bytes | str) -> str:
    """Return JSON with sorted keys and the numbers' own text; raises `InvalidJson` beyond a double's precision."""
    return _write(json.loads(raw, parse_float=_read_float, parse_int=_Number))


def _read_float(text: str) -> _Number:
    try:
        exact = Decimal(text) == Decimal(repr(float(text)))
    except ArithmeticError:
        exact = False
    if not exact:
        raise InvalidJson(f"{text[:60]} has more digits than can be shown exactly. Send it as a string.")
    return _Number(text)


def _write(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_write(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    return str(value) if isinstance(value, _Number) else json.dumps(value)


def _skip(text: str, offset: int) -> int:
    while text[offset] in " \t\n\r":
        offset += 1
    return offset
