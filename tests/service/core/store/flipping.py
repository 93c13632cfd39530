"""A desk with one of each kind of record, flips of each byte of it, and a probe of what they could gain."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from traceback import extract_tb
from typing import Any, NamedTuple
from uuid import UUID

from structlog.testing import capture_logs

from sayso.core.clock import now_ms
from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.permissions import Plan
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.terms import Quorum, RuleTerms
from sayso.core.records.tools import ToolCall
from sayso.errors import NotFound, SaysoError, Unreadable
from sayso.features.permissions.plans import draft_mandate
from service.assembly import open_process
from service.core.auth.roles import find_rights
from service.core.settings.limits import TENANT
from service.core.store.attempts import Replays
from service.core.store.connection.macs import PLAIN, find_kind
from service.core.store.directory import Emergency, EmergencyStore, Role, RoleStore
from service.core.store.keys import TenantKeys
from service.core.store.people import People
from service.core.store.suspensions.commits import Idempotency
from service.core.store.suspensions.schedule import read_ready
from service.core.wiring import Wiring
from service.features.passkeys.store import Challenge, Passkeys
from service.features.permissions.desk import Granting
from tests.builders import REFUND, approve, ask, finish, make_pending, make_person, person, run_ref
from tests.service.edge.api.aap.clients import connected, find, make_instance, make_provisioner
from tests.service.features.codes.apps import add_app
from tests.service.features.passkeys.forging import device, passkey_of
from tests.service.worlds import POLICY as USUAL
from tests.service.worlds import World

KEYS = TenantKeys(TENANT)
ORDER = "ORDER-7341"
POLICY = f"""{USUAL}
  - id: refunds
    tool: refund
    when: args.amount <= 500
    action: request_approval
    grants: {{longest: 1d, count: 10}}
    mandates: {{longest: 1d}}
