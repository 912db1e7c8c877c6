import os
import re
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.relay.mitm.authority import Authority, certificates, default, through, write_bundle
from tests import limits


def made(folder, certificate):
    """Create an authority with this certificate and key, as mitmproxy does: the key file contains both."""
    authority = Authority(str(folder))
    authority.protect()
    texts = [Path(path).read_text() for path in certificate]
    Path(authority.certificate).write_text(texts[0])
    Path(authority.key).write_text(texts[1] + texts[0])
    authority.protect()
    return authority


@pytest.fixture
def authority(tmp_path, certificate):
    """Create an authority that exists."""
    return made(tmp_path / "ca", certificate)


def test_it_lies_in_the_users_own_directory(monkeypatch, tmp_path):
    """M-05."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default().folder == str(tmp_path / ".mcpspy" / "ca")
    assert not default().exists()


def test_nobody_else_can_read_the_key(authority):
    """M-05: also if the files had other modes before."""
    for path in (authority.folder, authority.key):
        os.chmod(path, 0o755)  # noqa: S103
    assert authority.exposed() == [authority.folder, authority.key]
    authority.protect()
    assert authority.exposed() == []
    assert os.stat(authority.folder).st_mode & 0o777 == 0o700
    assert os.stat(authority.key).st_mode & 0o777 == 0o600


def test_the_variables_name_a_bundle_with_what_is_trusted_anyhow(authority, tmp_path, certificate):
    """M-05, M-07: SSL_CERT_FILE replaces the trusted certificates, so the bundle has its earlier ones and ours."""
    old = tmp_path / "old.pem"
    roots = certificates(ssl_file())
    old.write_text(roots[0])
    environ = {"SSL_CERT_FILE": str(old), "CURL_CA_BUNDLE": "/no/such/file"}
    names = authority.trust(environ)
    assert set(names) == {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"}
    (bundle,) = set(names.values())
    assert os.path.dirname(bundle) == authority.folder
    found = certificates(bundle)
    assert found[0] == roots[0]
    assert found[-1] == certificates(certificate[0])[0]
    assert len(found) == len(set(found))
    ssl.create_default_context(cafile=bundle)
    assert authority.trust(names) == names, "a bundle that was made from itself"
    assert [name for name in os.listdir(authority.folder) if "pem-" in name] == []


def test_clients_with_certificates_of_their_own_do_not_take_each_others_away(authority, tmp_path):
    """A client may read its bundle again after other clients have been started."""
    old = tmp_path / "old.pem"
    old.write_text(certificates(ssl_file())[0])
    first = authority.trust({"SSL_CERT_FILE": str(old)})["SSL_CERT_FILE"]
    was = Path(first).read_bytes()
    ours = authority.trust({})["SSL_CERT_FILE"]
    if len(certificates(ours)) > 1:  # the certificates of this machine include it at another place
        assert ours != first
    assert Path(first).read_bytes() == was


def test_a_bundle_is_never_seen_in_part(authority):
    """A reader always gets the whole bundle, even while others write it."""
    bundle = authority.trust({})["SSL_CERT_FILE"]
    whole = Path(bundle).read_bytes()
    with ThreadPoolExecutor(2) as pool:
        written = [pool.submit(authority.trust, {}) for _ in range(5)]
        while not all(each.done() for each in written):
            assert Path(bundle).read_bytes() == whole
    assert {each.result()["SSL_CERT_FILE"] for each in written} == {bundle}


def test_it_knows_which_files_make_it_trusted(authority, tmp_path):
    assert authority.is_trusted_by(authority.trust({})["SSL_CERT_FILE"])
    assert authority.is_trusted_by(authority.certificate)
    (tmp_path / "other").write_text(certificates(ssl_file())[0])
    for name in ("other", "missing"):
        assert not authority.is_trusted_by(str(tmp_path / name))


def ssl_file():
    """Return the path of a file with certificates."""
    found = ssl.get_default_verify_paths().cafile
    if found is None:
        pytest.skip("this system keeps its certificates in another form than a file")
    return found


def test_what_it_says_of_itself(authority):
    fingerprint, until = authority.describe()
    assert re.fullmatch(r"([0-9A-F]{2}:){31}[0-9A-F]{2}", fingerprint)
    assert until.endswith(" GMT")


def test_a_file_without_certificates_is_refused(tmp_path):
    (tmp_path / "empty").write_text("-----BEGIN CERTIFICATE-----")
    for name, why in (("empty", "it holds none in PEM form"), ("missing", "No such file")):
        with pytest.raises(UsageError, match=f"cannot read certificates from .*{name}: {why}"):
            write_bundle(str(tmp_path / "out"), [str(tmp_path / name)])
    assert not (tmp_path / "out").exists()


DAMAGED = "-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize("damaged", [DAMAGED, DAMAGED.replace("bm90", "bm\xff0")])
def test_a_file_with_a_damaged_certificate_is_refused(tmp_path, damaged):
    """No client could read it either, and OpenSSL reports this only at a connection."""
    path = tmp_path / "some"
    path.write_text(certificates(ssl_file())[0] + "\n" + damaged, encoding="latin-1")
    with pytest.raises(UsageError, match=f"cannot read certificates from {path}: number 2 in it is damaged"):
        write_bundle(str(tmp_path / "out"), [str(path)])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("certificate", DAMAGED, "number 1 in it is damaged"),
        ("certificate", "\xff", "it holds none in PEM form"),
        ("certificate", "root", "is not the certificate of"),
        ("key", "nothing", "it holds none in PEM form"),
        ("key", "certificate", "holds no key of its certificate"),
    ],
)
def test_what_cannot_be_used_is_said_with_what_to_do(authority, name, text, why):
    """Otherwise, clients would be set up to trust an authority that `mitm` cannot use."""
    words = {"root": certificates(ssl_file())[0], "certificate": Path(authority.certificate).read_text()}
    Path(getattr(authority, name)).write_text(words.get(text, text), encoding="latin-1")
    asked = (authority.pem, authority.describe, lambda: authority.trust({}))
    for ask in asked:
        with pytest.raises(UsageError, match=why) as refused:
            ask()
        assert f"the authority in {authority.folder} cannot be used" in str(refused.value)
        assert "move it away" in str(refused.value)
    assert not authority.is_trusted_by(ssl_file())


@pytest.mark.needs("openssl")
def test_the_password_of_a_key_is_not_asked_for(authority):
    """Nobody could enter it."""
    limits.run(
        ["openssl", "pkcs8", "-topk8", "-passout", "pass:x", "-in", authority.key, "-out", authority.key + "2"],
        check=True,
        capture_output=True,
    )
    with open(authority.key + "2", "a") as file:
        file.write(Path(authority.certificate).read_text())
    os.replace(authority.key + "2", authority.key)
    with pytest.raises(UsageError, match="holds no key of its certificate"):
        authority.pem()


def test_a_place_that_is_not_writable_is_said_in_a_sentence(tmp_path):
    with pytest.raises(UsageError, match=r"cannot write .*: No such file"):
        write_bundle(str(tmp_path / "no" / "such"), [])


def test_every_spelling_of_the_proxy_is_set_and_none_past_it():
    """M-07."""
    names = through("http://127.0.0.1:1")
    assert {names[name] for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")} == {
        "http://127.0.0.1:1"
    }
    assert (names["NODE_USE_ENV_PROXY"], names["NO_PROXY"], names["no_proxy"]) == ("1", "", "")
