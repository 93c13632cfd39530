"""Who may act in Slack: full members of the workspace, linked to an active reviewer."""

import asyncio
from collections import OrderedDict
from typing import Any
from weakref import WeakValueDictionary

from sayso.errors import NotAllowed, Unavailable
from service.channels.slack.api import SlackApi, SlackFailure
from service.core.auth.contacts import Contacts

CACHE_MS = 30_000

_REFUSED = (
    ("deleted", "deactivated accounts"),
    ("is_bot", "bots"),
    ("is_workflow_bot", "bots"),
    ("is_restricted", "guests"),
    ("is_ultra_restricted", "guests"),
    ("is_stranger", "people of other workspaces"),
    ("is_invited_user", "people who have not joined yet"),
)

UNLINKED = (
    "Your Slack account is not linked to a reviewer. Sign in to Sayso, create a code on your account page, and send "
    "`/sayso link CODE` here."
)


class Members:
    """The members of a workspace, as Slack described them within `CACHE_MS`."""

    def __init__(self, api: SlackApi, team_id: str, enterprise_id: str = "") -> None:
        self._api, self._team_id, self._enterprise_id = api, team_id, enterprise_id
        self._found: OrderedDict[str, tuple[int, str]] = OrderedDict()
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def check(self, user_id: str, now_ms: int) -> None:
        """Raise `NotAllowed` unless the account is a full member's, and `Unavailable` if Slack does not say."""
        async with self._asking.setdefault(user_id, asyncio.Lock()):  # a burst of presses asks Slack once
            at_ms, problem = self._found.get(user_id, (0, ""))
            if not at_ms or not 0 <= now_ms - at_ms < CACHE_MS:
                problem = await self._ask(user_id)
                self._found[user_id] = (now_ms, problem)
                self._found.move_to_end(user_id)
                if len(self._found) > 5_000:
                    self._found.popitem(last=False)
        if problem:
            raise NotAllowed(f"Sayso takes no decisions from {problem} in Slack. Open the item's page instead.")

    async def _ask(self, user_id: str) -> str:
        try:
            response = await self._api.call(lambda web: web.users_info(user=user_id))
        except SlackFailure as failure:
            if failure.error in ("user_not_found", "user_not_visible"):
                return "people of other workspaces"
            raise Unavailable("Slack did not confirm who you are. Nothing was changed; try again.") from failure
        user = response.get("user")
        if not isinstance(user, dict) or not _belongs(user, self._team_id, self._enterprise_id):
            return "people of other workspaces"
        return next((name for key, name in _REFUSED if user.get(key)), "")


async def find_reviewer(contacts: Contacts, members: Members, channel: str, user_id: str, now_ms: int) -> str:
    """Return the active reviewer behind a Slack account; raises `NotAllowed` without one."""
    await members.check(user_id, now_ms)
    person = await contacts.find_person(channel, user_id)
    if person is None:
        raise NotAllowed(UNLINKED)
    return person


def _belongs(user: dict[str, Any], team_id: str, enterprise_id: str) -> bool:
    """Return whether Slack counts the account to the workspace; in an Enterprise Grid its home may be another one."""
    if user.get("team_id") == team_id:
        return True
    member = user.get("enterprise_user")
    if not isinstance(member, dict):
        return False
    teams = member.get("teams")
    in_grid = bool(enterprise_id) and member.get("enterprise_id") == enterprise_id
    return in_grid or (isinstance(teams, list) and team_id in teams)
