"""`Client` and `AsyncClient` are one surface: the same methods, which take, promise and do the same."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from sayso import AsyncClient, Client
from sayso.client import requests, retries
from sayso.errors import AlreadyRedeemed, NotAllowed, NotAuthenticated, NotFound, SaysoError
from sayso.records.events import Event, EventType
from sayso.records.suspensions import Change, SuspensionRecord
from service.settings import Settings
from service.wiring import assemble
from tests.builders import PASSWORD, make_agent, make_person, make_running, register_agent
from tests.service.servers import served

EVENTS = 450
ASKED = {"mode": "poll", "calls": [{"tool": "pay", "args": {"amount": 5}, "definition": {}}]}
SURFACE = sorted(name for name, _ in inspect.getmembers(Client, callable) if not name.startswith("_"))
ENTERING = {"__enter__": "__aenter__", "__exit__": "__aexit__"}


def takes(kind: type, name: str) -> list[tuple[str, Any, Any, Any]]:
    given = inspect.signature(getattr(kind, name)).parameters.values()
    return [(one.name, one.kind, one.default, one.annotation) for one in given]


def gives(kind: type, name: str) -> str:
    return re.sub(r"\bAsyncIterator\b", "Iterator", str(inspect.signature(getattr(kind, name)).return_annotation))


def test_both_clients_have_the_same_public_methods() -> None:
    of_async = sorted(name for name, _ in inspect.getmembers(AsyncClient, callable) if not name.startswith("_"))
    assert of_async == SURFACE
    assert {"sign_in", "keys", "create_key", "rotate_key", "revoke_key", "events", "exchange"} <= set(SURFACE)


@pytest.mark.parametrize("name", [*SURFACE, *ENTERING])
def test_a_method_takes_gives_and_promises_the_same_in_both(name: str) -> None:
    twin = ENTERING.get(name, name)
    assert takes(Client, name) == takes(AsyncClient, twin)
    assert gives(Client, name) == gives(AsyncClient, twin)
    promise = inspect.getdoc(getattr(Client, name))
    assert promise == inspect.getdoc(getattr(AsyncClient, twin))
    assert promise or name in ENTERING


def test_both_clients_are_made_of_the_same_parts() -> None:
    made, made_async = (inspect.signature(kind).parameters.values() for kind in (Client, AsyncClient))
    shape = [(one.name, one.kind) for one in made]
    assert shape == [(one.name, one.kind) for one in made_async]
    assert [name for name, _ in shape] == ["url", "key", "patience_s", "transport", "sleep"]


class Player:
    """Call one client, whichever it is, wait for each answer, and remember what was called."""

    def __init__(self, client: Client | AsyncClient, runner: asyncio.Runner) -> None:
        self.client = client
        self.called: set[str] = set()
        self._runner = runner

    def __call__(self, name: str, *args: Any, **given: Any) -> Any:
        self.called.add(name)
        found = getattr(self.client, name)(*args, **given)
        if isinstance(found, AsyncIterator):
            return self._runner.run(collect(found))
        if isinstance(found, Iterator):
            return list(found)
        return self._runner.run(found) if inspect.iscoroutine(found) else found

    def refused(self, name: str, *args: Any) -> str:
        with pytest.raises(SaysoError) as error:
            self(name, *args)
        return type(error.value).__name__


async def collect(found: AsyncIterator[Any]) -> list[Any]:
    return [one async for one in found]


@pytest.fixture
def furnished(clean_store_url: str, settings: Settings) -> Iterator[tuple[str, str, str]]:
    """A running desk's address, an agent's key, and a run with more events than one page holds."""

    async def furnish() -> tuple[str, str]:
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
        yield (url, *asyncio.run(furnish()))


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Any) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: request_approval\nrules: []\n")
    return Settings(redis_url=clean_store_url, policy=policy)


@pytest.fixture(params=[Client, AsyncClient], ids=["client", "async_client"])
def kind(request: pytest.FixtureRequest) -> type[Client | AsyncClient]:
    found: type[Client | AsyncClient] = request.param
    return found


def play_keys(admin: Player) -> None:
    assert admin("sign_in", "root", PASSWORD).roles == ("reviewer", "admin")
    made = admin("create_key", "fresh", "agent", key="once")
    assert admin("create_key", "fresh", "agent", key="once").id == made.id
    rotated = admin("rotate_key", made.id, 60)
    assert admin("revoke_key", rotated.id).revoked_at is not None
    assert {made.id, rotated.id} <= {one.id for one in admin("keys").keys}


def play_calls(agent: Player, admin: Player) -> None:
    asked = agent("suspend", ASKED, "k")
    assert agent("suspend", ASKED, "k").id == asked.id
    assert agent("wait", asked.id, 0).pending
    (item,) = admin("find", asked.id).items
    assert admin("decide", asked.id, item, "approve", args={"amount": 4}).outcome.verdict == "approved"
    assert asked.id in [one.id for one in admin("waiting", "decided").suspensions]
    assert agent("wait", asked.id).status == "decided"
    assert agent("redeem", asked.id, "i1", "try-1").args == {"amount": 4}
    assert agent.refused("redeem", asked.id, "i1", "try-2") == AlreadyRedeemed.__name__
    assert agent("report_outcome", asked.id, "i1", "try-1", output="paid").items[0].permit.report.output == "paid"


def play_runs(agent: Player) -> None:
    begun = agent("start_run", "demo", "Pay Ann.", title="Pay", key="r")
    assert agent("await_run", begun.id, 0).status == "running"
    note = {"type": "note", "data": {"text": "a"}}
    assert agent("report_events", begun.id, "sayso", [note]).added == 1
    assert agent("cancel", begun.id, "enough", key="c").status == "cancelled"
    assert begun.id in [one.id for one in agent("runs", "cancelled").runs]
    assert agent("run", retries.send(agent.client.retry_policy, requests.find_run(begun.id))).ended
    assert agent("exchange", requests.find_run(begun.id)) == agent("find_run", begun.id)


def test_every_method_does_the_same_with_both_clients(
    kind: type[Client | AsyncClient], furnished: tuple[str, str, str]
) -> None:
    url, key, run_id = furnished
    with asyncio.Runner() as runner:
        agent, admin = Player(kind(url, key), runner), Player(kind(url, "none"), runner)
        assert admin.refused("keys") == NotAuthenticated.__name__
        play_keys(admin)
        play_calls(agent, admin)
        play_runs(agent)
        assert agent.refused("keys") == NotAllowed.__name__
        assert agent.refused("events", "run_none") == NotFound.__name__
        agent("events", run_id)
        agent("close")
        admin("close")
    assert agent.called | admin.called == set(SURFACE)


def test_events_go_on_over_every_page_with_both_clients(
    kind: type[Client | AsyncClient], furnished: tuple[str, str, str]
) -> None:
    url, key, run_id = furnished
    with asyncio.Runner() as runner:
        agent = Player(kind(url, key), runner)
        whole = [event.seq for event in agent("events", run_id)]
        assert (whole[0], len(whole)) == (1, whole[-1])
        assert len(whole) > EVENTS
        assert [event.seq for event in agent("events", run_id, 300)] == whole[300:]
        agent("close")
