"""The different arguments that reviewers approved under a quorum, so that the next reviewer can agree with one."""

from dataclasses import dataclass

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.records.decisions import DecisionAction
from sayso.core.records.items import Item
from sayso.core.sentences.names import join_words
from sayso.core.text.language import _
from sayso.core.transitions.closing import args_of
from sayso.errors import InvalidInput

VERSION = "version"
"""The control and the query parameter that name a version by its digest."""


@dataclass(frozen=True)
class Version:
    """Edited arguments, and the reviewers who approved exactly them."""

    digest: str
    args: JsonObject
    reviewers: tuple[str, ...]

    @property
    def name(self) -> str:
        return _("%(who)s’s version", who=join_words(self.reviewers))


def list_versions(item: Item) -> list[Version]:
    """Return the versions of an open item that waits for more approvals, in the order of their first approval."""
    versions: dict[str, Version] = {}
    for decision in item.decisions if item.open else ():
        args = args_of(item, decision)
        if decision.action is DecisionAction.APPROVE and args != item.tool.args:
            digest = digest_json(args)
            earlier = versions[digest].reviewers if digest in versions else ()
            versions[digest] = Version(digest, args, (*earlier, decision.by.id))
    return list(versions.values())


def find_version(item: Item, digest: str) -> Version:
    """Return the version of that digest; raises `InvalidInput`."""
    for version in list_versions(item):
        if version.digest == digest:
            return version
    raise InvalidInput(_("No reviewer has approved that version. Choose one of the versions on the item's page."))
