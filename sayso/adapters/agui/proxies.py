"""The proxy's runs: an agent's interrupts are asked at the desk, and resumed once with what people decided.

The client resumes a run as AG-UI describes, at any time, and the desk alone says what the agent is answered. Permits
are redeemed before the agent gets its answers, so the calls run once, also if a client repeats itself.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakValueDictionary

import httpx
from pydantic import JsonValue
from pydantic_core import to_json

from sayso.adapters.agui import interrupts as asked
from sayso.adapters.agui import streams
from sayso.adapters.agui.interrupts import CLAIM, Kept
from sayso.adapters.agui.streams import CallsSeen
from sayso.client import AsyncClient, holders, requests
from sayso.client.permits import Call, RedeemedPermit, build_link, find_report, may_start, report
from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.policy.rules import same_json
from sayso.errors import CallFailed, Conflict, InDoubt, InvalidInput, SaysoError, Unavailable
from sayso.wire.items import ItemView
from sayso.wire.suspensions import SuspensionView

_LOG = logging.getLogger("sayso")
_HELD_EVENTS = 8  # so many wait for a slow client before the agent is no longer read
_SLOWEST_S = 60.0  # a client that reads nothing for this long counts as gone
_PAGE = 200
_WENT_ON = "The agent went on with this answer."
_BESIDE = "Only resume may answer what an agent asks. Remove forwardedProps.{name} from the input."
_OTHER_WAYS = ("command", "resume", "resumemap", "nodename")
_NEWER = "The thread has asked something else since ({run}). Only its last interrupts can be resumed."
_BUSY = "Another run of this thread has not ended. Try again once it has."
_MISNAMED = "The input has a member {name}. AG-UI writes its names in camelCase."
_FOREIGN = "The run does not wait for these answers. Resume its thread with the ids of all its last interrupts at once."
_CHANGED = "The call {call} is not the one that was approved: its name or its arguments differ. Nothing ran."
_IN_DOUBT = "The agent was answered at {at} and has not told the result of {tool}. It may have run. See {link}."

Put = Callable[[JsonObject], Awaitable[None]]
"""Sends the client an event, unless it has gone."""


@dataclass(frozen=True)
class AgUiOptions:
    """How runs are held: `name` prefixes each tool's name at the desk, a resume waits `wait_s` for its decisions."""

    name: str = ""
    wait_s: float = 20.0
    report_within_s: int = 3600


class Asked(NamedTuple):
    """An interrupt under the id that the client knows, and the latest item that asks about it."""

    id: str
    kept: Kept
    suspension: SuspensionView
    item: ItemView


@dataclass
class Resumption:
    """The answers to an agent, and the redeemed permits by the interrupt that each answers."""

    entries: list[JsonValue] = field(default_factory=list)
    permits: dict[str, tuple[Kept, RedeemedPermit]] = field(default_factory=dict)

    def take(self, call_id: object) -> RedeemedPermit | None:
        """Return the permit of a call whose result has arrived, once."""
        found = next((id_ for id_, (kept, _) in self.permits.items() if kept.call_id == call_id is not None), None)
        return self.permits.pop(found)[1] if found is not None else None


