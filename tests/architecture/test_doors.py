"""One table of acts and doors: through each door an act goes through one function of the core, with one right.

A call of that function from a place that the table does not name fails, and so does a place that no longer calls it.
`tests/service/test_doors.py` tries the rights.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import pytest

from service.channels.kinds import KINDS
from tests.architecture.sources import functions, modules, place

API, AAP, PAGES = "service/edge/api", "service/edge/api/aap/requests.py", "service/edge/web"
PEOPLE, GRANTS = "service/features/people", "service/features/permissions/api.py"
SLACK, TEAMS, TELEGRAM = (
    f"service/channels/{name}" for name in ("slack/acting.py", "teams/inbound.py", "telegram/inbound.py")
)
CLI, COMMANDS_OF_GRANTS = "sayso/cli", "sayso/features/permissions/commands.py"

REVIEWERS = "a person who may decide the item by its terms"
DENIERS = "who may deny all open items of the run, its requester, or an admin"
ADMINS = "an admin"
PERSONS = "a person, for themselves; an admin for others"
REQUESTER = "the agent that asked, or its key's owner"


class Act(NamedTuple):
    """What may be done, who may do it, the functions that do it, and the places that call them, by door.

    Mail, push, ntfy and the phone's app link to the page, so their door is the page. A command sends a request to the
    API, so its door calls the client.
    """

    right: str
    core: tuple[str, ...]
    doors: Mapping[str, tuple[str, ...]]


DECIDE = Act(
    REVIEWERS,
    ("desk.decide", "decide_on_card", "client.decide"),
    {
        "API": (f"{API}/suspensions.py:decide_item",),
        "page": (f"{PAGES}/items.py:_decide",),
        "page of several items": ("service/features/alike.py:_decide_all",),
        "page of calls to undo": ("service/features/reversals.py:undo",),
        "Slack": (f"{SLACK}:press", f"{SLACK}:submit"),
        "Teams": (f"{TEAMS}:_act",),
        "Telegram": (f"{TELEGRAM}:_press", f"{TELEGRAM}:_answer"),
        "card of any channel": ("service/channels/deciding.py:decide_on_card",),
        "webhook": ("service/features/webhooks/inbound.py:_decide",),
        "command line": (f"{CLI}/reviews.py:_decide", "sayso/features/reversals.py:undo"),
    },
)
ACTS: Mapping[str, Act] = {
    "approve, deny and answer": DECIDE,
    "ask the requester": Act(
        REVIEWERS,
        ("desk.ask_requester", "ask_on_card", "client.ask_requester"),
        {
            "API": (f"{API}/suspensions.py:ask_requester",),
            "page": (f"{PAGES}/handling.py:ask",),
            "Slack": (f"{SLACK}:_ask",),
            "Teams": (f"{TEAMS}:_act",),
            "Telegram": (f"{TELEGRAM}:_answer",),
            "card of any channel": ("service/channels/deciding.py:ask_on_card",),
            "command line": (f"{CLI}/asking.py:ask",),
        },
    ),
    "answer a reviewer": Act(
        REQUESTER,
        ("desk.answer_inquiry", "client.answer_inquiry"),
        {"API": (f"{API}/suspensions.py:answer_inquiry",), "command line": (f"{CLI}/asking.py:reply",)},
    ),
    "extend": Act(
        REVIEWERS,
        ("desk.extend",),
        {"API": (f"{API}/suspensions.py:extend_item",), "page": (f"{PAGES}/items.py:_extend",)},
    ),
    "retract a decision": Act(
        "the person who decided",
        ("desk.retract", "undo_on_card", "client.retract"),
        {
            "API": (f"{API}/suspensions.py:retract_decision",),
            "page": (f"{PAGES}/handling.py:retract",),
            "Slack": (f"{SLACK}:press",),
            "Teams": (f"{TEAMS}:_act",),
            "Telegram": (f"{TELEGRAM}:_press",),
            "card of any channel": ("service/channels/deciding.py:undo_on_card",),
            "command line": (f"{CLI}/reviews.py:retract",),
        },
    ),
    "confirm": Act(
        "the person for whom the agent acts",
        ("desk.confirm", "client.confirm"),
        {
            "API": (f"{API}/suspensions.py:confirm_item",),
            "page": (f"{PAGES}/handling.py:confirm",),
            "command line": (f"{CLI}/reviews.py:confirm",),
        },
    ),
    "claim": Act(
        REVIEWERS,
        ("desk.claim", "client.claim"),
        {
            "API": (f"{API}/suspensions.py:claim_item",),
            "page": (f"{PAGES}/handling.py:claim",),
            "command line": (f"{CLI}/reviews.py:claim",),
        },
    ),
    "release a claim": Act(
        "the person who claimed it",
        ("desk.release_claim", "client.release_claim"),
        {
            "API": (f"{API}/suspensions.py:release_item",),
            "page": (f"{PAGES}/handling.py:release",),
            "command line": (f"{CLI}/reviews.py:release",),
        },
    ),
    "forward": Act(
        REVIEWERS,
        ("desk.forward", "client.forward"),
        {
            "API": ("service/features/forwards.py:_forward",),
            "page": ("service/features/forwards.py:_forward",),
            "command line": (f"{CLI}/asking.py:forward",),
        },
    ),
    "invite somebody outside": Act(
        REVIEWERS,
        ("operations.invite", "outsiders.invite"),
        {
            "API": ("service/features/outsiders/api.py:invite_outsider",),
            "page": ("service/features/outsiders/pages.py:invite",),
            "command line": ("sayso/features/outsiders.py:invite",),
        },
    ),
    "revoke an invitation": Act(
        f"who invited, or {REVIEWERS}",
        ("desk.revoke_invitation", "outsiders.revoke_invitation"),
        {
            "API": ("service/features/outsiders/api.py:revoke_invitation",),
            "page": ("service/features/outsiders/pages.py:uninvite",),
            "command line": ("sayso/features/outsiders.py:invite",),
        },
    ),
    "decide outside": Act(
        "who was invited, by the link and a mailed code",
        ("_desk.decide_outside",),
        {"page": ("service/features/outsiders/inviting.py:decide",)},
    ),
    "ask for a preview": Act(
        REVIEWERS,
        ("desk.request_preview", "client.preview"),
        {
            "API": ("service/features/previews.py:preview_item",),
            "page": ("service/features/previews.py:ask_preview", f"{PAGES}/content/edits.py:review_edit"),
            "command line": (f"{CLI}/reviews.py:preview",),
        },
    ),
    "write to the agent": Act(
        REVIEWERS,
        ("desk.write_note", "client.write_note"),
        {
            "API": ("service/features/notes.py:write_note",),
            "page": ("service/features/notes.py:send_note",),
            "command line": (f"{CLI}/reviews.py:note",),
        },
    ),
    "cancel": Act(
        DENIERS,
        ("desk.cancel", "client.cancel"),
        {
            "API": (f"{API}/runs.py:cancel_run",),
            "page": (f"{PAGES}/runs.py:cancel",),
            "command line": (f"{CLI}/runs.py:cancel",),
            "MCP proxy": (
                "sayso/adapters/mcp/proxies.py:_obtain",
                "sayso/adapters/mcp/tasks.py:cancel",
            ),
            "AG-UI proxy": ("sayso/adapters/agui/proxies.py:_cancel",),
            "workers": ("service/core/operations/runs.py:withdraw_run",),
        },
    ),
    "withdraw": Act(
        REQUESTER,
        ("desk.withdraw",),
        {
            "Agent Approval Protocol": (f"{AAP}:cancel_request",),
            "API": (f"{GRANTS}:revoke_mandate",),
            "workers": ("service/core/operations/runs.py:withdraw_all",),
        },
    ),
    "revive": Act(
        "a person",
        ("desk.revive",),
        {"API": (f"{API}/runs.py:revive_run",), "page": (f"{PAGES}/runs.py:revive",)},
    ),
    "erase": Act(
        ADMINS,
        ("erase_run",),
        {
            "API": (f"{API}/runs.py:erase_run",),
            "page": (f"{PAGES}/runs.py:erase",),
            "command line": (f"{CLI}/runs.py:erase",),
        },
    ),
    "freeze": Act(
        ADMINS,
        ("freezes.freeze", "freeze_known", "administration.freeze"),
        {
            "API": (f"{API}/freezes.py:freeze",),
            "page": ("service/features/operate/pages.py:freeze",),
            "command line": (f"{CLI}/operations.py:freeze",),
            "names known to the desk": ("service/core/operations/known_names.py:freeze_known",),
        },
    ),
    "unfreeze": Act(
        ADMINS,
        ("freezes.unfreeze", "administration.unfreeze"),
        {
            "API": (f"{API}/freezes.py:unfreeze",),
            "page": ("service/features/operate/pages.py:unfreeze",),
            "command line": (f"{CLI}/operations.py:unfreeze",),
        },
    ),
    "be absent and delegate": Act(
        PERSONS,
        ("duty.add_absence", "requests.add_absence"),
        {
            "API": (f"{PEOPLE}/directory_api.py:_add",),
            "page": (f"{PEOPLE}/account_pages.py:add_absence",),
            "command line": (f"{CLI}/duty.py:add",),
        },
    ),
    "end an absence": Act(
        PERSONS,
        ("duty.delete_absence", "requests.delete_absence"),
        {
            "API": (f"{PEOPLE}/directory_api.py:delete_own_absence", f"{PEOPLE}/directory_api.py:delete_absence"),
            "page": (f"{PEOPLE}/account_pages.py:delete_absence",),
            "command line": (f"{CLI}/duty.py:delete",),
        },
    ),
    "take a second look": Act(
        "a person who had no part in the call",
        ("desk.take_second_look", "requests.take_second_look"),
        {
            "API": ("service/features/control/api.py:take",),
            "page": ("service/features/control/api.py:take_by_form",),
            "command line": ("sayso/features/control.py:_take",),
        },
    ),
    "revoke a grant": Act(
        "who may approve calls of its rule",
        ("feature(Granting).revoke", "rulebook.revoke_grant"),
        {"API": (f"{GRANTS}:revoke_grant",), "command line": (f"{COMMANDS_OF_GRANTS}:revoke",)},
    ),
    "add a person": Act(
        ADMINS,
        ("add_reviewer",),
        {
            "API": (f"{PEOPLE}/api.py:add_reviewer",),
            "page": (f"{PEOPLE}/admin_pages.py:add",),
            "identity provider": ("service/features/sign_in/accounts.py:_add_person",),
            "command line": (f"{CLI}/people.py:add",),
        },
    ),
    "set a password": Act(
        ADMINS,
        ("reset_password", "administration.set_password"),
        {
            "API": (f"{PEOPLE}/api.py:set_password",),
            "page": (f"{PEOPLE}/admin_pages.py:change",),
            "command line": (f"{CLI}/people.py:reset_password",),
        },
    ),
}
"""The acts that more than one door offers, and the two that only agents' programs have."""

