"""The channels file is read strictly: every fault has its line and says what to do."""

from pathlib import Path

import pytest

from service.channels.config import ChannelConfig, InvalidChannels, read_channels
from service.core.settings.receivers import Secret


class Demo(ChannelConfig):
    """A kind with a secret."""

    token: Secret
    room: str = ""


NAME = "cannot name a channel; use up to 40 of a-z, 0-9 and -"
KINDS: dict[str, type[ChannelConfig]] = {"demo": Demo}


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "channels.yaml"
    path.write_text(text)
    return path


def faults_of(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(InvalidChannels) as refused:
        read_channels(write(tmp_path, text), KINDS, {})
    return refused.value.message.splitlines()


def test_read_channels_without_a_file_is_empty() -> None:
    assert read_channels(None, KINDS) == ()


def test_read_channels_resolves_secrets_of_the_environment(tmp_path: Path) -> None:
    path = write(tmp_path, "channels:\n  ops: {kind: demo, token: env:TOKEN, room: '#ops'}\n")
    (found,) = read_channels(path, KINDS, {"TOKEN": "s3cret"})
    assert isinstance(found, Demo)
    assert (found.name, found.room, found.token.get_secret_value()) == ("ops", "#ops", "s3cret")
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("channels: [a]", "1:1: the file must have one key, `channels`, with a mapping of names to channels"),
        ("channels: {}\nextra: 1", "2:1: `extra` is unknown; the file has only `channels`"),
        (
            "channels: {web: {kind: demo, token: a}}",
            f"1:12: `web` {NAME}",
        ),
        (
            "channels: {Ops: {kind: demo, token: a}}",
            f"1:12: `Ops` {NAME}",
        ),
        ("channels: {ops: {token: a}}", "1:12: channel ops needs a kind: demo"),
        ("channels: {ops: {kind: smoke, token: a}}", "1:12: channel ops needs a kind: demo"),
        ("channels: {ops: {kind: demo}}", "1:17: channel ops: token: Field required"),
        (
            "channels: {ops: {kind: demo, token: env:NONE}}",
            "1:37: channel ops: token: the environment has no variable NONE; set it, or write the secret into the file",
        ),
        (
            "channels: {ops: {kind: demo, token: a, colour: red}}",
            "1:48: channel ops: colour: Extra inputs are not permitted",
        ),
        ("channels: {ops: {kind: demo, token: &a b}}", "1:37: anchors (&) and tags (!) are not supported; remove it"),
    ],
)
def test_read_channels_reports_a_fault_with_its_place(tmp_path: Path, text: str, fault: str) -> None:
    assert faults_of(tmp_path, text) == [f"channels.yaml:{fault}"]


def test_read_channels_reports_all_faults(tmp_path: Path) -> None:
    assert len(faults_of(tmp_path, "channels:\n  a: {kind: x}\n  b: {kind: demo}\n  c: 3\n")) == 3


def test_read_channels_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidChannels, match="cannot be read: No such file or directory"):
        read_channels(tmp_path / "none.yaml", KINDS)