"""
PEOPLE = {"anna": ("reviewer",), "mallory": ("auditor",), "root": ("reviewer", "admin")}


class Desk(NamedTuple):
    """What a desk holds, as its own process reads it: a suspension of each kind, and what people gave and have."""

    waiting: SuspensionRecord
    approved: SuspensionRecord
    ended: SuspensionRecord
    polled: SuspensionRecord
    edited: SuspensionRecord
    voted: SuspensionRecord
    granted: SuspensionRecord
    planned: SuspensionRecord
    requested: SuspensionRecord
    permissions: dict[str, object]

    @property
    def suspensions(self) -> tuple[SuspensionRecord, ...]:
        return self[:9]


async def furnish(world: World) -> Desk:
    """Make one of each kind of record on which power hangs."""
    wiring = world.wiring
    waiting = await make_pending(wiring, ask(order=ORDER))
    approved = await approve(wiring, await make_pending(wiring, ask(order=ORDER)))
    ended = await finish(wiring, await approve(wiring, await make_pending(wiring, ask(order=ORDER))))
    voted = await make_pending(wiring, ask(order=ORDER, terms=RuleTerms(quorum=Quorum(approve=2))))
    voted = await approve(wiring, voted)
    edited = await _decide(wiring, await make_pending(wiring, ask(order=ORDER)), args={"order": ORDER, "amount": 1})
    world.tokens["mallory"] = await make_person(wiring, "mallory", "auditor")
    await _furnish_people(wiring)
    await wiring.freezes.freeze("agent:nobody", "", person("root"))
    await wiring.rules.versions.attest("0" * 64, "anna", 1)
    await wiring.part(Replays).remember(Idempotency("demo", "one", "fingerprint", waiting.id))
    async with world.client("root") as root:
        hook = await root.post("/api/v1/webhooks/endpoints", json={"url": "https://127.0.0.1:9/hook"})
        assert hook.status_code == 201, hook.text
    async with world.client("demo") as demo:
        definition = {"parameters": {"type": "object", "properties": {"order": {"type": "string"}}}}
        call = {"tool": "pay_back", "args": {"order": ORDER}, "definition": definition}
        body = {"mode": "poll", "agent": "demo", "calls": [call]}
        made = await demo.post("/api/v1/suspensions", json=body, headers={"Idempotency-Key": "one"})
        assert made.status_code == 201, made.text
        place = f"/api/v1/suspensions/{waiting.id}/items/i1"
        assert (await demo.post(f"{place}/attachments", json={"name": "a", "content": "aGFsbG8="})).status_code == 200
    async with world.client("anna") as anna:
        assert (await anna.post(f"{place}/comments", json={"text": "Looks odd."})).status_code == 200
    requested = await _furnish_instance(world)
    granted, planned = await _furnish_permissions(wiring)
    polled = await _read(wiring, made.json()["id"])
    records = waiting, approved, ended, polled, edited, voted, granted, planned, requested
    read: list[Any] = [await _read(wiring, record.id) for record in records]
    return Desk._make([*read, await read_permissions(wiring)])


async def _furnish_people(wiring: Wiring) -> None:
    await wiring.groups.create("payments", ("anna",), (), "root")
    await wiring.duty.add_absence("anna", now_ms() + 86_400_000, now_ms() + 96_400_000, None, "anna")
    code = await wiring.contacts.create_code("anna", "telegram")
    await wiring.contacts.redeem_code("telegram", code.code, "4711")
    await wiring.contacts.create_code("anna", "telegram")
    await wiring.roles.save(Role(name="refunds", permissions=("read_items",)), find_rights(("admin",), {}))
    await add_app(wiring, "root")
    await wiring.part(Passkeys).add(passkey_of(device()))
    await wiring.part(Passkeys).save_challenge("0" * 64, Challenge(purpose="sign-in", browser="1" * 64))
    until_ms = now_ms() + 3_600_000
    taken = Emergency(
        person="anna", reason="The desk is on fire", at_ms=now_ms(), until_ms=until_ms, informed=("root",)
    )
    await wiring.part(EmergencyStore).save(taken)


async def _furnish_instance(world: World) -> SuspensionRecord:
    world.tokens["platform"] = await make_provisioner(world.wiring)
    async with make_instance(world, world.tokens["platform"]) as bot:
        world.tokens["bot"] = bot.token
        return await find(world.wiring, await bot.waiting(args={"order": ORDER}, timeout="12h"))


async def _furnish_permissions(wiring: Wiring) -> tuple[SuspensionRecord, SuspensionRecord]:
    """Give a grant, a mandate, and a call that the grant lets run."""
    call = ExternalCall(ToolCall(call_id="c", index=0, name="refund", args={"order": ORDER, "amount": 5}), REFUND)
    asked = (await wiring.desk.suspend(run_ref(), [call], ResumeSpec(mode="poll"))).record
    await _decide(wiring, asked, grant={"for_s": 86_400})
    granted = (await wiring.desk.suspend(run_ref(), [call], ResumeSpec(mode="poll"))).record
    assert granted.items[0].grant_id
    run, tool = run_ref(thread_id="t1"), {"tool": "refund", "equal": {"args.order": ORDER}, "free": ["args.amount"]}
    plan = Plan.model_validate({"for_s": 86_400, "count": 10, "tools": [tool]})
    proposed = await wiring.desk.propose(
        run, draft_mandate(wiring.rules.policy(), run, plan, {"refund": REFUND}), None, {}
    )
    return granted, await _decide(wiring, proposed.record)


async def _decide(wiring: Wiring, record: SuspensionRecord, **given: Any) -> SuspensionRecord:
    yes = DecisionRequest.model_validate({"action": "approve", "digest": record.items[0].digest, **given})
    return (await wiring.desk.decide(record.id, "i1", yes, person("anna"))).record


async def _read(wiring: Wiring, suspension_id: str) -> SuspensionRecord:
    return (await wiring.desk.suspensions.read(suspension_id)).record


async def read_permissions(wiring: Wiring) -> dict[str, object]:
    """Return all that gives somebody power beside roles and suspensions, by its name; what is refused is missing."""
    held: dict[str, object] = {}
    granting, passkeys = wiring.feature(Granting), wiring.part(Passkeys)
    for kept in (granting._store, granting.mandates._store):
        with suppress(SaysoError):
            held |= {grant.id: grant for grant in await kept.list_all()}
    for name in PEOPLE:
        with suppress(SaysoError):
            held |= {f"passkey {key.id}": key for key in await passkeys.list_of(name)}
        with suppress(SaysoError):
            reviewer = await wiring.part(People).find_reviewer(name)
            held |= {f"person {name}": reviewer} if reviewer is not None else {}
    with suppress(SaysoError):
        held |= {f"emergency {taken.person}": taken for taken in await wiring.part(EmergencyStore).list_all()}
    with suppress(SaysoError):
        held |= {f"role {role.name}": role for role in await wiring.part(RoleStore).list_all()}
    with suppress(SaysoError):
        held |= {f"key {key.id}": key for key in await wiring.part(People).list_keys()}
    return held


class Value(NamedTuple):
    """One stored value: its key, its type, its field or number, and its bytes."""

    key: str
    type: str
    place: Any
    raw: bytes

    async def write(self, store: Any, raw: bytes) -> None:
        if self.type == "string":
            await store.set(self.key, raw, keepttl=True)
        elif self.type == "hash":
            await store.hset(self.key, self.place, raw)
        elif self.type == "list":
            await store.lset(self.key, self.place, raw)
        elif self.type == "zset":
            score = await store.zscore(self.key, self.raw)
            await store.zrem(self.key, self.raw)
            await store.zadd(self.key, {raw: score or 0})
        else:
            await store.srem(self.key, self.raw)
            await store.sadd(self.key, raw)


async def read_values(store: Any) -> list[Value]:
    """Every value of every key."""
    values: list[Value] = []
    for name in sorted([key.decode() async for key in store.scan_iter(match="sayso:*")]):
        kind = (await store.type(name)).decode()
        if kind == "string":
            values.append(Value(name, kind, "", await store.get(name)))
        elif kind == "hash":
            values += [Value(name, kind, field, raw) for field, raw in sorted((await store.hgetall(name)).items())]
        elif kind == "list":
            values += [Value(name, kind, at, raw) for at, raw in enumerate(await store.lrange(name, 0, -1))]
        elif kind == "zset":
            values += [Value(name, kind, "", raw) for raw in await store.zrange(name, 0, -1)]
        elif kind == "set":
            values += [Value(name, kind, "", raw) for raw in sorted(await store.smembers(name))]
    return values


def flip(raw: bytes, at: int) -> bytes:
    """Return the bytes with another one in one place, which is text where the former was."""
    return raw[:at] + bytes([raw[at] ^ (1 if at % 2 else 0x10)]) + raw[at + 1 :]


@dataclass
class Probe:
    """Asks everything that a value of the store could change, and compares it with the desk as it was made."""

    world: World
    desk: Desk
    refused: int = 0
    ready: dict[str, SuspensionRecord] = field(default_factory=dict)

    async def check(self, what: str) -> bool:
        """Return whether anything was refused; fail where somebody gains something, or sees a changed call."""
        before = self.refused
        with capture_logs() as logs:
            async with open_process(self.world.wiring.settings) as process:
                await self._check_inside(process.wiring, what)
                await self._check_worker(process.wiring, what)
            await self._check_outside(what)
        assert not [log for log in logs if log.get("exc_info")], (what, logs)
        return self.refused > before

    async def _check_inside(self, wiring: Wiring, what: str) -> None:
        for record in self.desk.suspensions:
            try:
                read = (await wiring.desk.suspensions.read(record.id)).record
            except (Unreadable, NotFound):
                self.refused += 1
            else:
                assert read == record, what
            with suppress(SaysoError):
                assert (await wiring.runs.read(record.run.id)).suspension_id == record.id, what
        for name, roles in PEOPLE.items():
            with suppress(SaysoError):
                reviewer, groups = await wiring.reviewers._people.find_with_groups(name)
                assert reviewer is None or reviewer.roles == roles, what
                assert set(groups) <= ({"payments"} if name == "anna" else set()), what
        for name in (*PEOPLE, "demo", "other"):
            try:
                assert (await wiring.credentials.identify(self.world.tokens[name])).name == name, what
            except SaysoError:
                self.refused += 1
        held = await read_permissions(wiring)
        assert held.items() <= self.desk.permissions.items(), what
        self.refused += len(held) < len(self.desk.permissions)
        with suppress(SaysoError):
            assert await wiring.rules.versions.count_attestations("0" * 64) <= 1, what
            assert not await wiring.rules.versions.count_attestations("1" * 64), what
        with suppress(SaysoError):
            challenge = await wiring.store.redis.get(KEYS.passkey_challenge("0" * 64))
            assert challenge is None or b'"sign-in"' in challenge, what

    async def _check_worker(self, wiring: Wiring, what: str) -> None:
        """Read the ready list as a worker does: it may start what the desk approved, and nothing else."""
        entries: list[Any] = await wiring.store.redis.lrange(KEYS.ready, 0, -1)
        for ready in map(read_ready, entries):
            try:
                copy = wiring.desk.suspensions._read_copy(ready.id, ready.packed)
            except Unreadable:
                self.refused += 1
            else:
                assert self.ready.setdefault(ready.id, copy.record) == copy.record, what

    async def _check_outside(self, what: str) -> None:
        waiting, approved, polled, voted = self.desk.waiting, self.desk.approved, self.desk.polled, self.desk.voted
        self.world.wiring.desk.suspensions._recent.clear()
        async with self.world.client("anna") as anna, self.world.client("demo") as demo:
            for client in (anna, demo):
                for record in (waiting, approved, voted):
                    answer = await client.get(f"/api/v1/suspensions/{record.id}")
                    self._check_answer(answer.status_code, answer.headers["content-type"], what)
                    if answer.status_code == 200:
                        (item,) = answer.json()["items"]
                        assert item["tool"]["args"]["order"] == ORDER, what
                        assert (item["outcome"] is None) == (record is not approved), what
            page = await anna.get("/api/v1/suspensions")
            self._check_answer(page.status_code, page.headers["content-type"], what)
            files = await anna.get(f"/api/v1/suspensions/{waiting.id}/items/i1/attachments")
            for file in files.json()["attachments"] if files.status_code == 200 else ():
                place = f"/api/v1/suspensions/{waiting.id}/items/i1/attachments/{file['id']}"
                shown = await anna.get(place)
                self._check_answer(shown.status_code, shown.headers["content-type"], what)
                assert shown.status_code != 200 or shown.json()["content"] == "aGFsbG8=", what
        async with connected(self.world, self.world.tokens["bot"]) as bot:
            for record in (self.desk.requested, self.desk.polled):
                shown = await bot.get(f"/requests/{UUID(record.id.removeprefix('sus_'))}")
                assert shown.status_code != 200 or (record is self.desk.requested and ORDER in shown.text), what
                self.refused += record is self.desk.requested and shown.status_code != 200
        yes = {"action": "approve", "digest": polled.items[0].digest}
        for who, step in (("mallory", "decision"), ("demo", "decision"), ("demo", "redeem")):
            async with self.world.client(who) as client:
                place = f"/api/v1/suspensions/{polled.id}/items/i1/{step}"
                answer = await client.post(place, json=yes if step == "decision" else None)
                assert answer.status_code >= 400, (what, answer.text)

    def _check_answer(self, status: int, kind: str, what: str) -> None:
        assert kind.startswith("application/json" if status == 200 else "application/problem+json"), (what, status)
        self.refused += status != 200


_MOST_ACCEPTED = 20  # after which nothing more is learnt


@dataclass
class Tally:
    """What flips did, each judged through the service."""

    flipped: int = 0
    refused: int = 0
    accepted: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        without = self.flipped - self.refused - len(self.accepted)
        return (
            f"{self.flipped} bytes flipped, {self.refused} refused, {without} without effect, "
            f"{len(self.accepted)} accepted"
        )


async def flip_all(store: Any, probe: Probe, flips: Iterator[tuple[Value, int]]) -> Tally:
    """Flip bytes, each alone: ask the service after each, and put the byte back."""
    tally = Tally()
    for value, at in flips:
        what = f"{value.key} {value.place!r} byte {at}"
        await value.write(store, flip(value.raw, at))
        try:
            tally.refused += await probe.check(what)
        except AssertionError as error:
            tally.accepted.append(f"{what}: {extract_tb(error.__traceback__)[-1].line}")
        await value._replace(raw=flip(value.raw, at)).write(store, value.raw)
        tally.flipped += 1
        if len(tally.accepted) == _MOST_ACCEPTED:
            break
    return tally


def sample(values: Sequence[Value], most: int, seed: int = 1) -> Iterator[tuple[Value, int]]:
    """Yield about `most` flips spread evenly over all bytes, and at least one of each value.

    With as many as there are bytes, each byte without a MAC is flipped, and each 20th of the others: a wrong MAC has
    the same effect wherever it comes from.
    """
    every = max(1, sum(len(value.raw) for value in values) // most)
    for value in values:
        step = 20 if every == 1 and find_kind(value.key) not in PLAIN else every
        yield from ((value, at) for at in range(seed % min(step, len(value.raw)), len(value.raw), step))
