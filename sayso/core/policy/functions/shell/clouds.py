"""The subcommands of aws, terraform, kubectl, docker and npm, and the arguments of those that do no harm."""

from sayso.core.policy.functions.shell.harmless import GROUP, Harmless, Tool, harmless, words

_SELECT = (
    "-n -A -o -l -L --namespace --all-namespaces --output --selector --field-selector --show-labels --label-columns "
    "--sort-by --no-headers --watch -w --chunk-size --ignore-not-found --limit --request-timeout --show-kind"
)
_KUBECTL = {
    **dict.fromkeys(("get", "describe"), harmless(_SELECT, refused="secret")),
    "logs": harmless(
        "-f -c -p -l -n --namespace --follow --container --previous --since --since-time --tail --timestamps --prefix "
        "--selector --all-containers --max-log-requests --limit-bytes --all-pods"
    ),
    **dict.fromkeys(("top node", "top nodes", "top pod", "top pods"), harmless(f"{_SELECT} --containers --sum")),
    "explain": harmless("--recursive --api-version --output"),
    "api-resources": harmless("--namespaced --verbs --api-group --no-headers -o --output --sort-by"),
    "api-versions": harmless(""),
    "version": harmless("--client --output -o --short"),
    "cluster-info": harmless(""),
    "auth can-i": harmless("-n -A --namespace --all-namespaces --list --quiet -q --no-headers"),
    "rollout status": harmless("-n --namespace -w --watch --timeout --revision"),
    "rollout history": harmless("-n --namespace --revision -o --output"),
    "config current-context": harmless(""),
    "config get-contexts": harmless("-o --output --no-headers"),
    "config view": harmless("--minify -o --output", refused="raw|flatten|template|jsonpath"),
}
KUBECTL = Tool(
    flags=words("-n --namespace --request-timeout"),
    valued=words("-n --namespace --request-timeout --context --cluster --kubeconfig --user --as -s --server"),
    subcommands=words(
        "annotate api-resources api-versions apply attach auth autoscale certificate cluster-info completion",
        "config cordon cp create debug delete describe diff drain edit events exec explain expose get help",
        "kustomize label logs options patch plugin port-forward proxy replace rollout run scale set taint top",
        "uncordon version wait",
    ),
    groups=dict.fromkeys(
        ("auth", "certificate", "config", "create", "plugin", "rollout", "set", "top"),
        Tool(flags=words("-n --namespace"), valued=words("-n --namespace")),
    ),
    harmless=_KUBECTL,
)

