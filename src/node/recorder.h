/* SPDX-License-Identifier: MIT */
/*
 * The flight recorder of the node agent: the last seconds of every call are held by a process of
 * its own (recorder_process.h), and written to a spool (spool.h) when a rule fires (rules.h).
 *
 * A thread here starts that process, judges what fired, orders recordings one after the other, and
 * looks at the spool. So neither a process that ends nor a disk that hangs stops the agent: what is
 * asked below only takes a lock that nobody holds while he waits.
 */
#ifndef CUSCOPE_NODE_RECORDER_H
#define CUSCOPE_NODE_RECORDER_H

#include "base/worker.h"
#include "node/config.h"
#include "node/rules.h"
#include "node/spool.h"

/* ---- recorder settings --------------------------------------------------------------------- */

/* What the flight recorder is told: without pointers, since a part of it is another process. */

struct recorder_settings {
	bool enabled;
	uint64_t last_ns;       /* of calls, that are held */
	uint64_t memory_bytes;  /* of them, packed; fewer seconds are held where they are more */
	uint64_t after_ns;      /* between what fired a rule and the writing */
	double max_overhead;    /* percent of the busiest thread, as --max-overhead; 0: none */
	uint64_t gpu_window_ns; /* how long GPU times are measured after a rule fired; 0: not */
	bool gpu_times;         /* of a process that does that and nothing else: recorder.c */
	bool ranks;             /* NCCL's calls as well, and who is late; also where not enabled: */
	bool ras;               /* then nothing is held, and other calls are not recorded */
	uint64_t rank_series;
	struct spool_limits spool;
	struct rules_settings rules;
};

/* ---- recorder wire ------------------------------------------------------------------------- */

/*
 * What the flight recorder's two halves say to each other, on a SOCK_SEQPACKET socket: the thread
 * in the node agent (recorder.h), and the process that records (recorder_process.h). A message is
 * one struct, whole. Texts end within their arrays, whoever sent them: recorder_receive().
 */

enum recorder_kind {
	RECORDER_SETUP, /* to the process, the first thing */
	RECORDER_SAVE,  /* to it: write what you hold */
	RECORDER_LOOK,  /* to it: whether somebody looks at the account of the last ten seconds */
	RECORDER_READY, /* from it: it records */
	RECORDER_STATE, /* every second */
	RECORDER_FIRED, /* a rule */
	RECORDER_SAVED, /* what came of RECORDER_SAVE */
	RECORDER_RANKS, /* what ranks did since they were told of last */
	RECORDER_NOTICE,
	RECORDER_ACCOUNT, /* another account, in a file that comes with it (account.h) */
};

/* Why a recording came to nothing; the words are labels of a metric. */
enum recorder_why {
	RECORDER_WHY_SPOOL = SPOOL_WHY_COUNT, /* below: enum spool_why */
	RECORDER_NOT_RUNNING = RECORDER_WHY_SPOOL,
	RECORDER_BUSY,    /* others wait already */
	RECORDER_TIMEOUT, /* the disk does not answer */
	RECORDER_CRASHED,
	RECORDER_WHY_COUNT
};

/* What calls are matched with nobody's for; the words are labels of a metric. */
enum recorder_unmatched {
	RECORDER_UNKNOWN_COMM, /* a communicator that was made before, and RAS does not tell of */
	RECORDER_UNCOUNTED,    /* RAS does not tell how many calls came before */
	RECORDER_CALLS_LOST,   /* others were lost, or there was no room */
	RECORDER_UNLIKE,       /* collectives whose ranks say different things */
	RECORDER_UNMATCHED_COUNT
};

const char *recorder_unmatched_name(enum recorder_unmatched why);

struct recorder_save {
	uint64_t ticket;
	uint64_t last_ns; /* no more than that; 0: all */
	uint32_t rule;
	char reason[RULES_TEXT_MAX + 32]; /* "error: ..." */
};

#define RECORDER_SHORT_MOST 8 /* of whom is told that less is held than of others */

/* A user who has most of the memory. */
struct recorder_short {
	uint64_t person;
	uint64_t held_ns; /* back to where his events are held */
};

struct recorder_state {
	uint64_t events, lost;
	uint64_t left_out; /* events of such users */
	uint32_t n_short;
	struct recorder_short shorts[RECORDER_SHORT_MOST];
	uint64_t held_bytes, definition_bytes;
	uint64_t held_ns;   /* back to where all others' events are held, `last_ns` at most */
	uint64_t processes; /* seen so far: their number has a bound, see recorder.c */
	uint64_t cpu_ns;
	uint64_t steps_judged, steps_forgotten; /* steps.h */
	double overhead_percent;
	double scale; /* above 1: only windows of time are recorded, to keep below max_overhead */
	uint64_t unmatched[RECORDER_UNMATCHED_COUNT]; /* calls of collectives */
};

struct recorder_saved {
	uint64_t ticket;
	uint64_t events, bytes;
	uint32_t why; /* 0: it is written */
	char name[SPOOL_NAME_MAX];
};

#define RECORDER_RANKS_EACH 12   /* of a message */
#define RECORDER_RANKS_MOST 1024 /* that are told of; of one person two fifths */

/* A process in a communicator. */
struct recorder_rank {
	uint32_t comm; /* the first half of what its communicator is known by */
	uint32_t pid;
	int32_t number;                         /* in it; -1: not known */
	bool ended;                             /* it, or the process */
	uint64_t n, n_last, late_ns, waited_ns; /* see struct lateness_rank */
	uint64_t missing_ns;
	char process[20];
};

struct recorder_ranks_part {
	uint32_t n;
	struct recorder_rank of[RECORDER_RANKS_EACH]; /* sums since the last part that had it */
};

