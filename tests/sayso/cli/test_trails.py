"""`sayso events` with the key of an agent, which gets a trail without events that would tell of draws."""

from redis import Redis

from sayso.client import Client
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from tests.sayso.cli.test_commands import Run, ask, desk, sayso  # noqa: F401

Desk = tuple[str, str, str, str]


def test_events_of_an_agent_go_on_behind_one_left_out(desk: Desk, sayso: Run, clean_store_url: str) -> None:  # noqa: F811
    waiting = ask(desk, "wipe")
    for reviewer in desk[2:]:
        assert sayso("approve", waiting, "--yes", key=reviewer).returncode == 0
    with Client(desk[0], desk[1]) as agent:
        run_id = agent.find(waiting).run.id
        assert agent.redeem(waiting, "i1", "k").tool == "wipe"
        assert [one.type for one in agent.events(run_id)].count("decision_recorded") == 1
    read = sayso("events", run_id, key=desk[1])
    assert (read.returncode, read.stdout.count("decision_recorded"), read.stderr) == (0, 1, "")
    assert "permit_redeemed" in read.stdout
    assert sayso("events", run_id).stdout.count("decision_recorded") == 2
    with Redis.from_url(clean_store_url) as store:
        trail = TenantKeys(TENANT).trail(run_id)
        store.lset(trail, 1, store.lindex(trail, 1).decode().replace("request_approval", "allow"))
    altered = sayso("events", run_id, key=desk[1])
    assert (altered.returncode, "Event 2 does not follow" in " ".join(altered.stderr.split())) == (1, True)