_FILTER = "-a -q -f -n# -s --all --quiet --filter --format --no-trunc --size --latest --last --digests"
_COMPOSE: dict[str, Harmless] = {
    "compose ps": harmless("-a -q --all --quiet --format --services --status --filter --no-trunc --orphans"),
    "compose logs": harmless("-f -t -n --follow --tail --timestamps --since --until --no-color --no-log-prefix"),
    "compose ls": harmless("-a -q --all --quiet --format --filter"),
    "compose images": harmless("-q --quiet --format"),
    "compose top": harmless(""),
    "compose version": harmless("-f --format --short"),
    "compose port": harmless("--index --protocol"),
}
_DOCKER = {
    "ps": harmless(_FILTER),
    "images": harmless(_FILTER),
    "logs": harmless("-f -t -n --follow --tail --timestamps --since --until --details"),
    "inspect": harmless("-f -s --format --size --type"),
    "image inspect": harmless("-f --format --platform"),
    "container inspect": harmless("-f -s --format --size"),
    "version": harmless("-f --format"),
    "info": harmless("-f --format"),
    "top": harmless(""),
    "port": harmless(""),
    "diff": harmless(""),
    "stats": harmless("-a --all --no-stream --no-trunc --format"),
    "history": harmless("-H -q --human --quiet --no-trunc --format"),
    "search": harmless("-f --filter --format --limit --no-trunc"),
    **dict.fromkeys(("network ls", "volume ls", "context ls"), harmless(_FILTER)),
    **dict.fromkeys(("network inspect", "volume inspect", "context inspect"), harmless("-f -v --format --verbose")),
    "context show": harmless(""),
    "system df": harmless("-v --verbose --format"),
    **_COMPOSE,
}
_CONTAINER = words(
    "attach commit cp create diff exec export kill logs pause port rename restart rm run start stats stop top unpause",
    "update wait",
)
_IMAGE = words("build history import load pull push save tag")
_LISTS = [f"{kind} {verb}" for kind in ("network", "volume", "context", "config", "secret") for verb in ("list", "ls")]
_COMPOSE_OPTIONS = Tool(
    flags=words("--ansi --progress"),
    valued=words("-f --file -p --project-name --project-directory --profile --env-file --ansi --progress"),
)
DOCKER = Tool(
    flags=words("-D --debug -l --log-level"),
    valued=words("-c --context -H --host -l --log-level"),
    subcommands=words(
        "attach build builder buildx checkpoint commit compose config container context cp create diff events",
        "exec export help history image images import info init inspect kill load login logout logs manifest",
        "network node pause plugin port ps pull push rename restart rm rmi run save search secret service stack",
        "start stats stop swarm system tag top trust unpause update version volume wait",
    ),
    groups=dict.fromkeys(
        words(
            "builder buildx checkpoint config container context image manifest network node plugin secret service",
            "stack swarm system trust volume",
        ),
        GROUP,
    )
    | {"compose": _COMPOSE_OPTIONS},
    aliases={
        **{f"container {verb}": verb for verb in _CONTAINER},
        **dict.fromkeys(("container ls", "container list", "container ps"), "ps"),
        "container remove": "rm",
        **{f"image {verb}": verb for verb in _IMAGE},
        **dict.fromkeys(("image ls", "image list"), "images"),
        **dict.fromkeys(("image rm", "image remove"), "rmi"),
        **dict.fromkeys(("buildx build", "buildx b", "builder build"), "build"),
        **{f"{kind} remove": f"{kind} rm" for kind in ("network", "volume", "context", "config", "secret", "node")},
        **{command: command.replace("list", "ls") for command in _LISTS},
        "system info": "info",
        "system events": "events",
    },
    harmless=_DOCKER,
)
DOCKER_COMPOSE = Tool(
    flags=_COMPOSE_OPTIONS.flags,
    valued=_COMPOSE_OPTIONS.valued,
    harmless={name.removeprefix("compose "): options for name, options in _COMPOSE.items()},
)


_AWS_FLAGS = words("--no-cli-pager --no-paginate --region --output --query")
_AWS_VALUED = words("--region --output --query --profile")
_AWS_COMMON = harmless(
    "--no-cli-pager --no-paginate --region --output --query --max-items --page-size --starting-token --human-readable "
    "--summarize --filters --filter --bucket --key --prefix --delimiter --instance-ids --image-ids --owners --vpc-ids "
    "--subnet-ids --group-ids --volume-ids --snapshot-ids --cluster --clusters --cluster-name --services --tasks "
    "--service --function-name --stack-name --log-group-name --log-group-name-prefix --log-stream-name --start-time "
    "--end-time --filter-pattern --limit --role-name --user-name --policy-arn --db-instance-identifier --names --name "
    "--table-name --queue-url --topic-arn --metric-name --namespace --statistics --period --dimensions --max-results "
    "--repository-name --hosted-zone-id --alarm-names --load-balancer-arns --target-group-arn --time-period "
    "--granularity --metrics --resource-arn --include-all-instances --order-by --descending",
    refused=r"(?:file|fileb|https?)://",
)

AWS = Tool(
    flags=_AWS_FLAGS,
    valued=_AWS_VALUED,
    every=Tool(flags=_AWS_FLAGS, valued=_AWS_VALUED),
    harmless={
        "s3 ls": harmless("--recursive --human-readable --summarize --region --no-cli-pager --page-size --output")
    },
    common=_AWS_COMMON,
)


def _dashed(options: str) -> str:
    """Return options with one and with two dashes; both are read alike."""
    return " ".join(f"{option} -{option}" for option in options.split())


