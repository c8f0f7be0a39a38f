/* SPDX-License-Identifier: MIT */
/*
 * The one answer: where the time of a recording went, and what to change first. A consumer: it is
 * fed a recording once, and prints in its end(), or after it is asked for what it found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/json.h"
#include "trace/event.h"

struct answer;
struct standings;

struct why_options {
	FILE *text, *json; /* where the answer goes, in which form; not closed. NULL, both: it is
	                      kept */
	bool color;        /* text: what matters in bold */
	size_t width;      /* text: columns of the terminal; 0: any */
	size_t next;       /* things to change after the first; 0: 2 */
	uint64_t from_ns, to_ns;  /* what is read, after the begin; to 0: to the end */
	const char *const *files; /* of a few the names, of which it is told; NULL: none */
	size_t n_files;
	/* Of several answers: communicators that stand still are told by why_write_standing(), of
	 * all of them; NULL: each tells its own. */
	struct standings *standings;
	bool part;   /* not all of the times or processes of the recording are read, */
	bool brief;  /* rows are not kept once there is an account: no text, no JSON */
	bool chosen; /* in all of its times not all calls */
};

/* Its end() fails where what it prints cannot be written. */
struct consumer *why_new(const struct why_options *options);

/*
 * Reports that are made of one pass over a recording share one answer: why_feeder() stands in front
 * of them, and what they give to it themselves is passed over. Each that shares it frees it.
 */
struct consumer *why_share(struct consumer *why);
bool why_is_shared(const struct consumer *why);
struct consumer *why_feeder(struct consumer *why); /* its free() is not called */

/* After end(), when all was asked that is: the account and its words are kept, its rows no more. */
void why_forget(struct consumer *why);

/* After end(): what it found. It lives as long. */
const struct answer *why_answer(const struct consumer *why);

/* The same: the communicators that stand still, with words of their ranks; none where they are put
 * together with those of other answers (options.standings). */
const struct standings *why_standings(const struct consumer *why);

/* Why there is no account: a sentence without its full stop. NULL: there is one. */
const char *why_none(const struct consumer *why);

/* What is kept, after end(): whole lines, no wider than `width`; an object with this key. */
void why_add_text(struct consumer *why, struct buf *out);
void why_add_json(const struct consumer *why, struct json *json, const char *key);

/* Of several answers that put theirs together (options.standings), behind all of them: in the form
 * and to where they are written. Nothing where none stands still. */
int why_write_standing(struct standings *standings, const struct why_options *options,
                       struct err *err);

/* What a part of an account's time consists of. */
#define WHY_NO_DEVICE UINT32_MAX

struct why_window {
	const struct process *process;
	uint32_t device;           /* WHY_NO_DEVICE: the account is of a thread */
	uint64_t begin_ns, end_ns; /* the part */
	const char *cause;         /* "computing" */
	const char *where;         /* "computing in train.py:88"; both valid during the call */
	uint64_t ns;               /* of it, of this cause and place */
};

typedef void why_window_fn(void *data, const struct why_window *window);

/*
 * After end(), where there are accounts: each of them in `n` parts of one length, and of each part
 * what most of it consists of, the largest first. Those of accounts too short for that are left
 * out.
 */
void why_windows(struct consumer *why, size_t n, why_window_fn *tell, void *data);

/* The one or the other, as the command prints it. */
int why_write(struct consumer *why, FILE *out, bool as_json, struct err *err);