DESK = ("sayso/core/", "sayso/testing/", "service/core/desk/")
OUTSIDE = (*DESK, "sayso/client/", "service/core/auth/")
"""The parts that an act goes through: the desk and its transitions, accounts, and the client that commands use."""

PURE = {
    "sayso/features/permissions/making.py:decide",
    "service/channels/previews.py:suspend",
    "service/core/store/tenants.py:decide",
}
"""Transitions that others may import: of an approval with a grant, of a sample, and a tenant's own function."""


@cache
def list_uses() -> Mapping[str, frozenset[str]]:
    """Return for each call or reference, such as `parts.desk.decide`, the functions in which it stands."""
    uses: dict[str, set[str]] = defaultdict(set)
    for path, function in functions():
        if not place(path).startswith(OUTSIDE):
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute | ast.Name):
                    uses[ast.unparse(node)].add(f"{place(path)}:{function.name}")
    return {used: frozenset(places) for used, places in uses.items()}


def find_callers(core: tuple[str, ...]) -> set[str]:
    """Return the functions that use one of these."""
    pattern = re.compile(rf"(?:.*\.)?(?:{'|'.join(map(re.escape, core))})")
    return {function for used, functions in list_uses().items() if pattern.fullmatch(used) for function in functions}


@pytest.mark.parametrize("name", ACTS)
def test_act_goes_through_the_core_at_each_door_of_the_table(name: str) -> None:
    act = ACTS[name]
    listed = {function for functions in act.doors.values() for function in functions}
    assert find_callers(act.core) == listed, f"{name} needs: {act.right}"


def test_no_door_makes_a_transition_itself() -> None:
    """A function of the transitions that returns a change is imported by the desk alone."""
    made = {
        (place(path).removesuffix(".py").replace("/", "."), function.name)
        for path, function in functions()
        if place(path).startswith("sayso/core/transitions/") and ast.unparse(function.returns or ast.Pass()) == "Change"
    }
    imported = {
        f"{place(path)}:{alias.name}"
        for path in modules()
        if not place(path).startswith(DESK)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (node.module, alias.name) in made
    }
    assert len(made) > 40
    assert imported == PURE


def test_channels_that_take_decisions_are_doors() -> None:
    """A channel that people answer in is in the table; the others link to the page."""
    listed = {function.split("/")[2] for functions in DECIDE.doors.values() for function in functions}
    answered = {name for name, kind in KINDS.items() if kind.router is not None or kind.listen is not None}
    assert listed & set(KINDS) == answered
