/* SPDX-License-Identifier: MIT */
/* Whether the averages of two sets of values differ by more than chance: Welch's t-test. */
#pragma once

#include "analysis/spread.h"

/*
 * The probability of averages that differ at least so much where there is no difference
 * (two-sided). It holds for values that are independent of each other. NAN where it cannot be told:
 * less than two values on a side, or values that do not vary at all.
 */
double welch_p_value(const struct spread *a, const struct spread *b);
