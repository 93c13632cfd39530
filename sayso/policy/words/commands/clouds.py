"""The subcommands of aws and terraform, and the arguments of those that only read."""

from sayso.policy.words.commands.harmless import GROUP, Tool, harmless, words

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
