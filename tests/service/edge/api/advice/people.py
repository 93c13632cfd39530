"""Advice about people, their keys and passwords, their groups, absences and views."""

from typing import Any

from service.core.auth.roles import MOST_ROLES
from tests.builders import PASSWORD as ANNAS
from tests.service.edge.api.advice.steps import PASSWORD, Case, Step, ask, call, decide, see, sign_in

KEYS, GROUPS, DUTY = "service/core/auth/api_keys.py", "service/core/auth/groups.py", "service/core/auth/duty.py"
PASSWORDS, REVIEWERS = "service/core/auth/passwords.py", "service/core/auth/reviewers.py"
CREDENTIALS, ROLES = "service/core/auth/credentials.py", "service/core/auth/roles.py"
BREAKING = "service/features/break_glass/breaking.py"
OWN_KEYS = PEOPLE = "service/core/operations/people.py"


def add_person(name: str, *roles: str, password: str = PASSWORD) -> Step:
    return Step("root", "POST", "reviewers", {"name": name, "password": password, "roles": [*roles] or ["reviewer"]})


def add_key(name: str, who: str = "root", kind: str = "agent", **fields: str) -> Step:
    return Step(who, "POST", "keys", {"name": name, "kind": kind, **fields}, {"id": "id", "key": "key"})


def narrow(name: str, **fields: Any) -> Step:
    """Make a key with terms, and keep its secret under its name."""
    return Step("root", "POST", "keys", {"name": name, **fields}, {name: "key"})


def add_group(name: str, *members: str, editors: tuple[str, ...] = (), times: int = 1) -> Step:
    body = {"name": name, "members": list(members), "editors": list(editors)}
    return Step("root", "POST", "groups", body, times=times)


def change_group(who: str, *members: str, editors: tuple[str, ...] = ()) -> Step:
    return Step(who, "PUT", "groups/a", {"members": list(members), "editors": list(editors)})


def save_role(name: str, *permissions: str, who: str = "root", times: int = 1, **limits: list[str]) -> Step:
    body = {"permissions": [*permissions] or ["read_items"], **limits}
    return Step(who, "PUT", f"roles/{name}", body, times=times)


def drop_role(name: str) -> Step:
    return Step("root", "DELETE", f"roles/{name}")


def give_roles(name: str, *roles: str, who: str = "root") -> Step:
    return Step(who, "PUT", f"reviewers/{name}/roles", {"roles": [*roles]})


def break_glass(who: str, reason: str = "Payments are down, and no admin answers") -> Step:
    return Step(who, "POST", "break-glass", {"reason": reason})


def absent(year: int | str, times: int = 1) -> Step:
    body = {"starts_at": f"{year}-01-01T00:00:00Z", "ends_at": f"{year}-02-01T00:00:00Z"}
    return Step("anna", "POST", "account/absences", body, {"absence": "id"}, times=times)


def drop_absence() -> Step:
    return Step("anna", "DELETE", "account/absences/{absence}")


def view(name: str, times: int = 1) -> Step:
    return Step("anna", "POST", "account/views", {"name": name, "search": "is:mine"}, {"view": "id"}, times=times)


def password(who: str, current: str, new: str, **keep: str) -> Step:
    return Step(who, "POST", "account/password", {"current": current, "password": new}, keep)


def sessions(who: str) -> Step:
    return Step(who, "GET", "account/sessions")


STAFF = (save_role("staff", "read_items", "manage_people"), add_person("sam", "staff"), sign_in("sam"))
"""Sam manages people, and may do less than an admin."""

