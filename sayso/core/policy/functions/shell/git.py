"""The subcommands of git, and other programs whose arguments Sayso knows.

Of git's subcommands, those that only read are harmless unless an option writes a file (`--output`), runs programs
(`--ext-diff`, `--textconv`, `--show-signature`, `--open-files-in-pager`, the format `%G?`) or reads other folders
(`--no-index`, `-C`).
"""

import re
from dataclasses import replace

from sayso.core.policy.functions.shell.clouds import AWS, DOCKER, DOCKER_COMPOSE, KUBECTL, NPM, TERRAFORM
from sayso.core.policy.functions.shell.harmless import GROUP, Harmless, Tool, harmless, words

_SHOWN = (
    "-p -u -s -z -w -b -i -E -F -M -C -M# -C# -U# -W -# -n -n# -L -L* -S -S* -G -G* -q -v --patch --no-patch --stat "
    "--numstat --shortstat --dirstat --summary --compact-summary --name-only --name-status --raw --no-renames "
    "--find-renames --find-copies --unified --function-context --color --no-color --color-words --word-diff --cached "
    "--staged --no-ext-diff --no-textconv --ignore-all-space --ignore-space-change --ignore-blank-lines --diff-filter "
    "--minimal --histogram --patience --full-index --abbrev --relative --no-relative --exit-code --quiet --check "
    "--merge-base --oneline --graph --all --decorate --no-decorate --date --pretty --format --abbrev-commit "
    "--no-abbrev-commit --since --after --until --before --author --committer --grep --max-count --skip --reverse "
    "--first-parent --merges --no-merges --follow --topo-order --date-order --branches --tags --remotes --left-right "
    "--cherry-pick --no-walk --simplify-by-decoration --ignore-case --extended-regexp --fixed-strings --count --root "
    "--source --full-history --ancestry-path --invert-grep --pickaxe-regex --pickaxe-all --boundary --no-notes --cc"
)
_REVISIONS = replace(harmless(_SHOWN, refused="%G"), refuses_words=False)
_RUNNING = "::"  # a remote such as `ext::sh -c x` runs a program
_HARMLESS = {
    **dict.fromkeys(("log", "show", "diff", "rev-list", "whatchanged", "diff-tree"), _REVISIONS),
    "shortlog": harmless(
        "-s -n -e -c -ns -sn -sne --summary --numbered --email --all --since --until --no-merges", 9, "%G"
    ),
    "status": harmless(
        "-s -b -v -z -u -uno -uall -unormal --short --branch --porcelain --long --untracked-files --ignored "
        "--no-renames --column --no-column --ahead-behind --no-ahead-behind --show-stash"
    ),
    "blame": harmless("-L -L* -w -M -C -e -l -s -t -p --porcelain --line-porcelain --date --since --reverse"),
    "ls-files": harmless(
        "-c -d -m -o -i -s -t -u -z --cached --deleted --modified --others --ignored --stage --exclude-standard "
        "--full-name --error-unmatch --unmerged --eol"
    ),
    "ls-tree": harmless("-r -d -t -l -z --name-only --name-status --full-name --full-tree --long --abbrev"),
    "grep": harmless(
        "-n -i -w -v -E -F -G -P -c -l -L -h -H -o -e -r -q -a -I -p -W -A# -B# -C# -A -B -C --line-number "
        "--ignore-case --word-regexp --extended-regexp --fixed-strings --perl-regexp --count --files-with-matches "
        "--cached --untracked --name-only --heading --break --show-function --all-match --and --or --not "
        "--max-depth --no-color --color --column"
    ),
    "rev-parse": harmless(
        "--abbrev-ref --short --show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir --absolute-git-dir "
        "--is-inside-work-tree --is-bare-repository --verify --quiet -q --symbolic-full-name --symbolic --all"
    ),
    "cat-file": harmless("-t -s -e -p"),
    "describe": harmless("--tags --all --always --dirty --long --abbrev --match --exclude --contains --exact-match"),
    "merge-base": harmless("-a --all --is-ancestor --octopus --independent --fork-point"),
    "name-rev": harmless("--tags --name-only --all --always"),
    "for-each-ref": harmless(
        "--count --sort --format --merged --no-merged --contains --points-at", refused="signature"
    ),
    "show-ref": harmless("--head --heads --tags --verify -s -q --hash --quiet --dereference -d"),
    "count-objects": harmless("-v -H --verbose --human-readable"),
    "check-ignore": harmless("-v -q -n --verbose --quiet --non-matching --no-index"),
    "diff-index": _REVISIONS,
    "diff-files": _REVISIONS,
    "branch": harmless(
        "-a -r -v -vv --all --remotes --verbose --list --show-current --no-color --color --column --no-column --sort", 0
    ),
    "tag": harmless("-n -n# --sort --no-color --color --column", 0),
    "remote": harmless("-v --verbose", 0),
    "remote get-url": harmless("--all --push"),
    "stash list": _REVISIONS,
    "stash show": _REVISIONS,
    "reflog": harmless(_SHOWN, refused="%G|^(?:expire|delete|drop|write)$"),
    "worktree list": harmless("-v -z --porcelain --verbose"),
    "submodule status": harmless("--cached --recursive"),
    "version": harmless("--build-options"),
    "add": harmless("-A -u -v -n -N --all --update --verbose --dry-run --intent-to-add"),
    "commit": replace(
        harmless("-a -m -am -q -s -v --all --message --quiet --signoff --verbose --allow-empty"),
        valued=words("-m -am --message"),
    ),
    **dict.fromkeys(
        ("fetch", "pull"),
        harmless("-p -t -v -q --all --prune --tags --verbose --quiet --depth --rebase --ff-only", refused=_RUNNING),
    ),
    "push": harmless("-u -v -q -n --set-upstream --verbose --quiet --dry-run", refused=f"^[+:]|{_RUNNING}"),
    "clone": harmless("-b -q -v --branch --depth --single-branch --quiet --verbose", refused=_RUNNING),
}

