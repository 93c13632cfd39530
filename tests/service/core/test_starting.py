"""A program reads its own secrets only, and so do its tools."""

import os
import subprocess
import sys

import pytest

from launch.programs import CLOCK, DEMO_MODEL, SERVER, SERVICE, SETUP, WORKER
from service.core.logs import start
from service.core.settings import CHECKOUT, Settings, load
from service.core.settings.secrets import SECRETS

SECRET = "whsec_" + "c2VjcmV0" * 6


@pytest.mark.parametrize("name", ["SAYSO_WEBHOOK_SECRET", "sayso_webhook_secret"])
def test_a_worker_given_the_webhook_secret_does_not_keep_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, SECRET)
    seen: list[Settings] = []

    def program(settings: Settings) -> int:
        seen.extend((settings, load()))
        tool = subprocess.run([sys.executable, "-c", "import os; print(os.environ)"], capture_output=True, check=True)
        assert SECRET.encode() not in tool.stdout, "a tool inherits the environment"
        return 0

    assert start(program) == 0
    assert [one.webhook_secret for one in seen] == [(), ()]
    assert name not in os.environ


def test_the_service_keeps_the_webhook_secret_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYSO_WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("SAYSO_ADMIN_PASSWORD", "a known password")

    def program(settings: Settings) -> int:
        assert [one.get_secret_value() for one in settings.webhook_secret] == [SECRET]
        assert settings.admin_password is None
        return 0

    assert start(program, sees=("webhook_secret",)) == 0


def test_wrong_secret_is_reported_to_every_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SAYSO_WEBHOOK_SECRET", "short")
    assert start(lambda _settings: 0) == 2
    assert "SAYSO_WEBHOOK_SECRET" in capsys.readouterr().err


def test_only_service_and_set_up_are_given_secrets() -> None:
    sees = {one.name: one.sees for one in (SERVICE, SETUP, WORKER, CLOCK, SERVER, DEMO_MODEL)}
    assert {name: names for name, names in sees.items() if names} == {
        "service": ("metrics_token", "webhook_secret"),
        "setup": ("admin_password", "key"),
    }
    assert {one for names in sees.values() for one in names} == set(SECRETS)
    assert (CHECKOUT / "compose.yaml").read_text().count("      SAYSO_WEBHOOK_SECRET: ") == 1
