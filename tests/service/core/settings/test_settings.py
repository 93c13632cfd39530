"""Settings are read once, checked as a whole, and each fault says what to do."""

import base64
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from service.core.settings import CHECKOUT, InvalidSettings, Settings, load, socket_path, store_url_at, variable_of
from service.core.settings.limits import COMPANY
from service.core.settings.secrets import FILED, file_variable_of

SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(variable_of(name), raising=False)
    for name in FILED:
        monkeypatch.delenv(file_variable_of(name), raising=False)
    monkeypatch.delenv("REDIS_URL", raising=False)


def fault_of(monkeypatch: pytest.MonkeyPatch, **environ: str) -> str:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSettings) as caught:
        load()
    return caught.value.message


def test_nothing_has_to_be_set() -> None:
    settings = load()

    assert settings.home == CHECKOUT / ".sayso"
    assert settings.public_url == "http://127.0.0.1:8321"
    assert settings.model_url == "http://127.0.0.1:8322/v1"
    assert settings.store_url == f"unix://{CHECKOUT}/.sayso/store.sock?db=0"
    assert not settings.secure_cookies
    assert settings.runs_demo_model


def test_addresses_follow_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYSO_PORT", "9000")

    assert load().public_url == "http://127.0.0.1:9000"
    assert load().model_url == "http://127.0.0.1:9001/v1"
    assert load().runs_demo_model


@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
        ("::1", "[::1]"),
        ("127.0.0.2", "127.0.0.2"),
        ("localhost", "localhost"),
    ],
)
def test_addresses_follow_the_host(host: str, place: str) -> None:
    settings = Settings(host=host)

    assert settings.public_url == f"http://{place}:8321"
    assert settings.model_url == f"http://{place}:8322/v1"
    assert settings.runs_demo_model


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYSO_AGENTS", "")
    monkeypatch.setenv("SAYSO_PORT", "")

    assert load() == Settings()


@pytest.mark.parametrize("name", ["REDIS_URL", "SAYSO_REDIS_URL"])
@pytest.mark.parametrize(
    "url",
    [
        "redis://:secret@db:6379/1",
        "rediss://db",
        "unix:///run/valkey.sock?db=0",
        "redis+sentinel://sayso:secret@one:26379,[::1]:26380/desk/1?sentinel_password=other",
        "rediss+sentinel://one,two/desk?ssl_ca_certs=/etc/ssl/store.pem",
    ],
)
def test_a_store_of_ones_own_is_used(monkeypatch: pytest.MonkeyPatch, name: str, url: str) -> None:
    monkeypatch.setenv(name, url)

    assert load().store_url == url


def test_a_store_may_be_asked_for_securely() -> None:
    url = "rediss://store.example/3?ssl_ca_certs=/etc/ssl/store.pem&username=sayso&password=secret"

    assert Settings(redis_url=url).store_url == url


def test_a_tenant_of_a_cluster_is_named_in_its_url() -> None:
    settings = Settings(redis_url="rediss+cluster://:secret@one:7000,[::1]?ssl_ca_certs=/ca", queue_url="redis://queue")
    assert settings.store_url == f"rediss+cluster://:secret@one:7000,[::1]/{settings.tenant}?ssl_ca_certs=/ca"
    assert settings.jobs_url == "redis://queue"
    assert Settings(redis_url="redis://one/2").jobs_url == "redis://one/2"


def test_our_own_name_wins_over_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://plain")
    monkeypatch.setenv("SAYSO_REDIS_URL", "redis://ours")

    assert load().store_url == "redis://ours"


def test_words_are_split_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAYSO_AGENTS", "demo.agents:support, mine:billing,")
    monkeypatch.setenv("SAYSO_WEBHOOK_SECRET", f"{SECRET},{SECRET}")

    assert load().agents == ("demo.agents:support", "mine:billing")
    assert [secret.get_secret_value() for secret in load().webhook_secret] == [SECRET, SECRET]


def test_https_makes_cookies_secure() -> None:
    assert Settings(public_url="https://sayso.example/").secure_cookies
    assert Settings(public_url="https://sayso.example/").public_url == "https://sayso.example"
    assert Settings(public_url="HTTPS://Sayso.Example").secure_cookies
    assert Settings(public_url="HTTPS://Sayso.Example").public_url == "https://sayso.example"


def test_no_secret_is_shown() -> None:
    settings = Settings.model_validate(
        {
            "admin_password": "pa55word",
            "key": "k3y-of-some-length",
            "model_key": "m0del",
            "redis_url": "redis://:r3dis@db",
            "webhook_secret": SECRET,
        }
    )

    assert not [word for word in ("pa55word", "k3y-of-some-length", "m0del", "r3dis", SECRET) if word in repr(settings)]


