"""Commands for endpoints, failed messages and senders."""

import json

from tests.sayso.cli.test_commands import Run, desk, sayso  # noqa: F401

Desk = tuple[str, str, str, str]
URL = "https://hooks.example.com/sayso"


def test_webhooks_add_rotate_disable_and_remove(desk: Desk, sayso: Run) -> None:  # noqa: F811
    agent, root = desk[1], desk[3]
    assert "There are no endpoints." in sayso("webhooks", "list", key=agent).stdout
    made = sayso("webhooks", "add", URL, "--event", "item.created", key=root)
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("whsec_")
    assert "webhooks verify whe_" in made.stderr
    (endpoint,) = json.loads(sayso("webhooks", "list", "--json", key=root).stdout)
    assert (endpoint["url"], endpoint["events"], endpoint["state"]) == (URL, ["item.created"], "unverified")
    assert sayso("webhooks", "rotate", endpoint["id"], key=root).stdout.startswith("whsec_")
    assert "is disabled" in sayso("webhooks", "disable", endpoint["id"], key=root).stdout
    assert "is deleted" in sayso("webhooks", "remove", endpoint["id"], key=root).stdout
    assert "There is no endpoint" in sayso("webhooks", "verify", endpoint["id"], key=root).stderr


def test_webhooks_of_an_agent_are_signed_by_ed25519(desk: Desk, sayso: Run) -> None:  # noqa: F811
    agent, root = desk[1], desk[3]
    made = sayso("webhooks", "add", URL, "--signature", "ed25519", key=agent)
    assert made.stdout.startswith("whpk_")
    (endpoint,) = json.loads(sayso("webhooks", "list", "--json", key=agent).stdout)
    assert endpoint["owner"]
    assert "is not a way to sign" in sayso("webhooks", "add", URL, "--signature", "rsa", key=agent).stderr
    assert "not a public address" in sayso("webhooks", "add", "https://10.0.0.1/", key=agent).stderr
    assert "is deleted" in sayso("webhooks", "remove", endpoint["id"], key=root).stdout


def test_webhooks_failed_redeliver_and_events(desk: Desk, sayso: Run) -> None:  # noqa: F811
    root = desk[3]
    assert "Every message was delivered." in sayso("webhooks", "failed", key=root).stdout
    assert "There is no message" in sayso("webhooks", "redeliver", "evt_1", key=root).stderr
    assert "0 messages are sent again." in sayso("webhooks", "redeliver", "--all", key=root).stdout
    assert "give --all" in sayso("webhooks", "redeliver", key=root).stderr
    assert "item.created" in json.loads(sayso("webhooks", "events", key=root).stdout)


def test_senders_add_rotate_list_and_revoke(desk: Desk, sayso: Run) -> None:  # noqa: F811
    root = desk[3]
    made = sayso("webhooks", "senders", "add", "pager", "--as", "anna", key=root)
    assert made.stdout.startswith("whsec_"), made.stderr
    assert "decides as anna at /hooks/decisions/whs_" in made.stderr
    (sender,) = json.loads(sayso("webhooks", "senders", "list", "--json", key=root).stdout)
    assert sayso("webhooks", "senders", "rotate", sender["id"], key=root).stdout.startswith("whsec_")
    assert "is revoked" in sayso("webhooks", "senders", "revoke", sender["id"], key=root).stdout
    assert "revoked" in sayso("webhooks", "senders", "list", key=root).stdout
    assert "needs the role auditor or operator or admin" in sayso("webhooks", "senders", "list").stderr
