"""What the models of the views tell of a transcript: `cases/`, in the form of `tests/cases.py`.

- lanes: the side that is waited for before each row, and the open brackets after it, the server's | the client's
- calls: each request with its response, its status, its latency, its progress, and the wait for a person
- peers: the facts that each peer has told about itself, and the lines that they come from
"""

from contextlib import closing
from pathlib import Path

import pytest

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.model.calls import Calls
from mcpspy.tui.model.lanes import DEEPEST, Lanes
from mcpspy.tui.model.peers import facts
from tests.browse.test_timeline import grow, said
from tests.cases import check

FOLDER = Path(__file__).parent / "cases"
META = (
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
)


def lanes(session):
    found = Lanes(session)
    assert not found.grow(10.0)
    assert len(found) == len(session)
    for place in range(len(found)):
        lane = found.at(place)
        yield f"#{session.line(place).n} {lane.waited} {lane.after >> DEEPEST:b}|{lane.after & 255:b}".replace(
            "  ", " "
        )


def calls(session):
    found = Calls(session)
    for request, response, asked, _, progress in map(found.at, range(len(found))):
        said = [f"#{request.n} #{response.n if response else '-'}", request.method, request.name, request.text, "=>"]
        said += [response.text if response else "", request.status]
        said += [f"{request.latency // 1_000_000} ms"] if request.latency is not None else []
        said += [f"person {asked / 1e9:g} s"] if asked else []
        said += [f"progress {progress}"] if progress else []
        yield " ".join(filter(None, said))


def peers(session):
    for fact in facts(session):
        yield f"#{fact.n} {fact.title}: {fact.text}".rstrip(": ") + (" (heading)" if fact.heading else "")


@pytest.mark.parametrize("told", [lanes, calls, peers], ids=lambda told: told.__name__)
def test_a_model_tells_this_of_each_transcript(told, tmp_path):
    def outcome(text, _):
        with closing(grow(OpenCapture(said(tmp_path, text.replace("META", META))))) as session:
            return list(told(session))

    check(FOLDER / f"{told.__name__}.txt", outcome)
