"""Tests of ToolResponse envelopes with OpenAI Agents."""

import ast

import pytest

from sayso.timeline.tool_responses import ToolResponse, ask_card, decision_card, draw, read_output
from tests.frameworks.installations import Installation
from tests.frameworks.kinds import KINDS
from tests.frameworks.test_conformance import decide, finished, mail

OPENAI_AGENTS = next(one for one in KINDS if one.name == "openai_agents")
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.parametrize("running", [OPENAI_AGENTS], indirect=True, ids=["openai_agents"]),
]


def read_external_events(text: str) -> list[ToolResponse]:
    """Return the results that the model got. The bot repeats them as Python or JSON."""
    parts = text.removeprefix("results: ").split(" | ")
    return [read_output(ast.literal_eval(one) if one.startswith("{'") else one) for one in parts]


async def test_results_edits_and_denials_are_envelopes(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([mail("ann"), mail("bob"), mail("cid")])
        edited = {"action": "approve", "args": {"to": "eve", "text": "Hello."}}
        denied = {"action": "deny", "message": "Not Cid."}
        await decide(reviewer, waiting.suspension_id, {"action": "approve"}, edited, denied)
        _, text = await finished(agent, waiting.run_id)
        as_asked, changed, refused = read_external_events(text)
        assert (as_asked.response_type, as_asked.friendly_name) == ("send_google_email", "Sent")
        assert changed.response_type == "send_google_email"
        assert "A reviewer changed the arguments" in changed.friendly_name
        assert "eve" in str(changed.response)
        assert (refused.response_type, refused.agent_name) == ("error", "Bank")
        assert refused.response == {"tool": "send_mail", "message": "Not Cid."}


async def test_cards_are_built_from_api_responses(installation: Installation) -> None:
    async with installation.people() as (agent, reviewer):
        waiting = installation.suspend([mail("ann")])
        asked = await installation.find_suspension(waiting.suspension_id)
        card = draw(ask_card("Bank", asked, asked["items"][0], "https://sayso.example"))
        assert card is not None
        assert ("to", "ann") in card.fields
        await decide(reviewer, waiting.suspension_id, {"action": "deny", "message": "No."})
        await finished(agent, waiting.run_id)
        results = await installation.find_suspension(waiting.suspension_id)
        drawn = draw(decision_card("Bank", results, results["items"][0]))
        assert drawn is not None
        assert (dict(drawn.fields)["verdict"], drawn.text) == ("denied", "No.")
