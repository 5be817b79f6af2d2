from __future__ import annotations

from octarbiter.runtime import backoff


def test_pauses_double_up_to_the_longest_and_start_again_after_success() -> None:
    pauses = backoff.Backoff(1.0, 6.0, dice=lambda: 1.0)

    assert [pauses.next_pause() for _ in range(4)] == [1.0, 2.0, 4.0, 6.0]
    pauses.reset()
    assert pauses.next_pause() == 1.0


def test_jitter_takes_off_at_most_half() -> None:
    assert backoff.Backoff(1.0, 6.0, dice=lambda: 0.0).next_pause() == 0.5


def test_what_the_other_side_asked_for_is_never_shortened() -> None:
    assert backoff.Backoff(1.0, 6.0, dice=lambda: 0.0).next_pause(at_least_s=3.0) == 3.0


def test_a_thousand_failures_do_not_overflow() -> None:
    pauses = backoff.Backoff(0.1, 5.0, dice=lambda: 1.0)

    assert [pauses.next_pause() for _ in range(2000)][-1] == 5.0
