/* SPDX-License-Identifier: MIT */
/* Between divert.c, which decides, and cuscope-divert, which does. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "divert/divert.h"
#include "divert/divert_peers.h"
#include "divert/divert_stop.h"

/* ---- divert write --------------------------------------------------------------------------- */

/*
 * The first bytes of all entries of a module, as a process has them now. Entries lie close to each
 * other, so they are read with few calls into memory that is there already: threads wait meanwhile.
 */

struct divert_target;
struct divert_entry;
struct divert_code;

/* Memory for it, which is touched so that no page of it has to be made later. */
struct divert_code *divert_code_new(const struct divert_target *target);

/* For tests: the helper keeps it until it ends. */
void divert_code_free(struct divert_code *code);

/*
 * Reads all of it. By the memory that is open, or, where it is not 0, of a thread of the target
 * that is stopped, which takes a third of the time.
 */
void divert_code_read(struct divert_code *code, const struct divert_target *target, pid_t tid);

/*
 * The first bytes of an entry, DIVERT_COMPARE at most, until the thread's next call. Those that
 * could not be read with others are read now. NULL: they are not there.
 */
const uint8_t *divert_code_at(const struct divert_code *code, const struct divert_target *target,
                              const struct divert_entry *entry, size_t bytes);

#define DIVERT_COMM "cuscope-divert"
#define DIVERT_COMPARE                                                                             \
	32 /* bytes from the entry on that are to be the file's when it is written                 \
	    */

/* One function of a process, with all that is to be written. */
struct divert_entry {
	uint64_t address; /* of its entry, in the process */
	uint64_t pad, moved;
	uint64_t offset; /* in the file */
	struct entry_move move;
	uint8_t file[DIVERT_COMPARE];
	uint32_t function; /* which one of the plan */
	enum entry_refusal refusal;
	bool diverted;
	bool written; /* see divert_peers.h */
};

enum divert_kind { DIVERT_PUT, DIVERT_TAKE_BACK, DIVERT_GONE, DIVERT_FORKED };

/* What a program that is executed changes, unless it may do no more than the one before. */
struct divert_person {
	uint32_t ids[8]; /* users and groups, as /proc/PID/status has them */
	uint64_t exe_dev, exe_inode;
};

/* With DIVERT_PUT comes the descriptor of a file of `count` struct divert_entry. */
struct divert_order {
	enum divert_kind kind;
	pid_t pid, child;
	uint64_t start_time;         /* process_start_time: of that process and no later one */
	uint64_t number;             /* of the plan, or of the order to take back */
	uint32_t place;              /* its cut's; DIVERT_CUTS: nobody asks */
	struct divert_person person; /* when it was looked at */
	uint64_t owner;              /* probe/person.h */
	dev_t dev;                   /* of the module, as /proc/PID/maps has it */
	uint64_t inode;
	uint64_t area, area_bytes;
	uint32_t count;
};

struct divert_reply {
	enum divert_kind kind;
	pid_t pid;
	uint64_t number;
	int rc;
	uint64_t stopped_ns;
	uint32_t threads, put_back, changed;
	char why[sizeof(((struct err *)0)->text)];
};

/* What is written into a module, sorted by address. Children have their parent's. */
struct divert_entries {
	uint32_t uses, count;
	uint64_t owner; /* probe/person.h */
	struct divert_entry all[];
};

/* A module of a process. */
struct divert_target {
	pid_t pid;
	uint64_t start_time, number;
	struct divert_person person;
	dev_t dev;
	uint64_t inode;
	uint64_t area, area_bytes;
	struct divert_entries *list;
	struct divert_entry *entries; /* those of the list */
	uint32_t count;
	bool child;
	/* in a try */
	int memory;               /* see area_open */
	pid_t tid;                /* a thread that is stopped; 0: none is */
	struct divert_code *code; /* what its entries were when it was read */
	struct divert_writers *writers;
	uint32_t write_ns; /* how long it takes to write one; 0: not known */
};

