/* SPDX-License-Identifier: MIT */
/* What a run did not see, for people and for programs. */
#ifndef CUSCOPE_ANALYSIS_MISSED_H
#define CUSCOPE_ANALYSIS_MISSED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "trace/event.h"

/* Events that were made and not delivered, or not whole; LOST_LATE is about order only. */
uint64_t missed_events(const struct run_info *run);

/* Whether every event of every hooked function was delivered, whole and unscaled. */
bool missed_nothing(const struct run_info *run);

/* "ring_full", "not_hooked": the words for programs. */
const char *missed_lost_key(enum lost_reason reason);
const char *missed_kind_key(enum miss_kind kind);

/* Appends "complete", "lost" and "hooks" to an open object. */
void missed_json(struct json *json, const struct run_info *run);

/* Appends what was missed, a line each and indented; "nothing was lost" where that is so. */
void missed_text(struct buf *out, const struct run_info *run);

#endif
