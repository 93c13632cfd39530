"""The subcommands of kubectl and docker, and the arguments of those that only read."""

from sayso.policy.words.commands.harmless import GROUP, Harmless, Tool, harmless, words

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
