"""`mcpspy ca`: the certificate authority of `mitm`, and how to make a client trust it."""

import argparse
import os
import shlex

from mcpspy.cli.output import explain
from mcpspy.errors import UsageError
from mcpspy.relay.mitm.authority import ADDING, REPLACING, Authority, default


def run_ca(options: argparse.Namespace) -> int:
    """Run the action `options.what`. `status` exits 1 if there is no authority, or if other users can read its key."""
    authority = default()
    if options.what == "status":
        return _status(authority)
    if not authority.exists():
        from mcpspy.cli.mitm import interceptor

        interceptor().make(authority)
    if options.what == "export":
        _export(authority, options.file)
    else:
        _environment(authority)
    return 0


def _export(authority: Authority, file: str | None) -> None:
    certificate = authority.pem()
    if file is None:
        print(certificate)
        return
    try:
        with open(file, "w", encoding="ascii") as out:
            out.write(certificate + "\n")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror or error}") from None


def _environment(authority: Authority) -> None:
    windows = os.name == "nt"
    form = "$env:{} = {}" if windows else "export {}={}"
    for name, value in authority.trust(os.environ).items():
        print(form.format(name, quote_for_powershell(value) if windows else shlex.quote(value)))
    notes = (  # not meant for the shell: an interactive zsh does not accept comments
        *(f"# {name} names no file: {os.environ[name]} is left out" for name in authority.left_out(os.environ)),
        f"# Python (httpx, requests) and curl read {', '.join(REPLACING)}; Node reads {ADDING}.",
        f"# Electron and browsers read the system's store: put {authority.certificate} there, if you want that.",
    )
    explain(*notes)


def quote_for_powershell(value: str) -> str:
    """Return a value as a PowerShell literal."""
    return "'" + value.replace("'", "''") + "'"


def _status(authority: Authority) -> int:
    if not authority.exists():
        print(f"no authority in {authority.folder}: 'mcpspy mitm' or 'mcpspy ca export' creates it")
        return 1
    fingerprint, until = authority.describe()
    print(f"certificate  {authority.certificate}")
    print(f"sha256       {fingerprint}")
    print(f"valid until  {until}")
    names = [name for name in (*REPLACING, ADDING) if authority.is_trusted_by(os.environ.get(name, ""))]
    print(f"this shell   {'has ' + ', '.join(names) if names else 'does not trust it: mcpspy run, or mcpspy ca env'}")
    exposed = authority.exposed()
    for path in exposed:
        print(f"problem      others can reach {path}: chmod go= {shlex.quote(path)}")
    return 1 if exposed else 0
