from tests.relay.conftest import wrap  # noqa: F401 (a fixture: servers behind a relay, all of them ended)