@dataclass
class AgUiProxy:
    """A gate between one AG-UI agent and its clients. It keeps nothing between two requests."""

    url: str
    desk: AsyncClient
    agent: httpx.AsyncClient
    options: AgUiOptions = AgUiOptions()
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _threads: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def run(self, given: JsonObject, headers: Mapping[str, str]) -> AsyncIterator[JsonObject]:
        """Yield the events of a run. It goes on if its client leaves, so that the desk gets its results and questions.

        An agent may keep one state for a thread, so one of its runs starts when the one before has ended.
        """
        queue: asyncio.Queue[JsonObject | None] = asyncio.Queue(_HELD_EVENTS)
        listening = True

        def stop_listening() -> None:
            nonlocal listening
            listening = False
            while not queue.empty():
                queue.get_nowait()

        async def put(event: JsonObject | None) -> None:
            if not listening:
                return
            try:
                async with asyncio.timeout(_SLOWEST_S):
                    await queue.put(event)
            except TimeoutError:
                stop_listening()
                queue.put_nowait(None)

        async def drive() -> None:
            try:
                async with asyncio.timeout(self.options.report_within_s):
                    await self._drive_alone(given, headers, put)
            except SaysoError as error:
                await put({"type": streams.RUN_ERROR, "message": error.message, "code": type(error).__name__})
            except TimeoutError:
                await put({"type": streams.RUN_ERROR, "message": "The run took too long.", "code": "TimeoutError"})
            finally:
                await put(None)

        task = asyncio.create_task(drive())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            stop_listening()

    async def _drive_alone(self, given: JsonObject, headers: Mapping[str, str], put: Put) -> None:
        _check_input(given)
        lock = self._threads.setdefault(str(given["threadId"]), asyncio.Lock())
        try:
            async with asyncio.timeout(_SLOWEST_S):
                await lock.acquire()
        except TimeoutError as error:
            raise Conflict(_BUSY) from error
        try:
            await self._drive(given, headers, put)
        finally:
            lock.release()

    async def _drive(self, given: JsonObject, headers: Mapping[str, str], put: Put) -> None:
        sent = {name: value for name, value in given.items() if name != "resume"}
        resumption = Resumption()
        if given.get("resume"):
            known = await self._find_asked(given)
            cancelled = all(entry.get("status") == "cancelled" for entry in _list_entries(given))
            waiting = [one for one in known if one.suspension.pending and one.item.outcome is None]
            if waiting and not cancelled:
                await put({"type": streams.RUN_STARTED, **_ids(given)})
                await put(self._write_waiting(given, waiting))
                return
            await self._check_doubts(known)
            if any(find_report(one.item) for one in known) and not any(may_start(one.item) for one in known):
                await _repeat_results(given, known, put)
                return
            await self._check_latest(known[0].suspension)
            _check_calls(given, known, self.options.name)
            await self._probe(headers)
            resumption = await (self._cancel(known) if cancelled else self._redeem(known))
            sent["resume"] = resumption.entries
        await self._relay(given, sent, headers, resumption, put)

    async def _find_asked(self, given: JsonObject) -> list[Asked]:
        """Return all interrupts of the run that the client resumes. Raises `InvalidInput` for others."""
        ids = {str(entry.get("interruptId")) for entry in _list_entries(given)}
        root_id = next(iter(ids), "").partition(".")[0]
        if not root_id.startswith("sus_"):
            raise InvalidInput(_FOREIGN)
        suspension = await self.desk.wait(root_id, self.options.wait_s)
        kept, thread_id = asked.read_kept(suspension)
        if ids != {f"{root_id}.{name}" for name in kept} or thread_id != given.get("threadId"):
            raise InvalidInput(_FOREIGN)
        latest = {item.call_id: (suspension, item) for item in suspension.items}
        while suspension.following_id is not None:
            suspension = await self.desk.wait(suspension.following_id, self.options.wait_s)
            latest |= {item.call_id: (suspension, item) for item in suspension.items}
        return [Asked(f"{root_id}.{name}", one, *latest[name]) for name, one in kept.items()]

    async def _cancel(self, known: Sequence[Asked]) -> Resumption:
        """Withdraw everything from the desk, and return the refusals of all interrupts."""
        if known[0].suspension.end is None:
            await self.desk.cancel(known[0].suspension.run.id, "The AG-UI client cancelled its run.")
        return Resumption([asked.refuse(one.kept, "The user cancelled this.") for one in known])

    async def _check_latest(self, suspension: SuspensionView) -> None:
        """Raise `Conflict` if the thread has asked anything since: some agents give any answer to the last question."""
        skip: int | None = 0
        while skip is not None:
            page = await self.desk.runs(skip=skip, limit=_PAGE)
            for run in page.runs:
                if run.id == suspension.run.id:
                    return
                if run.thread_id == suspension.run.thread_id:
                    raise Conflict(_NEWER.format(run=run.id))
            skip = page.next_skip

    async def _check_doubts(self, known: Sequence[Asked]) -> None:
        """Raise `InDoubt` if an earlier attempt answered the agent and has not reported; a person says what to do."""
        for one in known:
            permit = one.item.permit
            if permit is None or find_report(one.item) is not None:
                continue
            if holders.is_running(permit.holder) is False and one.suspension.end is None:
                await self.desk.exchange(requests.mark_in_doubt(one.suspension.id, one.item.item_id))
            at = permit.redeemed_at.isoformat(timespec="seconds")
            link = build_link(self.desk.url, one.suspension, one.item)
            raise InDoubt(_IN_DOUBT.format(at=at, tool=one.item.tool.name, link=link))

    async def _probe(self, headers: Mapping[str, str]) -> None:
        """Raise `Unavailable` if nothing answers at the agent's address: no permit is redeemed in vain."""
        try:
            await self.agent.request("OPTIONS", self.url, headers=headers)
        except httpx.TransportError as error:
            raise Unavailable(f"The agent is unreachable: {error}. Nothing ran. Resume the run later.") from error

    async def _redeem(self, known: Sequence[Asked]) -> Resumption:
        """Redeem the permits of approved calls, and return the answers to all interrupts."""
        resumption = Resumption()
        try:
            for one in known:
                resumption.entries.append(await self._answer(one, resumption))
        except BaseException:
            for _, permit in resumption.permits.values():
                await self._report(permit, None, CallFailed("It did not run: a call beside it could not start."))
            raise
        return resumption

    async def _answer(self, one: Asked, resumption: Resumption) -> JsonObject:
        """Return the answer to one interrupt."""
        if (found := find_report(one.item)) is not None:
            return asked.refuse(one.kept, found.error or "This call has run already.")
        if not may_start(one.item) or one.suspension.end is not None:
            return asked.write_entry(one.kept, one.item, None)
        permit = await self._redeem_one(one)
        entry = asked.write_entry(one.kept, one.item, permit.args)
        if asked.lets_run(entry):
            resumption.permits[one.id] = (one.kept, permit)
        else:
            await self._report(permit, None, CallFailed("The agent cannot take this answer. It did not run."))
        return entry

    async def _redeem_one(self, one: Asked) -> RedeemedPermit:
        holder = holders.begin()
        request = requests.redeem(one.suspension.id, one.item.item_id, holder, self.options.report_within_s)
        try:
            redeemed = await self.desk.exchange(request)
        except BaseException:
            holders.end(holder)
            raise
        return RedeemedPermit(run_id=one.suspension.run.id, holder=holder, **dict(redeemed))

    async def _relay(
        self, given: JsonObject, sent: JsonObject, headers: Mapping[str, str], resumption: Resumption, put: Put
    ) -> None:
        """Pass the agent's events on up to its end, report results, and ask the desk what the agent asks."""
        seen, ended = CallsSeen(), False
        try:
            async for event in self._stream(sent, headers):
                seen.note(event)
                kind = event["type"]
                if kind == streams.TOOL_CALL_RESULT and (permit := resumption.take(event.get("toolCallId"))):
                    await self._report(permit, event.get("content"))
                if kind == streams.RUN_FINISHED:
                    for _, permit in resumption.permits.values():
                        await self._report(permit, _WENT_ON)
                    resumption.permits.clear()
                    ended = True
                ended = ended or kind == streams.RUN_ERROR
                interrupts = asked.read_interrupts(event) if kind == streams.RUN_FINISHED else ()
                await put(await self._ask(given, interrupts, seen) if interrupts else event)
            if not ended:
                raise Unavailable("The agent's answer ended before its run did. Start the run again.")
        finally:
            await self._mark_doubts(resumption)

    async def _stream(self, sent: JsonObject, headers: Mapping[str, str]) -> AsyncIterator[JsonObject]:
        try:
            async with self.agent.stream("POST", self.url, content=to_json(sent), headers=headers) as response:
                if response.status_code != 200:
                    raise Unavailable(f"The agent answered {response.status_code}. Correct the input, or try later.")
                async for event in streams.read_events(response.aiter_bytes()):
                    yield event
        except httpx.TransportError as error:
            raise Unavailable(f"The agent's answer was cut off: {error}. Resume the run, or start it again.") from error

    async def _ask(self, given: JsonObject, interrupts: Sequence[asked.Interrupt], seen: CallsSeen) -> JsonObject:
        """Ask the desk, and return the event that tells the client that the run waits."""
        claim: JsonValue = {
            "thread": given["threadId"],
            "interrupts": [one.kept.model_dump(mode="json", exclude_defaults=True) for one in interrupts],
        }
        body: JsonObject = {
            "mode": "poll",
            "thread_id": digest_json([self.url, given["threadId"]]),
            "calls": asked.write_calls(interrupts, seen, self.options.name),
            "title": asked.describe_title(interrupts),
            "context": {CLAIM: claim},
        }
        if (expires_at := asked.find_expiry(interrupts)) is not None:
            body["expires_at"] = expires_at.isoformat()
        key = digest_json([self.url, given["threadId"], given["runId"], [one.id for one in interrupts]])
        suspension = await self.desk.suspend(body, key)
        items = {item.call_id: item for item in suspension.items}
        known = [Asked(f"{suspension.id}.{one.id}", one.kept, suspension, items[one.id]) for one in interrupts]
        return self._write_waiting(given, known)

    def _write_waiting(self, given: JsonObject, waiting: Sequence[Asked]) -> JsonObject:
        interrupts: list[JsonValue] = []
        for one in waiting:
            link = build_link(self.desk.url, one.suspension, one.item)
            decided = one.item.outcome is not None
            state = "is decided: resume the run" if decided else f"waits for a person ({link})"
            entry: JsonObject = {
                "id": one.id,
                "reason": "sayso:decided" if decided else "sayso:waiting",
                "message": f"{one.item.tool.name} {state}.",
                "expiresAt": one.item.terms.deadline_at.isoformat(),
                "metadata": {"sayso": {"link": link, "tool": one.item.tool.name}},
            }
            interrupts.append(entry | ({"toolCallId": one.kept.call_id} if one.kept.call_id is not None else {}))
        outcome: JsonObject = {"type": "interrupt", "interrupts": interrupts}
        return {"type": streams.RUN_FINISHED, **_ids(given), "outcome": outcome}

    async def _report(self, permit: RedeemedPermit, result: JsonValue, error: SaysoError | None = None) -> None:
        await self.desk.run(report(self.desk.retry_policy, Call(permit, result), error))
        holders.end(permit.holder)

    async def _mark_doubts(self, resumption: Resumption) -> None:
        """Ask people about the calls whose results the agent has not told."""
        for _, permit in resumption.permits.values():
            holders.end(permit.holder)
            try:
                await self.desk.exchange(requests.mark_in_doubt(permit.suspension_id, permit.item_id))
            except SaysoError as error:  # the desk does so itself once the time to report is over
                _LOG.warning("The doubt about %s was not noted: %s", permit.idempotency_key, error.message)


