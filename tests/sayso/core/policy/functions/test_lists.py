"""Named lists and constants of a rules file."""

from pathlib import Path

import pytest

from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.files.reading import RulebookError, load_rulebook
from sayso.core.policy.functions.lists import MOST_ENTRIES, MOST_FILE_BYTES
from sayso.core.policy.rules import Action
from tests.sayso.core.policy.rule_files import parse, read_problems

HEAD = "version: 1\ndefault: allow\n"
FILE = (
    HEAD + "lists: {blocked: {file: blocked.txt}}\nrules:\n  - {id: a, when: args.x in lists.blocked, action: deny}\n"
)


def action(policy: Policy, args: dict[str, object], tool: str = "t", agent: str = "a") -> Action:
    return policy.judge(PolicyEvent(run_id="run_1", agent=agent, tool_name=tool, tool_args=args)).action


def test_rules_share_lists_and_constants() -> None:
    policy = parse(
        HEAD + "lists: {eu: [AT, DE], odd: [1, 2.5, true]}\nconstants: {limit: 100, name: anna, on: true}\nrules:\n"
        "  - {id: a, when: args.country in lists.eu && args.amount > constants.limit, action: deny}\n"
        "  - {id: b, when: \"has(args.n) && args.n in lists['odd'] && constants.on\", action: deny}\n"
        "  - {id: c, when: 'args.all.exists(one, one in lists.eu) || args.who == constants.name', action: deny}\n"
    )
    assert action(policy, {"country": "AT", "amount": 101}) is Action.DENY
    assert action(policy, {"country": "CH", "amount": 101, "all": [], "who": "b"}) is Action.ALLOW
    assert action(policy, {"country": "CH", "amount": 101, "n": 1.0}) is Action.DENY
    assert action(policy, {"country": "CH", "amount": 1, "all": ["X", "DE"]}) is Action.DENY
    assert action(policy, {"country": "CH", "amount": 1, "who": "anna"}) is Action.DENY


def test_tool_and_agent_take_the_entries_of_a_list() -> None:
    text = HEAD + 'lists: {payments: ["pay_*", refund], batch: [nightly, "job-*"]}\nrules:\n'
    policy = parse(f"{text}  - {{id: a, tool: {{in: payments}}, agent: {{in: batch}}, action: deny}}\n")
    assert policy.rules[0].condition.tools == ("pay_*", "refund")
    assert policy.rules[0].condition.agents == ("nightly", "job-*")
    assert action(policy, {}, "pay_out", "job-7") is Action.DENY
    assert action(policy, {}, "pay_out", "anna") is Action.ALLOW
    assert action(policy, {}, "ship", "nightly") is Action.ALLOW
    assert action(parse(HEAD + "rules: [{id: a, agent: [x, y], action: deny}]"), {}, "t", "y") is Action.DENY


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("lists: [a]", "lists: must be a mapping of names"),
        ("lists: {a: 5}", "lists.a: must be a list such as [a, b], or `file:`"),
        ("lists: {a: [[b]]}", "lists.a: an entry must be a text, a number, true or false"),
        ("lists: {A-b: [a]}", "lists: a name has small letters"),
        ("lists: {in: [a]}", "rename 'in'"),
        ("lists: {a: {file: 5}}", "lists.a: must be a list"),
        ("lists: {a: {file: b.txt}}", "lists.a: the file 'b.txt' is not here"),
        (f"lists: {{a: [{'x, ' * MOST_ENTRIES} x]}}", "the limit is 10000"),
        ("lists: {a: [%s]}" % ("x" * 1001), "lists.a.0"),
        ("constants: {a: [b]}", "constants.a: must be a text, a number, true or false"),
        ("constants: {a: }", "has no value"),
        (f"constants: {{a: {2**63}}}", "constants.a: conditions compare no integer of more than 64 bits; write a text"),
        (f"lists: {{a: [1, {-(2**63) - 1}]}}", "lists.a: conditions compare no integer of more than 64 bits"),
        ("constants: 5", "constants: must be a mapping"),
        ("list: {a: [b]}", "did you mean `lists`?"),
    ],
)
def test_faulty_lists_and_constants_are_reported(text: str, problem: str) -> None:
    assert problem in "\n".join(read_problems(f"{HEAD}{text}\nrules: []"))


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (
            "when: args.a in lists.eur",
            "policy.yaml:5:19: rule a: when: there is no 'eur' in `lists:` at the top of the file; did you mean 'eu'?",
        ),
        ("when: args.a > constants.limit", "there is no 'limit' in `constants:` at the top of the file; add it"),
        ("tool: {in: eur}", "rule a: tool: there is no 'eur' in `lists:` at the top of the file; did you mean 'eu'?"),
        ("agent: {of: eu}", "rule a: agent: write a name, a pattern, a list of both, or `{in: NAME}`"),
        ("tool: {in: numbers}", "rule a: tool"),
        ("tool: {in: empty}", "rule a: tool"),
    ],
)
def test_unknown_names_are_reported_with_a_suggestion(rule: str, problem: str) -> None:
    head = f"{HEAD}lists: {{eu: [AT], numbers: [5], empty: []}}\nrules:\n"
    assert problem in "\n".join(read_problems(f"{head}  - {{id: a, {rule}, action: deny}}\n"))


def test_a_list_may_be_a_file_beside_the_rules(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(FILE)
    (tmp_path / "blocked.txt").write_text("\ufeff# people\n\n  eve \nmallory\r\n", encoding="utf-8")
    policy = load_rulebook(tmp_path / "policy.yaml")
    assert policy.lists == {"blocked": ("eve", "mallory")}
    assert [*policy.stamps] == [tmp_path / "blocked.txt"]
    assert action(policy, {"x": "eve"}) is Action.DENY
    assert Policy.model_validate_json(policy.model_dump_json()).version == policy.version
    (tmp_path / "blocked.txt").write_text("eve\n")
    assert load_rulebook(tmp_path / "policy.yaml").version != policy.version


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("absent.txt", None, "cannot be read"),
        ("../outside.txt", None, "in the folder of the rules"),
        ("/etc/hosts.txt", None, "in the folder of the rules"),
        ("list.yaml", b"a", "ends with .txt"),
        ("link.txt", None, "in the folder of the rules"),
        ("empty.txt", b"# none\n", "has no entry"),
        ("huge.txt", b"a\n" * MOST_FILE_BYTES, "larger than"),
        ("long.txt", b"a\n" * (MOST_ENTRIES + 1), "at most 10000 entries"),
        ("wide.txt", b"a" * 1001, "at most 1000 characters"),
        ("latin.txt", b"\xe9", "not UTF-8"),
    ],
)
def test_files_of_lists_are_refused(tmp_path: Path, name: str, content: bytes | None, problem: str) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (tmp_path / "outside.txt").write_text("a")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    if content is not None:
        (folder / name).write_bytes(content)
    (folder / "policy.yaml").write_text(FILE.replace("blocked.txt", name))
    with pytest.raises(RulebookError) as caught:
        load_rulebook(folder / "policy.yaml")
    assert problem in str(caught.value)
    assert "lists.blocked" in str(caught.value)


def test_files_without_lists_keep_their_version() -> None:
    plain = parse(HEAD + "rules: []")
    assert parse(HEAD + "lists: {}\nconstants: {}\nrules: []").version == plain.version
    versions = {
        parse(f"{HEAD}{one}\nrules: []").version for one in ("lists: {a: [b]}", "lists: {a: [c]}", "constants: {a: b}")
    }
    assert len({plain.version, *versions}) == 4