def test_settings_never_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("SAYSO_PORT", "0", "greater than or equal to 1"),
        ("SAYSO_PORT", "65535", "less than or equal to 65534"),
        ("SAYSO_PORT", "http", "valid integer"),
        ("SAYSO_WORKERS", "0", "greater than or equal to 1"),
        ("SAYSO_LEASE_S", "0", "greater than or equal to 1"),
        ("SAYSO_ENV", "prod", "'local' or 'production'"),
        ("SAYSO_LOG_LEVEL", "loud", "'info'"),
        ("SAYSO_AGENTS", "demo/agents.py", "write package.module:name"),
        ("SAYSO_KEY", "a key", "without spaces"),
        ("SAYSO_KEY", "short", "at least 16 characters"),
        ("SAYSO_METRICS_TOKEN", "a token of words", "without spaces"),
        ("SAYSO_METRICS_TOKEN", "short", "at least 16 characters"),
        ("SAYSO_ADMIN_PASSWORD", "short", "8 to 1024 characters"),
        ("SAYSO_REDIS_URL", "localhost:6379", "write redis://host:port/db"),
        ("SAYSO_REDIS_URL", "redis://", "names no server"),
        ("SAYSO_REDIS_URL", "redis://localhost:six/0", "the port is no number"),
        ("SAYSO_REDIS_URL", "redis://localhost:66666/0", "the port is no number"),
        ("SAYSO_REDIS_URL", "redis://localhost/mine", "the database is no number"),
        ("SAYSO_REDIS_URL", "unix:///run/store.sock?db=mine", "the database is no number"),
        ("SAYSO_REDIS_URL", "redis://localhost/0?speed=9", "'speed' is no option"),
        ("SAYSO_REDIS_URL", "redis://one:6379,two:6379/0", "write redis+sentinel://host:port,host:port/name/db"),
        ("SAYSO_REDIS_URL", "redis+sentinel://one,two", "lacks the name that the sentinels have for the store"),
        ("SAYSO_REDIS_URL", "redis+sentinel://one,two:six/desk", "the port is no number"),
        ("SAYSO_REDIS_URL", "redis+sentinel://one,/desk", "a server of the URL has no host"),
        ("SAYSO_REDIS_URL", "redis+sentinel:///desk", "a server of the URL has no host"),
        ("SAYSO_REDIS_URL", "redis+sentinel://one/desk/two", "the database is no number"),
        ("SAYSO_REDIS_URL", "redis+sentinel://one/desk?speed=9", "'speed' is no option"),
        ("SAYSO_REDIS_URL", "redis+cluster://one,two:six", "the port is no number"),
        ("SAYSO_REDIS_URL", "redis+cluster://one,", "a server of the URL has no host"),
        ("SAYSO_REDIS_URL", "redis+cluster://one/1", "a cluster has no databases and no name"),
        ("SAYSO_REDIS_URL", "redis+cluster://one?db=1", "a cluster has no databases and no name"),
        ("SAYSO_REDIS_URL", "redis+cluster://one,two", "set SAYSO_QUEUE_URL to a small store"),
        ("SAYSO_QUEUE_URL", "redis+cluster://one", "SAYSO_QUEUE_URL is a cluster, which RQ cannot use"),
        ("SAYSO_QUEUE_URL", "redis://one,two", "for a cluster write redis+cluster://host:port,host:port"),
        ("SAYSO_REDIS_URL", "redis://one/0?sentinel_password=x", "'sentinel_password' is no option"),
        ("SAYSO_REDIS_URL", "unix+sentinel:///run/store.sock", "behind sentinels write redis+sentinel://"),
        ("SAYSO_HOME", "~nobody-of-that-name/data", "write the whole path"),
        ("REDIS_URL", "http://localhost", "write redis://host:port/db"),
        ("SAYSO_PUBLIC_URL", "sayso.example", "write http://host:port or https://host"),
        ("SAYSO_PUBLIC_URL", "https://sayso.example:six", "the port is no number"),
        ("SAYSO_PUBLIC_URL", "https://anna@sayso.example", "a host of its own"),
        ("SAYSO_PUBLIC_URL", "https://sayso.example/?next=1", "a host of its own"),
        ("SAYSO_PUBLIC_URL", "https://sayso example", "a host of its own"),
        ("SAYSO_PUBLIC_URL", "https://tools.example/sayso", "a host of its own"),
        ("SAYSO_MODEL_URL", "http://127.0.0.1:six/v1", "the port is no number"),
        ("SAYSO_MODEL_URL", "ftp://models", "write http://host:port or https://host"),
        ("SAYSO_WEBHOOK_SECRET", "secret", "write whsec_"),
        ("SAYSO_WEBHOOK_SECRET", "whsec_c2hvcnQ=", "24 random bytes"),
        ("SAYSO_WEBHOOK_SECRET", "whsec_???", "24 random bytes"),
        ("SAYSO_WEBHOOK_SECRET", "whsec_é", "24 random bytes"),
        ("SAYSO_SESSION_IDLE_S", "99999", "make it the smaller one"),
        ("SAYSO_SESSION_MAX_S", "99999999999999999999", "less than or equal to"),
        ("SAYSO_TRUSTED_PROXIES", "10.0.0.5,proxy.example", "'proxy.example' is not an address"),
        ("SAYSO_TRUSTED_PROXIES", "0.0.0.0/0", "lets every client choose"),
        ("SAYSO_TRUSTED_PROXIES", "*", "not an address or network"),
        ("SAYSO_ALLOWED_HOSTS", "https://desk.example", "without port or scheme"),
        ("SAYSO_ALLOWED_HOSTS", "desk.example:443", "without port or scheme"),
        ("SAYSO_BODY_LIMIT_BYTES", "10", "greater than or equal to 1024"),
    ],
)
def test_invalid_value_is_reported_with_name_and_remedy(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, advice: str
) -> None:
    message = fault_of(monkeypatch, **{name: value})

    assert name in message
    assert advice in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("SAYSO_PROT", "SAYSO_PORT"),
        ("SAYSO_PRT", "SAYSO_PORT"),
        ("SAYSO_PORTS", "SAYSO_PORT"),
        ("SAYSO_PORK", "SAYSO_PORT"),
        ("SAYSO_KEYS", "SAYSO_KEY"),
    ],
)
def test_variable_one_letter_off_is_a_fault_with_the_near_name(
    monkeypatch: pytest.MonkeyPatch, name: str, near: str
) -> None:
    message = fault_of(monkeypatch, **{name: "1"})
    assert message == f"{name}: there is no such setting; did you mean {near}? See docs/settings.md."


