from tests import ports


def test_each_port_is_given_once_and_is_below_those_of_the_kernel():
    found = [ports.free() for _ in range(20)]
    assert len(set(found)) == 20
    assert max(found) < 32_768
