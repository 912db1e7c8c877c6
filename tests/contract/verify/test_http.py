"""Sessions over HTTP: direct, through `mcpspy proxy`, and through proxies with a planted fault."""

import pytest

from mcpspy.contract.verify import proof as proofs
from mcpspy.contract.verify.http import HttpBench
from mcpspy.contract.verify.proof import found_out, proof
from mcpspy.process.child import environment
from tests.contract.verify.web import proxied, serving


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(proofs, "STARTS", 1)
    monkeypatch.setattr(proofs, "PINGS", 3)


def verified(url, folder, through=None, headers=()):
    with HttpBench(url, through, dict(headers), environment(), str(folder), 20) as bench:
        return proof(bench, found_out(bench.connect, 20, {}))


def differing(found):
    return {check.name: " ".join(check.differences) for check in found.checks if not check.equal}


def test_the_proxy_is_transparent(tmp_path):
    with serving() as url:
        found = verified(url, tmp_path, headers={"X-Key": "s3cr3t"})
    assert differing(found) == {}
    assert [check.name for check in found.checks] == [
        "requests",
        "client to server",
        "responses",
        "server to client",
        "answers",
        "delay",
    ]
    assert found.checks[0].detail == "method, target and headers of 8 requests"  # with the GET and DELETE at the end
    assert len(found.figures.latencies.through) == 3


@pytest.mark.parametrize(
    ("fault", "names", "sentence"),
    [
        ("none", set(), ""),
        ("header", {"responses"}, "response 1: the header via is absent bare, 1.1 planted through"),
        ("status", {"responses"}, "is 202 Accepted bare, 200 OK through"),
        ("body", {"responses", "answers"}, '/result/content/0/text is "é" bare, "e" through'),
    ],
)
def test_a_planted_fault_is_told(tmp_path, fault, names, sentence):
    with serving() as url, proxied(url, fault) as through:
        found = differing(verified(url, tmp_path, through))
    assert set(found) == names
    assert sentence in " ".join(found.values())
