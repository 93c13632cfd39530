"""Key files, and `sayso checkpoints`, against a running desk."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

import pytest
from redis import Redis

from sayso.core.key_files import create_key_file, read_key_file, rotate_key_file
from sayso.errors import InvalidInput
from service.assembly import assemble
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import keys_of
from service.features.evidence.keeping import keep_checkpoints
from tests.builders import approve, finish, make_pending, make_person
from tests.sayso.cli.programs import Programs
from tests.service.servers import served

Run = Callable[..., CompletedProcess[str]]


def test_key_file_is_private_and_keeps_earlier_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    create_key_file(path)
    (first,) = read_key_file(path)
    rotate_key_file(path)
    current, earlier = read_key_file(path)
    assert earlier == first
    assert current.id != first.id
    assert current.derive("a") != current.derive("b")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InvalidInput, match="exists already"):
        create_key_file(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can mount a file as another user's")
def test_mounted_key_file_may_be_read_by_the_group() -> None:
    """Kubernetes and systemd mount secrets as files of the superuser that the program's group reads."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "keys"
        create_key_file(path)
        os.chown(path, 0, 10_001)
        os.setegid(10_001)
        os.seteuid(10_001)
        try:
            for mode, is_private in ((0o440, True), (0o444, False), (0o460, False)):
                os.seteuid(0)
                path.chmod(mode)
                os.seteuid(10_001)
                with nullcontext() if is_private else pytest.raises(InvalidInput, match="Set 600"):
                    assert len(read_key_file(path)) == 1
        finally:
            os.seteuid(0)
            os.setegid(0)


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        (None, 0o644, "Others can read or write the key file"),
        ("", 0o600, "is empty"),
        ("k1 short\n", 0o600, "Line 1 of the key file"),
        ("twice", 0o600, "two keys with the same id"),
    ],
)
def test_faulty_key_file_is_refused(tmp_path: Path, text: str | None, mode: int, words: str) -> None:
    path = tmp_path / "keys"
    create_key_file(path)
    if text is not None:
        path.write_text(path.read_text() * 2 if text == "twice" else text)
    path.chmod(mode)
    with pytest.raises(InvalidInput, match=words):
        read_key_file(path)
    with pytest.raises(ValueError, match=words):
        Settings(key_file=path)


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        ("ftp://host/x", "begins with 'ftp'"),
        ("file://host/x", "has no place"),
        ("https:///x", "has no place"),
        ("s3+https://host/bucket", "is no bucket"),
    ],
)
def test_faulty_sink_is_refused(tmp_path: Path, sink: str, words: str) -> None:
    create_key_file(tmp_path / "keys")
    with pytest.raises(ValueError, match=words):
        Settings(key_file=tmp_path / "keys", checkpoints=(sink,))


def test_sinks_need_a_key_and_the_refusal_needs_sinks(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="SAYSO_CHECKPOINTS needs SAYSO_KEY_FILE"):
        Settings(checkpoints=("file:///x",))
    with pytest.raises(ValueError, match="SAYSO_CHECKPOINTS_REQUIRED_H needs SAYSO_CHECKPOINTS"):
        Settings(checkpoints_required_h=2)


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    create_key_file(tmp_path / "keys")
    sink = f"file://{tmp_path}/sink"
    return Settings(redis_url=clean_store_url, key_file=tmp_path / "keys", checkpoints=(sink,))


@pytest.fixture
def sayso(settings: Settings, programs: Programs, tmp_path: Path) -> Iterator[Run]:
    """Run the command line as an admin."""

    async def prepare() -> str:
        async with assemble(settings) as wiring:
            return await make_person(wiring, "root", "reviewer", "admin")

    with served(settings) as url:
        key = asyncio.run(prepare())

        def run(*words: str) -> CompletedProcess[str]:
            return programs.run(
                words, {"SAYSO_URL": url, "SAYSO_KEY": key, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
            )

        yield run


def play(settings: Settings) -> str:
    """End a run and make a checkpoint; return the run's id."""

    async def story() -> str:
        async with assemble(settings) as wiring:
            record = await finish(wiring, await approve(wiring, await make_pending(wiring)))
            await keep_checkpoints(wiring)
            return record.run.id

    return asyncio.run(story())


def test_checkpoints_are_listed_and_verified(settings: Settings, sayso: Run, tmp_path: Path) -> None:
    run = play(settings)
    shown = sayso("keyfile", "show", str(tmp_path / "keys")).stdout
    public = shown.split()[1]
    listed = sayso("checkpoints", "list").stdout
    assert f"file://{tmp_path}/sink has checkpoint 1 of 1." in listed
    verified = sayso("checkpoints", "verify", str(tmp_path / "sink"), "--public-key", public)
    assert (verified.returncode, verified.stderr) == (0, "")
    assert "nothing older was altered" in verified.stdout
    assert "not signed" in sayso("checkpoints", "verify", str(tmp_path / "sink"), "--public-key", "A" * 43 + "=").stdout
    with Redis.from_url(settings.store_url) as store:
        store.ltrim(keys_of(TENANT).trail(run), 0, -2)
        store.delete(keys_of(TENANT).checkpoint)
    altered = sayso("checkpoints", "verify", str(tmp_path / "sink"))
    assert altered.returncode == 1
    assert f"run {run}: The trail was cut" in altered.stdout
    assert "put back to an older state" in altered.stdout
    assert "cannot be read" in sayso("checkpoints", "verify", str(tmp_path / "none")).stderr


def test_keyfile_commands_make_and_rotate_a_file(sayso: Run, tmp_path: Path) -> None:
    path = tmp_path / "other"
    assert sayso("keyfile", "new", str(path)).returncode == 0
    assert sayso("keyfile", "rotate", str(path)).returncode == 0
    assert len(sayso("keyfile", "show", str(path)).stdout.splitlines()) == 2
    assert sayso("keyfile", "new", str(path)).returncode == 1


def test_evidence_is_written_and_verified(settings: Settings, sayso: Run, tmp_path: Path) -> None:
    run, file = play(settings), tmp_path / "evidence.jsonl"
    written = sayso("evidence", run, "-o", str(file))
    assert (written.returncode, written.stderr) == (0, "")
    assert sayso("evidence", "verify", str(file)).stdout == "Nothing was altered.\n"
    assert '"kind":"item"' in sayso("evidence", "--from", "2020-01-01").stdout
    file.write_text(file.read_text().replace("anna", "ben"))
    altered = sayso("evidence", "verify", str(file))
    assert altered.returncode == 1
    assert "was altered" in altered.stdout
    assert "Name what to do" in sayso("evidence").stderr
    assert "cannot be read" in sayso("evidence", "verify", str(tmp_path / "none")).stderr
    assert "cannot be written" in sayso("evidence", run, "-o", str(tmp_path)).stderr