_TERRAFORM = {
    "version": harmless(_dashed("-json"), 0),
    "validate": harmless(_dashed("-json -no-color -no-tests"), 0),
    "plan": harmless(
        _dashed(
            "-no-color -input=false -lock=false -refresh=false -refresh-only -destroy -detailed-exitcode "
            "-compact-warnings -target -json -concise -parallelism"
        ),
        0,
    ),
    "show": harmless(_dashed("-json -no-color")),
    "output": harmless(_dashed("-json -no-color -raw")),
    "providers": harmless("", 0),
    "graph": harmless(_dashed("-type -draw-cycles"), 0),
    "state list": harmless(_dashed("-id")),
    "state show": harmless(_dashed("-no-color")),
    "workspace list": harmless(""),
    "workspace show": harmless(""),
    "fmt": harmless(_dashed("-check -diff -recursive -list -no-color")),
}
TERRAFORM = Tool(
    valued=words("-chdir --chdir"),
    subcommands=words(
        "apply console destroy fmt force-unlock get graph import init login logout metadata output plan providers",
        "refresh show stacks state taint test untaint validate version workspace",
    ),
    groups=dict.fromkeys(("state", "workspace", "metadata", "stacks"), GROUP),
    harmless=_TERRAFORM,
)


_SCRIPT = harmless("-s -w --silent --if-present --workspace --workspaces", 0, ends_options=False)
_SHOWN = harmless("-a -g -l --all --depth --json --long --parseable --global --prod --production --omit --include")

_HARMLESS = {
    **dict.fromkeys(("ls", "ll", "outdated", "explain", "fund"), _SHOWN),
    **dict.fromkeys(("view", "search", "ping", "whoami", "root", "prefix", "query"), harmless("-g --json --long")),
    "version": harmless("--json", 0),
    "audit": harmless("--json --omit --audit-level --production", 0),
    "test": _SCRIPT,
    "pkg get": harmless("--json"),
    "config get": harmless("--json"),
    "config ls": harmless("--json"),
}
_ALIASES = {
    **dict.fromkeys(words("i in ins inst insta instal isnt isnta isntal isntall add"), "install"),
    **dict.fromkeys(words("clean-install ic install-clean isntall-clean"), "ci"),
    **dict.fromkeys(words("cit clean-install-test sit"), "install-ci-test"),
    **dict.fromkeys(words("un unlink remove rm r"), "uninstall"),
    **dict.fromkeys(words("up upgrade udpate"), "update"),
    **dict.fromkeys(words("t tst"), "test"),
    **dict.fromkeys(words("run-script rum urn"), "run"),
    **dict.fromkeys(words("list la"), "ls"),
    **dict.fromkeys(words("info show v"), "view"),
    **dict.fromkeys(words("s se find"), "search"),
    **dict.fromkeys(words("create innit"), "init"),
    **dict.fromkeys(words("add-user adduser"), "login"),
    **dict.fromkeys(words("hlep help-search"), "help"),
    "author": "owner",
    "c": "config",
    "config list": "config ls",
    "ddp": "dedupe",
    "dist-tags": "dist-tag",
    "home": "docs",
    "issues": "bugs",
    "it": "install-test",
    "ln": "link",
    "rb": "rebuild",
    "why": "explain",
    "x": "exec",
}
_RUNS = {f"run {name}": _SCRIPT for name in words("build check format lint start test type-check typecheck")}
NPM = Tool(
    flags=words("-s --silent --no-color -w --workspace --no-fund --no-audit"),
    valued=words("-w --workspace -C --prefix"),
    subcommands=words(
        "access audit bugs cache ci completion config dedupe deprecate diff dist-tag docs doctor edit exec",
        "explain explore find-dupes fund get help hook init install install-ci-test install-test link ll login",
        "logout ls org outdated owner pack ping pkg prefix profile prune publish query rebuild repo restart root",
        "run sbom search set shrinkwrap star stars start stop team test token trust undeprecate uninstall",
        "unpublish unstar update version view whoami",
    ),
    groups=dict.fromkeys(words("access audit cache config dist-tag hook org owner pkg profile team token"), GROUP)
    | {"run": Tool(flags=words("-s --silent"))},
    aliases=_ALIASES,
    harmless=_HARMLESS | _RUNS,
)
