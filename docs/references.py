"""The references of the documentation site, each generated from the code that it describes."""

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from docs import compliance
from sayso import errors
from sayso.cli.commands import COMMANDS, POLICY_COMMANDS, load
from sayso.client.permits import CallOptions
from sayso.core.problems import problem_type_of
from sayso.core.records.events import EventType, WebhookEvent
from sayso.core.records.suspensions import RunStatus
from sayso.core.transitions.legal import LEGAL
from sayso.gating.execution import GateOptions
from service.app import create_app
from service.core.auth.roles import PERMISSIONS, ROLES
from service.core.settings import Settings, variable_of
from service.core.store.load import BOUNDS_MS, Delays, Memory, Messages, Overdue
from service.core.store.suspensions.schedule import Queue
from service.features.insights.totals import parse_totals
from service.features.operate.cards import CardCounts
from service.features.operate.metrics import MetricsPage, Reading
from tests.chaos.checking.invariants import INVARIANTS

ROOT = Path(__file__).parents[1]
ALERTS = ROOT / "distribution" / "monitoring" / "alerts.yaml"
RAISING = ("sayso", "service", "workers")


def write_gate() -> str:
    """Return the options of `gate`."""
    texts = read_texts(CallOptions) | read_texts(GateOptions)
    options = sorted(fields(GateOptions), key=lambda option: (option.name != "key", option.name))
    rows = ((f"`{option.name}`", _default(option), texts[option.name]) for option in options)
    return _table(("Option", "Default", "Meaning"), rows)


def write_errors() -> str:
    """Return every error with its problem type, status, facts and default message."""
    facts = _find_facts()
    rows = []
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.SaysoError):
            row = problem_type_of(kind)
            by_desk = row is not problem_type_of(errors.SaysoError) or kind is errors.SaysoError
            known = ", ".join(f"`{fact}`" for fact in sorted(facts.get(name, ()))) or "–"
            sent = (str(row.status), f"`{row.slug}`") if by_desk else ("–", "–")
            rows.append((f"`{name}`", *sent, known, (kind.__doc__ or "").partition("\n")[0]))
    return _table(("Error", "Status", "Type", "Facts", "Message"), rows)


def write_settings() -> str:
    """Return every setting with its default and meaning."""
    names = sorted(Settings.model_fields, key=lambda name: name not in Settings.__annotations__)
    known = Settings.model_fields
    rows = ((f"`{variable_of(name)}`", _setting(known[name]), known[name].description or "") for name in names)
    return _table(("Variable", "Default", "Meaning"), rows)


def write_commands() -> str:
    """Return every command with its arguments, options and meaning."""
    tables: dict[tuple[str, ...], str] = {(name,): place for name, (place, _) in COMMANDS.items() if name != "policy"}
    tables.update({("policy", name): place for name, (place, _) in POLICY_COMMANDS.items()})
    rows = [row for names, place in tables.items() for row in _commands(names, load(names[-1], place))]
    return _table(("Command", "Meaning"), rows)


