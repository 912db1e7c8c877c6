"""Which proxy leads to a server: a table, which the real curl confirms where both read the variables alike."""

import http.server
import threading
from contextlib import contextmanager

import pytest

from mcpspy.errors import UsageError
from mcpspy.network.proxies import ForwardProxy, proxy_for
from tests import limits
from tests.each import each

A, B = "http://127.0.0.1:{a}", "http://127.0.0.1:{b}"
PLAIN, SECURE = "http://mcp.example.test/mcp", "https://mcp.example.test/mcp"

AS_CURL = [  # variables, URL, and the variable that counts
    ({}, PLAIN, None),
    ({"http_proxy": A}, PLAIN, "http_proxy"),
    ({"http_proxy": A}, SECURE, None),
    ({"https_proxy": A}, PLAIN, None),
    ({"https_proxy": A}, SECURE, "https_proxy"),
    ({"HTTPS_PROXY": A}, SECURE, "HTTPS_PROXY"),
    ({"https_proxy": A, "HTTPS_PROXY": B}, SECURE, "https_proxy"),
    ({"https_proxy": "", "HTTPS_PROXY": B}, SECURE, "HTTPS_PROXY"),
    ({"all_proxy": A}, PLAIN, "all_proxy"),
    ({"all_proxy": A}, SECURE, "all_proxy"),
    ({"ALL_PROXY": A}, SECURE, "ALL_PROXY"),
    ({"all_proxy": A, "ALL_PROXY": B}, SECURE, "all_proxy"),
    ({"all_proxy": A, "https_proxy": B}, SECURE, "https_proxy"),
    ({"http_proxy": "127.0.0.1:{a}"}, PLAIN, "http_proxy"),
    ({"http_proxy": A + "/"}, PLAIN, "http_proxy"),
    ({"http_proxy": "HTTP://127.0.0.1:{a}"}, PLAIN, "http_proxy"),
    ({"http_proxy": "http://bob:pw@127.0.0.1:{a}"}, PLAIN, "http_proxy"),
    ({"http_proxy": A, "no_proxy": "*"}, PLAIN, None),
    ({"http_proxy": A, "NO_PROXY": "*"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": "other.test", "NO_PROXY": "*"}, PLAIN, "http_proxy"),
    ({"http_proxy": A, "no_proxy": "", "NO_PROXY": "*"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": "mcp.example.test"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": "MCP.Example.Test"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": "example.test"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": ".example.test"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": ".mcp.example.test"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": "example.test."}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": "ample.test"}, PLAIN, "http_proxy"),
    ({"http_proxy": A, "no_proxy": "a.mcp.example.test"}, PLAIN, "http_proxy"),
    ({"http_proxy": A, "no_proxy": "a.test, example.test"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": "a.test example.test"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": "a.test,,example.test,"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": "192.0.2.7"}, "http://192.0.2.7/", None),
    ({"http_proxy": A, "no_proxy": "192.0.2.0/24"}, "http://192.0.2.7/", None),
    ({"http_proxy": A, "no_proxy": "192.0.2.9/24"}, "http://192.0.2.7/", None),
    ({"http_proxy": A, "no_proxy": "192.0.2.0/29"}, "http://192.0.2.9/", "http_proxy"),
    ({"http_proxy": A, "no_proxy": "192.0.2"}, "http://192.0.2.7/", "http_proxy"),
    ({"http_proxy": A, "no_proxy": "2.7"}, "http://192.0.2.7/", "http_proxy"),
    ({"http_proxy": A, "no_proxy": "192.0.2.7"}, PLAIN, "http_proxy"),
    ({"http_proxy": A, "no_proxy": "2001:db8::1"}, "http://[2001:db8::1]/", None),
    ({"http_proxy": A, "no_proxy": "2001:db9::/32"}, "http://[2001:db8::1]/", "http_proxy"),
]
OURS = [  # where we differ from curl on purpose
    ({"HTTP_PROXY": A}, PLAIN, "HTTP_PROXY"),  # curl never reads it
    ({"HTTP_PROXY": A, "REQUEST_METHOD": "GET"}, PLAIN, None),
    ({"HTTP_PROXY": A, "REQUEST_METHOD": "GET", "ALL_PROXY": B}, PLAIN, "ALL_PROXY"),
    ({"HTTPS_PROXY": A, "REQUEST_METHOD": "GET"}, SECURE, "HTTPS_PROXY"),
    ({"http_proxy": A}, "http://localhost:1/", None),  # this machine is reached directly
    ({"http_proxy": A}, "http://localhost./", None),
    ({"http_proxy": A}, "http://mcp.localhost/", None),
    ({"http_proxy": A}, "http://127.0.0.1:8000/", None),
    ({"http_proxy": A}, "http://127.9.9.9/", None),
    ({"http_proxy": A}, "http://[::1]/", None),
    ({"http_proxy": A}, "http://[::ffff:127.0.0.1]/", None),
    ({"http_proxy": A, "no_proxy": "example.test:80"}, PLAIN, None),  # entries may have a port
    ({"http_proxy": A, "no_proxy": "example.test:8080"}, PLAIN, "http_proxy"),
    ({"https_proxy": A, "no_proxy": "mcp.example.test:443"}, SECURE, None),
    ({"http_proxy": A, "no_proxy": "[2001:db8::1]:8080"}, "http://[2001:db8::1]:8080/", None),
    ({"http_proxy": A, "no_proxy": "[2001:db8::1]:81"}, "http://[2001:db8::1]:8080/", "http_proxy"),
    ({"http_proxy": A, "no_proxy": "[2001:db8::1]"}, "http://[2001:db8::1]:8080/", None),
    ({"http_proxy": A, "no_proxy": "[2001:db8::]/32"}, "http://[2001:db8::1]:8080/", None),
    ({"http_proxy": A, "no_proxy": "*.example.test"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": "a.test,*"}, PLAIN, None),
    ({"http_proxy": A, "no_proxy": "2001:db8::/32"}, "http://[2001:db8::1]/", None),  # curl 7.88 does not match it
    ({"http_proxy": " \t"}, PLAIN, None),
]


@each("variables, url, wanted", AS_CURL + OURS)
def test_the_variable_that_counts(variables, url, wanted):
    filled = {name: value.format(a=1111, b=2222) for name, value in variables.items()}
    found = proxy_for(url, filled)
    assert (found and found.variable) == wanted
    assert found is None or found.port == (1111 if filled[wanted].rstrip("/").endswith("1111") else 2222)


@contextmanager
def answering(word):
    """Run a proxy that answers each request by a word, and refuses each tunnel."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(word)

        def do_CONNECT(self):
            self.send_error(418 if word == b"a" else 419)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.needs("curl")
def test_curl_takes_the_same_proxy():
    """The answer tells which of two proxies curl has used; without a proxy, curl finds no server."""
    with answering(b"a") as a, answering(b"b") as b:
        for variables, url, wanted in AS_CURL:
            filled = {name: value.format(a=a, b=b) for name, value in variables.items()}
            options = ["-s", "-m", "2", "--connect-timeout", "0.5", "-w", "%{http_connect}"]
            direct = ["--resolve", "*:80:127.0.0.1", "--resolve", "*:443:127.0.0.1"]
            done = limits.run(
                ["curl", "-q", *options, *direct, url], env={"PATH": "/usr/bin:/bin", **filled}, capture_output=True
            )
            name = {b"a": "a", b"b": "b", b"418": "a", b"419": "b"}.get(done.stdout.removesuffix(b"000"))
            assert name == (wanted and ("a" if filled[wanted].rstrip("/").endswith(str(a)) else "b")), (filled, url)


@each(
    "value, wanted",
    [
        ("http://proxy.test:3128", ForwardProxy("proxy.test", 3128, "http_proxy")),
        ("proxy.test", ForwardProxy("proxy.test", 1080, "http_proxy")),
        ("http://[2001:db8::5]:8080/", ForwardProxy("2001:db8::5", 8080, "http_proxy")),
        ("bob:pw@proxy.test:1", ForwardProxy("proxy.test", 1, "http_proxy", "bob:pw")),
        ("http://bob@proxy.test", ForwardProxy("proxy.test", 1080, "http_proxy", "bob:")),
        ("http://b%40b:p%3Aw%2F@proxy.test:1", ForwardProxy("proxy.test", 1, "http_proxy", "b@b:p:w/")),
        ("http://a:b@c@proxy.test:1", ForwardProxy("proxy.test", 1, "http_proxy", "a:b@c")),
        ("http://:@proxy.test:1", ForwardProxy("proxy.test", 1, "http_proxy", ":")),
    ],
)
def test_the_parts_of_a_proxy(value, wanted):
    assert proxy_for(PLAIN, {"http_proxy": value}) == wanted


def test_the_login_is_in_the_header_alone():
    proxy = proxy_for(PLAIN, {"http_proxy": "http://bob:hunter%32@proxy.test:3128"})
    assert proxy.authorization == "Basic Ym9iOmh1bnRlcjI="
    assert proxy.url == "http://proxy.test:3128"
    assert "hunter2" not in repr(proxy)
    assert proxy_for(PLAIN, {"http_proxy": "http://bob:p%C3%B6@p"}).authorization == "Basic Ym9iOnDDtg=="


@each(
    "value, words",
    [
        ("socks5://me:hunter2@proxy.test:1080", "is a SOCKS proxy"),
        ("socks5h://proxy.test", "set it to an HTTP proxy, or put the server's host into no_proxy"),
        ("SOCKS4://proxy.test", "is a SOCKS proxy"),
        ("https://me:hunter2@proxy.test", "is a proxy with TLS"),
        ("ftp://me:hunter2@proxy.test", "is not the URL of a proxy, such as http://proxy.example:3128"),
        ("http://me:hunter2@", "is not the URL of a proxy"),
        ("http://me:hunter2@proxy.test:port", "is not the URL of a proxy"),
        ("http://me:hunter2@proxy.test:99999", "is not the URL of a proxy"),
        ("http://[me:hunter2@", "is not the URL of a proxy"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused(value, words):
    with pytest.raises(UsageError) as raised:
        proxy_for(SECURE, {"HTTPS_PROXY": value})
    assert str(raised.value).startswith("HTTPS_PROXY is ")
    assert words in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert proxy_for(SECURE, {"HTTPS_PROXY": value, "no_proxy": "example.test"}) is None
