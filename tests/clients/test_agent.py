import pytest

from mcpspy.clients.agent import is_agent


@pytest.mark.parametrize(
    "words",
    [
        "mcpspy mcp",
        "/opt/bin/mcpspy mcp /captures",
        r"C:\bin\mcpspy.exe mcp",
        "python3 -m mcpspy mcp",
        "uvx --from mcpspy[agent] mcpspy mcp",
        "uvx mcpspy[agent] mcp",
        "uvx mcpspy@1.0 mcp",
    ],
)
def test_it_is_known_by_its_words(words):
    assert is_agent(words.split())


@pytest.mark.parametrize(
    "words", ["", "mcpspy", "mcpspy wrap -- npx mcp", "npx mcp", "mcp mcpspy", "mcpspyx mcp", "node mcp mcpspy"]
)
def test_other_servers_are_not(words):
    assert not is_agent(words.split())
