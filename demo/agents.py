"""The demo's agent: an assistant with a bank account, a mailbox, a customer list and booking sites.

Its tools only record their effects (`demo/agents.py`). Tools that use the idempotency key are declared idempotent.
Transfers and mail are not.

A log of what the demo's tools did, to check which calls ran and how often.

Each effect is a JSON line in `effects.jsonl` in the home. The file stands for the bank, the mail server and the booking
sites. The demo and the tests compare it with the run's timeline.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, TextIO

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from sayso.adapters.chat_completions import ChatCompletionsModel
from sayso.runner.agents import Agent
from sayso.runner.tools import CallContext, tool
from service.core.settings import Settings, load

FILE = "effects.jsonl"


class Effect(BaseModel):
    """One effect of a tool, and the call that caused it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str
    args: dict[str, JsonValue]
    run_id: str
    call_id: str
    idempotency_key: str
    pid: int


class Effects:
    """The effects of one home. Any number of processes can append at once."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def record(self, effect: Effect) -> None:
        """Append the effect, even repeatedly. For tools that are not idempotent."""
        with self._opened() as file:
            _append(file, effect)

    def record_once(self, effect: Effect) -> None:
        """Append the effect unless its idempotency key is known. For idempotent tools."""
        with self._opened() as file:
            file.seek(0)
            if all(known.idempotency_key != effect.idempotency_key for known in _read(file)):
                _append(file, effect)

    def read(self) -> tuple[Effect, ...]:
        if not self._path.exists():
            return ()
        with self._opened() as file:
            file.seek(0)
            return tuple(_read(file))

    @contextmanager
    def _opened(self) -> Iterator[TextIO]:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._path.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def _append(file: TextIO, effect: Effect) -> None:
    file.write(json.dumps(effect.model_dump()) + "\n")
    file.flush()
    os.fsync(file.fileno())


def _read(file: TextIO) -> Iterator[Effect]:
    return (Effect.model_validate_json(line) for line in file)


INSTRUCTIONS = "You are a helpful assistant. Use the tools to fulfil the requests, then summarise what was done."

Date = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="A date in the format yyyy-mm-dd.")]
City = Annotated[str, Field(min_length=1, description="The city.")]
Address = Annotated[str, Field(min_length=3, description="An e-mail address.")]
ConcertAddOn = Literal["Backstage Pass", "VIP Seating", "Parking Pass"]
FestivalAddOn = Literal["Camping Pass", "VIP Seating", "Parking Pass"]


class UserInfo(BaseModel):
    """The fields of a customer that can be changed."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(default=None, description="The customer's updated name.")
    email: str | None = Field(default=None, description="The customer's updated e-mail address.")


@tool(name="bank_account.transfer")
def transfer(
    from_account: Annotated[str, Field(min_length=1, description="The account to transfer from.")],
    to_account: Annotated[str, Field(min_length=1, description="The account to transfer to.")],
    amount: Annotated[float, Field(gt=0, description="The amount to be transferred.")],
    call: CallContext,
) -> JsonValue:
    """Transfer a given amount from one account to another."""
    _record(call, "bank_account.transfer", from_account=from_account, to_account=to_account, amount=amount)
    return {"transferred": amount, "reference": _reference(call)}


@tool(name="bank_account.calculate_interest", idempotent=True)
def calculate_interest(
    principal: Annotated[float, Field(ge=0, description="The initial amount of money.")],
    rate: Annotated[float, Field(description="The annual interest rate as a decimal.")],
    time: Annotated[int, Field(ge=0, le=1000, description="The number of years the money is invested for.")],
    call: CallContext,
) -> JsonValue:
    """Calculate the amount of interest accrued over a given time period, compounded yearly."""
    _record_once(call, "bank_account.calculate_interest", principal=principal, rate=rate, time=time)
    return {"interest": round(principal * ((1 + rate) ** time - 1), 2)}


