"""`Client` and `AsyncClient` have the same methods, signatures and docstrings, and do the same."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from sayso import AsyncClient, Client
from sayso.client import administration, requests, retries, rulebook
from sayso.core.records.events import Event, EventType
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.errors import AlreadyRedeemed, Conflict, InvalidInput, NotAllowed, NotAuthenticated, NotFound, SaysoError
from service.assembly import assemble
from service.core.settings import Settings
from tests.builders import PASSWORD, make_agent, make_person, make_running, register_agent
from tests.service.servers import served

EVENTS = 450
BODY = {"mode": "poll", "calls": [{"tool": "pay", "args": {"amount": 5}, "definition": {}}]}
SURFACE = sorted(name for name, _ in inspect.getmembers(Client, callable) if not name.startswith("_"))
ENTERING = {"__enter__": "__aenter__", "__exit__": "__aexit__"}


def parameters_of(kind: type, name: str) -> list[tuple[str, Any, Any, Any]]:
    parameters = inspect.signature(getattr(kind, name)).parameters.values()
    return [(one.name, one.kind, one.default, one.annotation) for one in parameters]


def result_of(kind: type, name: str) -> str:
    return re.sub(r"\bAsyncIterator\b", "Iterator", str(inspect.signature(getattr(kind, name)).return_annotation))


def test_clients_have_the_same_public_methods() -> None:
    async_names = sorted(name for name, _ in inspect.getmembers(AsyncClient, callable) if not name.startswith("_"))
    assert async_names == SURFACE
    assert {"sign_in", "keys", "create_key", "rotate_key", "revoke_key", "events", "exchange"} <= set(SURFACE)


@pytest.mark.parametrize("name", [*SURFACE, *ENTERING])
def test_client_method_has_the_same_signature_and_docstring(name: str) -> None:
    twin = ENTERING.get(name, name)
    assert parameters_of(Client, name) == parameters_of(AsyncClient, twin)
    assert result_of(Client, name) == result_of(AsyncClient, twin)
    assert "Generator" not in result_of(Client, name), "a flow is not a result"
    docstring = inspect.getdoc(getattr(Client, name))
    assert docstring == inspect.getdoc(getattr(AsyncClient, twin))
    assert docstring or name in ENTERING


def test_clients_have_the_same_constructor() -> None:
    blocking, asynchronous = (inspect.signature(kind).parameters.values() for kind in (Client, AsyncClient))
    shape = [(one.name, one.kind) for one in blocking]
    assert shape == [(one.name, one.kind) for one in asynchronous]
    assert [name for name, _ in shape] == ["url", "key", "patience_s", "transport", "sleep"]


class Recorder:
    """Call a client's methods, wait for their results, and record their names."""

    def __init__(self, client: Client | AsyncClient, runner: asyncio.Runner) -> None:
        self.client = client
        self.called: set[str] = set()
        self._runner = runner

    def __call__(self, name: str, *args: Any, **given: Any) -> Any:
        self.called.add(name)
        result = getattr(self.client, name)(*args, **given)
        if isinstance(result, AsyncIterator):
            return self._runner.run(collect(result))
        if isinstance(result, Iterator):
            return list(result)
        return self._runner.run(result) if inspect.iscoroutine(result) else result

    def refused(self, name: str, *args: Any) -> str:
        with pytest.raises(SaysoError) as error:
            self(name, *args)
        return type(error.value).__name__


async def collect(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


@pytest.fixture
def stocked_desk(clean_store_url: str, settings: Settings) -> Iterator[tuple[str, str, str]]:
    """The URL of a running desk, an agent's key, and a run with more events than one page holds."""

    async def prepare() -> tuple[str, str]:
        async with assemble(settings) as wiring:
            await register_agent(wiring)
            await make_person(wiring, "root", "reviewer", "admin")
            running = await make_running(wiring)
            noted = tuple(Event(EventType.WARNING, {"n": n}) for n in range(EVENTS))

            def note(found: SuspensionRecord, _at_ms: int) -> Change:
                return Change(found.model_copy(), noted)

            await wiring.desk.suspensions.change(running.id, note)
            return await make_agent(wiring, "demo"), running.run.id

    with served(settings) as url:
        yield (url, *asyncio.run(prepare()))


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Any) -> Settings:
    policy = tmp_path / "policy.yaml"
    asking = "{id: pages, tool: fetch, action: request_approval, mandates: {longest: 1d}}"
    policy.write_text(f"version: 1\ndefault: request_approval\nrules: [{asking}]\n")
    return Settings(redis_url=clean_store_url, policy=policy)


@pytest.fixture(params=[Client, AsyncClient], ids=["client", "async_client"])
def kind(request: pytest.FixtureRequest) -> type[Client | AsyncClient]:
    found: type[Client | AsyncClient] = request.param
    return found


def check_keys(admin: Recorder) -> None:
    assert admin("sign_in", "root", PASSWORD).roles == ("reviewer", "admin")
    made = admin("create_key", "fresh", "agent", key="once")
    assert admin("create_key", "fresh", "agent", key="once").id == made.id
    rotated = admin("rotate_key", made.id, 60)
    assert admin("revoke_key", rotated.id).revoked_at is not None
    assert {made.id, rotated.id} <= {one.id for one in admin("keys").keys}


