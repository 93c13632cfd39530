"""The decision forms of an item, for pages and channels: parse a submitted form, or show it again with its problems."""

import re
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue, ValidationError

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.envelopes import ARGUMENT_PATTERN
from sayso.core.records.items import Answer, Item
from sayso.core.records.tools import ToolDefinition
from sayso.core.sentences import join_words
from sayso.core.sentences.deliveries import WRITE_CHANGES
from sayso.core.text.language import _
from sayso.core.transitions.decision_checks import takes_changes
from sayso.errors import InvalidInput, SaysoError, TooLarge
from service.edge.http.bodies import misfit
from service.forms.controls import Field, Post, normalize
from service.forms.fields import (
    args_fields,
    change_form,
    clear_problems,
    find_changed,
    note_problems,
    read_fields,
    unfold_all,
    value_fields,
)


class Forms(NamedTuple):
    """The forms of an item, with their input; the form of the rejected answer `chosen` is open."""

    allowed: tuple[Answer, ...]
    args: tuple[Field, ...]
    value: tuple[Field, ...]
    message: str = ""
    chosen: str = ""
    focus: str = ""
    rounds: bool = False  # whether a reviewer can request changes
    returns: tuple[tuple[str, str], ...] = ()  # what they can mark to be changed: the path and the name of each
    marked: frozenset[str] = frozenset()
    returned: bool = False  # whether they have


RETURNS = "returns"  # the field of a denial that requests changes
_MARK = "change."
_MOST_MARKED = 20


def make_forms(item: Item, definition: ToolDefinition | None, *, nested: bool = False) -> Forms:
    """Return the forms that the item allows, filled with its arguments; `nested` ones have fields inside of fields."""
    schema = definition.parameters if definition is not None else None
    value_schema = item.response_schema
    if value_schema is None and item.target_arg is not None:
        properties = schema.get("properties") if schema is not None else None
        target = properties.get(item.target_arg) if isinstance(properties, dict) else None
        value_schema = target if isinstance(target, dict) else None
    args = args_fields(schema, item.tool.args) if Answer.EDIT in item.allowed else ()
    value = value_fields(value_schema, item.choices) if Answer.VALUE in item.allowed else ()
    if item.target_arg in item.terms.secrets:
        value = tuple(replace(field, shape=replace(field.shape, secret=True)) for field in value)
    rounds = takes_changes(item)
    forms = Forms(item.allowed, args, value, rounds=rounds, returns=_list_returnable(item) if rounds else ())
    return forms._replace(args=unfold_all(args), value=unfold_all(value)) if nested else forms


def _list_returnable(item: Item) -> tuple[tuple[str, str], ...]:
    """Return the arguments that a reviewer can mark; those with unusual names are not among them."""
    paths = ((f"args.{name}", name) for name in item.tool.args)
    return tuple((path, name) for path, name in paths if re.fullmatch(ARGUMENT_PATTERN, path))


def refill(forms: Forms, post: Post) -> Forms:
    """Return the forms with the submitted input and the problem of each invalid field."""
    chosen = post.get("answer", "")
    return forms._replace(
        chosen=chosen,
        message=normalize(post.get("message", "")),
        marked=frozenset(_list_marked(post)),
        returned=RETURNS in post,
        args=read_fields(forms.args, post).fields if chosen == Answer.EDIT else forms.args,
        value=read_fields(forms.value, post).fields if chosen == Answer.VALUE else forms.value,
    )


def change_forms(forms: Forms, post: Post, step: str) -> Forms:
    """Return the forms with the submitted input after a step such as `add:f3`. It checks nothing."""
    typed = refill(forms, change_form(post, step))
    args, value = (tuple(map(clear_problems, fields)) for fields in (typed.args, typed.value))
    return typed._replace(args=args, value=value, focus=find_changed(step))


def mark_problems(forms: Forms, error: SaysoError, target_arg: str | None) -> Forms:
    """Return the forms with the error's problems beside their fields."""
    problems = error.facts.get("problems")
    if not isinstance(problems, list):
        return forms
    texts = [str(problem) for problem in problems]
    of_value = [text.replace(f"args.{target_arg}", "value", 1) for text in texts] if target_arg else texts
    return forms._replace(
        args=note_problems(forms.args, texts, "args"), value=note_problems(forms.value, of_value, "value")
    )


def describe_problems(forms: Forms, error: SaysoError) -> str:
    """Return which fields to correct, without their input; empty if the error's message says it."""
    marked = [field for field in (*forms.args, *forms.value) if field.faulty]
    if not marked:
        secret = "problems" in error.facts and any(field.masked for field in forms.value)
        return _("Correct the value.") if secret else ""
    whole = _("the arguments") if marked[0] in forms.args else _("the value")
    names = [whole if field.name is None else field.shown_name for field in marked]
    return _("Correct %(fields)s.", fields=join_words(names))


def read_answer(forms: Forms, post: Post, limit_bytes: int) -> DecisionRequest:
    """Return the submitted decision; raises `InvalidInput` or `TooLarge`."""
    answer = post.get("answer", "")
    if answer not in list(Answer):
        raise InvalidInput(_("Choose one of the decisions on this page."))
    args: JsonObject | None = None
    value: JsonValue = None
    if answer == Answer.EDIT:
        typed = _read_value(forms.args, post)
        if not isinstance(typed, dict):
            raise InvalidInput(_("The arguments must be one JSON object, in braces."))
        args = typed
    elif answer == Answer.VALUE:
        value = _read_value(forms.value, post)
    if len(canonical_json([args, value])) > limit_bytes:
        raise TooLarge(_("Your input is over %(limit)s bytes. Shorten it and send it again.", limit=limit_bytes))
    message = normalize(post.get("message", "")).strip() or None
    action = Answer.APPROVE if answer == Answer.EDIT else answer
    number = post.get("number", "").strip() or None
    if number is not None and not re.fullmatch("[0-9]{2}", number):
        raise InvalidInput(_("The number has two digits, such as 07. Type it again."))
    code = "".join(post.get("code", "").split()) or None
    if code is not None and not re.fullmatch("[0-9]{6}", code):
        raise InvalidInput(_("The code of your app has six digits. Type it again."))
    changes = {"paths": _list_marked(post)[:_MOST_MARKED]} if RETURNS in post and answer == Answer.DENY else None
    if changes is not None and message is None:
        raise InvalidInput(_(WRITE_CHANGES))
    try:
        return DecisionRequest.model_validate(
            {
                "action": action,
                "changes": changes,
                "digest": post.get("digest", ""),
                "args": args,
                "value": value,
                "message": message,
                "number": number,
                "code": code,
            }
        )
    except ValidationError as error:
        raise misfit(error.errors(include_url=False, include_input=False), "answer") from error


def _list_marked(post: Post) -> list[str]:
    return [name.removeprefix(_MARK) for name in post if name.startswith(_MARK)]


def _read_value(fields: tuple[Field, ...], post: Post) -> JsonValue:
    reading = read_fields(fields, post)
    if not reading.valid:
        raise InvalidInput(_("Some fields are invalid; see below. Nothing was changed."))
    return reading.value
