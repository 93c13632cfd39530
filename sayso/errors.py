"""The errors of Sayso. The first line of a class's docstring is its default message; facts are attributes."""

from typing import Literal


class SaysoError(Exception):
    """Sayso failed."""

    def __init__(self, message: str | None = None, **facts: object) -> None:
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])
        self.facts = facts

    @property
    def message(self) -> str:
        return str(self.args[0])


class InvalidInput(SaysoError):
    """The request is invalid; correct it and send it again."""


class InvalidJson(InvalidInput):
    """The body is not strict JSON; send one UTF-8 JSON value without duplicate keys, NaN or lone surrogates."""


class InvalidHeader(InvalidInput):
    """A header is invalid; correct it and send the request again."""


class TooLarge(InvalidInput):
    """The body is over a limit; send less."""


class UnknownName(InvalidInput):
    """No tool or agent of that name was seen here; correct it, or confirm the name."""


class UnknownHost(InvalidInput):
    """The service does not serve the host that the request names; use its public address."""


class UnsupportedMediaType(InvalidInput):
    """The body has an unsupported media type; send JSON as Content-Type: application/json."""


class NotAuthenticated(SaysoError):
    """The request has no valid credential; sign in, or send a key as 'Authorization: Bearer …'."""


class InvalidSignature(NotAuthenticated):
    """The signature does not verify; sign 'id.timestamp.body' with a current secret and a clock within five minutes."""


class CodeRequired(NotAuthenticated):
    """This account needs a code of its authenticator app, too; send it as `code`, with the name and the password."""


class WrongCode(NotAuthenticated):
    """This code is not right, or was used before; wait for the app's next one and type that."""


class NotAllowed(SaysoError):
    """This credential does not allow that; ask an admin for the role it needs."""


class SelfApproval(NotAllowed):
    """The owner of a run cannot decide its calls; ask another reviewer."""


class InvalidPersonToken(NotAllowed):
    """The token for the person is not valid; get a new one from its issuer, or send none."""


class StepUpRequired(NotAllowed):
    """This approval needs a passkey, or a code of an app. Approve on the item's page, or send the code as `code`."""


class WrongNumber(NotAllowed):
    """The number is not the one that the requester sees; ask them for it."""


class PolicyForbids(NotAllowed):
    """The rules deny the call with these final arguments; change them, or deny the item."""


class NotFound(SaysoError):
    """Nothing with that id is visible to this credential."""


class Conflict(SaysoError):
    """The record has changed; read it again."""


class AlreadyDecided(Conflict):
    """This item is already decided; nothing was changed."""


class DeadlinePassed(Conflict):
    """The deadline has passed and the fallback decides; nothing was changed."""


class StaleDigest(Conflict):
    """The item has changed since you read it; read it again and send its current digest."""


class IdempotencyConflict(Conflict):
    """This Idempotency-Key was used for a different request; repeat that one, or send this one with another key."""


class IllegalTransition(Conflict):
    """The suspension cannot take this step from the status it is in."""


class AlreadyRedeemed(Conflict):
    """The permit for this call was already redeemed; the call may have run and must not start again."""


class Withdrawn(Conflict):
    """The basis of the approval no longer holds; ask again."""


class LeaseHeld(Conflict):
    """Another worker has leased this run."""


class Frozen(Conflict):
    """An admin has frozen this; nothing new starts until it is unfrozen."""


class ClockInDoubt(Frozen):
    """The store's clock jumped; a deadline is in doubt until an admin confirms the clock."""


class OverLimit(Conflict):
    """The calls that started meanwhile have reached a limit of the rules; the call has to be judged again."""


class StaleAttempt(Conflict):
    """This worker's lease on the run is over; another attempt has started."""


class TooManyRequests(SaysoError):
    """Too many attempts; wait a minute and try again."""


class Unreadable(SaysoError):
    """The stored record cannot be read; ask the operator to run `sayso doctor`."""


class Altered(Unreadable):
    """The stored record was altered beside Sayso, so nothing of it counts; ask the operator to run `sayso doctor`."""


class ModelError(SaysoError):
    """The model gave no usable answer; see the message, then start the run again."""


class FrameworkFault(SaysoError):
    """The agent's framework cannot continue this run; correct the agent, then start the run again."""


class Unavailable(SaysoError):
    """The store cannot be reached; try again in a moment with the same Idempotency-Key."""


class Unreachable(Unavailable):
    """No desk answers at this address; start it, or correct SAYSO_URL."""


class Suspended(SaysoError):
    """The call waits for a reviewer; repeat it later with the same key."""

    def __init__(
        self, message: str | None = None, *, suspension_id: str = "", tool: str = "", key: str = "", **facts: object
    ) -> None:
        super().__init__(message, suspension_id=suspension_id, tool=tool, key=key, **facts)
        self.suspension_id = suspension_id
        self.tool = tool
        self.key = key


class Denied(SaysoError):
    """The call was denied; continue without it."""

    @property
    def decided_by(self) -> Literal["person", "rule", "time"] | None:
        """Who said no: a person, a rule, or the deadline of an item that nobody decided; None for a cancelled run."""
        return _DECIDERS.get(str(self.facts.get("by_kind", "")))

    @property
    def may_ask_again(self) -> bool:
        """Whether the same call can be asked about again: nobody decided, and it has not started."""
        return self.decided_by == "time" and not self.facts.get("may_have_run")

    @property
    def for_model(self) -> str:
        """What a model should read instead of the call's result."""
        ran = "may have run" if self.facts.get("may_have_run") else "did not run"
        text = f"{self.message.rstrip().rstrip('.')}. It {ran}."
        return f"{text} Ask again later if it still matters." if self.may_ask_again else f"{text} Continue without it."


class ChangesRequested(Denied):
    """A reviewer wants another version of the call: change it as the message says, and ask again with a new key.

    `paths` names the arguments to change, if the reviewer marked some.
    """

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(str(self.facts.get("paths", "")).split())

    @property
    def item(self) -> str:
        """The item of this version, to give as `revises` with the next one."""
        return f"{self.facts.get('suspension_id', '')}/{self.facts.get('item_id', '')}"

    @property
    def for_model(self) -> str:
        """What a model should read instead of the call's result."""
        return f"{self.message.rstrip().rstrip('.')}. It did not run."


_DECIDERS: dict[str, Literal["person", "rule", "time"]] = {
    "human": "person",
    "agent": "person",
    "policy": "rule",
    "worker": "rule",
    "timeout": "time",
}


class CallFailed(SaysoError):
    """This call ran before and failed; check what it has done so far."""


class InDoubt(SaysoError):
    """The call was started before and may have run; check the system it changes."""