@pytest.mark.parametrize("name", ["SAYSO_PROTS", "SAYSO_SERVICE_HOST", "SAYSO_COLOUR", "SAYSO_URL"])
def test_variable_of_another_name_is_no_fault(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    load()


def test_all_problems_are_reported_together(monkeypatch: pytest.MonkeyPatch) -> None:
    message = fault_of(monkeypatch, SAYSO_PORT="x", SAYSO_WORKERS="x")

    assert [line.partition(":")[0] for line in message.splitlines()] == ["SAYSO_PORT", "SAYSO_WORKERS"]


def test_a_wrong_secret_is_not_repeated_in_the_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "hunter2" not in fault_of(monkeypatch, SAYSO_WEBHOOK_SECRET="hunter2")


def test_production_refuses_what_only_fits_ones_own_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    message = fault_of(
        monkeypatch,
        SAYSO_ENV="production",
        SAYSO_ALLOW_WEAK_DURABILITY="true",
        SAYSO_ADMIN_PASSWORD="too short",
        SAYSO_KEY="long-enough-at-home",
    )

    for name in ("SAYSO_PUBLIC_URL", "SAYSO_ALLOW_WEAK_DURABILITY", "SAYSO_ADMIN_PASSWORD", "SAYSO_KEY"):
        assert name in message


def test_production_takes_what_is_fit() -> None:
    settings = Settings(env="production", public_url="https://sayso.example", policy=Path("rules.yaml"))
    assert settings.env == "production"


def test_production_demands_a_policy() -> None:
    with pytest.raises(ValidationError, match="set SAYSO_POLICY to your own rules"):
        Settings(env="production", public_url="https://sayso.example")


@pytest.mark.parametrize(
    ("url", "lacks"),
    [
        ("redis://store.example:6379/0", "add a password and TLS (rediss://) to SAYSO_REDIS_URL"),
        ("redis://:pa55word@10.0.0.7/0", "add TLS (rediss://) to"),
        ("rediss://store.example/0", "add a password to"),
        ("rediss://anna@store.example/0", "add a password to"),
        ("redis://[2001:db8::1]/0", "add a password and TLS"),
        ("redis+sentinel://127.0.0.1,store.example/desk", "add a password and TLS (rediss+sentinel://) to"),
        ("rediss+sentinel://store.example/desk?sentinel_password=x", "add a password to"),
        ("redis+cluster://127.0.0.1,store.example", "add a password and TLS (rediss+cluster://) to SAYSO_REDIS_URL"),
    ],
)
def test_production_refuses_a_plain_store_on_another_machine(
    monkeypatch: pytest.MonkeyPatch, url: str, lacks: str
) -> None:
    production = {
        "SAYSO_ENV": "production",
        "SAYSO_PUBLIC_URL": "https://sayso.example",
        "SAYSO_POLICY": "rules.yaml",
        "SAYSO_REDIS_URL": url,
        "SAYSO_QUEUE_URL": "redis://127.0.0.1:6379/0",
    }
    assert lacks in fault_of(monkeypatch, **production)
    monkeypatch.setenv("SAYSO_ALLOW_PLAIN_STORE", "true")
    assert load().env == "production"


@pytest.mark.parametrize(
    "url",
    [
        "unix:///run/store.sock?db=0",
        "redis://127.0.0.1:6379/0",
        "redis://localhost/0",
        "redis://[::1]/0",
        "rediss://:pa55word@store.example/0",
        "rediss://store.example/0?password=pa55word",
        "rediss+sentinel://:pa55word@store.example/desk",
    ],
)
def test_production_takes_a_store_that_nobody_else_reaches(url: str) -> None:
    policy = Path("rules.yaml")
    settings = Settings(env="production", public_url="https://sayso.example", policy=policy, redis_url=url)
    assert settings.store_url == url


def test_a_plain_store_is_taken_outside_of_production() -> None:
    assert Settings(redis_url="redis://store.example:6379/0").env == "local"


def test_a_long_home_has_its_socket_in_a_short_folder(tmp_path: Path) -> None:
    home = tmp_path / ("x" * 120)

    assert len(str(socket_path(home))) < 100
    assert socket_path(home) == socket_path(home)
    assert socket_path(home) != socket_path(home / "other")


def test_a_home_with_odd_signs_makes_a_url_that_leads_back_to_it() -> None:
    assert store_url_at(Path("/my 100% home?/store.sock")) == "unix:///my%20100%25%20home%3F/store.sock?db=0"


def test_every_setting_is_described() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_each_secret_but_the_key_of_the_demo_can_be_in_a_file() -> None:
    secret = {
        name for name, field in Settings.model_fields.items() if not field.repr or "SecretStr" in str(field.annotation)
    }
    assert secret == {*FILED, "key"}


def test_secrets_are_read_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = {"redis_url": "rediss://:secret@store/0", "metrics_token": "m" * 32, "webhook_secret": f"{SECRET},{SECRET}"}
    for name, value in given.items():
        (tmp_path / name).write_text(f"{value}\n")
        monkeypatch.setenv(file_variable_of(name), str(tmp_path / name))
        monkeypatch.setenv(variable_of(name), "")
    monkeypatch.setenv("REDIS_URL", "redis://plain")
    settings = load()
    assert settings.store_url == given["redis_url"]
    assert settings.metrics_token is not None
    assert settings.metrics_token.get_secret_value() == given["metrics_token"]
    assert len(settings.webhook_secret) == 2
    assert not {name for name in os.environ if name.startswith("SAYSO_") and name.endswith("_FILE")}


@pytest.mark.parametrize(
    ("content", "value", "says"),
    [
        (b"m" * 32, "n" * 32, "SAYSO_METRICS_TOKEN is set too. Unset one of them."),
        (None, "", "cannot be read (No such file or directory). Correct the path"),
        (b" \n", "", "holds no value"),
        (b"m" * 70_000, "", "holds no value"),
        (b"\xff" * 32, "", "is no text in UTF-8"),
    ],
)
def test_file_of_a_secret_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None, value: str, says: str
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    message = fault_of(monkeypatch, SAYSO_METRICS_TOKEN=value, SAYSO_METRICS_TOKEN_FILE=str(path))
    assert message.startswith("SAYSO_METRICS_TOKEN_FILE: ")
    assert says in message


def test_file_of_a_wrong_value_is_a_wrong_value(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "url").write_text("http://store")
    given = {"SAYSO_REDIS_URL": "", "SAYSO_REDIS_URL_FILE": str(tmp_path / "url")}
    assert "SAYSO_REDIS_URL: write redis://" in fault_of(monkeypatch, **given)


def test_size_sets_the_limits_that_are_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = load()
    assert Settings(size="team") == defaults
    assert all(getattr(defaults, name) < limit for name, limit in COMPANY.items())
    monkeypatch.setenv("SAYSO_SIZE", "company")
    monkeypatch.setenv("SAYSO_PENDING_LIMIT", "500")
    company = load()
    assert {name: getattr(company, name) for name in COMPANY} == {**COMPANY, "pending_limit": 500}
    assert "SAYSO_SIZE" in fault_of(monkeypatch, SAYSO_SIZE="huge")
