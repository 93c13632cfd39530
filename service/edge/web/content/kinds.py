"""Which items are alike: the same call in all but its values, under the same terms, with nothing to warn of."""

from sayso.core.canonical_json import JsonObject, canonical_json, digest_json
from sayso.core.policy.budgets import measure
from sayso.core.records.items import Answer, Item, ItemKind, Prompt
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.rendering.views import View
from sayso.core.text.lookalikes import count_lookalikes
from sayso.core.text.summaries import Leaf, list_texts, list_values
from sayso.core.text.suspicions import count_hidden
from service.core.operations.masking import find_secrets

MOST_BYTES = 2_048
_TYPES = {"true": "boolean", "false": "boolean", "null": "null", "{}": "empty", "[]": "empty"}
_TIMES = {"deadline_at_ms", "extend_until_ms", "remind_at_ms"}


def find_alike(record: SuspensionRecord, item: Item, view: View, definition: ToolDefinition | None) -> str:
    """Return the same name for items that are alike; empty for one that needs a page of its own.

    Such items need a value, a number or a step-up, may have run already, hold secrets, were edited by another reviewer,
    lost a decision, are long, or have a flag of severity 1.
    """
    plain = not item.terms.match_number and item.terms.step_up is None
    approvable = item.kind is ItemKind.APPROVAL and Answer.APPROVE in item.allowed and plain
    edited = any(decision.args is not None for decision in item.decisions)
    if (
        not (approvable and item.open and item.doubt is None and not item.resembles and not (edited or item.voided))
        or view.severe
        or _is_long(item.tool.args)
    ):
        return ""
    if find_secrets(item, definition.parameters if definition is not None else None).masked:
        return ""
    texts = [item.tool.name, record.run.agent, item.subagent or "", *list_texts(item.prompt.model_dump(mode="json"))]
    if any(count_hidden(text) or count_lookalikes(text) for text in texts):
        return ""
    alike = {
        "owner": record.run.owner,
        "agent": record.run.agent,
        "subagent": item.subagent,
        "on_deny": record.on_deny,
        "tool": item.tool.name,
        "definition": item.tool.definition,
        "allowed": [*item.allowed],
        "terms": item.terms.model_dump(mode="json", exclude=_TIMES),
        "shape": _shape(list_arguments(item)),
        "prompt": _shape(list_prompt(item.prompt)),
    }
    return digest_json(alike)[:16]


def list_arguments(item: Item) -> list[Leaf]:
    """Return every value of the arguments; none for a call without arguments."""
    return list_values(item.tool.args) if item.tool.args else []


def list_prompt(prompt: Prompt) -> list[Leaf]:
    """Return every text of the request that is not empty."""
    values = {name: value for name, value in prompt.model_dump(mode="json").items() if value}
    return list_values(values) if values else []


def _is_long(args: JsonObject) -> bool:
    """Return whether the arguments are long; those with too many values or characters are not written to find out."""
    size = measure(args)
    return size.values + size.chars > MOST_BYTES or len(canonical_json(args)) > MOST_BYTES


def _shape(leaves: list[Leaf]) -> list[list[str]]:
    return sorted([leaf.path, "text" if not leaf.literal else _TYPES.get(leaf.text, "number")] for leaf in leaves)
