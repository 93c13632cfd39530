"""Sentences about an item before its outcome: who may decide, the quorum, and warnings of deceptive characters."""

from collections import Counter
from collections.abc import Sequence
from urllib.parse import urlsplit

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Actor, Decision, DecisionAction, list_filled
from sayso.core.records.items import Answer, Item, ItemKind
from sayso.core.records.suspensions import Progress, RunRef, SuspensionRecord
from sayso.core.records.terms import Quorum, group_of, may_reach
from sayso.core.records.undoing import UndoableDecision, is_offer
from sayso.core.sentences import join_words, name_each, name_reviewers
from sayso.core.sentences.deadlines import describe_fallback
from sayso.core.text.language import _, mark, ngettext
from sayso.core.text.lookalikes import count_lookalikes
from sayso.core.text.summaries import list_texts
from sayso.core.text.suspicions import count_hidden
from sayso.core.transitions.closing import args_of
from sayso.core.transitions.decision_checks import MOST_VOIDED, count_voided, entitle, find_alike
from sayso.core.transitions.permits import is_confirmed
from sayso.core.transitions.quorum import find_counted, list_agreeing, needs_confirmation

_AFTER_DENIAL = {
    "continue": mark("If you deny it, the agent receives your reason and continues."),
    "degrade": mark("If you deny it, the remaining calls are skipped and the run ends early."),
    "fail": mark("If you deny it, the run fails."),
}

_YOURS: dict[str, str] = {
    DecisionAction.APPROVE: mark("You approved."),
    DecisionAction.DENY: mark("You denied."),
    DecisionAction.VALUE: mark("You gave a value."),
    DecisionAction.FAIL: mark("You failed the run."),
}

_YOU_RETURNED = mark("You requested changes.")

_UNDOABLE: dict[str, str] = {
    DecisionAction.APPROVE: mark("Approved. Nothing has run yet."),
    DecisionAction.DENY: mark("Denied. The agent does not know yet."),
    DecisionAction.VALUE: mark("Sent. Nothing has run yet."),
}

DENIAL_PRESETS = (mark("Wrong amount"), mark("Not now"), mark("Ask me first"), mark("Not allowed"))
"""Reasons of a denial that a reviewer chooses, and edits if they like."""

DOUBT_CHOICES = (
    (
        '"skip"',
        mark("It did run"),
        mark("The agent continues. Nothing runs again."),
        mark("Continue without running it"),
    ),
    (
        '"run_again"',
        mark("It did not run"),
        mark("It runs now; if it ran after all, twice."),
        mark("Run it again"),
    ),
    ('"fail"', mark("It is unclear"), mark("The agent stops. Nothing runs again."), mark("Stop the run")),
)
"""Each answer about a call in doubt: its value as JSON, its heading, its effect, and the name of its button."""

_MOST_NAMED = 20


def describe_wanted(item: Item) -> str:
    """Return the value that the item needs, such as `wants: Confirmation code`; empty where it needs an approval."""
    if item.terms.confirm_by is not None and item.kind is ItemKind.APPROVAL and not item.terms.quorum.approve:
        return _("wants: confirmation of %(who)s", who=item.terms.confirm_by)
    if item.doubt is not None or not (item.kind is ItemKind.INPUT or Answer.APPROVE not in item.allowed):
        return ""
    return _("wants: %(what)s", what=item.prompt.title or item.target_arg or _("a value"))


def describe_number(record: SuspensionRecord, item: Item) -> str:
    """Return how to get the number that an approval needs, or an empty text."""
    if not item.terms.match_number:
        return ""
    return _("Ask %(who)s for the two digits of this item", who=record.run.owner)


def describe_denial(record: SuspensionRecord, item: Item) -> str:
    """Return the effect of a denial on the run, or on the call that it would undo."""
    if is_offer(item):
        return _("If you keep it, nobody can undo it any more.")
    return _(_AFTER_DENIAL[record.on_deny])


def name_denial(record: SuspensionRecord, item: Item) -> str:
    """Return the name of the button that denies, with the effect on the run if this denial decides."""
    if is_offer(item):
        return _("Keep it")
    denials = sum(decision.action == "deny" for decision in item.current)
    if denials + 1 < item.terms.quorum.deny:
        return _("Deny")
    return _("Deny and go on") if record.on_deny == "continue" else _("Deny and end the run")


