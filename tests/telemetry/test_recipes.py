"""The recipes for `mcpspy otel` in docs/recipes: each one is parsed, and the commands in them are run.

No collector runs here. Its configuration is parsed, and every name in it must be declared.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from signal import SIGTERM

import pytest
from opentelemetry.sdk import environment_variables
from ruamel.yaml import YAML

from tests import backends, limits
from tests.telemetry.collector import Collector
from tests.transcript import capture

RECIPES = Path(__file__).parent.parent.parent / "docs" / "recipes"
UNIT, CONTAINER, COLLECTOR = (RECIPES / name for name in ("mcpspy-otel.service", "Containerfile", "collector.yaml"))
KINDS = ("receivers", "processors", "exporters")


def of_unit():
    """Return the command of the systemd unit and its environment."""
    parser = ConfigParser(interpolation=None, delimiters="=", comment_prefixes="#")
    parser.optionxform = str
    parser.read(UNIT, encoding="utf-8")
    name, _, value = parser["Service"]["Environment"].partition("=")
    return shlex.split(parser["Service"]["ExecStart"]), {name: value}


def of_container():
    """Return the command of the container and its environment."""
    lines = CONTAINER.read_text(encoding="utf-8").splitlines()
    found = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    return json.loads(found["ENTRYPOINT"]), dict(word.split("=") for word in found["ENV"].split())


@pytest.mark.parametrize("of_recipe", [of_unit, of_container])
def test_what_a_recipe_starts_sends_the_captures_and_ends_at_a_signal(of_recipe, tmp_path):
    words, environ = of_recipe()
    assert os.path.basename(words[0]) == "mcpspy"
    assert {name for name in environ if name.startswith("OTEL_")} <= vars(environment_variables).keys()
    home = environ.get("HOME", "/home/me")
    captures = environ.get("MCPSPY_CAPTURE_DIR", f"{home}/.mcpspy/captures")
    environ = {name: f"{tmp_path}{value}" for name, value in environ.items()} | {"HOME": f"{tmp_path}{home}"}
    os.makedirs(f"{tmp_path}{captures}")
    capture(f"{tmp_path}{captures}/a.jsonl", "> 1 ping\n< 1 = {}")
    with Collector() as collector:
        environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
        command = [sys.executable, "-m", "mcpspy", *words[1:]]
        with limits.Popen(command, env=os.environ | environ, stdout=subprocess.PIPE, text=True) as process:
            collector.until(lambda: collector.spans)
            process.send_signal(SIGTERM)
            out, _ = process.communicate()
    assert (process.returncode, out.partition(" and")[0]) == (0, "sent 1 span")
    assert os.listdir(f"{tmp_path}{home}/.mcpspy/otel")


def faults(configuration):
    """Yield the names in a collector's configuration that are used but not declared, or declared but not used."""
    service = configuration["service"]
    stored = [exporter["sending_queue"]["storage"] for exporter in configuration["exporters"].values()]
    wanted = {"extensions": {*service["extensions"], *stored}} | {
        kind: {name for pipeline in service["pipelines"].values() for name in pipeline[kind]} for kind in KINDS
    }
    for kind, names in wanted.items():
        yield from (f"{kind}: {name}" for name in names ^ configuration[kind].keys())
    yield from (f"pipeline: {name}" for name in service["pipelines"].keys() ^ {"traces", "metrics", "logs"})
    for name, pipeline in service["pipelines"].items():
        if pipeline["processors"][0] != "memory_limiter":
            yield f"first in {name}: {pipeline['processors'][0]}"


def configuration():
    return YAML(typ="safe").load(COLLECTOR.read_text(encoding="utf-8"))


def test_the_collectors_configuration_names_what_it_declares():
    found = configuration()
    assert list(faults(found)) == []
    assert found["receivers"]["otlp"]["protocols"]["http"]["endpoint"] == "127.0.0.1:4318"  # mcpspy's default
    traces = found["service"]["pipelines"]["traces"]["exporters"]
    assert traces == ["clickhouse", "otlp_grpc/tempo", "otlp_grpc/jaeger"]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("otlp_grpc/jaeger:", "otlp_grpc/yaeger:", {"exporters: otlp_grpc/jaeger", "exporters: otlp_grpc/yaeger"}),
        ("extensions: [file_storage]", "extensions: [disk]", {"extensions: disk"}),
        ("storage: file_storage", "storage: files", {"extensions: files"}),
        ("    metrics:", "    measures:", {"pipeline: metrics", "pipeline: measures"}),
    ],
)
def test_a_planted_fault_of_the_configuration_is_found(old, new, fault):
    text = COLLECTOR.read_text(encoding="utf-8")
    assert set(faults(YAML(typ="safe").load(text.replace(old, new)))) == fault


@pytest.mark.field
@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize(("old", "told"), [("", False), ("Restart=on-failure", True)])
def test_systemd_takes_the_unit(tmp_path, old, told):
    text = UNIT.read_text(encoding="utf-8").replace("%h/.local/bin/mcpspy", shutil.which("true"))
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace(old, "Restart=sometimes") if old else text)
    command = ["systemd-analyze", "--user", "--man=no", "verify", unit]
    environ = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    done = limits.run(command, capture_output=True, text=True, check=True, env=environ)
    assert bool(done.stderr) is told


@pytest.mark.field
@pytest.mark.timeout(backends.SECONDS)
@pytest.mark.parametrize(("old", "fault"), [("", False), ("ENTRYPOINT", True)])
def test_hadolint_takes_the_containerfile(tmp_path, old, fault):
    """Except for a pinned version of mcpspy, which would soon be outdated."""
    text = CONTAINER.read_text(encoding="utf-8")
    path = tmp_path / CONTAINER.name
    path.write_text(text.replace(old, "ENTRY") if old else text)
    hadolint = backends.installed(backends.HADOLINT) / "hadolint"
    done = limits.run([hadolint, "--ignore", "DL3013", path], capture_output=True, text=True, check=False)
    assert bool(done.returncode) is fault, done.stdout
