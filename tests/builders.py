"""Make what tests of the service need beside the one thing they are about: people, keys, runs, things that wait."""

from functools import cache
from pathlib import Path
from typing import Any

from pwdlib import PasswordHash
from redis.asyncio import Redis

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id, new_secret, now_ms
from sayso.core.records.decisions import Actor, ActorKind, DecisionRequest
from sayso.core.records.items import Answer, Item, ItemDraft, ItemKind, ItemTool, digest_item
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, RunEnd, RunRef, RunStatus, SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolDefinition
from sayso.core.transitions.deciding import suspend
from sayso.core.transitions.execution import Fence, lease
from sayso.core.transitions.execution import give_up as fail
from sayso.runner.agents import AgentManifest
from service.core.auth.reviewers import hash_token
from service.core.desk.changes import draft_suspension
from service.core.settings.limits import TENANT
from service.core.store.connection.sealing import Keyring, Sealer
from service.core.store.people import Reviewer, Session
from service.core.store.tenants import Connections, TenantStore
from service.core.wiring import Wiring
from service.features.registry import HOOKS
from tests.waits import until


def store_of(redis: Redis, tenant: str = TENANT, key_file: Path | None = None) -> TenantStore:
    """Return the store of a tenant on connections of its own."""
    return TenantStore(Connections(redis, keyring=Keyring(key_file)), tenant, HOOKS)


CLEAR = Sealer(Keyring(), TENANT)
"""What encrypts nothing."""

PASSWORD = "correct horse battery"
SESSION_MS = 3_600_000

REFUND = ToolDefinition(
    name="refund",
    description="Pay a customer back.",
    parameters={
        "type": "object",
        "properties": {"order": {"type": "string"}, "amount": {"type": "number", "maximum": 1000}},
        "required": ["order", "amount"],
        "additionalProperties": False,
    },
)


def person(name: str, channel: str = "api") -> Actor:
    """A reviewer."""
    return Actor(id=name, kind=ActorKind.HUMAN, channel=channel)


def ask(
    index: int = 0, *, kind: ItemKind = ItemKind.APPROVAL, terms: RuleTerms | None = None, **args: Any
) -> ItemDraft:
    """A refund to be approved, or its amount to be given."""
    given = kind is ItemKind.INPUT
    return ItemDraft(
        kind=kind,
        call_id=f"call_{index}",
        index=index,
        tool=ItemTool(name=REFUND.name, args={"order": "A-1", "amount": 250.5, **args}, definition=REFUND.digest),
        allowed=(Answer.VALUE, Answer.DENY) if given else (Answer.APPROVE, Answer.EDIT, Answer.DENY),
        target_arg="amount" if given else None,
        terms=terms or RuleTerms(),
        rule_id="refunds",
        rule_version="v1",
    )


def with_deadline(record: SuspensionRecord, item: Item, at_ms: int) -> Item:
    """Return an item with another deadline and the digest that goes with it."""
    terms = item.terms.model_copy(update={"deadline_at_ms": at_ms})
    digest = digest_item(record.binding, item.item_id, item, item.tool.args, terms)
    return item.model_copy(update={"terms": terms, "digest": digest})


def run_ref(owner: str = "demo", **fields: Any) -> RunRef:
    """A run of the demo agent."""
    run_id = new_id("run")
    return RunRef(**{"id": run_id, "agent": "demo", "owner": owner, "thread_id": run_id, "title": "A refund", **fields})


async def make_pending(wiring: Wiring, *drafts: ItemDraft, owner: str = "demo", late_ms: int = 0) -> SuspensionRecord:
    """A run that waits for people, since `late_ms` ago."""
    await wiring.runs.save_definitions([REFUND])
    draft = draft_suspension(wiring.tenant, run_ref(owner), state=seal_state(b"{}"))

    def begin(at_ms: int) -> Change:
        return suspend(draft, drafts or (ask(),), at_ms - late_ms)

    return (await wiring.desk.suspensions.create(draft.id, begin)).record


