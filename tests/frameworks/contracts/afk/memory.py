"""Where runs are saved: by thread and key, as JSON."""

import json
import sqlite3
import time
from typing import Any


class SQLiteMemoryStore:
    """A file that processes share."""

    def __init__(self, path: str = "afk_memory.sqlite3") -> None:
        self.path = path
        self._db: sqlite3.Connection | None = None

    async def setup(self) -> None:
        """Open the file."""
        if self._db is None:
            self._db = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS state_kv (thread_id TEXT NOT NULL, key TEXT NOT NULL, "
                "value_json TEXT NOT NULL, updated_at INTEGER NOT NULL, PRIMARY KEY(thread_id, key))"
            )

    async def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    async def get_state(self, thread_id: str, key: str) -> Any:
        """Return what was put, or None."""
        assert self._db is not None
        query = "SELECT value_json FROM state_kv WHERE thread_id = ? AND key = ?"
        row = self._db.execute(query, (thread_id, key)).fetchone()
        return None if row is None else json.loads(row[0])

    async def put_state(self, thread_id: str, key: str, value: Any) -> None:
        """Keep it."""
        assert self._db is not None
        with self._db:
            self._db.execute(
                "INSERT INTO state_kv VALUES (?, ?, ?, ?) ON CONFLICT(thread_id, key) DO UPDATE SET "
                "value_json = excluded.value_json, updated_at = excluded.updated_at",
                (thread_id, key, json.dumps(value), round(time.time() * 1000)),
            )

    async def list_state(self, thread_id: str, prefix: str | None = None) -> dict[str, Any]:
        """Return all that was put under keys that begin so."""
        assert self._db is not None
        query = "SELECT key, value_json FROM state_kv WHERE thread_id = ? ORDER BY key"
        rows = self._db.execute(query, (thread_id,)).fetchall()
        return {key: json.loads(value) for key, value in rows if key.startswith(prefix or "")}
