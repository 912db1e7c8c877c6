"""Extensions must be negotiated before they are used, and correct sessions with extensions pass (X-01, X-02)."""

import itertools
import json

import pytest

from mcpspy.rules.judge import Judge
from mcpspy.spec.extensions import EXTENSIONS, extension_methods
from mcpspy.spec.revisions import Revision
from tests.rules.examples import records


def pieces():
    """Yield each known extension with its methods and result types, as extension, method and result."""
    for extension in EXTENSIONS.values():
        names = {name for it in Revision for name, (owner, _) in extension_methods(it).items() if owner is extension}
        for method in sorted(names | {method for method, _ in extension.additions}):
            yield extension, method, {"resultType": "complete"}
        for result_type, by_method in extension.result_types.items():
            yield from ((extension, method, {"resultType": result_type}) for method in sorted(by_method))


@pytest.mark.parametrize("revision", [it.value for it in Revision])
@pytest.mark.parametrize(("extension", "method", "result"), list(pieces()))
def test_x_01_no_rule_fails_at_a_message_of_an_extension(extension, method, result, revision):
    """Under every revision, whichever side has declared the extension."""
    for client, server in itertools.product([{}, {"extensions": {extension.id: {}}}], repeat=2):
        capabilities = {"io.modelcontextprotocol/clientCapabilities": client}
        meta = capabilities | {"io.modelcontextprotocol/protocolVersion": revision}
        params = {"notifications": {"taskIds": 3}} | ({"_meta": meta} if revision == "2026-07-28" else {})
        begin = {"protocolVersion": revision, "capabilities": client, "clientInfo": {"name": "c", "version": "1"}}
        agree = {"protocolVersion": revision, "capabilities": server, "serverInfo": {"name": "s", "version": "1"}}
        text = f"> 1 initialize {json.dumps(begin)}\n< 1 = {json.dumps(agree)}\n> notifications/initialized"
        if revision == "2026-07-28":
            text = f"> 1 server/discover {{META}}\n< 1 = {json.dumps(agree)}"
        sentences = []
        judge = Judge(report=sentences.append)
        asked = json.dumps(params)
        for record in records(f"""{text}
            > 2 {method} {asked}
            < 2 = {json.dumps(result)}
            < {method} {asked}
        """):
            list(judge.feed(record))
        assert (list(judge.end()), sentences)[1] == []
