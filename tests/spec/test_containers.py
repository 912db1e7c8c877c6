"""Commands that run a server in a container: whether it gets stdin."""

import pytest

from mcpspy.spec.containers import run_without_stdin

LACKING = {
    "docker run image": "docker run",
    "docker run --rm image -i": "docker run",
    "docker run --rm -e TOKEN=i -e OTHER image": "docker run",
    "docker run -eTOKEN=ti image": "docker run",
    "docker run -t image": "docker run",
    "docker run -dt --name i image": "docker run",
    "docker run --name=i -v /a:/b -p 1:1 image --interactive": "docker run",
    "docker run --interactive=false image": "docker run",
    "docker container run image": "docker run",
    "docker --context i run image": "docker run",
    "docker -H tcp://i run --init image": "docker run",
    "docker exec container server": "docker exec",
    "podman run --replace --name s image": "podman run",
    "/usr/local/bin/docker run image": "docker run",
    "C:\\Docker\\docker.exe run image": "docker run",
    "sudo -E docker run image": "docker run",
    "env A=1 docker run image": "docker run",
    "cmd /c docker run image": "docker run",
    "sh -c 'docker run --rm image'": "docker run",
    "bash -lc 'exec docker run image'": "docker run",
    "kubectl exec pod -- server -i": "kubectl exec",
    "kubectl -n tools exec deploy/mcp -c i --stdin=false -- server": "kubectl exec",
    "sh -c 'oc exec pod -- server'": "kubectl exec",
}
PASSING = (
    *("docker run -i image", "docker run --rm -i image", "docker run -ti image", "docker run -it image"),
    *("docker run --interactive image", "docker run --interactive=true image", "docker run -i=true image"),
    *("docker run -e A=1 --name s -i image", "docker run --rm -eA=1 -i image", "docker run -dit image"),
    *("docker run -a stdin -a stdout image", "docker run --attach stdin image", "docker exec -i container server"),
    *("docker mcp gateway run", "docker compose run server", "docker", "docker run", "docker run --rm", "server"),
    *("sh -c 'docker run -i image'", "sh -c 'docker run", "sh", "", "npx docker run image", "docker ps image"),
    *(
        "kubectl exec -i pod -- server",
        "kubectl exec pod -ti -c server -- server",
        "kubectl exec --stdin pod -- server",
    ),
    *("kubectl exec pod -i=true -- server", "kubectl exec pod server", "kubectl run pod --image=image -- exec"),
)


@pytest.mark.parametrize("command", LACKING)
def test_a_container_without_stdin_is_found(command):
    assert run_without_stdin(words(command)) == LACKING[command]


@pytest.mark.parametrize("command", PASSING)
def test_other_commands_are_not(command):
    assert run_without_stdin(words(command)) is None


def words(command):
    """Return the words of a command; what is in quotation marks is one word."""
    before, quoted, script = command.partition("'")
    return [*before.split(), *([script.rstrip("'")] if quoted else [])]
