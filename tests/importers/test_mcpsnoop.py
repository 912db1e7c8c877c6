import json

from tests.importers.files import PING, PONG, brought, imported, told


def envelope(seq, direction, raw=None, at="10:00:00.5", **fields):
    """Return a line as mcpsnoop's encoder writes it."""
    head = {
        "session_id": "s1",
        "server_label": "weather",
        "seq": seq,
        "ts": f"2026-03-17T{at}Z",
        "direction": direction,
    }
    line = json.dumps(head | {"transport": "stdio"} | fields, separators=(",", ":"))
    return (line[:-1] + f',"raw":{raw.decode()}}}\n' if raw else line + "\n").encode()


META = envelope(1, "meta", b'{"command":["npx","weather","--token","s3cr3t"],"cwd":"/home/me"}')


def test_a_session_is_its_command_and_what_was_said(tmp_path):
    raw = META + envelope(2, "c2s", PING) + envelope(3, "stderr", text="warming up", at="10:00:00.623456789")
    raw += envelope(4, "s2c", PONG, "10:00:01") + envelope(5, "s2c", text="listening on 3000", at="10:00:02")
    account, [capture] = brought(tmp_path, raw)
    assert told(capture) == [
        f"0 client stdin {PING.decode()}",
        "123 server stderr warming up",
        f"500 server stdout {PONG.decode()}",
        "1500 server stdout listening on 3000",
    ]
    assert capture.header.argv[:3] == ("npx", "weather", "--token")
    assert capture.header.argv[3].startswith("«redacted:")
    assert (capture.header.cwd, capture.header.name) == ("/home/me", "weather")
    assert (account.read, account.lost, account.unit) == (5, 0, "line")
    assert imported(capture)["missing"] == ["heads"]


def test_numbers_stay_as_they_are_written(tmp_path):
    """F-05."""
    message = b'{"jsonrpc":"2.0","id":1.0,"method":"x","params":{"n":[1e0,123456789012345678901234567890]}}'
    _, [capture] = brought(tmp_path, envelope(1, "c2s", message))
    assert told(capture) == [f"0 client stdin {message.decode()}"]


def test_numbers_that_are_missing_are_a_gap_and_so_is_a_message_that_was_cut(tmp_path):
    raw = envelope(2, "c2s", PING) + envelope(5, "s2c", text='{"jsonrpc":', truncated=True)
    _, [capture] = brought(tmp_path, raw)
    assert told(capture) == [
        f"0 client stdin {PING.decode()}",
        "0 gap 2 mcpsnoop lost frames: their numbers are missing",
        '0 server stdout {"jsonrpc":',
        "0 gap 1 mcpsnoop kept only the beginning of this message",
    ]


def test_sessions_in_one_file_are_captures_of_their_own(tmp_path):
    raw = envelope(1, "c2s", PING) + envelope(1, "c2s", PING, session_id="s2")
    _, captures = brought(tmp_path, raw)
    assert [told(capture) for capture in captures] == [[f"0 client stdin {PING.decode()}"]] * 2


def test_a_damaged_line_loses_itself_alone(tmp_path):
    good = envelope(1, "c2s", PING), envelope(2, "s2c", PONG)
    for bad in (
        b"{",
        b"\xff\xfe",
        b"{}",
        b"[" * 5000,
        good[0].replace(b"2026", b"year"),
        good[0].replace(b":1,", b":x,"),
    ):
        account, [capture] = brought(tmp_path, good[0] + b"\n" + bad + b"\n" + good[1])
        assert (account.read, account.lost) == (3, 1)
        assert len(told(capture)) == 2


def test_a_file_that_ends_inside_a_line_gives_those_before(tmp_path):
    raw = envelope(1, "c2s", PING) + envelope(2, "s2c", PONG)
    account, [capture] = brought(tmp_path, raw[:-20])
    assert (told(capture), account.lost) == ([f"0 client stdin {PING.decode()}"], 1)


def test_what_cannot_be_written_is_damaged_and_leaves_no_empty_file(tmp_path):
    """A lone surrogate is valid in JSON, but cannot be encoded as UTF-8."""
    meta = envelope(1, "meta", b'{"command":["npx","\\ud800"],"cwd":null}')
    account, [capture] = brought(tmp_path / "command", meta + envelope(2, "c2s", PING))
    assert (account.read, account.lost) == (2, 1)
    assert told(capture) == [f"0 client stdin {PING.decode()}"]
    account, captures = brought(tmp_path / "label", envelope(1, "c2s", PING, server_label="\ud800") * 3)
    assert (account.lost, captures) == (3, [])
    assert not list(tmp_path.glob("label/captures/*"))
