/* SPDX-License-Identifier: MIT */
/*
 * When the flight recorder is to write what it holds. A rule is a row of a table: its name, which
 * is a label and a part of file names, and what it judges. Those about the machine (xid, memory,
 * idle, leak) are judged here, from what the node agent knows at each of its ticks. Those about
 * calls (error, slow_step) are judged where calls are seen: rules.h. Each fires when
 * something begins, not for as long as it lasts.
 *
 * What fires is not yet written: rules_allow() holds back what comes too often. All times are of
 * CLOCK_MONOTONIC, so a wall clock that is set changes nothing.
 */
#ifndef CUSCOPE_NODE_RULES_H
#define CUSCOPE_NODE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/event.h"

enum rule {
	RULE_XID,
	RULE_ERROR,
	RULE_MEMORY,
	RULE_IDLE,
	RULE_SLOW_STEP,
	RULE_LEAK,
	RULE_LATE_RANK,
	RULE_REQUEST,
	RULE_COUNT
};

const char *rule_name(enum rule rule);

#define RULES_ERRORS_MAX 1024
#define RULES_RANGE_MAX  128
#define RULES_GPUS_MAX   64
#define RULES_TEXT_MAX   400 /* of a reason */
#define REQUEST_PAUSE_NS 10000000000ull

/* No pointers: it is sent to the process that records. */
struct rules_settings {
	bool xid, leak, request;
	char errors[RULES_ERRORS_MAX];    /* "FUNCTION:CODE, ...", or "fatal"; empty: off */
	double memory_percent;            /* 0: off */
	uint64_t idle_ns;                 /* 0: off */
	double slow_step;                 /* times the median; 0: off */
	char step_range[RULES_RANGE_MAX]; /* the NVTX range that is a step; empty: by launches */
	uint64_t step_least_ns;           /* steps of a shorter median are not judged */
	double late_rank;                 /* percent of a while that others wait; 0: off */
	uint64_t cool_down_ns;            /* of a rule, between two recordings */
	uint64_t per_hour;                /* recordings of all rules but requests */
};

/* ---- what is known of the machine ---------------------------------------------------------- */

#define RULES_UNKNOWN -1 /* in any field that is signed */

struct rules_gpu {
	char uuid[96];
	int busy_percent;
	int64_t memory_used_bytes, memory_total_bytes;
	int processes;     /* with a context on it */
	uint64_t xids;     /* since the agent began; 0 where it does not know */
	unsigned last_xid; /* its number */
};

#define RULES_LEAKS_MAX 8 /* the last so many that are known */

struct rules_leak {
	uint64_t person;
	char text[RULES_TEXT_MAX]; /* what, where, whose */
};

struct rules_facts {
	const struct rules_gpu *gpus;
	size_t n_gpus;
	uint64_t leaks; /* places that are suspected to leak, as memleak judges; only grows when */
			/* another one is */
	size_t leaks_no_room;                    /* others now, which nobody is told of */
	struct rules_leak leak[RULES_LEAKS_MAX]; /* of the nth, from 0 on, at n % RULES_LEAKS_MAX */
};

/* Who made a rule fire (base/quota.h), and a sentence of at most RULES_TEXT_MAX letters. What is
 * the machine's is root's. */
typedef void (*rules_fired_fn)(void *data, enum rule rule, uint64_t person, const char *why);

struct rules;

struct rules *rules_new(const struct rules_settings *settings);
void rules_free(struct rules *rules);

/*
 * Judges each rule once. `fired` is told of those that fire. What is there at the first call is no
 * news: it was before.
 */
void rules_judge(struct rules *rules, const struct rules_facts *facts, uint64_t now_ns,
                 rules_fired_fn fired, void *data);

/* ---- how often ----------------------------------------------------------------------------- */

enum rules_verdict { RULES_ALLOWED, RULES_COOL_DOWN, RULES_PER_HOUR, RULES_VERDICT_COUNT };

const char *rules_verdict_name(enum rules_verdict verdict);

/*
 * Whether a recording may be written now; counts it if so. In *wait_ns after how long it might, if
 * not. Each user cools down alone, and one but root has three quarters of an hour's recordings:
 * what his programs do on purpose holds nobody else's back. A request has a short cool-down of its
 * own and no limit by the hour: who has the token may ask, whatever programs do to fire rules.
 */
enum rules_verdict rules_allow(struct rules *rules, enum rule rule, uint64_t person,
                               uint64_t now_ns, uint64_t *wait_ns);

/* The one that was allowed last came to nothing for want of a recorder: it may be asked again. */
void rules_take_back(struct rules *rules);

/* ---- rules calls --------------------------------------------------------------------------- */

/*
 * The rules of the flight recorder that judge calls (error, slow_step), as they are seen one by
 * one. Each fires at most once a second for one user: what comes more often is held back by
 * rules_allow() anyway, and those who are told are not to be flooded.
 */

struct call_rules;

/* `last_ns`: of the window; a step that has not ended is told before its begin leaves that. */
struct call_rules *call_rules_new(const struct rules_settings *settings, uint64_t last_ns,
                                  rules_fired_fn fired, void *data);
void call_rules_free(struct call_rules *rules);

void call_rules_event(struct call_rules *rules, const struct event *event);

/* To be called now and then. */
void call_rules_tick(struct call_rules *rules, uint64_t now_ns);

/* As steps_figures() tells. */
void call_rules_figures(const struct call_rules *rules, uint64_t *judged, uint64_t *forgotten);

#endif