_HARMLESS_SETTING = re.compile(
    r"(?:color\.[a-z.]+|advice\.[a-z]+|core\.quotepath|core\.autocrlf|user\.name|user\.email)=[^!`$]*"
    r"|log\.showsignature=false|core\.pager=cat",
    re.IGNORECASE,
)

GIT = Tool(
    flags=words(
        "-c --no-pager -P --no-optional-locks --no-replace-objects --literal-pathspecs --glob-pathspecs",
        "--noglob-pathspecs --icase-pathspecs",
    ),
    valued=words("-c -C --git-dir --work-tree --namespace"),
    settings={"-c": _HARMLESS_SETTING},
    subcommands=words(
        "add am annotate apply archive backfill bisect blame branch bugreport bundle cat-file check-attr",
        "check-ignore check-mailmap check-ref-format checkout checkout-index cherry cherry-pick citool clean",
        "clone column commit commit-graph commit-tree config count-objects credential daemon describe diagnose",
        "diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack filter-branch",
        "fmt-merge-msg for-each-ref for-each-repo format-patch fsck gc grep gui hash-object help hook",
        "http-backend index-pack init init-db instaweb interpret-trailers lfs log ls-files ls-remote ls-tree",
        "mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-tree mergetool mktag mktree",
        "multi-pack-index mv name-rev notes pack-objects pack-refs patch-id prune prune-packed pull push",
        "range-diff read-tree rebase receive-pack reflog refs remote repack replace replay request-pull rerere",
        "reset restore rev-list rev-parse revert rm send-email send-pack shortlog show show-branch show-index",
        "show-ref sparse-checkout stage stash status stripspace submodule subtree svn switch symbolic-ref tag",
        "unpack-file unpack-objects update-index update-ref update-server-info upload-archive upload-pack var",
        "verify-commit verify-pack verify-tag version whatchanged worktree write-tree",
    ),
    groups=dict.fromkeys(
        words("bisect bundle lfs maintenance notes remote stash submodule worktree sparse-checkout"),
        Tool(flags=words("-v --verbose -q --quiet")),
    )
    | {"hook": GROUP},
    harmless=_HARMLESS,
)

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
    "sed": replace(
        harmless("-n -E -r -u -z --quiet --silent --regexp-extended"),
        words=lambda word, place: place > 1 or _SCRIPT.fullmatch(word) is not None,
    ),
    "rg": harmless(
        "-n -i -l -c -w -v -F -o -S -s -u -N -H -I -e -g -g* -t -t* -T -T* -A -B -C -A# -B# -C# -m -m# -U -P --files "
        "--hidden --no-ignore --type --type-not --glob --iglob --json --count --files-with-matches --line-number "
        "--no-line-number --no-heading --heading --ignore-case --smart-case --fixed-strings --context --max-count "
        "--max-depth --sort --stats --color --multiline --word-regexp --only-matching --type-list --pcre2"
    ),
    "tree": harmless("-a -d -f -i -s -h -p -D -F -C -n -L -L# -I -P --dirsfirst --prune --gitignore --noreport -J"),
}
"""Plain programs that some options let write files or run programs."""
