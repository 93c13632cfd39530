"""Damage records in the store, like a failing disk, a later version or an intruder."""

import json
from collections.abc import Callable
from typing import Any

from redis import Redis

from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.store.suspensions.reading import unpack_record

Alter = Callable[[dict[str, Any]], object]

KEYS = TenantKeys(TENANT)


def tear(url: str, suspension_id: str) -> None:
    """Leave the first half of a record."""
    with Redis.from_url(url) as store:
        raw: Any = store.get(KEYS.suspension(suspension_id))
        store.set(KEYS.suspension(suspension_id), raw[: len(raw) // 2])


def alter(url: str, suspension_id: str, change: Alter) -> None:
    """Write a record anew with something changed in it."""
    with Redis.from_url(url) as store:
        raw: Any = store.get(KEYS.suspension(suspension_id))
        record = unpack_record(raw).record
        doc = json.loads(record.model_dump_json(exclude_defaults=True))
        change(doc)
        place = b"|".join(raw.split(b"|", 4)[:4])
        store.set(KEYS.suspension(suspension_id), place + b"|0" + json.dumps(doc).encode())


def add_field(doc: dict[str, Any]) -> None:
    """Add a field that this version does not know."""
    doc["mood"] = "calm"


def raise_amount(doc: dict[str, Any]) -> None:
    """Ask for another amount under the same digest."""
    doc["items"][0]["tool"]["args"]["amount"] = 9_999
