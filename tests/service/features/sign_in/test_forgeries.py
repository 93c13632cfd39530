"""No forged token signs anybody in: each kind by name, and random ones. `FORGED=1000000` tries a million of these."""

import os

import pytest

from sayso.errors import SaysoError
from tests.service.features.sign_in.forging import NOW_S, accept, keys, list_forged, list_random, make_valid

FORGED = dict(list_forged())
RANDOM, SEED = int(os.environ.get("FORGED", "10000")), int(os.environ.get("SEED", "1"))


@pytest.mark.parametrize("alg", ["RS256", "PS256", "ES256", "EdDSA"])
def test_token_of_the_provider_is_accepted(alg: str) -> None:
    assert accept(make_valid(alg))["sub"] == "s-1"


def test_token_without_a_key_id_needs_the_only_key_of_its_algorithm() -> None:
    assert accept(keys()["ES256"].sign({**accept(make_valid("ES256"))}, kid=None))["sub"] == "s-1"


@pytest.mark.parametrize("name", FORGED)
def test_forged_token_is_refused(name: str) -> None:
    with pytest.raises((SaysoError, LookupError)):
        accept(FORGED[name])


def test_forged_tokens_have_many_kinds() -> None:
    assert len(FORGED) >= 150
    assert len({*FORGED.values()}) == len(FORGED)


def test_random_tokens_are_refused() -> None:
    accepted = []
    for token in list_random(RANDOM, SEED):
        try:
            accepted.append(accept(token))
        except (SaysoError, LookupError):
            continue
    assert accepted == []


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("exp", NOW_S - 59, True),
        ("exp", NOW_S - 60, False),
        ("iat", NOW_S + 60, True),
        ("iat", NOW_S + 61, False),
        ("nbf", NOW_S + 60, True),
        ("nbf", NOW_S + 61, False),
    ],
)
def test_clocks_may_differ_by_sixty_seconds(name: str, value: int, accepted: bool) -> None:
    token = keys()["RS256"].sign({**accept(make_valid()), name: value})
    if accepted:
        assert accept(token)[name] == value
    else:
        with pytest.raises(SaysoError):
            accept(token)


def test_audience_may_list_others_where_azp_names_this_desk() -> None:
    claims = {**accept(make_valid()), "aud": ["other", "sayso"]}
    assert accept(keys()["RS256"].sign({**claims, "azp": "sayso"}))
    with pytest.raises(SaysoError, match="another client"):
        accept(keys()["RS256"].sign(claims))


def find_sentence(token: str) -> str:
    try:
        accept(token)
    except SaysoError as error:
        return error.message
    except LookupError:
        return "Company has no such key."
    return "accepted"


def test_sentence_repeats_nothing_of_the_token() -> None:
    sentences = {name: find_sentence(token) for name, token in FORGED.items()}
    assert {name: text for name, text in sentences.items() if "Company" not in text or "evil" in text} == {}
