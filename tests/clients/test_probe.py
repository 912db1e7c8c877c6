"""Servers that answer, refuse, stay silent, die or write too much. The time-outs are short."""

import os
import signal
import socket
import sys
import threading

import pytest

from mcpspy.clients.probe import listening, routes_at, talk
from mcpspy.errors import SpawnError
from mcpspy.transport import link
from tests.relay.harness import LIMIT, running, until

ANSWER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = {{"of": request["method"], "supportedVersions": ["2026-07-28"]}}
    if request["method"] in {methods}:
        print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": result}}), flush=True)
    elif {refuse}:
        error = {{"code": -32601, "message": "no " + request["method"]}}
        print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "error": error}}), flush=True)
"""
ENVIRON = {"PATH": os.defpath}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Shorten the time-outs for real servers."""
    monkeypatch.setattr(link, "PATIENCE", 0.3)
    monkeypatch.setattr(link, "CLOSED", 0.3)


def python(source, patience=LIMIT):
    return talk([sys.executable, "-I", "-S", "-c", source], ENVIRON, "/", patience, 0.3)


def test_a_server_of_the_per_request_era_answers_discover():
    answer = python(ANSWER.format(methods=["server/discover"], refuse=True))
    assert (answer.method, answer.result["of"]) == ("server/discover", "server/discover")
    assert (answer.noise, answer.stderr, answer.exit) == ([], [], None)


@pytest.mark.parametrize("refuse", [True, False], ids=["that refuses discover", "that is silent at discover"])
def test_an_older_server_is_asked_to_initialize(refuse):
    answer = python(ANSWER.format(methods=["initialize"], refuse=refuse))
    assert (answer.method, answer.result["of"]) == ("initialize", "initialize")


def test_a_server_that_refuses_everything_says_why():
    answer = python(ANSWER.format(methods=[], refuse=True))
    assert (answer.method, answer.error) == (None, "no initialize")


def test_a_server_that_dies_tells_its_status_and_its_stderr():
    answer = python("import sys; print('what is wrong', file=sys.stderr); sys.exit(7)")
    assert (answer.method, answer.exit, answer.stderr) == (None, 7, ["what is wrong"])


def test_a_server_that_a_signal_kills_tells_which():
    answer = python("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert (answer.method, answer.exit) == (None, -signal.SIGTERM)


def test_a_server_that_writes_without_end_is_left(monkeypatch):
    monkeypatch.setattr(link, "room", lambda _: 1 << 20)
    answer = python("while True: print('x' * 1000)")
    assert (answer.method, answer.exit, answer.error) == (None, None, "it did not stop writing")


def test_a_server_is_started_in_its_directory_with_its_variables(tmp_path):
    source = "import os, sys; print(os.getcwd(), dict(os.environ), file=sys.stderr); sys.exit(1)"
    words = [sys.executable, "-I", "-S", "-c", source]
    answer = talk(words, {"ONE": "é"}, str(tmp_path), LIMIT, 0.3)
    assert answer.stderr[0].startswith(f"{tmp_path} {{'ONE': 'é'")


def test_what_is_no_message_is_noise():
    answer = python(
        "print('Listening...', flush=True)\nprint('[1]')" + ANSWER.format(methods=["initialize"], refuse=True)
    )
    assert (answer.method, answer.noise) == ("initialize", ["Listening...", "[1]"])


def test_a_silent_server_is_ended_whatever_it_ignores(tmp_path):
    pids = tmp_path / "pids"
    source = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}} ')\n"
        "time.sleep(1000)\n"
    )
    answer = python(source, patience=1.5)
    assert (answer.method, answer.exit, answer.error) == (None, None, "")
    for pid in pids.read_text().split():
        until(lambda pid=pid: not running(int(pid)), "the end of the server")


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_server_too_however_often_it_comes(tmp_path, how):
    """The server sends it to its parent, perhaps before the start of the server returns, and while it should exit."""
    pid, number = tmp_path / "pid", getattr(signal, how)
    source = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(pid)!r}, 'w').write(str(os.getpid()))\n"
        "while True:\n"
        f"    os.kill(os.getppid(), {number:d})\n"
        "    time.sleep(0.05)\n"
    )

    def too_late(*_):
        raise AssertionError("the signal was not waited for")

    before = signal.signal(number, too_late)
    try:
        with pytest.raises(KeyboardInterrupt):
            python(source)
        assert signal.getsignal(number) is too_late
    finally:
        signal.signal(number, before)
    assert not running(int(pid.read_text()))


