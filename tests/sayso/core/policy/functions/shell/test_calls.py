"""Programs and subcommands, and the options that may do more than the subcommand says."""

import pytest
from pydantic import JsonValue

from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.shell.commands import read_shell
from sayso.core.policy.rules import Action
from tests.sayso.core.policy.rule_files import parse
from tests.shells.named import WAYS, Way

ALLOWED: Policy = parse(
    """
version: 1
default: request_approval
rules:
  - id: git-log
    tool: run_shell
    when: shell(args.command).calls.all(one, one in ["git log"])
    action: allow
"""
)
DENIED: Policy = parse(
    """
version: 1
default: allow
rules:
  - id: git-push
    tool: run_shell
    when: shell(args.command).calls.exists(one, one == "git push")
    action: deny
"""
)


def judge(policy: Policy, command: JsonValue) -> Action:
    event = PolicyEvent(run_id="run_1", agent="a", tool_name="run_shell", tool_args={"command": command})
    return policy.judge(event).action


@pytest.mark.parametrize("way", WAYS, ids=[one.name for one in WAYS])
def test_no_way_round_the_rule_that_allows_git_log(way: Way) -> None:
    assert judge(ALLOWED, way.command) is Action.REQUEST_APPROVAL


@pytest.mark.parametrize("way", [one for one in WAYS if one.pushes], ids=lambda way: way.name)
def test_no_way_round_the_rule_that_denies_git_push(way: Way) -> None:
    """A command that cannot be read goes to a person, although the default is to allow."""
    assert judge(DENIED, way.command) in (Action.DENY, Action.REQUEST_APPROVAL)


@pytest.mark.parametrize(
    "command",
    [
        *("git log", "git log --oneline -5", "git --no-pager log -p -- src", "git log HEAD~3..HEAD src/app.py"),
        *("git log --since='1 week ago' | git log -3", "GIT_PAGER=cat git log", "/usr/bin/git log", "git -P log"),
        *("git log -- --output=x", "git log -S'a b' --stat 2>&1", "git -c color.ui=never log", "git log -- $FILE"),
    ],
)
def test_rule_that_allows_git_log_allows_its_harmless_forms(command: str) -> None:
    assert judge(ALLOWED, command) is Action.ALLOW


