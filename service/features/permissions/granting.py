"""The folds of an item that grant like calls with an approval, or offer another call with a denial."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pydantic import JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.policy.counters.readings import to_units, write_amount
from sayso.core.policy.engine import Policy
from sayso.core.policy.rule_keys import Grants
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.envelopes import CounterOffer, GrantRequest
from sayso.core.records.items import Answer, Item
from sayso.core.sentences.times import Sentence
from sayso.core.text.language import _
from sayso.core.text.redaction import MASK, redact
from sayso.core.text.summaries import write_leaf
from sayso.errors import InvalidInput
from sayso.features.permissions.making import find_grants, make_grant
from sayso.features.permissions.text import describe_grant
from service.edge.http.bodies import misfit
from service.edge.web.additions import DecisionForm, DecisionPart, ItemPage
from service.edge.web.content.edits import STEP
from service.edge.web.sessions import Post

WITH = "with"
"""The control of the button that sends a decision with its grant or offer."""

SEEN = "seen"
"""The control that holds the digest of what the shown sentence says."""

_SPANS_S = (3_600, 8 * 3_600, 86_400, 3 * 86_400, 7 * 86_400, 30 * 86_400)
_STEPS = {"grant": Answer.APPROVE, "offer": Answer.DENY}
_SAME, _MOST, _ONLY = "same.", "most.", "only."


class Argument(NamedTuple):
    """An argument of the call that a grant or an offer may limit; a `fixed` one always stays as it is."""

    path: str
    name: str
    shown: str
    number: bool
    text: bool
    fixed: bool
    same: bool
    most: str
    only: str


@dataclass(frozen=True)
class GrantForm:
    """The folds of an item, filled with what was typed; `step` is the open one and `sentence` what it would let run."""

    spans: tuple[int, ...]
    span: str
    count: str
    most_count: int | None
    sum: str
    summed: str
    most_sum: str
    people: int
    arguments: tuple[Argument, ...]
    offers: bool
    message: str = ""
    step: str = ""
    sentence: Sentence = ()
    seen: str = ""


def make_grant_form(policy: Policy, item: Item, post: Post) -> GrantForm | None:
    """Return the folds of an item; None where the rule lets nobody grant such calls."""
    grants = find_grants(policy, item)
    if grants is None or not item.open:
        return None
    people = max(grants.people, item.terms.quorum.approve)
    spans = tuple(dict.fromkeys([*(span for span in _SPANS_S if span < grants.longest), grants.longest]))
    arguments = tuple(_list_arguments(item, grants, post))
    alone = item.terms.quorum.deny == 1 and not item.terms.quorum.each_of  # any one of those who may deny
    return GrantForm(
        spans=spans,
        span=post.get("span", ""),
        count=post.get("count", ""),
        most_count=grants.count,
        sum=post.get("sum", ""),
        summed=grants.sum.of.removeprefix("args.") if grants.sum is not None else "",
        most_sum=write_amount(to_units(grants.sum.max)) if grants.sum is not None else "",
        people=people,
        arguments=arguments,
        message=post.get("message", ""),
        offers=people == 1 and alone and any(arg.number or arg.text for arg in arguments),
    )


def find_grant_step(post: Post) -> str:
    """Return `grant` or `offer` where a form asks to show its sentence; else empty."""
    step = post.get(STEP, "")
    return step if _STEPS.get(step) == post.get("answer") else ""


def add_grant(policy: Policy, item: Item, decision: DecisionRequest, post: Post) -> DecisionRequest:
    """Return the decision with the grant or the offer of the form.

    Raises `InvalidInput` where it does not say what the sentence said that the reviewer saw.
    """
    step = post.get(WITH, "")
    if _STEPS.get(step) != post.get("answer"):
        return decision
    granting = read_grant(policy, item, decision, post, step)
    if digest_granting(granting) != post.get(SEEN):
        raise InvalidInput(_("The sentence has changed. Show it again before you send it."))
    return granting


def read_grant(policy: Policy, item: Item, decision: DecisionRequest, post: Post, step: str) -> DecisionRequest:
    """Return the decision with what the fold says; an argument whose box is cleared is free. Raises `InvalidInput`."""
    most: JsonObject = {name.removeprefix(_MOST): value for name, value in _list_typed(post, _MOST)}
    only: JsonObject = {name.removeprefix(_ONLY): value for name, value in _list_typed(post, _ONLY)}
    try:
        if step == "offer":
            return decision.model_copy(update={"offer": CounterOffer.model_validate({"at_most": most, "equal": only})})
        ticked = [name.removeprefix(_SAME) for name, _on in _list_typed(post, _SAME)]
        same = [path for path in ticked if path not in most]
        free = _list_freed(policy, item, {*ticked, *most})
        given: dict[str, Any] = {"for_s": post.get("span", ""), "at_most": most, "same": same, "free": free}
        given |= {name: value for name in ("count", "sum") if (value := post.get(name, "").strip())}
        return decision.model_copy(update={"grant": GrantRequest.model_validate(given)})
    except ValidationError as error:
        raise misfit(error.errors(include_url=False, include_input=False), step) from error


def digest_granting(decision: DecisionRequest) -> str:
    """Return the digest of what a decision grants or offers."""
    return digest_json(decision.model_dump(mode="json", include={"grant", "offer"}))


async def add_to_item(page: ItemPage) -> dict[str, object]:
    """Return the folds of an item's page."""
    policy = page.wiring.rules.policy()
    return {"granting": await asyncio.to_thread(make_grant_form, policy, page.item, page.post)}