OTHER: Any = "copper beacon beneath a silent harbour"
CASES = [
    Case(
        KEYS,
        "Create a new one instead",
        Step("root", "POST", "keys/{id}/rotate"),
        (add_key("bot"),),
        (add_key("bot"), Step("root", "POST", "keys/{id}/revoke")),
    ),
    Case(
        KEYS,
        "Choose a later time",
        narrow("bot", expires_at="2020-01-01T00:00:00Z"),
        (narrow("bot", expires_at="2099-01-01T00:00:00Z"),),
    ),
    Case(
        KEYS,
        "Leave them out",
        narrow("gate", kind="provisioner", scopes=["read"]),
        (narrow("gate", kind="provisioner"),),
    ),
    Case(
        KEYS,
        "Write it as a range such as 2001:db8::/32",
        narrow("bot", networks=["office"]),
        (narrow("bot", networks=["2001:db8::/32"]),),
    ),
    Case(
        CREDENTIALS,
        "Use a key with that scope",
        Step("@bot", "POST", "suspensions", {"calls": [call("pay")], "mode": "poll"}),
        (narrow("bot", scopes=["ask"]), Step("@bot", "POST", "suspensions", {"calls": [call("pay")], "mode": "poll"})),
        (narrow("bot", scopes=["read"]),),
    ),
    Case(
        CREDENTIALS,
        "Use that agent's own key",
        Step("@bot", "POST", "runs", {"agent": "demo", "input": "x"}),
        (narrow("bot", agents=["demo"]), Step("@bot", "POST", "runs", {"agent": "demo", "input": "x"})),
        (narrow("bot", agents=["billing"]),),
    ),
    Case(
        CREDENTIALS,
        "Use it from its own network",
        Step("@bot", "GET", "suspensions"),
        (narrow("bot", networks=["127.0.0.1/32"]), Step("@bot", "GET", "suspensions")),
        (narrow("bot", networks=["192.0.2.0/24"]),),
    ),
    Case(
        CREDENTIALS,
        "Change it first: on the page Me, or with `sayso password`",
        add_key("ben", "@ben", "reviewer"),
        (password("@ben", PASSWORD, OTHER, ben="token"), add_key("ben", "@ben", "reviewer")),
        (add_person("ben"), sign_in("ben")),
    ),
    Case(
        CREDENTIALS,
        "Sign in again, or ask for a new key",
        sessions("@anna"),
        (sign_in("anna", ANNAS), sessions("@anna")),
        (sign_in("anna", ANNAS), Step("@anna", "DELETE", "sessions/current")),
    ),
    Case(DUTY, "Delete that absence first", absent(2099), (drop_absence(), absent(2099)), (absent(2099),)),
    Case(DUTY, "Delete one first", absent(2099), (drop_absence(), absent(2099)), (absent("22{n}", times=50),)),
    Case(
        GROUPS,
        "Ask",
        change_group("anna", "anna", "root"),
        (change_group("root", "anna", "root"),),
        (add_group("a", "anna"),),
        rest=" an admin",
    ),
    Case(
        GROUPS,
        "Ask an admin",
        change_group("anna", "root", editors=("anna", "root")),
        (change_group("root", "root", editors=("anna", "root")),),
        (add_group("a", "anna", editors=("anna",)),),
    ),
    Case(
        GROUPS,
        "Delete one first",
        add_group("b", "anna"),
        (Step("root", "DELETE", "groups/g17"), add_group("b", "anna")),
        (add_group("g{n}", "anna", times=500),),
    ),
    Case(ROLES, "Choose another", save_role("admin"), (save_role("refunds"),)),
    Case(
        ROLES,
        "Leave out tools, agents and groups, or add decide",
        save_role("refunds", "read_items", tools=["refund*"]),
        (save_role("refunds", "read_items", "decide", tools=["refund*"]), save_role("readers", "read_items")),
    ),
    Case(ROLES, "Use some of", save_role("refunds", "fly"), (save_role("refunds", "decide"),)),
    Case(
        ROLES,
        "Delete one first",
        save_role("one_more"),
        (drop_role("r10"), save_role("one_more")),
        (save_role("r{n}", times=MOST_ROLES),),
    ),
    Case(ROLES, "Ask an admin", save_role("mine", "freeze", who="@sam"), (save_role("mine", "freeze"),), STAFF),
    Case(ROLES, "List the roles to see their names", drop_role("none"), see("roles")),
    Case(
        ROLES,
        "Give them other roles first",
        drop_role("refunds"),
        (give_roles("ben", "reviewer"), drop_role("refunds")),
        (save_role("refunds"), add_person("ben", "refunds")),
    ),
    Case(PEOPLE, "Ask an admin", give_roles("anna", "admin", who="@sam"), (give_roles("anna", "admin"),), STAFF),
    Case(
        "sayso/core/transitions/decision_checks.py",
        "Ask an admin for one that does",
        decide("@ben"),
        (give_roles("ben", "reviewer"), sign_in("ben"), decide("@ben")),
        (save_role("refunds", "decide", tools=["refund*"]), add_person("ben", "refunds"), sign_in("ben"), ask()),
    ),
    Case(
        "service/features/evidence/api.py",
        "Give either run or from",
        Step("root", "GET", "evidence"),
        see("evidence?run={run}", "root"),
        (ask(),),
    ),
    Case(
        BREAKING,
        "Sign in first",
        Step("@key", "DELETE", "break-glass"),
        (sign_in("anna", ANNAS), break_glass("@anna"), Step("@anna", "DELETE", "break-glass")),
        (give_roles("anna", "operator", "reviewer"), add_key("anna", "anna", "reviewer")),
    ),
    Case(
        BREAKING,
        "Say what happens",
        break_glass("anna", "help"),
        (break_glass("anna"),),
        (give_roles("anna", "operator"),),
    ),
    Case(PASSWORDS, "Choose another", add_person("ben", password="short"), (add_person("ben"),)),
    Case(
        REVIEWERS,
        "Choose another",
        password("anna", ANNAS, ANNAS),
        (password("anna", ANNAS, OTHER),),
    ),
    Case(
        REVIEWERS,
        "List the sessions to see the valid ones",
        Step("anna", "DELETE", "account/sessions/none"),
        see("account/sessions"),
    ),
    Case(OWN_KEYS, "Choose another name", add_key("anna"), (add_key("bot"),)),
    Case(
        OWN_KEYS,
        "Sign in with your password first",
        Step("@key", "GET", "keys"),
        (sign_in("anna", ANNAS), Step("@anna", "GET", "keys")),
        (add_key("anna", "anna", "reviewer"),),
    ),
    Case(
        "service/features/people/api.py",
        "Sign in as a person first",
        sessions("@key"),
        (sign_in("anna", ANNAS), sessions("@anna")),
        (add_key("anna", "anna", "reviewer"),),
    ),
    Case(
        PEOPLE,
        "Ask another admin, or add one first",
        Step("root", "POST", "reviewers/root/deactivate"),
        (
            add_person("sue", "reviewer", "admin"),
            sign_in("sue"),
            Step("@sue", "POST", "reviewers/root/deactivate"),
        ),
    ),
    Case(
        "service/features/saved_views.py",
        "Delete one first",
        view("one more"),
        (Step("anna", "DELETE", "account/views/{view}"), view("one more")),
        (view("v{n}", times=20),),
    ),
    Case(
        "service/core/auth/person_tokens.py",
        "Set SAYSO_TOKEN_ISSUERS, or send none",
        ask()._replace(headers={"Sayso-On-Behalf-Of": "a.b.c"}),
        (ask(),),
    ),
]
