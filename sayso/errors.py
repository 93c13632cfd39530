"""Say what went wrong, with facts, and what to do about it.

One tree. The first line of a class's docstring is its default sentence; facts are attributes; the HTTP status comes
from one table (`sayso/problems.py`).

    SaysoError
    ├── InvalidInput            what came in cannot be taken as it is
    │   ├── InvalidJson         not the one strict JSON we read
    │   ├── InvalidHeader       a header is malformed or sent twice
    │   ├── TooLarge            over a limit of bytes, depth or nodes
    │   ├── UnknownName         no tool or agent of that name was ever seen
    │   ├── UnknownHost         the request names a host that is not ours
    │   └── UnsupportedMediaType  a body that is not JSON
    ├── NotAuthenticated        no credential, or one that does not hold
    │   └── InvalidSignature    a signed message that does not verify
    ├── NotAllowed              known, but not for you
    │   ├── SelfApproval        who asks cannot decide
    │   └── PolicyForbids       the rules deny the final arguments
    ├── NotFound                not there, or not yours: nobody can tell which
    ├── Conflict                the record has moved on
    │   ├── AlreadyDecided      somebody was first
    │   ├── DeadlinePassed      too late; the fallback decides
    │   ├── StaleDigest         not what the reviewer saw
    │   ├── IdempotencyConflict one key, two different requests
    │   ├── IllegalTransition   no such step from this status
    │   ├── AlreadyRedeemed     the leave to run this call was spent before
    │   ├── Withdrawn           what an approval rested on no longer holds
    │   ├── LeaseHeld           another worker drives this run
    │   ├── Frozen              an admin has stopped this
    │   │   └── ClockInDoubt    nobody can say whether a deadline has passed
    │   └── StaleAttempt        this worker's lease is over
    ├── TooManyRequests         slow down
    ├── Unreadable              a stored record that is damaged, altered or of a later version
    ├── ModelError              the model gave no answer that can be used
    ├── Suspended               the call waits for a person; come back with its key
    ├── Denied                  the call is not to run
    ├── CallFailed              the call ran before, and failed then
    ├── InDoubt                 the call was begun before, and may have run
    └── Unavailable             the store cannot be reached; nothing was changed
        └── Unreachable         no desk answers at this address
"""


class SaysoError(Exception):
    """Something went wrong in Sayso."""

    def __init__(self, message: str | None = None, **facts: object) -> None:
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])
        self.facts = facts

    @property
    def message(self) -> str:
        """The sentence to show."""
        return str(self.args[0])


class InvalidInput(SaysoError):
    """This cannot be taken as it is; correct it and send it again."""


class InvalidJson(InvalidInput):
    """The body is not strict JSON; send one UTF-8 JSON value without duplicate keys, NaN or lone surrogates."""


class InvalidHeader(InvalidInput):
    """A header is invalid; correct it and send the request again."""


class TooLarge(InvalidInput):
    """The body is over a limit; send less."""


class UnknownName(InvalidInput):
    """No tool or agent of that name was seen here; correct it, or confirm that you mean it."""


class UnknownHost(InvalidInput):
    """The service does not serve the host that the request names; use its public address."""


class UnsupportedMediaType(InvalidInput):
    """The body has an unsupported media type; send JSON as Content-Type: application/json."""


class NotAuthenticated(SaysoError):
    """No valid credential came with this; sign in, or send a key as 'Authorization: Bearer …'."""


class InvalidSignature(NotAuthenticated):
    """The signature does not verify; sign 'id.timestamp.body' with a current secret and a clock within five minutes."""


class NotAllowed(SaysoError):
    """This credential may not do that; ask an admin for the role it takes."""


class SelfApproval(NotAllowed):
    """Whoever asks for a call cannot decide it; another reviewer has to."""


class PolicyForbids(NotAllowed):
    """The rules deny the call with these final arguments; change them, or deny the item."""


class NotFound(SaysoError):
    """There is nothing here under that id for this credential."""


class Conflict(SaysoError):
    """The record has moved on; read it again."""


class AlreadyDecided(Conflict):
    """This item is already decided; nothing was changed."""


class DeadlinePassed(Conflict):
    """The deadline has passed and the fallback decides; nothing was changed."""


class StaleDigest(Conflict):
    """What you decided on is not what is asked now; read the item again and send its current digest."""


class IdempotencyConflict(Conflict):
    """This Idempotency-Key was used for a different request; send a new key for a new request."""


class IllegalTransition(Conflict):
    """The suspension cannot take this step from the status it is in."""


class AlreadyRedeemed(Conflict):
    """The leave to run this call was already spent; the call may have run and is not started again."""


class Withdrawn(Conflict):
    """What the approval rested on no longer holds; ask again."""


class LeaseHeld(Conflict):
    """Another worker is driving this run."""


class Frozen(Conflict):
    """An admin has frozen this; nothing new starts until that is lifted."""


class ClockInDoubt(Frozen):
    """The store's clock jumped; until an admin says whether it is right nobody knows if this is still in time."""


class StaleAttempt(Conflict):
    """This worker's lease on the run is over; another attempt has taken it up."""


class TooManyRequests(SaysoError):
    """Too many attempts; wait a minute and try again."""


class Unreadable(SaysoError):
    """The stored record cannot be read, so nothing about it can be decided; ask the operator to run `sayso doctor`."""


class ModelError(SaysoError):
    """The model gave no answer that can be used; see the message, then start the run again."""


class Unavailable(SaysoError):
    """The store cannot be reached just now; try again in a moment with the same Idempotency-Key."""


class Unreachable(Unavailable):
    """No desk answers at this address; start it, or set SAYSO_URL to where it is."""


class Suspended(SaysoError):
    """The call waits for a person; make it again later with the same key, and it goes on from there."""

    def __init__(
        self, message: str | None = None, *, suspension_id: str = "", tool: str = "", key: str = "", **facts: object
    ) -> None:
        super().__init__(message, suspension_id=suspension_id, tool=tool, key=key, **facts)
        self.suspension_id = suspension_id
        self.tool = tool
        self.key = key


class Denied(SaysoError):
    """The call is not to run; do without it."""


class CallFailed(SaysoError):
    """This very call ran before and failed; make it with a new key to try again."""


class InDoubt(SaysoError):
    """The call was begun before and nobody knows whether it ran; look it up where it would show."""
