"""The examples of the guide do what it says, also with calls that try to slip by."""

import re
from pathlib import Path
from typing import Any

import pytest

from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.functions.shorthands import SHORTHANDS
from sayso.core.policy.functions.sql.statements import DATABASES
from sayso.core.policy.rules import Action
from tests.sayso.core.policy.rule_files import parse

GUIDE = (Path(__file__).parents[5] / "docs" / "policies-shorthands.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
POLICIES: list[Policy] = [parse(one) for one in EXAMPLES]
ALLOW, DENY, ASK = Action.ALLOW, Action.DENY, Action.REQUEST_APPROVAL


def judge(rule_id: str, tool: str, args: dict[str, Any]) -> Action:
    policy = next(one for one in POLICIES if any(rule.rule_id == rule_id for rule in one.rules))
    return policy.judge(PolicyEvent(run_id="run_1", agent="a", tool_name=tool, tool_args=args)).action


@pytest.mark.parametrize(
    ("rule_id", "tool", "args", "action"),
    [
        ("payments", "refund", {"country": "AT", "amount": 100}, ALLOW),
        ("payments", "pay_out", {"country": "AT", "amount": 100.5}, ASK),
        ("payments", "refund", {"country": "CH", "amount": 1}, ASK),
        ("payments", "Refund", {"country": "CH", "amount": 1}, ASK),
        ("partners-only", "fetch_pages", {"urls": ["https://API.partner.example/a"]}, ALLOW),
        ("partners-only", "fetch_pages", {"urls": ["https://api.partner.example@evil.example/"]}, ASK),
        ("partners-only", "fetch_pages", {"urls": ["https://api.partner.example\\@evil.example/"]}, ASK),
        ("partners-only", "fetch_pages", {"urls": ["https://api.partner.example", "https://evil.example"]}, ASK),
        ("no-secrets-out", "send_mail", {"body": {"text": "AKIA" + "IOSFODNN7EXAMPLE"}}, DENY),
        ("no-secrets-out", "send_mail", {"body": "card 4111-1111-1111-1111"}, DENY),
        ("no-secrets-out", "send_mail", {"body": "card \uff14111 1111 11\u200b11 1111"}, DENY),
        ("files-in-the-workspace", "write_file", {"file": "/srv/agent/a/../b.md"}, ALLOW),
        ("files-in-the-workspace", "write_file", {"file": "/srv/agent/../../etc/b.md"}, ASK),
        ("files-in-the-workspace", "write_file", {"file": "/srv/agents/b.md"}, ASK),
        ("files-in-the-workspace", "write_file", {"file": "notes.md"}, ASK),
        ("files-in-the-workspace", "write_file", {"file": "/srv/agent/.bashrc"}, ASK),
        ("internal-words", "send_note", {"lines": [{"text": "About PROJECT Falcon"}]}, ASK),
        ("harmless-commands", "run_shell", {"command": "cat a.txt | grep b | head -3"}, ALLOW),
        ("harmless-commands", "run_shell", {"command": "sort -o a.txt b.txt"}, Action.REQUEST_APPROVAL),
        ("harmless-commands", "run_shell", {"command": "cat a.txt; curl evil.example"}, ASK),
        ("harmless-commands", "run_shell", {"command": "echo $(curl evil.example)"}, ASK),
        ("harmless-commands", "run_shell", {"command": "cat a.txt > /etc/passwd"}, ASK),
        ("harmless-commands", "run_shell", {"command": "./ls"}, ASK),
        ("harmless-commands", "run_shell", {"command": "PATH=/tmp ls"}, ASK),
        ("harmless-commands", "run_shell", {"command": "cat <<A\n`curl evil.example`\nA"}, ASK),
        ("queries", "run_sql", {"query": "select name from products where id = 3"}, ALLOW),
        ("queries", "run_sql", {"query": "select * from shop.Users"}, ASK),
        ("queries", "run_sql", {"query": "with x as (delete from a where b = 1 returning *) select * from x"}, ASK),
        ("queries", "run_sql", {"query": "select 1; drop table products"}, ASK),
        ("queries", "run_sql", {"query": "delete from products"}, DENY),
        ("queries", "run_sql", {"query": "delete from products where id = 3 or 1 = 1"}, DENY),
        ("queries", "run_sql", {"query": "delete from products where id = 3"}, ASK),
        ("mail-to-colleagues", "send_mail", {"to": "Anna <anna@example.com>, ben@example.com"}, ALLOW),
        ("mail-to-colleagues", "send_mail", {"to": ["anna@example.com", "eve@evil.example"]}, ASK),
        ("mail-to-colleagues", "send_mail", {"to": '"anna@example.com" <eve@evil.example>'}, ASK),
        ("mail-to-colleagues", "send_mail", {"to": "anna@example.com\nBcc: eve@evil.example"}, ASK),
    ],
)
def test_the_examples_decide_as_the_guide_says(rule_id: str, tool: str, args: dict[str, Any], action: Action) -> None:
    assert judge(rule_id, tool, args) is action


def test_the_guide_names_every_shorthand_value_and_database() -> None:
    values = [field for one in SHORTHANDS.values() for field in one.fields]
    assert [name for name in SHORTHANDS if f"`{name}(" not in GUIDE] == []
    assert [name for name in (*values, *DATABASES) if f"`{name}`" not in GUIDE] == []
