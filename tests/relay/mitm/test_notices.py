"""Messages to the user about peers: each appears once, their number is bounded, and they quote no bytes of peers."""

import logging
import sys

import pytest

from mcpspy.relay.mitm.notices import MOST_NOTICES, Bugs, Notices, no_tls


@pytest.fixture
def heard():
    return []


@pytest.fixture
def said(heard):
    return Notices(heard.append)


def test_each_thing_is_said_once(said, heard):
    for _ in range(2):
        said.once("cannot reach", "a:1", ": it is down")
        said.once("cannot reach", "b:1")
    assert heard == ["cannot reach a:1: it is down", "cannot reach b:1"]


def test_no_kind_of_thing_is_said_without_end(said, heard):
    """A client can choose the server name freely; other kinds of messages are still written."""
    for number in range(1000):
        said.once("a client refused our certificate for", f"x{number}.example", ": why")
    assert len(heard) == MOST_NOTICES + 1
    assert heard[MOST_NOTICES] == "a client refused our certificate for another host; no more of these are reported"
    said.once("cannot reach", "x.example")
    assert heard[-1] == "cannot reach x.example"


def record(message, *, failed=False):
    try:
        raise ValueError(message)
    except ValueError:
        error = sys.exc_info() if failed else None
    return logging.LogRecord("mitmproxy", logging.ERROR, "", 1, message, (), error)


def test_a_bug_is_told_without_what_it_quotes(said, heard):
    """O-02."""
    bugs = Bugs(said)
    bugs.emit(record("before it listens"))
    bugs.silent = False
    for failed in (True, True, False):
        bugs.emit(record("Invalid line: b'hidden'\nmore", failed=failed))
    assert heard == [
        "a bug in recording or in mitmproxy (ValueError: Invalid line: «withheld»\nmore); other traffic goes on",
        "a bug in recording or in mitmproxy (Invalid line: «withheld»); other traffic goes on",
    ]


@pytest.mark.parametrize(
    ("why", "greeted", "sentence"),
    [
        (
            "The client disconnected during the handshake.",
            True,
            "a client disconnected after it received our certificate for h: ",
        ),
        ("The client disconnected during the handshake.", False, None),
        ("connection closed early", True, None),
        ("OpenSSL Error([('SSL', '', 'ssl/tls alert bad certificate')])", True, "a client refused our certificate for"),
        ("OpenSSL Error([('SSL', '', 'tlsv1 alert unknown ca')])", True, "certificate for h (unknown ca): it does not"),
        ("OpenSSL Error([('SSL', '', 'wrong version number')])", True, "no TLS with a client for h (wrong version num"),
        ("Cannot parse ClientHello: 68696464656e", False, "no TLS with a client for h (Cannot parse ClientHello): it "),
    ],
)
def test_why_no_tls_came_about_with_a_client(said, heard, why, greeted, sentence):
    """M-06."""
    news = no_tls("h", why, greeted=greeted)
    if news:
        said.once(*news)
    assert [sentence] * bool(sentence) == [line[line.index(sentence) :][: len(sentence)] for line in heard]
    assert "68696464656e" not in "".join(heard)