def describe_reviewers(record: SuspensionRecord, item: Item) -> str:
    """Return who may decide the item."""
    if not item.terms.quorum.approve and item.kind is ItemKind.APPROVAL:
        return _("%(who)s, for whom the agent acts", who=item.terms.confirm_by)
    reviewers = name_reviewers(item.terms.reviewers, "or") if item.terms.reviewers else _("Any reviewer")
    excluded, requesters = record.run.list_excluded(item.terms), record.run.requesters
    if made := [name for name in excluded if name not in requesters]:
        reviewers = _("%(reviewers)s, except %(maker)s, who made the key", reviewers=reviewers, maker=join_words(made))
    if not item.terms.no_self_approval:
        return reviewers
    owner = join_words(list_requesters(record, item), "or")
    return _("%(reviewers)s, except %(owner)s, who requested it", reviewers=reviewers, owner=owner)


def list_requesters(record: SuspensionRecord, item: Item) -> tuple[str, ...]:
    """Return who requested the call. No key asks to undo one, so there it is who is behind the key of its run."""
    names = record.run.requesters
    return names[1:] or names if item.reverses is not None else names


def describe_quorum(item: Item) -> str:
    """Return the largest group of equal decisions, `1 of 2 have approved; …`; empty where one is enough."""
    quorum = item.terms.quorum
    if quorum.approve <= 1 and quorum.deny == 1 and not quorum.each_of:
        return ""
    approvals, denials = _count_decisions(item)
    approved = _("1 approval is enough")
    if quorum.approve > 1:
        counts = _("%(most)s of %(needed)s have approved")
        if len(approvals) > 1:
            counts = _("%(most)s of %(needed)s have approved the same arguments")
        approved = counts % {"most": max(approvals.values(), default=0), "needed": quorum.approve}
    if quorum.each_of:
        agreed = [group_of(name) or name for name in list_filled(quorum.each_of, _list_leading(item))]
        needs = _("needs %(names)s", names=name_each(quorum.each_of))
        agreement = _("%(names)s agreed", names=join_words(agreed)) if agreed else ""
        approved = "; ".join(filter(None, (approved if quorum.approve > 1 else "", needs, agreement)))
    if item.drawn and item.terms.following is None:
        approved = _("drawn by chance for a second look: %(approvals)s", approvals=approved)
    denied = _("1 denial is enough")
    if quorum.deny > 1:
        denied = _("%(denied)s of %(needed)s have denied", denied=denials, needed=quorum.deny)
    return f"{approved}; {denied}"


def count_quorum(item: Item) -> str:
    """Return the most equal approvals against the quorum, such as `1 of 2`; empty where one is enough."""
    needed = item.terms.quorum.approve
    most = needed - _count_lacking(item.terms.quorum, _list_leading(item))
    return _("%(most)s of %(needed)s", most=most, needed=needed) if needed > 1 else ""


def describe_approval(record: SuspensionRecord, item: Item, by: Actor, args: JsonObject) -> str:
    """Return what the reviewer's approval of these arguments leads to; empty where one approval is enough."""
    following = item.terms.following
    confirmer = item.terms.confirm_by if following is None and not is_confirmed(item, args) else None
    if item.terms.quorum.approve == 1 and confirmer is None and following is None:
        return ""
    lack = _count_after(record, item, by, args)
    if lack > 0:
        return ngettext(
            "Your approval sends nothing yet: %(num)s more must approve.",
            "Your approval sends nothing yet: %(num)s more must approve.",
            lack,
        )
    if following is not None:
        names = name_reviewers(following.reviewers, "or")
        return _("Your approval sends nothing yet: %(who)s must approve next.", who=names)
    if confirmer is not None:
        return _("Your approval sends nothing yet: %(who)s must confirm it.", who=confirmer)
    waits = record.resume.coverage == "all" and any(other.open for other in record.items if other is not item)
    return _("Your approval decides it.") if waits else _("Your approval sends it.")


def describe_confirmation(item: Item) -> str:
    """Return whether the acting user has confirmed the call; empty where nobody asks them."""
    person = item.terms.confirm_by
    if person is None:
        return ""
    if item.open and needs_confirmation(item):
        again = item.confirmation is not None
        again_text = _("%(who)s confirmed other arguments, and must confirm these", who=person)
        return again_text if again else _("%(who)s, for whom the agent acts, must confirm it", who=person)
    if item.confirmation is None:
        return ""
    said = _("%(who)s confirmed it") if item.confirmation.confirmed else _("%(who)s declined it")
    return said % {"who": person}


