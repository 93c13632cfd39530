"""The end of an experiment at the provider: wait until cards and presses are settled, then press what is left."""

from sayso.core.clock import monotonic_ms
from tests.chaos.evidence.trails import read_deliveries
from tests.chaos.workload.clients import Clients
from tests.chaos.workload.phones import wait_for
from tests.chaos.workload.provider import Provider, SentCard

SETTLED_WITHIN_S = 60.0
"""Sayso has this long to update all cards and to answer all presses. The checker reports what is missing then."""

_CHECK_S = 1.0


async def settle(provider: Provider, clients: Clients) -> None:
    """Accept everything, and wait until no card that Sayso knows has buttons and every press is answered.

    Sayso cannot know a card if it was killed, or the answer was lost, before the card's id was saved. These cards are
    pressed now: late presses too.
    """
    provider.heal()
    until_ms = monotonic_ms() + SETTLED_WITHIN_S * 1000
    while not await _is_settled(provider, clients) and monotonic_ms() < until_ms:
        await wait_for(lambda: _is_still(provider), _CHECK_S)
    for card in provider.list_armed():
        provider.note_left(card)
        provider.press_of(card, "Approve")
    await wait_for(lambda: _is_still(provider), SETTLED_WITHIN_S)


def _is_still(provider: Provider) -> bool:
    """Return whether no card has buttons, and every press is answered."""
    return not provider.list_armed() and not provider.list_unanswered()


async def _is_settled(provider: Provider, clients: Clients) -> bool:
    """Return whether every press is answered, and only cards that Sayso cannot know have buttons."""
    known = [one for one in provider.list_armed() if await _is_known(one, provider, clients)]
    return not known and not provider.list_unanswered()


async def _is_known(card: SentCard, provider: Provider, clients: Clients) -> bool:
    """Return whether the delivery of the item was saved after this card was sent: it is the last one then."""
    if provider.find_card(card.person, card.suspension_id, card.item_id) is not card:
        return False
    deliveries = await read_deliveries(clients, card.suspension_id)
    return any((one.item_id, one.person) == (card.item_id, card.person) and one.proven for one in deliveries)