def write_routes() -> str:
    """Return every route of the API, by tag."""
    document = create_app(Settings(), quick=False).openapi()
    meanings = {tag["name"]: tag["description"] for tag in document["tags"]}
    groups: dict[str, list[tuple[str, str]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            row = (f"`{method.upper()} {path.removeprefix('/api/v1')}`", operation.get("description", ""))
            groups.setdefault(operation["tags"][0], []).append(row)
    parts = (f"### {tag.capitalize()}\n\n{meanings.get(tag, '')}\n\n{_routes(rows)}" for tag, rows in groups.items())
    return "\n\n".join(parts)


def write_events() -> str:
    """Return the events of the trail with the transitions that write them."""
    texts = read_texts(EventType)
    rows = []
    for kind in EventType:
        steps = ", ".join(f"`{step}`" for step, row in LEGAL.items() if kind in row.events) or "–"
        rows.append((f"`{kind}`", texts[kind.name], steps))
    return _table(("Event", "Meaning and data", "Transitions"), rows)


def write_webhook_events() -> str:
    """Return the events that webhook endpoints receive."""
    texts = read_texts(WebhookEvent)
    return _table(("Event", "Sent when"), ((f"`{kind}`", texts[kind.name]) for kind in WebhookEvent))


def write_metrics() -> str:
    """Return the metrics of `/metrics`."""
    none = Reading(Queue(0, 0), False, {"age": 0}, 0, Overdue(0, 0), dict.fromkeys(RunStatus, 0), 0, Messages(0, 0),
                   {"channel": CardCounts()}, Delays((0,) * len(BOUNDS_MS), 0, 0), *(0,) * 4, {"limit": 0},
                   Memory(0, 0), parse_totals({}))  # fmt: skip
    of_process = {family.name for family in MetricsPage(None, rules_held=False).collect()}
    rows = []
    for family in MetricsPage(none, rules_held=False).collect():
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        name = family.name + ("_total" if family.type == "counter" else "")
        shown = f"`{name}`" + (f" by {', '.join(labels)}" if labels else "")
        of = "process" if family.name in of_process else "store"
        rows.append((shown, family.type, of, family.documentation))
    return _table(("Metric", "Type", "Of the", "Meaning"), rows)


def write_alerts() -> str:
    """Return what each alert of Prometheus means and what to do."""
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    return "\n\n".join(
        f"## {rule['alert']}\n\n{_name_labels(texts['summary'])} {texts['description']}\n\n"
        f"`{rule['expr']}`, {rule['labels']['severity']} after {rule['for']}"
        for rule in rules
        for texts in (rule["annotations"],)
    )


def _name_labels(text: str) -> str:
    return re.sub(r"{{ \$labels\.(\w+) }}", r"`\1`", text)


def write_invariants() -> str:
    """Return the invariants that `make chaos` checks."""
    return _table(("Invariant", "Every run"), ((name, check.__doc__ or "") for name, check in INVARIANTS.items()))


def write_roles() -> str:
    """Return every permission with the built-in roles that have it."""
    rows = (
        (f"`{name}`", text, *("yes" if name in held or name == "account" else "" for held in ROLES.values()))
        for name, text in PERMISSIONS.items()
    )
    return _table(("Permission", "Lets a person do", *(f"`{role}`" for role in ROLES)), rows)


WRITERS: Mapping[str, Callable[[], str]] = {
    "gate": write_gate,
    "errors": write_errors,
    "settings": write_settings,
    "commands": write_commands,
    "routes": write_routes,
    "events": write_events,
    "webhook-events": write_webhook_events,
    "metrics": write_metrics,
    "alerts": write_alerts,
    "invariants": write_invariants,
    "roles": write_roles,
    **compliance.WRITERS,
}
"""The writer of each reference, by the name in the comment that a page has in its place."""


def read_texts(kind: type) -> dict[str, str]:
    """Return the text below each attribute of a class."""
    body = next(node.body for node in ast.walk(ast.parse(inspect.getsource(kind))) if isinstance(node, ast.ClassDef))
    texts: dict[str, str] = {}
    for statement, after in pairwise(body):
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [])
        if targets and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            texts[ast.unparse(targets[0])] = str(after.value.value)
    return texts


def _routes(rows: Iterable[tuple[str, str]]) -> str:
    return _table(("Route", "Meaning"), rows)


def _find_facts() -> dict[str, set[str]]:
    facts: dict[str, set[str]] = {}
    for path in (path for name in RAISING for path in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                facts.setdefault(name, set()).update(word.arg for word in node.keywords if word.arg)
    return facts


def _commands(names: tuple[str, ...], command: Any) -> Iterator[tuple[str, str]]:
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands((*names, name), below)
    if hasattr(command, "commands"):
        return
    parts, notes = [" ".join(names)], [_flat(command.help or "")]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parts.append(str(parameter.name).removesuffix("_").upper())
        else:
            meaning = f": {parameter.help}" if parameter.help and parameter.name != "json" else ""
            notes.append(f"`{parameter.opts[0]}`{meaning}")
    yield f"`{' '.join(parts)}`", " ".join(notes)


def _default(option: Field[Any]) -> str:
    made = option.default_factory() if option.default_factory is not MISSING else option.default
    return f"`{made!r}`"


def _setting(field: FieldInfo) -> str:
    if field.default_factory is not None or field.default in (None, "", PydanticUndefined, ()):
        return "–"
    text = str(field.default)
    return f"`{text.lower() if isinstance(field.default, bool) else text.removeprefix(f'{ROOT}/')}`"


def _flat(text: str) -> str:
    return " ".join(text.split())


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(_flat(cell).replace('|', '&#124;') for cell in line)} |" for line in lines)
