/* SPDX-License-Identifier: MIT */
/* What helper.c says to the processes of helper_process.c, and they to it. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/worker.h"
#include "probe/maps.h"

#define HELPER_BYTES 65536u /* in one answer */

enum helper_op {
	HELPER_MEMORY = 1,    /* pid, address, bytes */
	HELPER_MAPS,          /* pid; the first bytes, and a descriptor if that is not all */
	HELPER_MAPS_ON,       /* with that descriptor: the next bytes */
	HELPER_PRIVATE_PAGES, /* pid, address, bytes: how many pages; a byte for each */
	HELPER_CODE_OF,       /* pid, address: an inode; struct mapping of each */
	HELPER_COPY,          /* pid; address: a number of its; bytes: the device that it must be */
	HELPER_SAME,          /* with a descriptor; pid; address: a number of its */
	HELPER_LOOK,          /* pid, path: a name; address: enum process_look; bytes */
	HELPER_NAMESPACE,     /* pid, path: "ns/user"; a descriptor of it */
	HELPER_OPEN_MAPPING,  /* pid, mapping, path */
	HELPER_OPEN_IN_ROOT,  /* pid, path */
	HELPER_PREAD,         /* with a descriptor of O_PATH: address, bytes */
	HELPER_READ_IN_ROOT,  /* pid, path, bytes; address: a user, and a group in the upper half */
};

struct helper_request {
	uint32_t op;
	int32_t pid;
	uint64_t address, bytes;
	uint16_t is_roots;        /* as the answer had it when the file was opened */
	uint16_t of_gone;         /* for a process that is gone, and `pid` is another */
	struct mapping mapping;   /* its path is the one below */
	char path[PATH_MAX + 16]; /* what is sent ends with its NUL */
};

struct helper_answer {
	int64_t result;     /* a negative errno, or the bytes of data */
	int32_t by_map;     /* HELPER_OPEN_MAPPING */
	uint16_t is_path;   /* the descriptor is one of O_PATH */
	uint16_t is_roots;  /* and no user can make reading it slow but by the disk or network */
	uint64_t waited_ns; /* for somebody, not for a processor, nor for a file that is root's */
	uint64_t ran_ns;    /* on a processor */
	char data[HELPER_BYTES];
};

/* To the process that makes helpers. */
enum helper_does {
	HELPER_MAKE_READER, /* with a socket: one for it, helper_do() */
	HELPER_MAKE_NAMES,  /* the same, names_main() */
	HELPER_KILL,        /* the one of this pid */
	HELPER_TAKE,        /* with a descriptor: it is kept, */
	HELPER_DROP, /* and closed when cuscope has it no more. These two follow each other */
};

struct helper_order {
	uint32_t does;
	int32_t pid;
};

/* ---- names (plain_name.h) ------------------------------------------------------------------ */

#define NAMES_BYTES 65536u /* of a name, with its NUL; longer ones are not read */

enum names_kind {
	NAMES_OF_KERNEL,
	NAMES_OF_FUNCTION,
};

struct names_request {
	uint32_t kind;
	char name[NAMES_BYTES]; /* what is sent ends before its NUL */
};

struct names_answer {
	uint64_t ran_ns;
	char text[NAMES_BYTES]; /* the same */
};

/* The process that reads them, which knows nothing else: never returns. */
void names_main(int socket) __attribute__((noreturn));
void names_end(void);

/* HELPER_CODE_OF, by a thread of the process: bytes of struct mapping, or a negative errno. */
int64_t helper_code_by(pid_t tid, const struct helper_request *request, char *to);

/* Never returns. `control`: the socket that orders come by. */
void helper_process_main(void *none, int control) __attribute__((noreturn));

/* ---- between helper.c, helper_files.c and helper_waits.c, with the lock held --------------- */

void helper_lock(void);
void helper_unlock(void);

/* Not in a process that was forked since helper_begin: the socket is its parent's. */
bool helper_is_there(void);

/* The request that is to be filled in, for a person (person.h). */
struct helper_request *helper_request(enum helper_op op, pid_t pid, uint64_t person);

/*
 * Has that done: its result, or a negative errno of what failed before anything was done. *answer,
 * with the data, is good until the next; *fd_out is -1 where no descriptor came. Both may be NULL.
 */
int64_t helper_ask(int fd, int *fd_out, const struct helper_answer **answer);

/* The same where the data are wanted alone: as many bytes of `to` as the result says. */
int64_t helper_ask_for(int fd, void *to);

/* Without the lock: has one made, with a socket that becomes the caller's; and has it ended. 0 or a
 * negative errno. */
int helper_make(enum helper_does what, int *socket, pid_t *pid);
void helper_kill(pid_t pid);

/* Who is to be charged for what is asked of a process; PERSON_UNKNOWN for this one. */
uint64_t helper_person(pid_t pid);
uint64_t waits_person(pid_t pid);

/* Whether nothing is asked of this process of this person now. */
bool waits_refuse(pid_t pid, uint64_t person);
void waits_charge(pid_t pid, uint64_t person, uint64_t waited_ns);

/* The helper behind `socket`, which becomes waits', hangs. Here and above 0 is a process that is
 * gone. */
void waits_give_up(pid_t pid, uint64_t person, const char *what, int ms, int socket);
void waits_unanswered(void);

void waits_end(void);
void files_end(void);

/* For tests: a descriptor is from now on one that helper_pread reads aside; the helper there is. */
void helper_note(int fd, pid_t pid, uint64_t person);
pid_t helper_now(void);

/* What helpers do, also done here where there is none. `aside`: files that somebody serves are not
 * opened but for their path, *is_path then. */
void helper_do(const struct helper_request *request, int fd, bool aside,
               struct helper_answer *answer, int *fd_out);
