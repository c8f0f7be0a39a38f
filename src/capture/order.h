/* SPDX-License-Identifier: MIT */
/*
 * One stream in order of time out of several rings. Rings are merged at their heads. Within a ring,
 * a thread that was preempted between taking the time and sending delivers out of order. A window
 * of the last eight milliseconds puts that right. What comes later than that is passed on when it
 * comes, and counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/rings.h"

struct order;

/* Returns 0, or what stops the reading. */
typedef int (*order_record_fn)(void *data, const struct wire_head *record);

struct order *order_new(order_record_fn each, void *data);
void order_free(struct order *order);

/*
 * Reads what is in the rings and passes on what is older than `until_ns` (a time so far back that
 * every older record has been submitted). Returns what `each` returned when it was not 0.
 */
int order_read(struct order *order, struct rings *rings, uint64_t until_ns);

/*
 * A read that has taken so long passes on a few more records, at least one, and leaves the rest to
 * the next; 0: it takes as long as it takes. What came before a read does not count, or a slow
 * machine would pass on one record a turn. What there is no room for meanwhile is lost, and
 * counted.
 */
void order_limit(struct order *order, uint64_t most_ns);
bool order_was_limited(const struct order *order); /* by the last read */

/* Passes on what order_read and order_add left in the window. */
int order_finish(struct order *order);

/*
 * Another place that records come from. It has them in order of time itself, and all that are older
 * than `until_ns` when a read begins. Its first one, NULL where there is none or a later one, which
 * is passed on where it lies; and what gives that back.
 */
struct order_source {
	const struct wire_head *(*take)(void *data, uint64_t until_ns);
	void (*release)(void *data, const struct wire_head *record);
	void *data;
};

void order_add_source(struct order *order, const struct order_source *source);

/* One record that did not come through a ring. */
void order_add(struct order *order, const struct wire_head *record, size_t bytes);

/* No record of an earlier time is to come any more, but for those that are late. */
uint64_t order_passed_ns(const struct order *order);

uint64_t order_late(const struct order *order); /* records passed on after their place in time */