struct recorder_message {
	uint32_t kind;
	union {
		struct recorder_settings setup;
		struct recorder_save save;
		struct recorder_state state;
		struct recorder_saved saved;
		struct recorder_ranks_part ranks;
		bool looked; /* RECORDER_LOOK */
		bool worn;   /* RECORDER_ACCOUNT: see account_send() */
		struct {
			uint32_t rule;
			uint64_t person; /* rules.h */
		} fired;                 /* its sentence is in `text` */
	};
	char text[800];
};

/* 0; -EAGAIN: there is none, or no room; -EPIPE: the other side has ended. */
int recorder_send(int socket, const struct recorder_message *message);
int recorder_receive(int socket, struct recorder_message *message);

/* The same, with a descriptor that came along, else -1. */
int recorder_receive_with(int socket, struct recorder_message *message, int *fd);

/* ---- recorder ------------------------------------------------------------------------------ */

struct recorder;

/* NULL, and 0, where neither it nor [ranks] is enabled. The folder is opened, so mistakes are told
 * at once. */
int recorder_new(const struct node_settings *settings, struct recorder **recorder, struct err *err);

/* Whether there could be one: before another one is ended for it. */
int recorder_check(const struct node_settings *settings, struct err *err);
void recorder_free(struct recorder *recorder);

/* Whether these settings are those that it has; of NULL whether it is not enabled. */
bool recorder_is_as(const struct recorder *recorder, const struct node_settings *settings);

/* Whether it holds calls; else it tells of ranks alone. Of NULL: no. */
bool recorder_holds(const struct recorder *recorder);

/* What the machine shows; copied. */
void recorder_tell(struct recorder *recorder, const struct rules_facts *facts);

/* Whether somebody looks at the account: else it makes none. */
void recorder_look(struct recorder *recorder, bool looked);

/* What there is of it, appended: nothing where there is none. False: *number is what was had then
 * and there is nothing else. */
bool recorder_account(struct recorder *recorder, uint64_t *number, struct buf *json);

/* A line for the user, one at a time. False: there is none. */
bool recorder_notice(struct recorder *recorder, char *text, size_t size);

/* ---- requests ------------------------------------------------------------------------------ */

enum recorder_answer {
	RECORDER_WAITING, /* it is being written, or is about to */
	RECORDER_WRITTEN, /* `text` is the file's name */
	RECORDER_REFUSED, /* too soon, too often, not allowed: `text` says why */
	RECORDER_FAILED,  /* `text` says why */
	RECORDER_UNKNOWN, /* no such request, or one of long ago */
};

#define RECORDER_ANSWER_TEXT 512

/* Asks for the last so many ns (0: all that is held). The request's number; 0: requests are off. */
uint64_t recorder_request(struct recorder *recorder, uint64_t last_ns);

enum recorder_answer recorder_request_answer(struct recorder *recorder, uint64_t request,
                                             char text[RECORDER_ANSWER_TEXT]);

/* ---- figures ------------------------------------------------------------------------------- */

/* What came of GPU times that were to be measured after a rule fired; the words are labels. */
enum recorder_gpu {
	RECORDER_GPU_WRITTEN,
	RECORDER_GPU_BUSY, /* they were being measured for another one */
	RECORDER_GPU_FAILED,
	RECORDER_GPU_COUNT
};

const char *recorder_gpu_name(enum recorder_gpu outcome);

struct recorder_figures {
	bool up;                     /* calls are being recorded */
	uint64_t heard_ns;           /* CLOCK_MONOTONIC: its loop turned last; 0: not known */
	uint64_t starts;             /* of the process that records */
	struct recorder_state state; /* losses and time of all these processes together */
	struct spool_use spool;
	bool spool_known;
	uint64_t written[RULE_COUNT];
	uint64_t held_back[RULES_VERDICT_COUNT];
	uint64_t failed[RECORDER_WHY_COUNT];
	uint64_t gpu_windows[RECORDER_GPU_COUNT];
	size_t leaks_no_room; /* places that are suspected, and that no rule knows */
};

void recorder_figures(struct recorder *recorder, struct recorder_figures *figures);

/* Those that have series: sums since they were seen first, which go a minute after their end. */
struct recorder_rank_series {
	struct recorder_rank rank;
	uint64_t person, created_ns, ended_ns; /* created: CLOCK_REALTIME; ended: 0: it lives */
};

/* Copies those that there are, at most RECORDER_RANKS_MOST; how many. In *left_out those without.
 */
size_t recorder_ranks(struct recorder *recorder, struct recorder_rank_series *ranks,
                      uint64_t *left_out);

/* The label of the metric: "no_space". */
const char *recorder_why_name(enum recorder_why why);

/* ---- recorder child ------------------------------------------------------------------------ */

/* A process that records (recorder_process.h), as who started it sees it. */

struct recorder_child {
	struct worker worker; /* socket -1: it was told to end */
	bool ready;           /* it records */
	bool looked;          /* it was told so */
	uint64_t ready_ns, end_by_ns;
	uint64_t heard_ns;           /* it said something last: its loop does each second */
	struct recorder_state state; /* as it told last */
};

/* 0 or a negative errno. It gets the settings and a descriptor of the spool. */
int recorder_child_start(struct recorder_child *child, const struct recorder_settings *settings,
                         int spool, struct err *err);

/* Asks it to end: it has so long for that. */
void recorder_child_stop(struct recorder_child *child, uint64_t now_ns);

/* Whether it has ended, which is forgotten then; one that does not obey is killed. */
bool recorder_child_ended(struct recorder_child *child, uint64_t now_ns);

#endif