def _list_entries(given: JsonObject) -> list[JsonObject]:
    entries = given["resume"]
    listed = entries if isinstance(entries, list) and len(entries) <= asked.MAX_INTERRUPTS else []
    return [entry for entry in listed if isinstance(entry, dict)]


def _ids(given: JsonObject) -> JsonObject:
    return {"threadId": given["threadId"], "runId": given["runId"]}


def _check_input(given: JsonObject) -> None:
    """Raise `InvalidInput` for an input without its ids, or one that an agent may read otherwise than the proxy."""
    for name in ("threadId", "runId"):
        if not isinstance(given.get(name), str) or not given[name]:
            raise InvalidInput(f"The input has no {name}. Send a RunAgentInput of AG-UI 1.0.")
    if given.get("resume") and not (isinstance(given["resume"], list) and _list_entries(given)):
        raise InvalidInput(_FOREIGN)
    messages = given.get("messages")
    listed = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    for name in (name for part in (given, *listed) for name in part if "_" in name):
        raise InvalidInput(_MISNAMED.format(name=name[:80]))  # libraries of agents read these, too
    props = given.get("forwardedProps")
    for name in props if isinstance(props, dict) else ():
        if name.replace("_", "").lower() in _OTHER_WAYS:
            raise InvalidInput(_BESIDE.format(name=name))


