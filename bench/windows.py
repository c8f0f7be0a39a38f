# SPDX-License-Identifier: MIT
"""Windows in turns, with something and without, in one process: what steps within one took longer than those right before and after it."""

import bisect
import random
import statistics

MARGIN_NS, LEAST_STEPS, RESAMPLES = 40_000_000, 4, 2000


class Steps:
    def __init__(self, steps, middle=statistics.mean):
        self.steps, self.middle = steps, middle
        self.begins = [begin for begin, _ in steps]

    def within(self, begin, end):
        """The mean, or `middle`, of the steps that lie in there wholly, in ms; None for too few."""
        some = self.steps[bisect.bisect_left(self.begins, begin):bisect.bisect_right(self.begins, end)]
        took = [(e - b) / 1e6 for b, e in some if e <= end]
        return self.middle(took) if len(took) >= LEAST_STEPS else None


def between(offs):
    return [(before[1], after[0]) for before, after in zip(offs, offs[1:])]


def percents(steps, offs, ons, middle=statistics.mean):
    """Of each window, what its steps took longer than those around it."""
    steps, found = Steps(steps, middle), []
    for (before_begin, before_end), (after_begin, after_end), (on_begin, on_end) in zip(offs, offs[1:], ons):
        on = steps.within(on_begin + MARGIN_NS, on_end - MARGIN_NS)
        before = steps.within(before_begin + MARGIN_NS, before_end - MARGIN_NS)
        after = steps.within(after_begin + MARGIN_NS, after_end - MARGIN_NS)
        if on and before and after:
            found.append((on / ((before + after) / 2) - 1) * 100)
    return found


def spread(values):
    random.seed(0)
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return statistics.median(values), medians[RESAMPLES * 25 // 1000], medians[RESAMPLES * 975 // 1000 - 1]
