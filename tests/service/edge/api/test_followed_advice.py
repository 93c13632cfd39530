"""Refusals of the API that give advice: each is followed, and the advice leads to success.

`UNFOLLOWED` lists by module the advice that no test follows yet. Advice in neither fails the last tests, and so does an
entry that no longer exists or is followed.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sayso import errors
from sayso.core.problems import problem_type_of
from sayso.errors import SaysoError
from service.core.outgoing.connections import UnsafeUrl
from service.core.settings import CHECKOUT, Settings
from tests.sayso.test_followed_advice import CASES as SDK
from tests.sayso.testing.test_followed_plans import CASES as PLANS
from tests.service.edge.api.advice import (
    calls,
    discussions,
    people,
    rulebook,
    test_desk,
    test_files,
    test_signed,
    webhooks,
)
from tests.service.edge.api.advice.people import add_group, add_key, add_person
from tests.service.edge.api.advice.steps import POLICY, Case, Kept, Step, read_detail, see, send, sign_in
from tests.service.edge.api.advice.webhooks import add_sender
from tests.service.edge.api.test_advice import SOURCES
from tests.service.edge.api.test_advice_on_runs import FOLLOWED as RUNS
from tests.service.edge.api.test_execution import ask, decide, post
from tests.service.edge.web.test_followed_advice import FOLLOWED as FORMS
from tests.service.edge.web.test_followed_page_advice import FOLLOWED as PAGES
from tests.service.worlds import World

UNFOLLOWED = Path(__file__).parent / "advice" / "unfollowed.txt"
CALL = {"tool": "pay", "args": {}, "agent": "demo"}


def absent(first: int, last: int, delegate: str | None = None) -> Step:
    body = {"starts_at": f"2099-01-{first:02}T00:00:00Z", "ends_at": f"2099-01-{last:02}T00:00:00Z"}
    return Step("anna", "POST", "account/absences", {**body, "delegate": delegate})


def manager(name: str, of: str = "anna") -> Step:
    return Step("root", "POST", f"reviewers/{of}/manager", {"manager": name})


def receive(url: str) -> Step:
    return Step("root", "POST", "webhooks/endpoints", {"url": url})


def revoke(path: str) -> Step:
    return Step("anna", "POST", f"{path}/none/revoke")


def explain(**body: Any) -> Step:
    return Step("anna", "POST", "policy/explain", body)


PEOPLE, PERSONS, KEYS = (
    "service/core/auth/reviewers.py",
    "service/core/operations/people.py",
    "service/core/auth/api_keys.py",
)
GROUPS, DUTY, ADDRESSES = (
    "service/core/auth/groups.py",
    "service/core/auth/duty.py",
    "service/core/outgoing/connections.py",
)
VIEWS = "service/features/saved_views.py"
SENDERS, PLATFORM = "service/features/webhooks/endpoints.py", {"kind": "provisioner"}


def drop(path: str) -> Step:
    return Step("anna", "DELETE", f"account/{path}/none")


CASES = [
    Case(PERSONS, "Choose another name", add_person("anna"), (add_person("ben"),)),
    Case(PEOPLE, "Choose another name", add_person("policy"), (add_person("ben"),)),
    Case(
        "service/core/auth/passwords.py",
        "Choose a longer sentence",
        add_person("b", password="password1234"),
        (add_person("b"),),
    ),
    Case(
        "service/features/history/api.py",
        "Give one of",
        Step("anna", "GET", "history?verdict=perhaps"),
        see("history?verdict=denied"),
        rest=" approved, answered, denied, cancelled, not_run, in_doubt, failed",
    ),
    Case(KEYS, "Choose another name", add_key("policy"), (add_key("bot"),)),
    Case(KEYS, "Correct the name", add_key("bot", owner="nobody"), (add_key("bot", owner="anna"),)),
    Case(KEYS, "Leave out the owner", add_key("p", owner="anna", **PLATFORM), (add_key("p", **PLATFORM),)),
    Case(GROUPS, "Choose another name", add_group("a", "anna"), (add_group("b", "anna"),), (add_group("a", "anna"),)),
    Case(GROUPS, "Correct the name, or add the person", add_group("a", "nobody"), (add_group("a", "anna"),)),
    Case(GROUPS, "List the groups to see their names", Step("root", "DELETE", "groups/none"), see("groups")),
    Case(DUTY, "Correct the times", absent(9, 2), (absent(2, 9),)),
    Case(DUTY, "Name somebody else, or nobody", absent(2, 9, "anna"), (absent(2, 9),)),
    Case(DUTY, "Name another delegate", absent(2, 9, "nobody"), (absent(2, 9, "root"),)),
    Case(DUTY, "List the absences to see their ids", drop("absences"), see("account/absences")),
    Case(
        "service/core/auth/contacts.py", "List the contacts to see their ids", drop("contacts"), see("account/contacts")
    ),
    Case(VIEWS, "List your views to see their ids", drop("views"), see("account/views")),
    Case(SENDERS, "Rotate its secret, or choose another name", add_sender("a"), (add_sender("b"),), (add_sender("a"),)),
    Case(
        SENDERS,
        "Add the reviewer first",
        add_sender("a", reviewer="ben"),
        (add_person("ben"), add_sender("a", reviewer="ben")),
    ),
    Case(PEOPLE, "Choose another person", manager("anna"), (manager("root"),)),
    Case(PEOPLE, "Correct the name", manager("nobody"), (manager("root"),)),
    Case(
        PEOPLE, "Check both and try again", sign_in("ben", "wrong wrong wrong"), (sign_in("ben"),), (add_person("ben"),)
    ),
    Case(ADDRESSES, "Use https, ", receive("http://a.example.com/"), (receive("https://a.example.com/"),)),
    Case(
        ADDRESSES, "Use one such as https://agent", receive("https://[::1/"), (receive("https://agent.example.com/"),)
    ),
    Case(
        ADDRESSES, "Use one that the internet can reach, ", receive("https://10.0.0.1/"), (receive("https://1.1.1.1/"),)
    ),
    Case("service/features/permissions/desk.py", "List the grants to see their ids", revoke("grants"), see("grants")),
    Case("service/features/whatif/api.py", "Send a call, an item, or both", explain(), (explain(call=CALL),)),
]


AREAS = (calls, people, discussions, rulebook, webhooks)
CASES += [case for area in AREAS for case in area.CASES]


@pytest.fixture
def settings(request: pytest.FixtureRequest, clean_store_url: str, tmp_path: Path) -> Settings:
    case = getattr(request.node, "callspec", None) and request.node.callspec.params["case"]
    (tmp_path / "policy.yaml").write_text(POLICY)
    fields: dict[str, Any] = {**case.settings} if case else {}
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml", **fields)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.refused.path}: {case.advice}")
async def test_followed_advice_leads_to_success(world: World, case: Case) -> None:
    kept = Kept()
    for step in case.before:
        answer = await send(world, step, kept)
        assert answer.is_success, answer.text
    refused = await send(world, case.refused, kept)
    assert 400 <= refused.status_code < 500, refused.text
    assert case.advice + case.rest in read_detail(refused), refused.text
    for step in case.followed:
        answer = await send(world, step, kept)
        assert answer.is_success, answer.text


FOLLOWED = [
    ("sayso/core/transitions/client_execution.py", "Redeem it before the call starts"),
    ("sayso/core/transitions/deciding.py", "Read the suspension to see its items"),
    ("service/channels/previews.py", "Name a person"),
    ("service/features/permissions/desk.py", "Wait for more, or grant like calls beside an approval"),
    ("service/features/operate/metrics.py", "Set"),
    ("service/features/control/drills.py", "Name one of its reviewers:"),
    ("service/features/rulebook/versions.py", "Read it again before you attest it"),
    ("service/features/discussions/store.py", "Send a new key"),
]
FOLLOWED += [*test_signed.FOLLOWED, *test_files.FOLLOWED, *test_desk.FOLLOWED, *FORMS, *PAGES]
"""Advice that the next tests follow, and tests of channels, grants, metrics, drills and attestations."""


async def test_advice_about_a_call_leads_to_its_result(world: World) -> None:
    suspension = (await ask(world)).json()
    item = f"{suspension['id']}/items/i1"
    missing = await post(
        world, "anna", f"{suspension['id']}/items/i9/decision", body={"action": "deny", "digest": "0" * 64}
    )
    assert "Read the suspension to see its items" in missing.json()["detail"], missing.text
    (shown,) = (await send(world, Step("anna", "GET", f"suspensions/{suspension['id']}"))).json()["items"]
    refused = await post(
        world, "anna", f"{item}/decision", body={"action": "value", "value": 1, "digest": shown["digest"]}
    )
    assert "send approve or deny" in refused.json()["detail"], refused.text
    await decide(world, suspension)
    early = await post(world, "demo", f"{item}/outcome", "k", {"success": True, "output": 1})
    assert "Redeem it before the call starts" in early.json()["detail"], early.text
    assert (await post(world, "demo", f"{item}/redeem", "k")).is_success
    assert (await post(world, "demo", f"{item}/outcome", "k", {"success": True, "output": 1})).is_success


async def test_advice_about_a_used_key_leads_to_a_comment(world: World) -> None:
    place = f"{(await ask(world)).json()['id']}/items/i1/comments"
    assert (await post(world, "anna", place, "k1", {"text": "one"})).is_success
    refused = await post(world, "anna", place, "k1", {"text": "two"})
    assert "Send a new key" in refused.json()["detail"], refused.text
    assert (await post(world, "anna", place, "k2", {"text": "two"})).is_success


def is_refusal(function: ast.expr) -> bool:
    """Return whether this is the class of an error that the API answers with a status of 4xx."""
    name = getattr(function, "attr", getattr(function, "id", ""))
    kind = UnsafeUrl if name == UnsafeUrl.__name__ else getattr(errors, name, None)
    return isinstance(kind, type) and issubclass(kind, SaysoError) and 400 <= problem_type_of(kind).status < 500


_VERBS = (
    "Add|Approve|Ask|Attest|Call|Cancel|Change|Check|Choose|Close|Compare|Confirm|Correct|Create|Decide|Delete|Deny|Encode|"
    r"End|Enter|Flatten|Give|Grant(?! \{)|Leave|Let|Link|List|Lower|Make|Move|Name|Open|Point|Propose|Put|Raise|Read|"
    r"Redeem|Register|Reload|Remove|Rename|Repeat|Report|Restore|Revoke|Rotate|Run(?! \{)|Save|See|Select|Send|Set|"
    "Shorten|Sign in|Split|Start|Try|Type|Unfreeze|Update|Use|Verify|Wait|Write|"
    "Annotate|Attach|Begin|Deactivate|Decorate|Deploy|Freeze|Gate|Install|Limit|Omit|Paste|Plan|Reply|Request|Resume|"
    "Return|Say|Show|Simplify|Suspend|Tick|Trim|Turn"
)
_ADVICE = re.compile(rf"(?:^|(?<=[.!?;:] ))((?:{_VERBS})\b[^.;{{]*)")


def read_text(node: ast.expr) -> str:
    """Return the literal parts of a text, `{` for what is computed."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(one.value) if isinstance(one, ast.Constant) else "{" for one in node.values)
    if isinstance(node, ast.Call):
        return " ".join(map(read_text, node.args))
    if isinstance(node, ast.IfExp):
        return f"{read_text(node.body)} {read_text(node.orelse)}"
    return ""


def list_advice() -> Iterator[tuple[str, str]]:
    """Yield each module with each advice of the errors that it makes, which the API answers with a status of 4xx."""
    for folder in ("sayso", "service"):
        for path in sorted((CHECKOUT / folder).rglob("*.py")):
            module = str(path.relative_to(CHECKOUT))
            elsewhere = module.startswith(("sayso/cli/", "sayso/adapters", "sayso/testing")) or path.stem.endswith(
                "commands"
            )
            if module in SOURCES or elsewhere:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                for text in map(read_text, node.args) if isinstance(node, ast.Call) and is_refusal(node.func) else ():
                    yield from ((module, found[1].strip()) for found in _ADVICE.finditer(text))


def list_followed() -> set[str]:
    found = [(one.module, one.advice) for one in CASES] + [(one.module, one.advice) for one in (*SDK, *PLANS)]
    return {f"{module}: {advice.strip()}" for module, advice in (*found, *FOLLOWED, *RUNS)}


def test_every_advice_is_followed_or_listed() -> None:
    listed = UNFOLLOWED.read_text().splitlines()
    found, followed = {f"{module}: {advice}" for module, advice in list_advice()}, list_followed()
    assert sorted(followed - found) == [], "the code no longer gives this advice"
    assert sorted(found - followed - {*listed}) == [], "follow it in CASES"
    assert sorted({*listed} - (found - followed)) == [], "it is followed or gone; remove its line"
    assert listed == sorted(listed)