def _check_calls(given: JsonObject, known: Sequence[Asked], prefix: str) -> None:
    """Raise `InvalidInput` if the messages have another call than the one asked about, under its id."""
    wanted = {one.kept.call_id: one.item.tool for one in known if one.kept.call_id is not None}
    for id_, name, args in streams.list_calls(given.get("messages")):
        tool = wanted.get(id_)
        if tool is not None and not (
            tool.name == asked.name_tool(prefix, name) and same_json(streams.parse_args(name, args), tool.args)
        ):
            raise InvalidInput(_CHANGED.format(call=id_[:80]))


async def _repeat_results(given: JsonObject, known: Sequence[Asked], put: Put) -> None:
    """Tell a client that lost the answer what the calls returned. The agent is not asked again."""
    await put({"type": streams.RUN_STARTED, **_ids(given)})
    for one in known:
        found = find_report(one.item)
        if found is None or one.kept.call_id is None:
            continue
        output = found.output if isinstance(found.output, str) else to_json(found.output).decode()
        result: JsonObject = {"messageId": f"{one.id}.result", "toolCallId": one.kept.call_id, "role": "tool"}
        await put({"type": streams.TOOL_CALL_RESULT, **result, "content": output if found.success else found.error})
    await put({"type": streams.RUN_FINISHED, **_ids(given)})
