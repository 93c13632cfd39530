"""The programs whose arguments Sayso knows: those with subcommands, and plain ones that options let write or run."""

import re
from dataclasses import replace

from sayso.core.policy.functions.shell.clouds import AWS, DOCKER, DOCKER_COMPOSE, KUBECTL, NPM, TERRAFORM
from sayso.core.policy.functions.shell.git import GIT
from sayso.core.policy.functions.shell.harmless import Harmless, Tool, harmless

TOOLS: dict[str, Tool] = {
    "aws": AWS,
    "docker": DOCKER,
    "docker-compose": DOCKER_COMPOSE,
    "git": GIT,
    "kubectl": KUBECTL,
    "npm": NPM,
    "terraform": TERRAFORM,
}

_SCRIPT = re.compile(
    r"(?:[0-9]+|\$)?(?:,(?:[0-9]+|\$|\+[0-9]+))?[pdq=]"
    r"|/(?:[^/\\\n]|\\[^\n])*/[pd]"
    r"|s([/|#,])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpI0-9]*"
)
"""A script of `sed` that prints, deletes or replaces, and writes or runs nothing."""


def _is_script_or_file(word: str, place: int) -> bool:
    return place > 1 or _SCRIPT.fullmatch(word) is not None


_FIND = (
    "-name -iname -type -path -ipath -wholename -regex -iregex -regextype -maxdepth -mindepth -size -mtime -mmin "
    "-ctime -cmin -atime -amin -newer -newermt -empty -not -a -o -or -and -print -print0 -printf -ls -prune -perm "
    "-user -group -depth -L -H -P -xdev -mount -links -inum -samefile -readable -writable -executable -true "
    "-false -quit -daystart -xtype -lname -#"
)

PLAIN: dict[str, Harmless] = {
    "find": replace(harmless(_FIND, ends_options=False), bundles=False),
    "sort": harmless(
        "- -n -r -u -f -h -V -b -d -g -i -M -s -z -c -C -m -k -k* -t -t* --reverse --numeric-sort --unique --key "
        "--field-separator --ignore-case --human-numeric-sort --version-sort --stable --general-numeric-sort --check"
    ),
    "uniq": harmless("-c -d -u -i -z -f# -s# -w# --count --repeated --unique --ignore-case", 1),
    "sed": replace(harmless("-n -E -r -u -z --quiet --silent --regexp-extended"), words=_is_script_or_file),
    "rg": harmless(
        "-n -i -l -c -w -v -F -o -S -s -u -N -H -I -e -g -g* -t -t* -T -T* -A -B -C -A# -B# -C# -m -m# -U -P --files "
        "--hidden --no-ignore --type --type-not --glob --iglob --json --count --files-with-matches --line-number "
        "--no-line-number --no-heading --heading --ignore-case --smart-case --fixed-strings --context --max-count "
        "--max-depth --sort --stats --color --multiline --word-regexp --only-matching --type-list --pcre2"
    ),
    "tree": harmless("-a -d -f -i -s -h -p -D -F -C -n -L -L# -I -P --dirsfirst --prune --gitignore --noreport -J"),
}
"""Plain programs that some options let write files or run programs."""