def test_a_server_that_wants_initialize_first_is_started_again():
    source = "import json, sys\nif 'discover' in sys.stdin.readline(): sys.exit('too early')\n"
    answer = python(source + "print(json.dumps({'id': 1, 'result': {'a': 1}}), flush=True)\nsys.stdin.read()")
    assert (answer.method, answer.result, answer.exit, answer.stderr) == ("initialize", {"a": 1}, None, [])


def test_a_long_answer_is_an_answer():
    source = (
        "import json\n"
        "for number in (1, 2):\n"
        "    input()\n"
        "    print(json.dumps({'id': number, 'result': {'instructions': 'x' * 300_000}}), flush=True)\n"
        "input()"
    )
    assert len(python(source).result["instructions"]) == 300_000


@pytest.mark.parametrize("line", ["'[' * 4000", "'[' * 200_000", "'x' * 30_000", "'9' * 5000"])
def test_what_is_long_or_deep_and_no_message_is_noise_of_bounded_length(line):
    answer = python(f"print({line}, flush=True)" + ANSWER.format(methods=["initialize"], refuse=True))
    assert answer.method == "initialize"
    assert [len(noise) for noise in answer.noise] == [min(len(eval(line)), 4096)]  # noqa: S307


def test_a_flood_takes_bounded_memory():
    flood = "import json, sys\nfor id in (7, 1.0, '1', [1], None) * 50: print(json.dumps({'id': id, 'result': {}}))\n"
    endless = "sys.stdout.write('x' * 100_000 + '\\n'); sys.stderr.write('y' * 100_000 + '\\nlast\\n')\n"
    answer = python(flood + endless + ANSWER.format(methods=["initialize"], refuse=True))
    assert answer.method == "initialize"
    assert (answer.noise, answer.stderr) == (["x" * 4096], ["y" * 4096, "last"])


def test_a_server_that_closes_its_stdout_is_not_waited_for():
    answer = python("import os, sys; os.close(1); sys.stdin.read()")
    assert answer.error == "it closed its stdout"
    assert answer.seconds < LIMIT / 2


def test_what_cannot_be_started_is_an_error():
    with pytest.raises(SpawnError):
        talk(["/nowhere/server"], ENVIRON, "/")


@pytest.mark.parametrize(
    ("answer", "there"),
    [
        (b"mcpspy: there is no route at this path; there is /a/, /b-2.c/\n", ["a", "b-2.c"]),
        (b"there is /a/", []),
        (None, []),
    ],
)
def test_the_routes_of_a_proxy_are_told_by_its_answer(answer, there):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LIMIT)
        head = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(answer or b"")

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(head + answer if answer else b"\0\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        assert routes_at(server.getsockname()[1]) == there
        thread.join(LIMIT)
    assert not thread.is_alive()


def test_a_listener_is_seen():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert not listening(port)
        server.listen()
        assert listening(port)
    assert not listening(port)


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        ('"result": 5', "its result is 5, not an object"),
        ('"result": None', "its result is null, not an object"),
        ('"error": "no"', 'its error is "no"'),
        ('"error": {"message": 5}', 'its error is {"message": …}'),
    ],
)
def test_a_22_an_answer_of_another_type_is_a_refusal(outcome, error):
    source = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        f'    print(json.dumps({{"jsonrpc": "2.0", "id": json.loads(line)["id"], {outcome}}}), flush=True)\n'
    )
    answer = python(source)
    assert (answer.method, answer.error) == (None, error)
