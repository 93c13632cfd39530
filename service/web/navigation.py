"""The pages that every page links to: one row each."""

from dataclasses import dataclass

IN_BAR = 3
"""How many of the main pages a phone's bar holds; its menu has the others."""


@dataclass(frozen=True)
class Place:
    """A page in the navigation; `g` and its key lead there."""

    path: str
    name: str
    key: str = ""
    admins: bool = False


MAIN = (
    Place("/", "Inbox", "i"),
    Place("/history", "History", "h"),
    Place("/runs", "Runs", "r"),
    Place("/insights", "Insights", "s"),
    Place("/rules", "Rules", "u"),
)
OTHERS = (
    Place("/operate", "Operate"),
    Place("/groups", "Groups"),
    Place("/who", "Who is asked"),
    Place("/people", "People", admins=True),
    Place("/keys", "Keys", admins=True),
    Place("/channels", "Channels", admins=True),
    Place("/webhooks", "Webhooks", admins=True),
    Place("/welcome", "First steps", admins=True),
)
FREEZE = "/operate"
"""Where an admin freezes, one press away on every page."""


def list_others(*, admin: bool) -> list[Place]:
    """Return the pages that are not among the main ones, as the visitor may open them."""
    return [place for place in OTHERS if admin or not place.admins]
