/* SPDX-License-Identifier: MIT */
/*
 * Of the node agent: the account of the last ten seconds, while somebody looks at its page. What it
 * is made of is one of:
 *
 *   calls   those that the flight recorder holds anyway, of all processes; its process makes it
 *   whole   with [account]: what `why` records as well (stacks, waits, GPU times), of the processes
 *           that ask for most work; by a process that is `cuscope top --why` but for its screen,
 * and there only while somebody looks none    neither is there
 *
 * Either is top_why's account, so by the same analysis, in its bounds. Who makes it sends it as a
 * file in memory; what is in that is nobody's word but for being one line of text.
 */
#ifndef CUSCOPE_NODE_ACCOUNT_H
#define CUSCOPE_NODE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/config.h"
#include "node/counts.h"

struct http;
struct recorder;

#define ACCOUNT_NAME                                                                               \
	"cuscope-account" /* argv[0] of who makes the whole one; then top's options                \
	                   */

/* ---- who makes it -------------------------------------------------------------------------- */

/* 0 or a negative errno; -EAGAIN: there is no room for it now. `worn`: another process had better
 * make those that follow. */
int account_send(int socket, const char *json, bool worn);

/* Why there will be none, where it ends then; else of whom there will be none. */
void account_send_failure(int socket, const char *sentence);

/* ---- who has it ---------------------------------------------------------------------------- */

/* What was sent, into an empty buffer; takes the descriptor. False: it is no line of text. */
bool account_read(int fd, struct buf *json);

/* A process that asks for work, as the whole one looks at it. */
struct account_busy {
	uint32_t pid;
	uint64_t person;
	uint64_t work, more; /* that it asked for: ever, and since the look before */
	bool chosen;
	char name[16];
};

/*
 * Whose account it is: of the user of whom fewest were chosen the busiest, and so on, so that one
 * user's many busy processes leave room for others'. Marks them; how many.
 */
size_t account_choose(struct account_busy *busy, size_t n, size_t most);

struct account;

struct account_view {
	const struct node_settings *settings;
	const struct counts *counts;
	struct recorder *recorder; /* NULL: there is none */
	struct http *http;         /* who looks is known there, and what there is goes there */
	void (*say)(void *data, const char *text);
	void *data;
};

/* Whether there could be the whole one. */
int account_check(const struct node_settings *settings, struct err *err);

struct account *account_new(void);
void account_free(struct account *account);

/* Often; waits for nothing but a fork. */
void account_turn(struct account *account, const struct account_view *view, uint64_t now_ns);

#endif
