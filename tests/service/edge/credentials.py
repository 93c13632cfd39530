"""Every kind of credential, for the matrices of the API and of the pages."""

from collections.abc import Mapping

from sayso.core.records.decisions import Limit
from service.core.auth.roles import REVIEWER, ROLES, Rights, find_rights
from service.core.store.directory import Role
from service.core.store.people import KeyTerms
from tests.builders import make_person
from tests.service.worlds import World

HELD: Mapping[str, tuple[str, ...]] = {
    "anna": ("reviewer",),
    "rita": ("rule_author",),
    "otto": ("auditor",),
    "olga": ("operator",),
    "lim": ("refunds",),
    "root": ("reviewer", "admin"),
}
"""People with their roles."""

MADE = Role(name="refunds", permissions=("read_items", "decide"), limit=Limit(tools=("refund*",)))

STRANGERS = ("nobody", "a wrong key", "provisioner")
KEYS = ("demo", "other", "reads")
"""Agents' keys: `demo` owns the run, `other` does not, and `reads` is one of `demo` that may only read."""

ANNAS_KEY = "anna's key"
WHO = (*STRANGERS, *KEYS, *HELD, ANNAS_KEY)


def rights_of(who: str) -> Rights:
    """Return what a person may do, or the key of one."""
    rights = find_rights(HELD.get(who, (REVIEWER,)), {MADE.name: MADE})
    return rights.narrow(ROLES[REVIEWER]) if who == ANNAS_KEY else rights


async def add_credential(world: World, who: str) -> None:
    """Give the world this credential, if it does not have it."""
    if who == "lim":
        await world.wiring.roles.save(MADE, rights_of("root"))
    if who in HELD:
        world.tokens[who] = await make_person(world.wiring, who, *HELD[who])
    elif who == "reads":
        _, world.tokens[who] = await world.wiring.api_keys.create("demo", terms=KeyTerms(scopes=("read",)))
    elif who == "provisioner":
        _, world.tokens[who] = await world.wiring.api_keys.create("gate", kind="provisioner")
    elif who == ANNAS_KEY:
        _, world.tokens[who] = await world.wiring.api_keys.create("anna", kind="reviewer")
    elif who == "a wrong key":
        world.tokens[who] = "sayso_agent_" + "0" * 64
