"""Previews that people or the desk ask for while an item is open: made by a worker, without effect."""

from collections.abc import Mapping

import structlog

from sayso.core.records.items import Item
from sayso.core.records.previews import Preview
from sayso.core.transitions.freezing import check_start
from sayso.errors import Conflict, NotFound, Unavailable, Unreadable
from sayso.runner.agents import Agent
from sayso.runner.previews import make_preview
from service.core.wiring import Wiring

log = structlog.get_logger()


async def make_previews(wiring: Wiring, agents: Mapping[str, Agent], suspension_id: str) -> None:
    """Make the previews that a suspension waits for. If this worker is lost, or it is frozen, a person asks again."""
    try:
        saved = await wiring.desk.suspensions.read(suspension_id)
        agent, freezes = agents.get(saved.record.run.agent), await wiring.freezes.known()
        for item in saved.record.items:
            if item.open and item.preview_request is not None:
                check_start(freezes, saved.record, (item.tool.name,), saved.now_ms)
                preview = await _preview(agent, item, saved.now_ms)
                await wiring.desk.store_preview(suspension_id, item.item_id, preview)
    except (Conflict, NotFound, Unreadable, Unavailable) as refusal:
        log.warning("preview_not_stored", suspension=suspension_id, why=refusal.message)


async def _preview(agent: Agent | None, item: Item, now_ms: int) -> Preview:
    asked = item.preview_request
    edited = asked.args if asked is not None else None
    tool = agent.tools_by_name.get(item.tool.name) if agent is not None else None
    if tool is not None and tool.digest != item.tool.definition:
        tool = None  # it is not the tool that the item is about
    return await make_preview(tool, item.tool.args if edited is None else edited, now_ms, edited)
