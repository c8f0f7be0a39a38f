/* SPDX-License-Identifier: MIT */
/*
 * Parts of an account while it is made. What is known by samples alone is kept in pools: all time
 * on a CPU of one cause and thread, and where its samples were; each sample then stands for as much
 * of the pool's time. Pools without samples go to the places of the calls that came next.
 */
#pragma once

#include "account/account.h"

struct part_key {
	uint32_t cause, chain, thread, via;
	uint32_t rival;   /* ACCOUNT_NO_CPU: the process that had the CPU; 0: not known */
	uint32_t awaited; /* see struct account_part */
};

struct parts;

struct parts *parts_new(const struct facts *facts);
void parts_free(struct parts *parts);

/* Of the ns `share` is this part's, 0 to 1; all of it is the critical path's, but of launches that
 * are awaited: as long as the waits stay the next one cannot come before them. */
struct account_part *parts_add(struct parts *parts, const struct part_key *key, double ns,
                               double share);

/* A call of it, which may be its longest. */
void parts_take_call(struct account_part *part, const struct fact_call *call);

/* Time on a CPU: chain of the key is the call's that came next. */
void parts_add_cpu(struct parts *parts, const struct part_key *key, double ns, double share);

/* One of its samples, which says `cause` of its time: mostly the key's; `weight` beside others. */
void parts_add_sample(struct parts *parts, const struct part_key *key, enum account_cause cause,
                      double weight);

/* The number of such a wait. */
uint32_t parts_via(struct parts *parts, const struct account_via *via);

/* Into the account, most time first; pools and parts are empty then, numbers of waits stay. */
void parts_finish(struct parts *parts, struct account *account);

/* Gives up the table of waits: the caller's. */
struct account_via *parts_take_vias(struct parts *parts, size_t *n);
