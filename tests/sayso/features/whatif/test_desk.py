"""`sayso policy replay`, `diff --from`, `attest`, `versions`, `rollback` and `shadow`, against a running desk."""

import asyncio
import json
from pathlib import Path

from service.assembly import assemble
from service.core.settings import Settings
from tests.sayso.cli.test_commands import POLICY, Run, desk, sayso  # noqa: F401
from tests.service.features.whatif.test_operations_replays import refund, request

Desk = tuple[str, str, str, str]
LOOSE = """\
version: 1
default: request_approval
rules: [{id: refunds, tool: refund, when: args.amount < 1000, action: allow}]
"""


def record_calls(store_url: str, folder: Path) -> None:
    """Record a denied, an approved and an undecided refund, and another call."""

    async def record() -> None:
        async with assemble(Settings(redis_url=store_url, policy=folder / "policy.yaml")) as wiring:
            await wiring.rules.compare("test")
            await refund(wiring, 900, "deny")
            await refund(wiring, 50, "approve")
            await refund(wiring, 5000)
            await request(wiring, "read", note="\x1b[31m")

    asyncio.run(record())


def test_replay_prints_the_matrix(desk: Desk, sayso: Run, clean_store_url: str, tmp_path: Path) -> None:  # noqa: F811
    record_calls(clean_store_url, tmp_path)
    (tmp_path / "loose.yaml").write_text(LOOSE)
    words = ("policy", "replay", str(tmp_path / "loose.yaml"), "--from", "2026-01-01")
    done = sayso(*words, key=desk[3])
    assert done.returncode == 0, done.stderr
    for text in (
        "4 recorded calls",
        "2 would change.",
        "now allowed",
        "asked, approved by a person",
        "1 (EUR 900.00)",
        "Asked, denied by a person, and now allowed:",
        "(default → refunds)",
        "rule default asked → rule refunds allowed",
        "Looks of reviewers: 24 s saved, nothing added.",
    ):
        assert text in done.stdout, (text, done.stdout)
    found = json.loads(sayso(*words, "--sum", "args.none", "--json", key=desk[3]).stdout)
    assert (found["status"], found["calls"], found["changed"], found["sum"]) == ("done", 4, 2, "args.none")
    assert {(one["past"], one["now"]): (one["count"], one["sums"]) for one in found["cells"]} == {
        ("approved", "allowed"): (1, {}),
        ("denied", "allowed"): (1, {}),
        ("undecided", "asked"): (2, {}),
    }


def test_replay_is_for_admins_and_names_faults(desk: Desk, sayso: Run, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "loose.yaml").write_text(LOOSE)
    (tmp_path / "bad.yaml").write_text("version: 1\nrules: []\n")
    done = sayso("policy", "replay", str(tmp_path / "loose.yaml"), "--from", "2026-01-01")
    assert (done.returncode, "admin" in done.stderr) == (1, True)
    done = sayso("policy", "replay", str(tmp_path / "bad.yaml"), "--from", "2026-01-01", key=desk[3])
    assert (done.returncode, "bad.yaml:1:1: default: is missing" in done.stderr) == (1, True), done


def test_diff_compares_on_recorded_calls(desk: Desk, sayso: Run, clean_store_url: str, tmp_path: Path) -> None:  # noqa: F811
    record_calls(clean_store_url, tmp_path)
    (tmp_path / "old.yaml").write_text(LOOSE.replace("1000", "100"))
    (tmp_path / "new.yaml").write_text(LOOSE)
    files = (str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml"))
    done = sayso("policy", "diff", *files, "--from", "2026-01-01", key=desk[3])
    assert "1 would change." in done.stdout, done
    assert "asked, denied by a person, asked before" in done.stdout
    assert "Rule refunds: covers" in done.stdout


def test_version_is_attested_and_rolled_back(desk: Desk, sayso: Run, tmp_path: Path) -> None:  # noqa: F811
    root = desk[3]
    (tmp_path / "loose.yaml").write_text(LOOSE)
    done = sayso("policy", "attest", str(tmp_path / "loose.yaml"), key=root)
    assert "Attested by root." in done.stdout, done
    assert "No earlier version is recorded" in sayso("policy", "rollback", "--yes", key=root).stderr
    first = json.loads(sayso("policy", "versions", "--json", key=root).stdout)
    current = next(one["version"] for one in first if one["in_force"])
    (tmp_path / "policy.yaml").write_text(LOOSE)

    def is_in_force() -> bool:
        found = json.loads(sayso("policy", "versions", "--json", key=root).stdout)
        return any(one["in_force"] and one["version"] != current for one in found)

    assert any(is_in_force() for _ in range(50))
    done = sayso("policy", "rollback", "--yes", key=root)
    assert f"Version {current} is in force." in done.stdout, done
    listed = sayso("policy", "versions", key=root).stdout
    assert "withdrawn" in listed
    assert "in force" in listed
    text = sayso("policy", "version", current[:6], key=root).stdout
    assert text.strip() == POLICY.strip()
    assert "No versions begin with 'zzz'" in sayso("policy", "version", "zzz", key=root).stderr


def test_candidate_runs_in_shadow_from_start_to_force(
    desk: Desk,  # noqa: F811
    sayso: Run,  # noqa: F811
    clean_store_url: str,
    tmp_path: Path,
) -> None:
    root, loose = desk[3], str(tmp_path / "loose.yaml")
    (tmp_path / "loose.yaml").write_text(LOOSE)
    assert "No candidate is in shadow" in sayso("policy", "shadow", "status", key=root).stdout
    assert "No candidate is in shadow" in sayso("policy", "shadow", "end", key=root).stderr
    assert "either a file or --version" in sayso("policy", "shadow", "start", key=root).stderr
    assert "admin" in sayso("policy", "shadow", "start", loose).stderr
    done = sayso("policy", "shadow", "start", loose, "--json", key=root)
    version = json.loads(done.stdout)["version"]
    record_calls(clean_store_url, tmp_path)
    done = sayso("policy", "shadow", "report", key=root)
    for text in (
        f"loose.yaml, version {version}: 4 recorded calls",
        "2 would have gone otherwise.",
        "candidate: allowed",
        "Asked, denied by a person, and by the candidate allowed:",
    ):
        assert text in done.stdout, (text, done)
    assert "in shadow since" in sayso("policy", "shadow", "status", key=root).stdout
    assert f"Version {version} is no longer in shadow." in sayso("policy", "shadow", "end", key=root).stdout
    found = json.loads(sayso("policy", "shadow", "report", "--version", version[:6], "--json", key=root).stdout)
    assert (found["shadow"], found["calls"], found["changed"]) == (True, 4, 2)
    assert "No candidates begin with 'zzz'" in sayso("policy", "shadow", "report", "--version", "zzz", key=root).stderr
    done = sayso("policy", "shadow", "start", "--version", version[:6], key=root)
    assert f"Version {version} of loose.yaml judges every new call in shadow." in done.stdout, done
    done = sayso("policy", "shadow", "promote", "--yes", key=root)
    assert f"Version {version} is in force." in done.stdout, done
