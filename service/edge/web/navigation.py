"""The pages that every page links to: one row each."""

from dataclasses import dataclass

from sayso.core.text.language import mark

IN_BAR = 3
"""How many of the main pages a phone's bar holds; its menu has the others."""


@dataclass(frozen=True)
class Place:
    """A page in the navigation; `g` and its key lead there."""

    path: str
    name: str
    key: str = ""
    admins: bool = False
    auditors: bool = False


MAIN = (
    Place("/", mark("Inbox"), "i"),
    Place("/history", mark("History"), "h"),
    Place("/runs", mark("Runs"), "r"),
    Place("/insights", mark("Insights"), "s"),
    Place("/rules", mark("Rules"), "u"),
)
OTHERS = (
    Place("/operate", mark("Operate")),
    Place("/grants", mark("Grants")),
    Place("/second-looks", mark("Second looks")),
    Place("/groups", mark("Groups")),
    Place("/who", mark("Who is asked")),
    Place("/people", mark("People"), admins=True),
    Place("/keys", mark("Keys"), admins=True),
    Place("/channels", mark("Channels"), admins=True),
    Place("/activity", mark("Activity"), admins=True, auditors=True),
    Place("/drills", mark("Drills"), admins=True),
    Place("/webhooks", mark("Webhooks"), admins=True),
    Place("/welcome", mark("First steps"), admins=True),
)
FREEZE = "/operate"
"""Where an admin freezes, one press away on every page."""


def list_others(*, admin: bool, auditor: bool = False) -> list[Place]:
    """Return the pages that are not among the main ones, as the visitor may open them."""
    return [place for place in OTHERS if admin or not place.admins or (auditor and place.auditors)]
