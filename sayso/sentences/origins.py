"""Sentences about where a call comes from: for whom the agent acts, and what ran before."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from sayso.records.suspensions import Progress, RunRef
from sayso.sentences.names import join_words
from sayso.text.language import _

_MOST_NAMED = 20


def describe_origins(run: RunRef, progress: Progress | None) -> list[str]:
    """Return what Sayso itself knows about where a call comes from, one sentence each."""
    who = run.who
    person = describe_person(who.person, who.person_name, who.issuer) if who is not None and who.person else ""
    owner = who.owner if who is not None and who.owner != run.owner else None
    answers = _("The key is owned by %(owner)s", owner=owner) if owner else ""
    tools = describe_tools(progress.tools or ()) if progress is not None else ""
    return [one for one in (person, answers, tools) if one]


def describe_person(person: str, name: str, issuer: str) -> str:
    """Return for whom the agent acts, and whose signed token says so."""
    whom = f"{name} ({person})" if name and name != person else person
    return _("For %(whom)s, proven by a signed token of %(issuer)s", whom=whom, issuer=_shorten(issuer))


def describe_tools(tools: Sequence[str]) -> str:
    """Return which tools ran before in the run; empty for none."""
    if not tools:
        return ""
    shown = join_words(tools[:_MOST_NAMED])
    if len(tools) > _MOST_NAMED:
        return _("Ran before in this run: %(tools)s and %(count)s more", tools=shown, count=len(tools) - _MOST_NAMED)
    return _("Ran before in this run: %(tools)s", tools=shown)


def _shorten(issuer: str) -> str:
    """Return the host of an issuer that is an address."""
    try:
        host = urlsplit(issuer).hostname if issuer.startswith("https://") else None
    except ValueError:
        host = None
    return host or issuer
