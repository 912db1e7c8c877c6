"""Run a client through mcpspy: `through.py proxy|mitm CAPTURE COMMAND... URL` runs a client's command with a URL.

With `proxy`, the client gets the URL of a proxy. With `mitm`, the URL stays the same, HTTP_PROXY is set, and CAPTURE is
a directory.
"""

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 30  # seconds until a server or a proxy must have started, or ended


@contextlib.contextmanager
def running(command: list[str], **environ: str) -> Iterator[str]:
    """Start a server or a proxy, and yield the line that it prints when it listens."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ | environ, text=True, **pipes)
    assert process.stdout
    try:
        ready = select.select([process.stdout], [], [], LIMIT)[0]
        line = process.stdout.readline().strip() if ready else ""
        if not line:
            raise RuntimeError(f"{' '.join(command)} did not start")
        yield line
    finally:
        process.terminate()
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def proxy(capture: str, url: str, *options: str) -> contextlib.AbstractContextManager[str]:
    """Start `mcpspy proxy`, and yield the URL for the client."""
    mcpspy = [sys.executable, "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0"]
    return running([*mcpspy, *options, "-o", capture, url])


def mitm(folder: str) -> contextlib.AbstractContextManager[str]:
    """Start `mcpspy mitm` in the environment that has mitmproxy, and yield its URL."""
    mcpspy = [str(ROOT / ".peers" / "mitm" / "bin" / "python"), "-m", "mcpspy", "mitm", "--listen", "127.0.0.1:0"]
    return running([*mcpspy, "--allow", "localhost", "--allow", "127.0.0.1", "--capture-dir", folder], HOME=folder)


def main() -> int:
    kind, capture, *command, url = sys.argv[1:]
    environ = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    if kind == "mitm":
        with mitm(capture) as place:
            return subprocess.run([*command, url], env=environ | {"HTTP_PROXY": place}, check=False).returncode
    with proxy(capture, url, "--rewrite-oauth") as client_url:
        return subprocess.run([*command, client_url], env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
