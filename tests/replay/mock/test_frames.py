import json

from mcpspy.replay.mock.frames import error_line, result_line
from mcpspy.wire.jsonrpc import Id


def test_lines_have_the_id_with_its_own_digits():
    assert result_line(Id("number", "1.0"), {}) == b'{"jsonrpc":"2.0","id":1.0,"result":{}}'
    assert json.loads(error_line(None, -1, 'a "word"')) == {
        "jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": 'a "word"'},
    }  # fmt: skip
