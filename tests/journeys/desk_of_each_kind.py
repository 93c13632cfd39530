"""A program of either of two versions: it makes one of each kind of record in an empty store, and reads all lists.

`python desk_of_each_kind.py STORE FOLDER TOKENS` imports the version on PYTHONPATH, so it must fit both.
"""

import asyncio
import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.core.settings import Settings
from service.features.operate.diagnostics import diagnose
from tests.builders import make_agent, make_person, register_agent
from tests.service.core.store.flipping import POLICY, furnish
from tests.service.edge.api.test_access import OPERATIONS
from tests.service.worlds import World

_CONNECTION = "service.core.store.connection."
_FORMATS = _CONNECTION + ("formats" if find_spec(f"{_CONNECTION}formats") else "connecting")  # as in 0.2.0
LISTS = [path for method, path, _ in OPERATIONS.values() if method == "GET" and "{" not in path]


async def serve(store: str, folder: Path, tokens: dict[str, str]) -> dict[str, Any]:
    (folder / "policy.yaml").write_text(POLICY)
    settings = Settings(
        redis_url=store, policy=folder / "policy.yaml", key_file=folder / "keys", aap_allow_loopback=True
    )
    await import_module(_FORMATS).check_format(store)
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        wiring = app.state.process.wiring
        if not tokens:
            await register_agent(wiring)
            tokens = {name: await make_agent(wiring, name) for name in ("demo", "other")}
            tokens["anna"] = await make_person(wiring, "anna")
            tokens["root"] = await make_person(wiring, "root", "reviewer", "admin", "auditor")
            await furnish(World(app, wiring, tokens))
        statuses = {f"{who} {path}": await ask(app, tokens[who], path) for who in ("root", "demo") for path in LISTS}
        said = {finding.part: finding.message async for finding in diagnose(wiring)}
    return {"tokens": tokens, "statuses": statuses, "records": said["records"], "trails": said["trails"]}


async def ask(app: Any, token: str, path: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    transport = ASGITransport(app=app, raise_app_exceptions=False)
    async with AsyncClient(transport=transport, base_url="http://127.0.0.1:8321", headers=headers) as client:
        return (await client.get(path)).status_code


print(json.dumps(asyncio.run(serve(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])))))
