"""Requests for invitations and views of them: people outside the desk who may decide one item."""

from pydantic import Field

from sayso.core.records.decisions import DIGEST_PATTERN
from sayso.core.records.proofs import LONGEST_ADDRESS, LONGEST_NOTE
from sayso.core.transitions.outsiders import LONGEST_MS, SHORTEST_MS, InvitationState
from sayso.wire.models import RequestBody, Timestamp, View

DAY_S = 86_400


class InviteRequest(RequestBody):
    """Whom to invite, and to which version of the item."""

    address: str = Field(min_length=3, max_length=LONGEST_ADDRESS, description="A mail address that the rule allows.")
    digest: str = Field(pattern=DIGEST_PATTERN, description="The digest of the item as you saw it.")
    note: str = Field(default="", max_length=LONGEST_NOTE, description="What you write to them; it stands in the mail.")
    expires_in_s: int = Field(
        default=DAY_S,
        ge=SHORTEST_MS // 1000,
        le=LONGEST_MS // 1000,
        description="Until when they may decide; the deadline of the item ends it, too.",
    )


class InvitationView(View):
    """An invitation of somebody outside to decide an item."""

    id: str
    address: str
    note: str
    by: str = Field(description="The reviewer who invited.")
    at: Timestamp = Field(validation_alias="at_ms")
    until: Timestamp = Field(validation_alias="until_ms")
    digest: str = Field(description="The version of the item that it lets them decide.")
    state: InvitationState = Field(description="`open`, or why it lets them decide nothing.")
    codes: int = Field(description="How many codes were mailed.")
    tries: int = Field(description="How many wrong codes were entered; 5 end it.")


class InvitationPage(View):
    """The invitations to an item, the first first."""

    invitations: list[InvitationView]