def count_approval(record: SuspensionRecord, item: Item, by: Actor, args: JsonObject) -> str:
    """Return the reviewer's place among the approvals of these arguments, such as `2 of 2`; empty where 1 is enough."""
    needed = item.terms.quorum.approve
    most = needed - max(0, _count_after(record, item, by, args))
    return _("%(most)s of %(needed)s", most=most, needed=needed) if needed > 1 else ""


def _count_after(record: SuspensionRecord, item: Item, by: Actor, args: JsonObject) -> int:
    """Return how many more must approve these arguments after this reviewer."""
    wanted = canonical_json(args)
    approving = (decision for decision in item.current if decision.action is DecisionAction.APPROVE)
    agreeing = [decision.by for decision in approving if canonical_json(args_of(item, decision)) == wanted]
    return _count_lacking(item.terms.quorum, [*agreeing, entitle(record, item, by) or by])


def describe_deadlock(record: SuspensionRecord, item: Item) -> str:
    """Return that the quorum can no longer be reached, and the effect of the deadline; empty while it can."""
    terms = item.terms
    if not item.open or not terms.reviewers:
        return ""
    excluded = {*(decision.by.id for decision in item.decisions), *record.run.list_excluded(terms)}
    remaining = {*terms.reviewers, *(name for step in terms.escalate for name in step.reviewers)} - excluded
    denials = _count_decisions(item)[1]
    leading, each_of = _list_leading(item), terms.quorum.each_of
    lost = {*each_of} & excluded - {*list_filled(each_of, leading)}
    approvable = not lost and may_reach(remaining, _count_lacking(terms.quorum, leading))
    if approvable or may_reach(remaining, terms.quorum.deny - denials):
        return ""
    effect = describe_fallback(record, item)
    return _("Too few reviewers are left to reach the quorum. At the deadline %(effect)s.", effect=effect)


def describe_ineligibility(record: SuspensionRecord, item: Item, by: Actor) -> str:
    """Return why this reviewer cannot decide an open item; empty where they can. The desk checks it again."""
    if by.id == item.terms.confirm_by and by.id in record.run.list_excluded(item.terms):
        waits = needs_confirmation(item)
        return _("The agent acts for you. Confirm this call on its page.") if waits else _("You confirmed this call.")
    if by.id in record.run.list_excluded(item.terms):
        requested = by.id in record.run.requesters
        why = _("You requested this call, so another reviewer must decide it.")
        return why if requested else _("You made the key of this agent, so another reviewer must decide it.")
    entitled = entitle(record, item, by)
    if item.undoable is not None:
        return _describe_undoable(item.undoable.decision, by)
    if any(made.by.id == by.id for made in item.decisions if made not in item.current):
        return _("You approved an earlier stage, so others must approve this one.")
    if entitled is None:
        return _("Only %(who)s can decide this.", who=name_reviewers(item.deciders, "or"))
    return _describe_earlier(record, item, by, entitled)


def _describe_earlier(record: SuspensionRecord, item: Item, by: Actor, entitled: Actor) -> str:
    own = next((decision for decision in item.decisions if decision.by.id == by.id), None)
    if own is not None:
        made = _YOURS[own.action] if own.changes is None else _YOU_RETURNED
        return f"{_(made)} {describe_deadlock(record, item) or _describe_lack(item, own)}"
    if (alike := find_alike(item, by)) is not None:
        names = {"person": alike.by.id, "rest": _describe_lack(item, alike)}
        return _("%(person)s decided by a credential that you made or reset, which counts as yours. %(rest)s", **names)
    if count_voided(item, by.id) >= MOST_VOIDED:
        return _("You have changed your decision too often, so another reviewer must decide this.")
    counted = find_counted(item, entitled)
    if counted is not None:
        rest = _describe_lack(item, counted)
        return _("%(who)s has decided for the same reviewer. %(rest)s", who=counted.by.id, rest=rest)
    return ""


def _describe_undoable(decision: Decision, by: Actor) -> str:
    """Return that a decision takes effect soon; only its author sees which."""
    if decision.by.id != by.id:
        return _("%(who)s has decided this. It takes effect in a moment.", who=decision.by.id)
    return _(_UNDOABLE[decision.action])


def describe_undo(undoable: UndoableDecision) -> str:
    """Return for cards, which many may read, that somebody has decided, and when it takes effect."""
    who = undoable.by.id
    return f"by {who}, from {iso_utc(undoable.until_ms)} on, unless {who} takes it back before"


