"""What an agent's processes share: how to reach the desk and each other, what was done, and what came of it."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """One agent's settings, kept in a folder that outlives its processes."""

    folder: str
    base_url: str
    tool: str
    port: int
    certificate: str
    secret: str
    registration_id: str
    token: str = ""
    timeout: str = "10m"

    @classmethod
    def read(cls, folder: str) -> "Place":
        """Return the settings in a folder."""
        return cls(**json.loads((Path(folder) / "place.json").read_text()))

    def save(self) -> None:
        """Keep the settings."""
        self.path("place.json").write_text(json.dumps(asdict(self)))

    def path(self, name: str) -> Path:
        """Return a file of the agent's."""
        return Path(self.folder) / name

    def do(self, **arguments: object) -> str:
        """Have an effect on the world, so that it can be counted."""
        with self.path("effects").open("a") as file:
            file.write(json.dumps(arguments) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return "done"

    def effects(self) -> list[dict[str, object]]:
        """Return every effect there was."""
        path = self.path("effects")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def end(self, text: str) -> None:
        """Keep what the run said in the end."""
        self.path("end.part").write_text(text)
        self.path("end.part").rename(self.path("end"))

    def ending(self) -> str | None:
        """Return what the run said in the end, or None while it has not."""
        path = self.path("end")
        return path.read_text() if path.exists() else None
