"""A tool with nested arguments: objects, lists and alternatives inside of each other."""

from pydantic import JsonValue

from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from service.core.wiring import Wiring
from tests.service.edge.web.stories import asked, make_ask

_ADDRESS: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
    "required": ["street", "city"],
}


def _pay_by(title: str, kind: str, name: str) -> dict[str, JsonValue]:
    return {
        "title": title,
        "type": "object",
        "properties": {"kind": {"const": kind}, name: {"type": "string"}},
        "required": ["kind", name],
    }


ORDER = ToolDefinition(
    name="place_order",
    parameters={
        "type": "object",
        "properties": {
            "customer": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "since": {"type": "string", "format": "date"},
                    "address": _ADDRESS,
                },
                "required": ["name"],
            },
            "lines": {
                "type": "array",
                "description": "What is ordered.",
                "items": {
                    "type": "object",
                    "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "unit": "pieces"}},
                    "required": ["sku", "count"],
                },
            },
            "tags": {"type": "array", "items": {"type": "string"}},
            "payment": {"oneOf": [_pay_by("Card", "card", "digits"), _pay_by("Transfer", "transfer", "account")]},
            "extra": {"type": "object"},
        },
        "required": ["customer", "lines"],
    },
)
ORDER_ARGS: dict[str, JsonValue] = {
    "customer": {"name": "Mara Lindqvist", "since": "2024-02-29"},
    "lines": [{"sku": "CUP-7", "count": 2}, {"sku": "CUP-8", "count": 1}],
    "tags": ["fragile", "gift"],
    "payment": {"kind": "transfer", "account": "4711"},
    "extra": {"a": [1, {"b": None}]},
}


async def ask_order(wiring: Wiring) -> SuspensionRecord:
    """A run that waits for approval of an order."""
    await wiring.runs.save_definitions([ORDER])
    return await asked(wiring, make_ask(ORDER, ORDER_ARGS))