@pytest.mark.parametrize(
    ("command", "calls"),
    [
        ("ls -la /", ["ls"]),
        (["git", "log", "*"], ["git log"]),
        ("./tool x", ["./tool"]),
        ("/opt/git log", ["/opt/git", "git log"]),
        ("git --version", ["git version"]),
        ("git stash", ["git stash"]),
        ("git stash list -p", ["git stash list"]),
        ("git remote -v", ["git remote"]),
        ("git remote -v update", ["git remote update"]),
        ("git branch topic", ["git branch", "git branch topic"]),
        ("git branch -a", ["git branch"]),
        ("git -C /x log", ["git log", "git -C"]),
        ('git commit -m "$(cat x)" --no-verify', ["git commit", "git commit --no-verify", "cat"]),
        ("git push origin +main", ["git push", "git push +main"]),
        ("git diff -- *.py", ["git diff"]),
        ("git diff *.py", ["git diff", "git diff $"]),
        ("git diff src/*.py", ["git diff"]),
        ("ls | xargs git log", ["ls", "xargs", "git log", "git log $"]),
        ("ls | xargs -I{} git log ./{}", ["ls", "xargs", "git log"]),
        ("kubectl -n prod get pods -o wide", ["kubectl get"]),
        ("kubectl get pods --kubeconfig x", ["kubectl get", "kubectl get --kubeconfig"]),
        ("kubectl --context=prod delete pod x", ["kubectl delete", "kubectl --context"]),
        ("kubectl get pods,Secrets", ["kubectl get", "kubectl get pods,Secrets"]),
        ("kubectl rollout status deploy/x", ["kubectl rollout status"]),
        ("kubectl rollout undo deploy/x", ["kubectl rollout undo"]),
        ("kubectl exec x -- rm y", ["kubectl exec"]),
        ("docker container ls -a", ["docker ps"]),
        ("docker container rm x", ["docker rm"]),
        ("docker image remove x", ["docker rmi"]),
        ("docker --context prod ps", ["docker ps", "docker --context"]),
        ("docker compose -f x.yml up", ["docker compose up", "docker compose -f"]),
        ("docker run -v /:/x y rm", ["docker run", "docker run -v"]),
        ("docker-compose logs -f", ["docker-compose logs"]),
        ("npm t", ["npm test"]),
        ("npm test -- --x", ["npm test", "npm test --", "npm test --x"]),
        ("npm run build --silent", ["npm run build"]),
        ("npm run-script deploy", ["npm run deploy"]),
        ("npm i x", ["npm install"]),
        ("npm test --script-shell=./x", ["npm test", "npm test --script-shell"]),
        ("aws --region eu-west-1 s3 ls s3://x", ["aws s3 ls"]),
        ("aws s3 rm s3://x --recursive", ["aws s3 rm", "aws s3 rm --recursive"]),
        ("aws --profile p ec2 describe-instances", ["aws ec2 describe-instances", "aws --profile"]),
        ("aws sts x --endpoint-url y", ["aws sts x", "aws sts x --endpoint-url"]),
        ("aws ec2 x --filters=file://y", ["aws ec2 x", "aws ec2 x --filters"]),
        ("aws ec2 x --filters file://y", ["aws ec2 x", "aws ec2 x file://y"]),
        ("terraform -chdir=x plan", ["terraform plan", "terraform -chdir"]),
        ("terraform plan -out=x", ["terraform plan", "terraform plan -out"]),
        ("terraform state rm x", ["terraform state rm"]),
        ("find . -name '*.py' -mtime -7", ["find"]),
        ("find . -delete", ["find", "find -delete"]),
        ("find . -exec sort -o x {} +", ["find", "find -exec", "sort", "sort -o", "sort $"]),
        ("find . -fprint x", ["find", "find -fprint"]),
        ("sort -rn x | uniq -c", ["sort", "uniq"]),
        ("sort x -ox", ["sort", "sort -ox"]),
        ("uniq x y", ["uniq", "uniq y"]),
        ("sed -n '1,20p' x", ["sed"]),
        ("sed -n '1w y' x", ["sed", "sed 1w y"]),
        ("sed 's/a/b/e' x", ["sed", "sed s/a/b/e"]),
        ("sed -i s/a/b/ x", ["sed", "sed -i"]),
        ("rg --pre ./x y", ["rg", "rg --pre"]),
        ("ls > a; ls >> b", ["ls", "> a", "> b"]),
    ],
)
def test_calls_show_subcommands_and_doubtful_options(command: JsonValue, calls: list[str]) -> None:
    assert read_shell(command)["calls"] == calls


@pytest.mark.parametrize(
    "command",
    [
        *("git $X", 'git "lo$X"', "git -c alias.x=!ls x", "git -c core.pager=./x log", "git -c $X log", "git -p log"),
        *("git -c log.showSignature=true log", "git -c log.showsignature log", "git -c=color.ui=never log"),
        *("git --exec-path=/x log", "git lg", "Git log", "git.exe log", "git -C $X log", "git LOG", "git remote $X"),
        *("kubectl --token=x get pods", "kubectl foo", "kubectl $X", "kubectl -nx get pods", "kubectl -n $X get"),
        *("docker --config x ps", "docker foo", "docker compose --dry-run up", "docker $X", "docker compose $X"),
        *(
            "npm --script-shell=x test",
            "npm publ",
            "npm $X",
            "npm run $X",
            "aws $X ls",
            "aws s3 $X",
            "aws --debug s3 ls",
        ),
        *("terraform -chdir=x $X", "terraform pla", "terraform --x plan"),
    ],
)
def test_unknown_subcommands_and_steering_options_are_refused(command: str) -> None:
    with pytest.raises(Uncomputable):
        read_shell(command)
