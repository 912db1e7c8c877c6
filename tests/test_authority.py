import os
import re
import ssl

import pytest

from mcpspy.authority import Authority, certificates, default, through, write_bundle
from mcpspy.errors import UsageError
from tests.relay.interception import certificate

__all__ = ["certificate"]  # a fixture


@pytest.fixture
def authority(tmp_path, certificate):
    """One that exists."""
    authority = Authority(str(tmp_path / "ca"))
    authority.protect()
    for path, source in ((authority.certificate, certificate[0]), (authority.key, certificate[1])):
        with open(source) as file, open(path, "w") as out:
            out.write(file.read())
    return authority


def test_it_lies_in_the_users_own_directory(monkeypatch, tmp_path):
    """M-05."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default().folder == str(tmp_path / ".mcpspy" / "ca")
    assert not default().exists()


def test_nobody_else_can_read_the_key(authority):
    """M-05: whatever the modes were before."""
    for path in (authority.folder, authority.key):
        os.chmod(path, 0o755)  # noqa: S103
    assert authority.exposed() == [authority.folder, authority.key]
    authority.protect()
    assert authority.exposed() == []
    assert os.stat(authority.folder).st_mode & 0o777 == 0o700
    assert os.stat(authority.key).st_mode & 0o777 == 0o600


def test_the_variables_name_a_bundle_with_what_is_trusted_anyhow(authority, tmp_path, certificate):
    """M-05, M-07: SSL_CERT_FILE replaces what a client trusts, so what it named before is in it, and ours too."""
    old = tmp_path / "old.pem"
    roots = certificates(ssl_file())
    old.write_text(roots[0])
    environ = {"SSL_CERT_FILE": str(old), "CURL_CA_BUNDLE": "/no/such/file"}
    names = authority.trust(environ)
    assert set(names) == {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"}
    assert set(names.values()) == {authority.bundle}
    found = certificates(authority.bundle)
    assert found[0] == roots[0]
    assert found[-1] == certificates(certificate[0])[0]
    assert len(found) == len(set(found))
    ssl.create_default_context(cafile=authority.bundle)
    assert authority.trust(names) == names
    assert certificates(authority.bundle) == found, "a bundle that was made from itself"
    assert [name for name in os.listdir(authority.folder) if "pem-" in name] == []


def ssl_file():
    """Some certificates."""
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


def test_one_that_is_damaged_or_a_place_that_is_not_writable_is_said_in_a_sentence(authority, tmp_path):
    with open(authority.certificate, "w") as file:
        file.write("-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n")
    with pytest.raises(UsageError, match=r"cert\.pem is damaged"):
        authority.describe()
    with pytest.raises(UsageError, match=r"cannot write .*: No such file"):
        write_bundle(str(tmp_path / "no" / "such"), [])


def test_every_spelling_of_the_proxy_is_set_and_none_past_it():
    """M-07."""
    names = through("http://127.0.0.1:1")
    assert {names[name] for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")} == {
        "http://127.0.0.1:1"
    }
    assert (names["NODE_USE_ENV_PROXY"], names["NO_PROXY"], names["no_proxy"]) == ("1", "", "")
