/* SPDX-License-Identifier: MIT */
/* Of the flight recorder: what its thread and those who ask share. */
#ifndef CUSCOPE_NODE_RECORDER_INSIDE_H
#define CUSCOPE_NODE_RECORDER_INSIDE_H

#include <pthread.h>

#include "base/quota.h"
#include "node/recorder.h"

#define NOTICES_MAX  16
#define NOTICE_TEXT  900
#define REQUESTS_MAX 16 /* that are remembered */
#define ORDERS_MAX   8  /* recordings that wait */
#define CHILDREN_MAX 3  /* one that records, the next one, one that ends */

struct request {
	uint64_t number, last_ns; /* 0: none */
	bool taken;               /* by the thread */
	enum recorder_answer answer;
	char text[RECORDER_ANSWER_TEXT];
};

/* A recording that is to be written. */
struct order {
	struct recorder_save save;
	uint64_t due_ns, request;
};

/* GPU times that are being measured, for a rule that fired. */
struct gpu_window {
	struct recorder_child child;
	enum rule rule;
	uint64_t give_up_ns;
	bool answered; /* what came of it is known */
};

struct recorder {
	struct recorder_settings settings;
	char *path;
	int spool;
	pthread_t thread;
	int wake; /* eventfd: there is something to do */

	pthread_mutex_t lock; /* of what follows, up to the thread's own */
	bool stop;
	bool told; /* facts are new */
	struct rules_gpu gpus[RULES_GPUS_MAX];
	struct rules_facts facts;
	struct request requests[REQUESTS_MAX];
	uint64_t n_requests;
	struct recorder_figures figures;
	char notices[NOTICES_MAX][NOTICE_TEXT];
	size_t n_notices;
	struct recorder_rank_series *ranks; /* settings.rank_series of them */
	size_t n_ranks;
	uint64_t ranks_left_out; /* that came, and had no room */
	bool looked;             /* at the account: */
	struct buf account;      /* empty: there is none */
	uint64_t n_accounts;

	/* the thread's own */
	struct quota rank_shares;
	struct rules *rules;
	struct recorder_child children[CHILDREN_MAX];
	int current, next; /* of children; -1: none */
	struct gpu_window gpu;
	struct recorder_state before; /* of processes that have ended */
	uint64_t start_at_ns, pause_ns, looked_ns;
	struct order orders[ORDERS_MAX];
	size_t n_orders;
	uint64_t sent_ns; /* when the first order was sent; 0: it was not */
	uint64_t tickets;
};

void *recorder_run(void *data);

/* With the lock or without: a line for the user. */
void recorder_say(struct recorder *recorder, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* recorder.c: a rule fired and is written, so GPU times are measured, where that is wanted. */
void recorder_gpu_begin(struct recorder *recorder, const struct recorder_save *save,
                        uint64_t now_ns);
void recorder_gpu_turn(struct recorder *recorder, uint64_t now_ns);
void recorder_gpu_stop(struct recorder *recorder, uint64_t now_ns);
bool recorder_gpu_stopped(struct recorder *recorder, uint64_t now_ns);

/* recorder_thread.c: what a process that has ended took stays in the figures. */
void recorder_remember(struct recorder *recorder, const struct recorder_state *state);

#endif
