"""The file of providers: what is right, and the sentence for each mistake."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.core.auth.providers import InvalidSignIn, Providers
from service.core.outgoing.http import Posts
from service.core.settings import CHECKOUT
from service.core.settings.receivers import read_receivers
from tests.logs import read_lines
from tests.service.features.sign_in.browsers import write_file

ISSUER = "https://id.example.com"


def load(path: Path | None) -> Any:
    posts = Posts(internal=read_receivers(("keycloak:8080", "10.0.0.0/8")))
    return Providers(path, posts.check_url).load()


def test_file_gives_defaults(tmp_path: Path) -> None:
    plan = load(write_file(tmp_path, ISSUER))
    (provider,) = plan.providers
    assert plan.local_accounts == "on"
    assert (provider.default_roles, provider.claims.name) == (["reviewer"], "preferred_username")
    assert (provider.rules_roles, provider.named_groups) == (False, frozenset())
    assert "a secret of the client" not in repr(plan)


@pytest.mark.parametrize("words", ["on", "off", "break_glass", '"off"'])
def test_words_for_local_accounts_are_read_as_they_stand(tmp_path: Path, words: str) -> None:
    path = write_file(tmp_path, ISSUER)
    path.write_text(f"{path.read_text()}local_accounts: {words}\n")
    assert load(path).local_accounts == words.strip('"')


def test_example_of_the_documentation_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (CHECKOUT / "docs" / "people.md").read_text()
    example = tmp_path / "sign-in.yaml"
    example.write_text(page.split("## Single sign-on")[1].split("```yaml\n")[1].split("```")[0])
    monkeypatch.setenv("COMPANY_SECRET", "any")
    plan = load(example)
    (provider,) = plan.providers
    assert (plan.local_accounts, provider.id, provider.named_groups) == ("on", "company", {"payments"})


def test_secret_may_be_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_file(tmp_path, ISSUER, client_secret="env:COMPANY_SECRET")
    with pytest.raises(InvalidSignIn, match="the environment has no variable COMPANY_SECRET; set it"):
        load(path)
    monkeypatch.setenv("COMPANY_SECRET", "from outside")
    assert load(path).providers[0].client_secret.get_secret_value() == "from outside"


def test_issuer_may_be_an_internal_receiver_over_http(tmp_path: Path) -> None:
    for issuer in ("http://keycloak:8080/realms/desk", "http://10.1.2.3/"):
        assert load(write_file(tmp_path, issuer)).providers[0].issuer == issuer


@pytest.mark.parametrize(
    ("plan", "fields", "sentence"),
    [
        ({}, {"issuer": "id.example.com"}, "issuer"),
        ({}, {"issuer": "http://id.example.com"}, "Use https, or let the operator name it in SAYSO_INTERNAL_RECEIVERS"),
        ({}, {"issuer": "http://169.254.169.254"}, "The issuer of company cannot be used"),
        ({}, {"issuer": None}, "issuer"),
        ({}, {"client_id": ""}, "client_id"),
        ({}, {"id": "My Company"}, "id"),
        ({}, {"scopes": ["profile"]}, "add openid; without it the provider names nobody"),
        ({}, {"algorithms": ["HS256"]}, "algorithms"),
        ({}, {"algorithms": ["none"]}, "algorithms"),
        ({}, {"algorithms": []}, "algorithms"),
        ({}, {"default_roles": ["reviwer"]}, "'reviwer' is no role; use reviewer, "),
        ({}, {"groups": {"a": {"roles": ["The Boss"]}}}, "'The Boss' is no role; use reviewer, "),
        ({}, {"groups": {"a": {"groups": ["Pay Ments"]}}}, "'Pay Ments' is no name of a group here"),
        ({}, {"email_domains": ["@example.com"]}, "email_domains"),
        ({}, {"secret": "x"}, "secret"),
        ({"local_accounts": "no"}, {}, "local_accounts"),
        ({"local_accounts": "off", "providers": []}, {}, "without providers nobody could sign in; add one"),
        ({"mode": 1}, {}, "mode"),
    ],
)
def test_mistake_in_the_file_is_named(
    tmp_path: Path, plan: dict[str, Any], fields: dict[str, Any], sentence: str
) -> None:
    issuer = fields.pop("issuer", ISSUER)
    with pytest.raises(InvalidSignIn) as refused:
        load(write_file(tmp_path, issuer, plan, **fields))
    assert sentence in refused.value.message
    assert "a secret of the client" not in refused.value.message


def test_provider_that_is_there_twice_is_named(tmp_path: Path) -> None:
    row = {"id": "company", "title": "Company", "issuer": ISSUER, "client_id": "sayso"}
    with pytest.raises(InvalidSignIn, match="the provider company is there twice; rename one"):
        load(write_file(tmp_path, ISSUER, {"providers": [row, {**row}]}))


def test_missing_file_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(InvalidSignIn, match=r"cannot be read: No such file or directory\. Correct SAYSO_SIGN_IN"):
        load(tmp_path / "none.yaml")


def test_service_does_not_start_with_a_faulty_file(clean_store_url: str, tmp_path: Path) -> None:
    path = write_file(tmp_path, ISSUER, scopes=["profile"])
    environ = {"SAYSO_SIGN_IN": str(path), "SAYSO_REDIS_URL": clean_store_url, "SAYSO_PORT": "8329", "PATH": ""}
    command = [sys.executable, "-m", "service"]
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    (line,) = read_lines(done.stdout)
    assert "sign-in.yaml" in str(line.error)
    assert "add openid" in str(line.error)
    assert done.stderr == ""
