"""The report of a proof, and its figures."""

import json

from mcpspy.contract.verify.differences import Aspect
from mcpspy.contract.verify.proof import Figures, Proof, Timing, as_json, delay_checks, middle, quantile, text
from mcpspy.contract.verify.session import PlannedMessage, SessionPlan
from tests.each import each

FIGURES = Figures(Timing((10_000_000,), (20_000_000,)), Timing((100_000,), (200_000,)), "ping")
PLAN = SessionPlan((PlannedMessage(b"{}", "tools/call", "look"),), ("no answer to ping within 1 s",))
EQUAL = Aspect("stderr", "0 bytes")
DIFFERENT = Aspect("environment", "2 variables", ("A is set\x1b[2J", "B is not"))


def test_a_proof_for_people():
    assert text(Proof(PLAN, (EQUAL, DIFFERENT), FIGURES), "node", "mcpspy wrap").splitlines() == [
        "node: bare and through mcpspy wrap, 1 message",
        "",
        "  stderr                equal    0 bytes",
        r"  environment           differs  A is set\e[2J",
        "                                 B is not",
        "  left out              no answer to ping within 1 s",
        "",
        "  start-up              10.0 ms bare, 20.0 ms through (median of 1)",
        "  ping latency          p50 100 µs, p99 100 µs bare, p50 200 µs, p99 200 µs through (1 request)",
        "",
        "not transparent: mcpspy wrap differs in environment",
    ]


def test_a_transparent_wrapper():
    none = Figures(Timing((), ()), Timing((), ()), "ping")
    assert text(Proof(SessionPlan(()), (EQUAL,), none), "node", "mcpspy wrap").splitlines()[2:] == [
        "  stderr                equal    0 bytes",
        "",
        "transparent: neither the client nor the server can see mcpspy wrap",
    ]


def test_a_proof_for_programs():
    assert json.loads(as_json(Proof(PLAN, (EQUAL, DIFFERENT), FIGURES, "the server ended"), "node", "mcpspy wrap")) == {
        "verdict": "different",
        "server": "node",
        "through": "mcpspy wrap",
        "messages": ["tools/call look"],
        "left_out": ["no answer to ping within 1 s"],
        "broke_off": "the server ended",
        "checks": [
            {"name": "stderr", "equal": True, "detail": "0 bytes", "differences": []},
            {
                "name": "environment",
                "equal": False,
                "detail": "2 variables",
                "differences": ["A is set\x1b[2J", "B is not"],
            },
        ],
        "figures": {
            "start": {"bare": 0.01, "through": 0.02},
            "request": "ping",
            "latency": {
                "bare": {"count": 1, "p50": 0.0001, "p99": 0.0001},
                "through": {"count": 1, "p50": 0.0002, "p99": 0.0002},
            },
        },
    }


@each("values, share, found", [([], 0.5, None), ([3], 0.99, 3), ([4, 1, 3, 2], 0.5, 2), (range(1, 101), 0.99, 99)])
def test_a_quantile_is_the_nearest_rank(values, share, found):
    assert quantile(values, share) == found
    assert (middle([]), middle([1, 9, 2]), middle([50, 60])) == (None, 2, 55)


@each(
    "bare, through, told",
    [
        ((1_000_000, 4_000_000), (9_000_000, 9_000_000), []),
        ((1_000_000, 4_000_000), (5_000_000, 2_000_000_000, 1_000_000), []),
        ((1_000_000, 950_000_000), (1_000_000_000, 1_000_000_000), []),
        (
            (1_000_000,),
            (1_001_000_000,),
            ["half of the requests take 1.00 s longer than the slowest bare one, or more"],
        ),
    ],
)
def test_a_delay_that_is_no_chance_is_told(bare, through, told):
    (check,) = delay_checks(Figures(Timing((), ()), Timing(bare, through), "ping"))
    assert [*check.differences] == told


def test_what_was_not_timed_is_not_judged():
    assert delay_checks(Figures(Timing((), ()), Timing((1,), ()), "ping")) == []