def check_calls(agent: Recorder, admin: Recorder) -> None:
    assert agent("would", {"mode": "poll", "call": BODY["calls"][0]}).verdict == "ask"
    suspension = agent("suspend", BODY, "k")
    assert agent("suspend", BODY, "k").id == suspension.id
    assert agent("wait", suspension.id, 0).pending
    admin("claim", suspension.id, "i1")
    admin("release_claim", suspension.id, "i1")
    assert admin.refused("retract", suspension.id, "i1") == Conflict.__name__
    assert admin.refused("forward", suspension.id, suspension.items[0], "nobody", "Why?") == NotAllowed.__name__
    assert admin.refused("preview", suspension.id, "i1") == Conflict.__name__
    assert [item.item_id for item in admin("forecast", suspension.id).items] == ["i1"]
    assert admin.refused("confirm", suspension.id, suspension.items[0]) == InvalidInput.__name__
    admin("ask_requester", suspension.id, "i1", "Which order?")
    (inquiry,) = agent("inquiries", suspension.id).inquiries
    agent("answer_inquiry", suspension.id, "i1", inquiry.id, "A-1")
    (comment,) = admin("comment", suspension.id, "i1", "The order is real.").comments
    assert admin("comments", suspension.run.id).comments == [comment]
    assert agent.refused("comments", suspension.run.id) == NotAllowed.__name__
    (file,) = agent("attach", suspension.id, "i1", "log.txt", b"a log").attachments
    assert admin("attachment", suspension.id, "i1", file.id).bytes == b"a log"
    assert admin("exchange", requests.list_attachments(suspension.id, "i1")).attachments == [file]
    (item,) = admin("find", suspension.id).items
    assert admin("decide", suspension.id, item, "approve", args={"amount": 4}).outcome.verdict == "approved"
    assert agent("overrides").lines[0].patch == [{"op": "replace", "path": "/amount", "value": 4}]
    assert admin("overrides", "2020-01-01").lines == []
    assert suspension.id in [one.id for one in admin("waiting", "decided").suspensions]
    assert agent("wait", suspension.id).status == "decided"
    assert agent("redeem", suspension.id, "i1", "try-1").args == {"amount": 4}
    assert agent.refused("redeem", suspension.id, "i1", "try-2") == AlreadyRedeemed.__name__
    assert agent("report_outcome", suspension.id, "i1", "try-1", output="paid").items[0].permit.report.output == "paid"


def check_mandates(agent: Recorder, admin: Recorder) -> None:
    fetch = {"tool": "fetch", "definition": {}, "hosts": {"args.url": ["example.com"]}}
    plan = {"thread_id": "t1", "for_s": 3600, "count": 2, "tools": [fetch]}
    proposed = agent("propose_mandate", plan, "m")
    assert agent("propose_mandate", plan, "m").id == proposed.id
    assert agent("await_mandate", proposed.id, 0).state == "proposed"
    (item,) = admin("find", proposed.suspension_id).items
    admin("decide", proposed.suspension_id, item, "approve")
    made = agent("find_mandate", proposed.id)
    assert (made.in_force, made.approved_by) == (True, ["root"])
    assert admin("exchange", rulebook.LIST_MANDATES).mandates == [made]
    assert agent("end_mandate", proposed.id).state == "revoked"


def check_views(admin: Recorder) -> None:
    view = admin("exchange", administration.save_view("Refunds", "tool:refund"))
    assert admin("exchange", administration.LIST_VIEWS).views == [view]
    admin("exchange", administration.delete_view(view.id))
    assert admin("exchange", administration.LIST_VIEWS).views == []


def check_runs(agent: Recorder, admin: Recorder) -> None:
    run = agent("start_run", "demo", "Pay Ann.", title="Pay", key="r")
    assert agent("await_run", run.id, 0).status == "running"
    assert admin("write_note", run.id, "Ask Ann first.").notes == agent("notes", run.id).notes
    note = {"type": "note", "data": {"text": "a"}}
    assert agent("report_events", run.id, "sayso", [note]).added == 1
    assert agent("cancel", run.id, "enough", key="c").status == "cancelled"
    assert run.id in [one.id for one in agent("runs", "cancelled").runs]
    assert agent("run", retries.send(agent.client.retry_policy, requests.find_run(run.id))).ended
    assert agent("exchange", requests.find_run(run.id)) == agent("find_run", run.id)
    erasure = admin("exchange", administration.erase_run(run.id, "asked by the customer"))
    assert (erasure.by.id, erasure.reason) == ("root", "asked by the customer")
    assert agent("find_run", run.id).erasure.seq == erasure.seq


def test_client_methods_against_a_running_desk(
    kind: type[Client | AsyncClient], stocked_desk: tuple[str, str, str]
) -> None:
    url, key, run_id = stocked_desk
    with asyncio.Runner() as runner:
        agent, admin = Recorder(kind(url, key), runner), Recorder(kind(url, "none"), runner)
        assert admin.refused("keys") == NotAuthenticated.__name__
        check_keys(admin)
        check_calls(agent, admin)
        check_mandates(agent, admin)
        check_views(admin)
        check_runs(agent, admin)
        assert agent.refused("keys") == NotAllowed.__name__
        assert agent.refused("events", "run_none") == NotFound.__name__
        agent("events", run_id)
        agent("close")
        admin("close")
    assert agent.called | admin.called == set(SURFACE)


def test_events_reads_all_pages(kind: type[Client | AsyncClient], stocked_desk: tuple[str, str, str]) -> None:
    url, key, run_id = stocked_desk
    with asyncio.Runner() as runner:
        agent = Recorder(kind(url, key), runner)
        whole = [event.seq for event in agent("events", run_id)]
        assert (whole[0], len(whole)) == (1, whole[-1])
        assert len(whole) > EVENTS
        assert [event.seq for event in agent("events", run_id, 300)] == whole[300:]
        agent("close")
