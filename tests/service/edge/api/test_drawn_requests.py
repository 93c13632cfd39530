"""Every route is sent requests drawn from the OpenAPI document; `make openapi` runs this."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck
from hypothesis import settings as examples
from pydantic import SecretStr
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    missing_required_header,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from sayso.core.clock import now_ms
from service.app import create_app
from service.assembly import assemble
from service.core.auth.roles import find_rights
from service.core.settings import Settings
from service.core.store.connection.formats import check_format
from service.core.store.directory import Role
from service.features.saved_views import SavedView, ViewStore
from tests.builders import finish, make_agent, make_pending, make_person, make_running, person, register_agent
from tests.service.servers import served

SECRET = "whsec_" + "c2F5c28g" * 5
DOCUMENT = create_app(Settings(redis_url="redis://nowhere.invalid")).openapi()

load_all_checks()
schema = schemathesis.openapi.from_dict(DOCUMENT)
ALWAYS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
WHEN_AS_DRAWN = [negative_data_rejection, missing_required_header, unsupported_method]


@dataclass(frozen=True)
class Site:
    """A running service, an admin's token, and ids of things that are there."""

    url: str
    token: str
    known: dict[str, str]
    digest: str


@pytest.fixture
def site(clean_store_url: str) -> Iterator[Site]:
    settings = Settings(redis_url=clean_store_url, webhook_secret=(SecretStr(SECRET),))
    asyncio.run(check_format(clean_store_url))
    with served(settings) as url:
        token, known, digest = asyncio.run(furnish(settings))
        yield Site(url, token, known, digest)


async def furnish(settings: Settings) -> tuple[str, dict[str, str], str]:
    async with assemble(settings) as wiring:
        await register_agent(wiring)
        await make_agent(wiring, "demo")
        await make_person(wiring, "anna")
        ended = await finish(wiring, await make_running(wiring))
        pending = await make_pending(wiring)
        freeze = await wiring.freezes.freeze("agent:nobody", "", person("root"))
        (key,) = await wiring.api_keys.list_all()
        await wiring.groups.create("payments", ("anna",), (), "root")
        absence = await wiring.duty.add_absence("anna", now_ms(), now_ms() + 86_400_000, None, "anna")
        code = await wiring.contacts.create_code("anna", "telegram")
        view = await wiring.part(ViewStore).save("anna", SavedView(name="Refunds", search="tool:refund"))
        contact = await wiring.contacts.redeem_code("telegram", code.code, "4711")
        role = await wiring.roles.save(Role(name="refunds", permissions=("read_items",)), find_rights(("admin",), {}))
        known = {
            "role": role.name,
            "run_id": ended.run.id,
            "suspension_id": pending.id,
            "item_id": "i1",
            "name": "anna",
            "key_id": key.id,
            "freeze_id": freeze.id,
            "group": "payments",
            "contact_id": contact.id,
            "absence_id": absence.id,
            "view_id": view.id,
            "channel": "ops",
            "session_id": "ses_" + "0" * 32,
            "endpoint_id": "whe_none",
            "sender_id": "whs_none",
            "inquiry_id": "inq_none",
            "attachment_id": "att_none",
            "replay_id": "rpl_none",
            "grant_id": "gra_none",
            "seq": "2",
            "mandate_id": "man_none",
            "invitation_id": "inv_none",
            "version": "none",
        }
        return await make_person(wiring, "root", "reviewer", "admin"), known, pending.items[0].digest


turns = count()


@schema.parametrize()
@examples(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_answers_match_the_openapi_document(case: Any, site: Site) -> None:
    if re.fullmatch(r"\d+s?", str((case.query or {}).get("wait", ""))):
        case.query["wait"] = "0s"
    checks = [*ALWAYS, *WHEN_AS_DRAWN]
    if next(turns) % 2:
        meet_what_is_there(case, site)
        checks = ALWAYS
    headers = {"Authorization": f"Bearer {site.token}"}
    case.call_and_validate(base_url=site.url, headers=headers, checks=checks, timeout=20)


def meet_what_is_there(case: Any, site: Site) -> None:
    """Every other request is about something that exists."""
    for name in case.path_parameters or {}:
        case.path_parameters[name] = site.known[name]
    if isinstance(case.body, dict) and isinstance(case.body.get("digest"), str):
        case.body["digest"] = site.digest
    if isinstance(case.body, dict) and isinstance(case.body.get("agent"), str):
        case.body["agent"] = "demo"