async def make_running(wiring: Wiring, owner: str = "demo") -> SuspensionRecord:
    """A run that waits for its first worker."""
    return (await wiring.desk.start(run_ref(owner), seal_state(b"{}"))).record


async def approve(wiring: Wiring, record: SuspensionRecord, by: str = "anna", item: int = 0) -> SuspensionRecord:
    """The suspension after somebody approved one of its items."""
    asked = record.items[item]
    yes = DecisionRequest(action="approve", digest=asked.digest)
    return (await wiring.desk.decide(record.id, asked.item_id, yes, person(by))).record


async def answer_question(wiring: Wiring, record: SuspensionRecord, text: str) -> SuspensionRecord:
    """Answer the open question about the first item, as the requester."""
    item = (await wiring.desk.suspensions.read(record.id)).record.items[0]
    owner = Actor(id=record.run.owner, kind=ActorKind.AGENT)
    return (await wiring.desk.answer_inquiry(record.id, item.item_id, item.inquiries[-1].id, text, owner)).record


async def finish(
    wiring: Wiring, record: SuspensionRecord, status: RunStatus = RunStatus.COMPLETED, result: Any = None
) -> SuspensionRecord:
    """The suspension after a worker took its run up and ended it."""
    leased = (await wiring.desk.lease(record.id, "worker-1", 30_000)).record
    assert leased.lease is not None
    fence = Fence(holder="worker-1", attempt=leased.lease.attempt, lease_ms=30_000)
    return (await wiring.desk.settle(record.id, fence, RunEnd(status=status, result=result), ())).record


async def give_up(wiring: Wiring, record: SuspensionRecord) -> SuspensionRecord:
    """The suspension after its last try could not go on."""

    def verb(found: SuspensionRecord, at_ms: int) -> Change:
        taken = lease(found, "worker-1", 30_000, at_ms).record
        assert taken.lease is not None
        return fail(taken, Fence("worker-1", taken.lease.attempt, 30_000), "no such agent", (), at_ms)

    return (await wiring.desk.suspensions.change(record.id, verb)).record


async def make_person(wiring: Wiring, name: str, *roles: str) -> str:
    """A reviewer who is signed in; returns the session's token."""
    held = roles or ("reviewer",)
    reviewer = Reviewer(name=name, password_hash=_hash(PASSWORD), roles=held, created_at_ms=now_ms())
    await wiring.reviewers._people.save_reviewer(reviewer)
    token = new_secret()
    session = Session(tenant=wiring.tenant, name=name, roles=held, csrf=new_secret(), created_at_ms=now_ms())
    await wiring.reviewers._people.open_session(hash_token(token), session, SESSION_MS)
    return token


async def make_agent(wiring: Wiring, name: str) -> str:
    """An agent's key."""
    _, key = await wiring.api_keys.create(name)
    return key


async def make_key(wiring: Wiring, owner: str) -> str:
    """Give an agent's runs a key and return its id; runs from now on are younger than it."""
    key, _ = await wiring.api_keys.create(owner)
    await await_calls_after(wiring, key.created_at_ms)
    return key.id


async def await_calls_after(wiring: Wiring, at_ms: int) -> None:
    """Return when new calls are dated after this time of the store: their time lags by the delay of an answer."""

    async def is_after() -> bool:
        return await wiring.desk.suspensions.read_time_ms() > at_ms

    await until(is_after)


async def register_agent(wiring: Wiring, name: str = "demo", context: JsonObject | None = None) -> AgentManifest:
    """An agent as a worker publishes it."""
    manifest = AgentManifest(
        name=name,
        description="Helps.",
        approval_denial_policy="continue",
        tools=(REFUND,),
        digest="d" * 64,
        context=context or {},
    )
    await wiring.runs.save_agent(name, manifest.model_dump_json())
    return manifest


@cache
def _hash(password: str) -> str:
    return PasswordHash.recommended().hash(password)