@tool
def send_email(
    to: Address,
    subject: Annotated[str, Field(description="The subject of the e-mail.")],
    body: Annotated[str, Field(description="The body of the e-mail.")],
    call: CallContext,
    cc: Annotated[str, Field(description="The address to carbon copy.")] = "",
    bcc: Annotated[str, Field(description="The address to blind carbon copy.")] = "",
) -> JsonValue:
    """Send an e-mail to the specified address."""
    _record(call, "send_email", to=to, subject=subject, body=body, cc=cc, bcc=bcc)
    return {"sent_to": to, "message_id": f"<{_reference(call)}@demo>"}


@tool(idempotent=True)
def update_user_info(
    user_id: Annotated[int, Field(description="The user id of the customer.")],
    update_info: Annotated[UserInfo, Field(description="The new information.")],
    call: CallContext,
    database: Annotated[str, Field(description="The database the information is stored in.")] = "CustomerInfo",
) -> JsonValue:
    """Update a customer's information in the database."""
    changed = update_info.model_dump(exclude_none=True)
    _record_once(call, "update_user_info", user_id=user_id, update_info=changed, database=database)
    return {"user_id": user_id, "updated": [*changed]}


@tool(name="hotel_booking.book", idempotent=True)
def book_hotel(
    hotel_name: Annotated[str, Field(min_length=1, description="The name of the hotel.")],
    location: City,
    check_in: Date,
    check_out: Date,
    adults: Annotated[int, Field(ge=1, description="The number of adults.")],
    children: Annotated[int, Field(ge=0, description="The number of children.")],
    call: CallContext,
) -> JsonValue:
    """Book a hotel room at the specified location for the specified number of adults and children."""
    stay: dict[str, JsonValue] = {"hotel_name": hotel_name, "check_in": check_in, "check_out": check_out}
    _record_once(call, "hotel_booking.book", **stay, location=location, adults=adults, children=children)
    return {"booked": hotel_name, "until": check_out, "reference": _reference(call)}


@tool(name="concert.book_ticket", idempotent=True)
def book_concert(
    artist: Annotated[str, Field(min_length=1, description="The name of the artist.")],
    location: City,
    call: CallContext,
    add_ons: Annotated[tuple[ConcertAddOn, ...], Field(description="Add-ons for the concert.")] = ("VIP Seating",),
) -> JsonValue:
    """Book a ticket for a concert, with add-ons such as a backstage pass."""
    _record_once(call, "concert.book_ticket", artist=artist, location=location, add_ons=[*add_ons])
    return {"booked": artist, "reference": _reference(call)}


@tool(name="festival.book_ticket", idempotent=True)
def book_festival(
    festival: Annotated[str, Field(min_length=1, description="The name of the festival.")],
    location: City,
    call: CallContext,
    add_ons: Annotated[tuple[FestivalAddOn, ...], Field(description="Add-ons for the festival.")] = ("Camping Pass",),
) -> JsonValue:
    """Book a ticket for a festival, with add-ons such as camping."""
    _record_once(call, "festival.book_ticket", festival=festival, location=location, add_ons=[*add_ons])
    return {"booked": festival, "reference": _reference(call)}


def _record(call: CallContext, tool_name: str, **args: JsonValue) -> None:
    Effects(load().home).record(_effect(call, tool_name, args))


def _record_once(call: CallContext, tool_name: str, **args: JsonValue) -> None:
    Effects(load().home).record_once(_effect(call, tool_name, args))


def _effect(call: CallContext, tool_name: str, args: dict[str, JsonValue]) -> Effect:
    key = call.idempotency_key
    return Effect(
        tool=tool_name, args=args, run_id=call.run_id, call_id=call.call_id, idempotency_key=key, pid=os.getpid()
    )


def _reference(call: CallContext) -> str:
    """Return the same reference for the same key, like a booking site with idempotency keys."""
    return sha256(call.idempotency_key.encode()).hexdigest()[:10].upper()


def _model(settings: Settings) -> ChatCompletionsModel:
    return ChatCompletionsModel(
        base_url=settings.model_url,
        model=settings.model_name,
        api_key=settings.model_key.get_secret_value() if settings.model_key else None,
    )


support = Agent(
    name="demo",
    instructions=INSTRUCTIONS,
    tools=(transfer, calculate_interest, send_email, update_user_info, book_hotel, book_concert, book_festival),
    model=_model(load()),
)