/* Of a process (tid 0), or of its thread. False: it is gone. */
bool area_person(pid_t pid, pid_t tid, struct divert_person *person);

/*
 * Opens the memory that a thread of the target has now: one that was opened before may be of a
 * program that it executes no longer. False: it is not the process that it was, has other ids or
 * another program, or keeps its code from being read.
 */
bool area_open(struct divert_target *target, pid_t tid);

/* Whether it has the same program, as far as that is known, and other users or groups. */
bool area_is_anothers(const struct divert_target *target, pid_t tid);

/* Whether the process has mapped the area, and still has the module at the same addresses. */
int area_find(const struct divert_target *target, struct err *err);

/* Whether the area has all pads and all moved code. */
bool area_is_written(const struct divert_target *target);

/*
 * All threads are stopped. Pads and moved code: nobody can be in an area of zeroes; one that has
 * them already is left as it is. -EEXIST: it has other code, and nothing is done.
 */
int area_write(const struct divert_target *target, struct err *err);

bool write_read_at(const struct divert_target *target, uint64_t address, void *to, size_t bytes);

/*
 * While threads run, makes the pages that will be written, and changes nothing in them. Where it
 * cannot, they are made when they are written, and the stop takes longer.
 */
void divert_ahead(struct divert_target *target);

/* Reads the entries, as divert_code_read, and refuses those that are not as in the file. */
void write_compare(struct divert_target *target, pid_t tid);

/* Memory that is written while threads are stopped: since a fork it is the parent's, until it is
 * touched. */
void write_touch(const struct divert_target *target);

/* How long it will take to write all entries. */
uint64_t write_time_ns(const struct divert_target *target);

/*
 * All threads are stopped. Writes the jumps, and puts threads where they belong. -EAGAIN: one is
 * where it cannot be helped, and will be elsewhere soon.
 */
int write_jumps(struct divert_target *target, struct stop *stop, struct err *err);

/*
 * All threads are stopped. *changed: entries that are neither as they were written, nor put back.
 * False: a thread cannot be put where it belongs, and nothing is changed.
 */
bool write_back(struct divert_target *target, struct stop *stop, uint32_t *put_back,
                uint32_t *changed);

/*
 * The cut of an order, in memory that cuscope reads. Whose a call is has to be known as soon as
 * threads go on, and the answer comes later, or never. So all of it is told while they are stopped:
 * where a call began since, and the cut is begun but not made, who made it was ended in the middle.
 */
#define DIVERT_PUTS 128 /* orders to divert that are under way at a time */
#define DIVERT_CUTS (DIVERT_PUTS + DIVERT_TARGETS_MAX)

enum divert_cut_state { CUT_NOT_MADE, CUT_BEGUN, CUT_MADE };

struct divert_cut {
	_Atomic uint64_t number; /* of the order that the rest is of */
	_Atomic uint64_t since_ns;
	_Atomic uint32_t state;
};

struct divert_shared {
	struct divert_cut cuts[DIVERT_CUTS];                 /* those to divert first */
	uint8_t refusals[DIVERT_PUTS][DIVERT_FUNCTIONS_MAX]; /* struct divert_result's */
};

/* What is to be done with a process: all of its modules, or one that is new. */
struct divert_job {
	enum divert_kind kind; /* DIVERT_PUT or DIVERT_TAKE_BACK */
	struct divert_target **targets;
	size_t count;
	uint32_t limit_ms;      /* for one try */
	struct divert_cut *cut; /* NULL: nobody asks */
	uint8_t *refusals;      /* of DIVERT_PUT */
};

/*
 * One try, by a process that is made for it and given up after a while: memory of targets may be
 * such that whoever reads it waits for good. Fills in reply->rc and what goes with it, and
 * `refusal` and `diverted` of the entries; of these DIVERT_TAKE_BACK changes nothing, as others may
 * have them too.
 */
void divert_try(const struct divert_job *job, struct divert_reply *reply);

/* What cuscope-divert does until its socket ends. */
void divert_process(int socket, struct divert_shared *shared);