async def preview_granting(form: DecisionForm) -> dict[str, object]:
    """Return the folds with what a decision would let run; raises `InvalidInput` beyond what the rule allows."""
    item, post, step, policy = form.item, form.post, find_grant_step(form.post), form.wiring.rules.policy()
    suspension = await form.wiring.desk.suspensions.read(form.suspension_id)
    granting = await asyncio.to_thread(read_grant, policy, item, form.decision, post, step)
    by = form.by.reviewer("web")
    grant = make_grant(policy, suspension.record, item, granting, by, "gra_shown", suspension.now_ms)
    grant_form = await asyncio.to_thread(make_grant_form, policy, item, post)
    if grant is None or grant_form is None:
        raise InvalidInput(_("This can no longer be granted. Open the item again."))
    sentence, seen = describe_grant(grant), digest_granting(granting)
    return {"granting": replace(grant_form, step=step, sentence=sentence, seen=seen)}


async def complete_decision(form: DecisionForm) -> DecisionRequest:
    """Return the decision with its grant or offer."""
    return await asyncio.to_thread(add_grant, form.wiring.rules.policy(), form.item, form.decision, form.post)


GRANTING = DecisionPart(lambda post: bool(find_grant_step(post)), preview_granting, complete_decision)


def _list_freed(policy: Policy, item: Item, limited: set[str]) -> list[str]:
    """Return the arguments that the form shows and does not limit; the summed one has the limit of the sum."""
    grants = find_grants(policy, item)
    if grants is None:
        return []
    bound = {*limited, *grants.by, *((grants.sum.of,) if grants.sum is not None else ())}
    masked = redact(item.tool.args, None, item.terms.secrets).args
    shown = (path for path, _value in _list_plain(masked, "args"))
    return [path for path in shown if not any(path == prefix or path.startswith(f"{prefix}.") for prefix in bound)]


def _list_typed(post: Post, prefix: str) -> list[tuple[str, str]]:
    return [(name, value.strip()) for name, value in post.items() if name.startswith(prefix) and value.strip()]


def _list_arguments(item: Item, grants: Grants, post: Post) -> list[Argument]:
    """Return the arguments that can be limited: plain ones without secrets. All stay the same unless that is undone."""
    masked = redact(item.tool.args, None, item.terms.secrets).args
    summed = grants.sum.of if grants.sum is not None else ""
    typed = STEP in post or WITH in post
    arguments: list[Argument] = []
    for path, value in _list_plain(masked, "args"):
        fixed = path in grants.by
        number = isinstance(value, int | float) and not isinstance(value, bool)
        argument = Argument(
            path=path,
            name=path.removeprefix("args."),
            shown=write_leaf(value),
            number=number,
            text=isinstance(value, str),
            fixed=fixed,
            same=fixed or (f"{_SAME}{path}" in post if typed else path != summed),
            most=post.get(f"{_MOST}{path}", ""),
            only=post.get(f"{_ONLY}{path}", ""),
        )
        arguments.append(argument)
    return arguments


def _list_plain(args: Mapping[str, JsonValue], path: str) -> list[tuple[str, JsonValue]]:
    pairs: list[tuple[str, JsonValue]] = []
    for name, value in args.items():
        if not name.replace("-", "_").isidentifier() or not name.isascii():
            continue
        if isinstance(value, dict) and path.count(".") < 3:
            pairs += _list_plain(value, f"{path}.{name}")
        elif value is not None and value != MASK and not isinstance(value, dict):
            pairs.append((f"{path}.{name}", value))
    return pairs
