"""The page of the cases beside the rules."""

from pathlib import Path

from tests.service.edge.web.sites import settings_for, visit

RULES = """\
version: 1
default: deny
rules: [{id: reads, tool: "read_*", action: allow}]
tests: [{name: reads run, call: {tool: read_file}, expect: allow, rule: reads}]
"""


async def test_rules_page_tells_how_the_cases_end(clean_store_url: str, tmp_path: Path) -> None:
    settings = settings_for(clean_store_url, tmp_path, RULES)
    async with visit(settings) as anna:
        assert "1 case beside the rules is as expected." in await anna.read("/rules")
        page = await anna.read("/rules/-/cases")
        assert "reads run" in page
        assert "policy.yaml:4:9" in page
        (tmp_path / "policy.cases.yaml").write_text("tests: [{call: {tool: <b>}, expect: allow}, {expect: deny}]\n")
        assert "1 of 2 cases beside the rules are not as expected." in await anna.read("/rules")
        page = await anna.read("/rules/-/cases")
        assert "expected allow, but the default says deny" in page
        assert "policy.cases.yaml:1:45: case 2: needs" in page
        assert page.index("case 1") < page.index("reads run"), "cases that are not as expected come first"
        assert "<b>" not in page


async def test_rules_without_cases_say_nothing_of_them(clean_store_url: str, tmp_path: Path) -> None:
    async with visit(settings_for(clean_store_url, tmp_path)) as anna:
        assert "beside the rules" not in await anna.read("/rules")
        assert "There are no cases beside the rules." in await anna.read("/rules/-/cases")
