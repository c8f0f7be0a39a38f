/* SPDX-License-Identifier: MIT */
/*
 * From when on GPUs were measured in each window of GPU times, and up to when threads were watched.
 * At the end of a recording calls and GPU times can come for some hundred milliseconds more than
 * samples and waits do: why a GPU paused then was not measured.
 */
#pragma once

#include "account/facts.h"

/* Puts what was not measured in order, and makes `unwatched` of it and of what comes after. Rows
 * are in order. */
void facts_watched(struct facts *facts);
