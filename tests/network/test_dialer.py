"""The way to a server: what is sent to the next hop, and why a server cannot be reached."""

import ssl

import pytest

from mcpspy.network.access import Access, certificate_hint, tls_failure
from mcpspy.network.dialer import Dialer, NotReached
from tests import limits
from tests.each import each
from tests.network.scripted_proxy import forwarding
from tests.ports import free
from tests.relay.harness import until

PROXY = {"all_proxy": "http://bob:pw@proxy.test:3128"}
LOGIN = b"Proxy-Authorization: Basic Ym9iOnB3\r\n"


@each(
    "url, sent, wanted",
    [
        (
            "http://a.test/x",
            b"POST /x?y HTTP/1.1\r\nHost: a.test\r\n\r\n{}",
            b"POST http://a.test/x?y HTTP/1.1\r\n" + LOGIN + b"Host: a.test\r\n\r\n{}",
        ),
        (
            "http://[2001:db8::1]:8080",
            b"GET / HTTP/1.0\r\n\r\n",
            b"GET http://[2001:db8::1]:8080/ HTTP/1.0\r\n" + LOGIN + b"\r\n",
        ),
        ("http://a.test", b"OPTIONS * HTTP/1.1\r\n\r\n", b"OPTIONS http://a.test HTTP/1.1\r\n" + LOGIN + b"\r\n"),
        ("https://a.test", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"),
        ("http://127.0.0.1", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"),
    ],
)
def test_the_head_for_the_next_hop(url, sent, wanted):
    """RFC 9112, 3.2.2; through a tunnel the server gets what it gets directly."""
    dialer = Dialer(url, environ=PROXY)
    assert dialer.head(sent) == wanted
    target = sent.split(b" ")[1].decode()
    assert dialer.target(target).encode() == wanted.split(b" ")[1]
    assert dialer.headers() == ({"Proxy-Authorization": "Basic Ym9iOnB3"} if LOGIN in wanted else {})


def test_the_login_goes_to_the_proxy_alone():
    with forwarding(free(), refuses=b"HTTP/1.1 502 Bad Gateway\r\n\r\n") as proxy:
        dialer = Dialer("https://a.test", environ={"all_proxy": proxy.url.replace("//", "//bob:pw@")})
        with pytest.raises(NotReached, match=r"refuses the connection \(502 Bad Gateway\)"):
            dialer.connect(limits.LIMIT)
    assert proxy.heads == [b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n" + LOGIN + b"\r\n"]


@pytest.mark.needs("openssl")
def test_a_server_that_speaks_only_http_2_is_named(authority):
    """With OpenSSL 3.0 Python has no name for the alert; the server of OpenSSL sends the real one."""
    port = free()
    files = ["-cert", authority["server.pem"], "-key", authority["server.key"]]
    command = ["openssl", "s_server", "-alpn", "h2", *files, "-accept", f"127.0.0.1:{port}", "-naccept", "1"]
    with limits.Popen(command, stdin=-1, stdout=-1, stderr=-1) as server:
        until(lambda: b"ACCEPT" in server.stdout.readline(), "ACCEPT")
        with pytest.raises(NotReached, match=r"^speaks only HTTP/2, which mcpspy does not"):
            Dialer(f"https://127.0.0.1:{port}/", Access(insecure=True)).check(limits.LIMIT)
        server.kill()


def alert(text, reason=None):
    error = ssl.SSLError(1, text)
    error.reason = reason
    return error


@each(
    "error, cert, words",
    [
        (alert("[SSL] tlsv1 alert no application protocol (_ssl.c:1)"), None, "speaks only HTTP/2"),
        (alert("", "TLSV1_ALERT_NO_APPLICATION_PROTOCOL"), None, "speaks only HTTP/2"),
        (alert("[SSL] tlsv13 alert certificate required (_ssl.c:1)"), None, "requires a client certificate: give"),
        (alert("", "SSLV3_ALERT_HANDSHAKE_FAILURE"), None, "if it requires a client certificate, give --cert"),
        (alert("", "SSLV3_ALERT_HANDSHAKE_FAILURE"), "c", "cannot be reached by TLS (SSLV3_ALERT_HANDSHAKE_FAILURE)"),
        (alert("", "TLSV1_ALERT_UNKNOWN_CA"), "c.pem", "does not accept the client certificate in c.pem (TLSV1_ALERT"),
        (alert("", "SSLV3_ALERT_BAD_CERTIFICATE"), None, "does not accept this client (SSLV3_ALERT_BAD_CERTIFICATE)"),
        (alert("", "WRONG_VERSION_NUMBER"), None, "cannot be reached by TLS (WRONG_VERSION_NUMBER): is it http://"),
        (ssl.SSLError(), None, "cannot be reached by TLS"),
    ],
)
def test_what_an_alert_means(error, cert, words):
    assert tls_failure(error, cert).startswith(words) or words in tls_failure(error, cert)


@each(
    "page, cert, words",
    [
        (
            b"<title>400 No required SSL certificate was sent</title>",
            None,
            "requires a client certificate: give --cert",
        ),
        (b"<title>400 The SSL certificate error</title>", "c.pem", "does not accept the client certificate in c.pem"),
        (b"<title>400 The SSL certificate error</title>", None, "does not accept the client certificate: check"),
        (b"<title>400 Bad Request</title>", None, None),
    ],
)
def test_what_a_page_means(page, cert, words):
    """The pages of nginx."""
    found = certificate_hint(page, cert)
    assert found is words or (found and found.startswith(words))
