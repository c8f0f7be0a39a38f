/* SPDX-License-Identifier: MIT */
/*
 * What waits were for, as those beside them tell: a wait whose limit was over and that goes on, one
 * that a stop of the process broke off, and those for Python's lock of which no stack was walked.
 */
#pragma once

#include "account/facts.h"

/* Of each thread, whose rests are in order. */
void facts_rests(struct facts *facts);
