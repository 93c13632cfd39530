"""Turn what a reviewer sent from an item's page into one decision, or back into forms that say what is wrong."""

from dataclasses import dataclass, replace

from pydantic import JsonValue, ValidationError

from sayso.canonical_json import JsonObject, canonical_json
from sayso.errors import InvalidInput, SaysoError, TooLarge
from sayso.records.decisions import DecisionRequest
from sayso.records.items import Answer, Item
from sayso.records.tool_calls import ToolDefinition
from service.http.bodies import misfit
from service.web.content.forms import Field, args_fields, normalize, note_problems, read_fields, value_fields
from service.web.form_posts import Post


@dataclass(frozen=True)
class Forms:
    """The forms of an item: which answers it takes, and all that is typed in them.

    `chosen` is the answer that was sent last and did not go through; its form is shown open.
    """

    allowed: tuple[Answer, ...]
    args: tuple[Field, ...]
    value: tuple[Field, ...]
    message: str = ""
    chosen: str = ""


def make_forms(item: Item, definition: ToolDefinition | None) -> Forms:
    """Return the forms that the item permits, showing what is asked."""
    schema = definition.parameters if definition is not None else None
    wanted = item.response_schema if item.response_schema is not None else _target_schema(item, schema)
    return Forms(
        allowed=item.allowed,
        args=args_fields(schema, item.tool.args) if Answer.EDIT in item.allowed else (),
        value=value_fields(wanted, item.choices) if Answer.VALUE in item.allowed else (),
    )


def refill(forms: Forms, post: Post) -> Forms:
    """Return the forms with what was typed, each field that cannot be read with its problem."""
    chosen = post.get("answer", "")
    return replace(
        forms,
        chosen=chosen,
        message=normalize(post.get("message", "")),
        args=read_fields(forms.args, post).fields if chosen == Answer.EDIT else forms.args,
        value=read_fields(forms.value, post).fields if chosen == Answer.VALUE else forms.value,
    )


def mark(forms: Forms, error: SaysoError, target_arg: str | None) -> Forms:
    """Return the forms with the faults that the error lists, each beside its field."""
    problems = error.facts.get("problems")
    if not isinstance(problems, list):
        return forms
    told = [str(problem) for problem in problems]
    given = [problem.replace(f"args.{target_arg}", "value", 1) for problem in told] if target_arg else told
    return replace(
        forms, args=note_problems(forms.args, told, "args"), value=note_problems(forms.value, given, "value")
    )


def read_answer(forms: Forms, post: Post, limit_bytes: int) -> DecisionRequest:
    """Return the decision that was sent; raises `InvalidInput` when it cannot be read or is over the limit."""
    answer = post.get("answer", "")
    if answer not in list(Answer):
        raise InvalidInput("Choose one of the decisions on this page.")
    args: JsonObject | None = None
    value: JsonValue = None
    if answer == Answer.EDIT:
        typed = _typed(forms.args, post)
        if not isinstance(typed, dict):
            raise InvalidInput("The arguments have to be one JSON object, in braces.")
        args = typed
    elif answer == Answer.VALUE:
        value = _typed(forms.value, post)
    if len(canonical_json([args, value])) > limit_bytes:
        raise TooLarge(f"What you typed comes to more than {limit_bytes} bytes. Shorten it and send it again.")
    message = normalize(post.get("message", "")).strip() or None
    action = Answer.APPROVE if answer == Answer.EDIT else answer
    try:
        return DecisionRequest.model_validate(
            {"action": action, "digest": post.get("digest", ""), "args": args, "value": value, "message": message}
        )
    except ValidationError as error:
        raise misfit(error.errors(include_url=False, include_input=False), "answer") from error


def _typed(fields: tuple[Field, ...], post: Post) -> JsonValue:
    reading = read_fields(fields, post)
    if not reading.fits:
        raise InvalidInput("Something typed cannot be read; it is marked below. Nothing was changed.")
    return reading.value


def _target_schema(item: Item, schema: JsonObject | None) -> JsonObject | None:
    """The tool's own schema of the argument that the value goes into."""
    properties = schema.get("properties") if schema is not None else None
    found = properties.get(item.target_arg) if isinstance(properties, dict) and item.target_arg is not None else None
    return found if isinstance(found, dict) else None