def describe_resemblance(names: Sequence[str]) -> str:
    """Return a warning that the tool's name resembles other names in the rules; empty for none."""
    if not names:
        return ""
    sentence = _("This tool name resembles %(names)s in the rules but is not the same. Those rules apply too.")
    return sentence % {"names": join_words(names)}


def _describe_lack(item: Item, decision: Decision) -> str:
    if decision.action is DecisionAction.DENY:
        lack = item.terms.quorum.deny - _count_decisions(item)[1]
    else:
        lack = _count_lacking(item.terms.quorum, list_agreeing(item, decision))
    if lack <= 0 and item.terms.confirm_by is not None:
        return _("Waiting for %(who)s to confirm it.", who=item.terms.confirm_by)
    return _("Waiting for %(count)s more.", count=lack)


def _list_leading(item: Item) -> list[Actor]:
    """Return who has approved the arguments that most have approved."""
    given = [list_agreeing(item, decision) for decision in item.current if decision.action is not DecisionAction.DENY]
    return max(given, key=len, default=[])


def _count_lacking(quorum: Quorum, agreeing: Sequence[Actor]) -> int:
    """Return how many more must approve what these people have approved."""
    unfilled = len(quorum.each_of) - len(list_filled(quorum.each_of, agreeing))
    return max(quorum.approve - len(agreeing), unfilled)


def _count_decisions(item: Item) -> tuple[Counter[bytes], int]:
    approving = (decision for decision in item.current if decision.action != "deny")
    approvals = Counter(canonical_json(args_of(item, decision)) for decision in approving)
    return approvals, len(item.current) - approvals.total()


def describe_origins(run: RunRef, progress: Progress | None) -> list[str]:
    """Return what Sayso itself knows about where a call comes from, one sentence each."""
    who = run.who
    person = describe_person(who.person, who.person_name, who.issuer) if who is not None and who.person else ""
    owner = who.owner if who is not None and who.owner != run.owner else None
    answers = _("The key is owned by %(owner)s", owner=owner) if owner else ""
    maker = run.key_maker if run.key_maker != owner else ""
    made = _("The key was made by %(maker)s", maker=maker) if maker else ""
    tools = describe_tools(progress.tools or ()) if progress is not None else ""
    return [sentence for sentence in (person, answers, made, tools) if sentence]


def describe_person(person: str, name: str, issuer: str) -> str:
    """Return for whom the agent acts, and whose signed token says so."""
    whom = f"{name} ({person})" if name and name != person else person
    try:
        host = urlsplit(issuer).hostname if issuer.startswith("https://") else None
    except ValueError:
        host = None
    return _("For %(whom)s, proven by a signed token of %(issuer)s", whom=whom, issuer=host or issuer)


def describe_tools(tools: Sequence[str]) -> str:
    """Return which tools ran before in the run; empty for none."""
    if not tools:
        return ""
    shown = join_words(tools[:_MOST_NAMED])
    if len(tools) > _MOST_NAMED:
        return _("Ran before in this run: %(tools)s and %(count)s more", tools=shown, count=len(tools) - _MOST_NAMED)
    return _("Ran before in this run: %(tools)s", tools=shown)


def describe_characters(value: JsonValue) -> list[str]:
    """Return a warning for the hidden and one for the look-alike characters of all texts and keys, if there are any."""
    return [sentence for sentence, _label in warn_of_characters(value)]


def warn_of_characters(value: JsonValue) -> list[tuple[str, str]]:
    """Return the same warnings, each with its short form."""
    texts = list(list_texts(value))
    warnings: list[tuple[str, str]] = []
    if count := sum(map(count_hidden, texts)):
        sentence = ngettext(
            "%(num)s hidden character has no place here. A sign such as ⟨U+200B⟩ stands for it.",
            "%(num)s hidden characters have no place here. A sign such as ⟨U+200B⟩ stands for each.",
            count,
        )
        warnings.append((sentence, name_hidden()))
    if count := sum(map(count_lookalikes, texts)):
        sentence = ngettext(
            "%(num)s character is not what it looks like. The number stands behind each, such as ⟨U+0430⟩.",
            "%(num)s characters are not what they look like. The number stands behind each, such as ⟨U+0430⟩.",
            count,
        )
        warnings.append((sentence, name_alike()))
    return warnings


def name_hidden() -> str:
    """Return the short form of a warning of hidden characters."""
    return _("hidden characters")


def name_alike() -> str:
    """Return the short form of a warning of look-alike characters."""
    return _("look-alike letters")
