"""Sentences about where a call comes from."""

import pytest

from sayso.core.records.suspensions import Progress, RunRef, Who
from sayso.core.sentences.items import describe_origins, describe_person, describe_tools

RUN = RunRef(id="run_1", agent="bot", owner="crm", thread_id="t")
MARA = Who(person="mara", person_name="Mara Lindqvist", issuer="https://idp.example/tenant", owner="tom")


def test_origins_name_the_person_the_owner_and_the_tools() -> None:
    assert describe_origins(RUN.model_copy(update={"who": MARA}), Progress(tools=("search", "read_web"))) == [
        "For Mara Lindqvist (mara), proven by a signed token of idp.example",
        "The key is owned by tom",
        "Ran before in this run: search and read_web",
    ]


@pytest.mark.parametrize("progress", [None, Progress(), Progress(tools=None)])
def test_origins_of_an_unknown_run_are_empty(progress: Progress | None) -> None:
    assert describe_origins(RUN, progress) == []
    assert describe_origins(RUN.model_copy(update={"who": Who(owner="crm")}), progress) == []


@pytest.mark.parametrize(
    ("name", "issuer", "sentence"),
    [
        ("", "backend", "For mara, proven by a signed token of backend"),
        ("mara", "https://[broken", "For mara, proven by a signed token of https://[broken"),
    ],
)
def test_person_is_named_once(name: str, issuer: str, sentence: str) -> None:
    assert describe_person("mara", name, issuer) == sentence


def test_many_tools_are_counted() -> None:
    sentence = describe_tools([f"t{place}" for place in range(25)])
    assert sentence.endswith("t18 and t19 and 5 more")
