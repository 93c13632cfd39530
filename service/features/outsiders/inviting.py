"""What reviewers and the people whom they invite do: invite, mail a code, enter it, decide."""

from typing import NamedTuple

from sayso.core.clock import new_code, new_id, new_secret
from sayso.core.records.decisions import Actor
from sayso.core.records.items import Item
from sayso.core.records.proofs import Invitation
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.freezing import find_freeze
from sayso.core.transitions.outsiders import InvitationState, find_by_token, find_state, is_proven
from sayso.errors import Conflict, InvalidInput, NotFound
from sayso.wire.outsiders import InviteRequest
from service.channels.kinds import Channels
from service.channels.mail import MailChannel, check_address
from service.core.store.attempts import Allowance
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from service.features.outsiders.mails import derive_token, hash_secret, mail_code

INVITATIONS = Allowance("outsider-invitations", most=20, window_s=3600)  # that one reviewer makes
MAILS = Allowance("outsider-mails", most=10, window_s=3600)  # that one address outside gets
CODE_DIGITS = 6
FROZEN = "frozen"


class Opened(NamedTuple):
    """What a link leads to, as of `now_ms`. `state` is that of its invitation, or `frozen`."""

    record: SuspensionRecord
    item: Item
    invitation: Invitation
    state: str
    now_ms: int


class Link(NamedTuple):
    """The parts of a link."""

    suspension_id: str
    item_id: str
    token: str


class Outsiders:
    """The invitations of one tenant."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring, self._desk = wiring, wiring.desk

    async def invite(
        self, channels: Channels, place: tuple[str, str], request: InviteRequest, by: Actor, key: str | None = None
    ) -> Saved:
        """Invite an address to decide an item; raises `InvalidInput`, `Conflict`, `TooManyRequests` or as the desk."""
        suspension_id, item_id = place
        saved = await self._desk.suspensions.read(suspension_id)
        item = find_item(saved.record, item_id)
        typed = check_address(request.address.strip())
        address = typed.lower()
        channel = choose_channel(channels, item)
        if channel is None:
            raise InvalidInput("No mail channel is configured, so nobody outside can be invited. Ask the operator.")
        if person := await self._find_person(channels, typed, address):
            raise Conflict(f"{address} belongs to {person}, who decides signed in. Ask them on the desk.")
        invitation = Invitation(
            id=new_id("inv"),
            address=address,
            note=request.note.strip(),
            by=by.id,
            at_ms=saved.now_ms,
            until_ms=saved.now_ms + request.expires_in_s * 1000,
            digest=request.digest,
            channel=channel.name,
            nonce=new_secret(),
            token_hash="",
        )
        token = derive_token(self._wiring, suspension_id, item_id, invitation)
        invitation = invitation.model_copy(update={"token_hash": hash_secret(token)})
        await self._wiring.attempts.count(INVITATIONS, f"{self._wiring.tenant} {by.id}")
        return await self._desk.invite(suspension_id, item_id, invitation, by, key)

    async def _find_person(self, channels: Channels, *addresses: str) -> str | None:
        """Return the person of the desk who has one of these addresses, or whose name it is."""
        mails = [channel.name for channel in channels.by_name.values() if isinstance(channel, MailChannel)]
        for address in addresses:
            for name in mails:
                if person := await self._wiring.contacts.find_person(name, address):
                    return person
            if (named := await self._wiring.reviewers.find(address)) is not None:
                return named.name
        return None

    async def find(self, link: Link) -> Opened | None:
        """Return what a link leads to; None for one that nobody was sent. Changes nothing."""
        try:
            saved = await self._desk.suspensions.read(link.suspension_id)
            item = find_item(saved.record, link.item_id)
            invitation = find_by_token(item, hash_secret(link.token))
        except NotFound:
            return None
        state = find_state(saved.record, item, invitation, saved.now_ms).value
        if state == InvitationState.OPEN:
            inactive = await self._desk.suspensions.find_inactive()
            freezes = await self._wiring.freezes.known()
            if invitation.by in inactive:
                state = InvitationState.REVOKED.value
            elif find_freeze(saved.record, item, freezes) is not None:
                state = FROZEN
        return Opened(saved.record, item, invitation, state, saved.now_ms)

    async def mail_code(self, channels: Channels, link: Link) -> None:
        """Mail a code for an open link; raises `TooManyRequests`, `DeliveryFailed`, or as the desk does."""
        opened = await self.find(link)
        if opened is None:
            return
        channel = channels.find(opened.invitation.channel)
        if not isinstance(channel, MailChannel):
            raise Conflict("The mail channel of this invitation is gone. Ask for another invitation.")
        await self._wiring.attempts.count(MAILS, f"{self._wiring.tenant} {opened.invitation.address}")
        code = new_code("0123456789", CODE_DIGITS)
        hashes = hash_secret(link.token), hash_secret(link.token, code)
        saved = await self._desk.send_code(link.suspension_id, link.item_id, *hashes)
        await mail_code(channel, _find(saved.record, link), code)

    async def enter_code(self, link: Link, code: str) -> str:
        """Return the proof that the page sends with the decision; empty for a wrong code."""
        if await self.find(link) is None:
            return ""
        proof, token_hash = new_secret(), hash_secret(link.token)
        code_hash = hash_secret(link.token, "".join(sign for sign in code if not sign.isspace()))
        hashes = token_hash, code_hash, hash_secret(proof)
        saved = await self._desk.enter_code(link.suspension_id, link.item_id, *hashes)
        return proof if is_proven(_find(saved.record, link), hashes[2], saved.now_ms) else ""

    async def decide(self, link: Link, action: str, message: str, proof: str) -> Saved:
        """Record the decision behind a link; raises as the desk does."""
        if action not in ("approve", "deny"):
            raise InvalidInput("Approve the call as it is, or deny it with a reason.")
        hashes = hash_secret(link.token), hash_secret(proof)
        return await self._desk.decide_outside(link.suspension_id, link.item_id, action, message, *hashes)


def choose_channel(channels: Channels, item: Item) -> MailChannel | None:
    """Return the first mail channel of the item's rule, else the first of all."""
    known = sorted(name for name, channel in channels.by_name.items() if isinstance(channel, MailChannel))
    names = [name for name in item.terms.channels if name in known] or known
    channel = channels.find(names[0]) if names else None
    return channel if isinstance(channel, MailChannel) else None


def _find(record: SuspensionRecord, link: Link) -> Invitation:
    return find_by_token(find_item(record, link.item_id), hash_secret(link.token))
