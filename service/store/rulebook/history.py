"""What is recorded for rules: the calls that they judged, replays of these, and their own versions."""

from service.store.rulebook.replays import ReplayStore
from service.store.rulebook.shadows import ShadowStore
from service.store.rulebook.versions import VersionStore
from service.store.runs.recorded import RecordedRuns
from service.store.tenants import TenantStore


class RuleHistory:
    """The history of one tenant's rules."""

    def __init__(self, store: TenantStore) -> None:
        self.runs = RecordedRuns(store)
        self.replays = ReplayStore(store)
        self.versions = VersionStore(store)
        self.shadows = ShadowStore(store)
