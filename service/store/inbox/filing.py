"""What a commit writes for the inbox: each open item stands in the bucket of its facets."""

from sayso.records.suspensions import SuspensionRecord
from service.store.connection.commits import Commit
from service.store.inbox.facets import Facets, list_places, name_bucket, write_facets
from service.store.keys import TenantKeys
from service.store.writers import Update


def file_items(commit: Commit, keys: TenantKeys, update: Update) -> None:
    """Move open items between buckets; a bucket that is empty afterwards is listed no more."""
    for before, after in update.pairs:
        _move(commit, keys, before, after)


def _move(commit: Commit, keys: TenantKeys, before: SuspensionRecord | None, after: SuspensionRecord) -> None:
    earlier, now = list_places(before), list_places(after)
    if not (earlier or now):
        return
    leaving: dict[str, list[str]] = {}
    for member, place in earlier.items():
        if member not in now or now[member].facets != place.facets:
            leaving.setdefault(name_bucket(place.facets), []).append(member)
    entering: dict[Facets, list[str | int]] = {}
    for member, place in now.items():
        if earlier.get(member) != place:
            entering.setdefault(place.facets, []).extend((place.deadline_at_ms, member))
    for bucket, members in leaving.items():
        commit.write("ZREM", keys.bucket(bucket), *members)
        commit.write_unless(keys.bucket(bucket), "HDEL", keys.buckets, bucket)
    for facets, scored in entering.items():
        bucket = name_bucket(facets)
        commit.write("HSETNX", keys.buckets, bucket, write_facets(facets))
        commit.write("ZADD", keys.bucket(bucket), *scored)
