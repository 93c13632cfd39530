"""Checks of account numbers (IBAN, ISO 13616)."""

import re
from collections.abc import Iterator

from sayso.rendering.calls import Call, normalize, read_text, shorten
from sayso.rendering.views import SEVERE, Flag, Mark
from sayso.text.ibans import has_iban_form, is_valid
from sayso.text.language import _

_LAST_NAME = re.compile(r"([^.\[\]]+)(?:\[\d+\])*$")


def check_accounts(call: Call) -> Iterator[Flag]:
    """Yield a flag for each argument that is called an IBAN and is none."""
    for leaf in call.leaves.values():
        name = _LAST_NAME.search(leaf.path)
        if name is not None and "iban" in normalize(name[1]) and not leaf.literal and leaf.text != '""':
            account = read_text(leaf)
            if not is_valid(account):
                sentence = _("%(name)s is not a valid IBAN: the checksum of %(account)s is wrong.")
                named = {"name": shorten(leaf.path), "account": shorten(account)}
                yield Flag(sentence % named, SEVERE, _("wrong IBAN"))


def mark_fours(text: str) -> list[Mark]:
    """Return marks that part an IBAN in groups of four."""
    if " " in text or not has_iban_form(text):
        return []
    return [Mark(place, min(place + 4, len(text)), "four") for place in range(0, len(text), 4)]
