import pytest

from mcpspy.contract.verify.figures import Figures, Timing, delay_checks, figure_lines, middle, quantile


@pytest.mark.parametrize(
    ("values", "share", "found"), [([], 0.5, None), ([3], 0.99, 3), ([4, 1, 3, 2], 0.5, 2), (range(1, 101), 0.99, 99)]
)
def test_a_quantile_is_the_nearest_rank(values, share, found):
    assert quantile(values, share) == found


def test_the_middle():
    assert middle([]) is None
    assert middle([1, 9, 2]) == 2


def test_figures_for_people():
    starts, latencies = Timing((30_000_000,), (50_000_000, 60_000_000)), Timing((100_000,), (200_000,))
    assert figure_lines(Figures(starts, latencies, "ping")) == [
        ("start-up", "30.0 ms bare, 55.0 ms through (median of 1)"),
        ("ping latency", "p50 100 µs, p99 100 µs bare, p50 200 µs, p99 200 µs through (1 request)"),
    ]
    assert figure_lines(Figures(Timing((), ()), Timing((), ()), "ping")) == []


@pytest.mark.parametrize(
    ("bare", "through", "told"),
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
