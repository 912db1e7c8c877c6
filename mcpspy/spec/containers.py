"""Commands that run a server in a container, as far as they decide whether the server gets stdin."""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise

_RUNTIMES = ("docker", "podman", "nerdctl", "finch")
_CLUSTERS = ("kubectl", "oc", "k3s", "microk8s")
_SHELLS = ("sh", "bash", "zsh", "dash")
_BEFORE = ("sudo", "env", "cmd", "exec", "doas")  # commands that run the rest of their arguments
_COMMANDS = ("run", "exec")
_OF_RUNTIME = (
    *("-H", "--host", "-c", "--context", "--config", "-l", "--log-level", "--tlscacert", "--tlscert", "--tlskey"),
    *("--connection", "--url", "--identity", "--root", "--runroot", "-n", "--namespace", "-a", "--address"),
)
"""The options of a runtime, before its command, that have a value."""
_FLAGS = frozenset(
    (
        *("--detach", "--disable-content-trust", "--env-host", "--help", "--http-proxy", "--init", "--no-healthcheck"),
        *("--no-hosts", "--no-hostname", "--oom-kill-disable", "--passwd", "--privileged", "--publish-all", "--quiet"),
        *("--read-only", "--read-only-tmpfs", "--replace", "--rm", "--rmi", "--rootfs", "--sig-proxy", "--tls-verify"),
        *("--tty", "--unsetenv-all", "--use-api-socket"),
    )
)
"""The long options of `run` and `exec` without a value."""
_SHORT_FLAGS = "diPqt"
"""The short options without a value, which can be combined: `-ti`."""
_OFF = re.compile(r"=(?:false|0|f)$", re.IGNORECASE)
_STDIN = re.compile(r"(?:-[tq]*i[tq]*|--stdin)(?:=.*)?")
_NESTED = 3


def run_without_stdin(argv: Sequence[str]) -> str | None:
    """Return a command such as `docker run` that does not pass stdin to its container, because it lacks `-i`.

    None if the command runs no container, passes stdin, or is not certain.
    """
    words = _unwrapped(argv)
    if words and _name(words[0]) in _CLUSTERS:
        return "kubectl exec" if _execs_without_stdin(words) else None
    if not words or _name(words[0]) not in _RUNTIMES:
        return None
    options = iter(words[1:])
    command = _skip_options(options, _OF_RUNTIME)
    if command == "container":
        command = next(options, "")
    if command not in _COMMANDS or _passes_stdin(options):
        return None
    return f"{_name(words[0])} {command}"


def _execs_without_stdin(words: Sequence[str]) -> bool:
    """Return whether `kubectl exec` passes no stdin to a pod. Its options may follow the name of the pod."""
    if "exec" not in words or "--" not in words:
        return False
    own = words[: words.index("--")]
    return "exec" in own and not any(_STDIN.fullmatch(word) and not _OFF.search(word) for word in own)


def _name(word: str) -> str:
    return re.split(r"[/\\]", word)[-1].lower().removesuffix(".exe")


def _unwrapped(argv: Sequence[str]) -> list[str]:
    """Return the words from the runtime on: without `sudo`, variables and a shell around it."""
    words = list(argv)
    for _ in range(_NESTED):
        while words and (_name(words[0]) in _BEFORE or words[0].lower() == "/c" or words[0].startswith("-")
                         or re.match(r"\w+=", words[0])):  # fmt: skip
            words = words[1:]
        if not words or _name(words[0]) not in _SHELLS:
            return words
        script = next((after for option, after in pairwise(words) if _runs_script(option)), "")
        try:
            words = shlex.split(script)
        except ValueError:
            return []
    return words


def _runs_script(option: str) -> bool:
    return option.startswith("-") and not option.startswith("--") and option.endswith("c")


def _skip_options(words: Iterator[str], valued: Sequence[str]) -> str:
    """Return the first word that is neither an option nor the value of one."""
    for word in words:
        if not word.startswith("-"):
            return word
        if word in valued:
            next(words, "")
    return ""


def _passes_stdin(words: Iterator[str]) -> bool:
    """Return whether the options of `run` pass stdin, or attach a stream by name, or end without an image."""
    for word in words:
        if not word.startswith("-") or word == "--":
            return False
        name, valued, _ = word.partition("=")
        if name in ("--interactive", "-i"):
            if not _OFF.search(word):
                return True
        elif name.startswith("--"):
            if name == "--attach":
                return True
            if not valued and name not in _FLAGS:
                next(words, "")
        else:
            letters = iter(word[1:])
            for letter in letters:
                if letter in ("i", "a"):
                    return True
                if letter not in _SHORT_FLAGS:
                    if not next(letters, ""):
                        next(words, "")
                    break
    return True
