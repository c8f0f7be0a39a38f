/* SPDX-License-Identifier: MIT */
/* The inside of struct modules: shared by modules.c (taking in, telling) and the files
 * of looking. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "probe/account.h"
#include "probe/hook_numbers.h"
#include "probe/maps.h"
#include "probe/modules.h"
#include "probe/unseen.h"

#define UNDECIDED 2 /* what module_open says of a file that has to be read whole */

/* The list of modules does not move: it is read without the lock. */
#define MODULES_MAX 4096

/* Of what was looked into while a process waited, the news comes up to some 100 ms later. */
#define HELD_FILES 1024

/* A process can make and map files as long as it runs: what is kept of them is 2 MiB. */
#define SEEN_FILES_MAX 16384

struct file_key {
	uint64_t dev, inode; /* as /proc/PID/maps has them, or stat where that differs */
};

/* A file that was looked into: a module, or none (NULL). */
struct seen_file {
	struct file_key key;
	uint64_t stamp; /* wire_file_stamp of when it was read; 0: too young to be sure of */
	struct module *module;
	bool foreign;
	bool reading;        /* by a thread that let the lock go for it */
	bool put_off;        /* to modules_decide */
	bool refused;        /* no hooks are left for who mapped it first; */
	uint64_t refused_to; /* this person: somebody else may have some */
	pid_t refused_pid;   /* who mapped it then; 0: not known */
	UT_hash_handle hh;
};

/* A file whose .symtab was too large for a look, kept open until there is time to read it. */
struct undecided {
	struct file_key key;
	int fd;
	char *path;
	pid_t pid; /* that showed it, and when */
	uint64_t since_ns;
	struct undecided *next;
};

/* Who was found behind a process, and when. */
struct modules_person {
	pid_t pid;
	uint64_t person, at_ns;
};

#define PERSONS_MOST 64

struct hook_slot {
	_Atomic(const struct hook *) hook;
	const struct module *module; /* written before hook */
};

struct modules {
	struct modules_options options;
	pthread_mutex_t lock;
	pthread_cond_t read; /* a file was */
	struct seen_file *files;
	struct undecided *undecided;
	size_t n_undecided;
	bool deciding; /* one more, which modules_decide reads */
	struct unseen *unseen;
	struct wire_file held[HELD_FILES]; /* looked into last while their processes waited */
	size_t n_held;
	struct shares shares;
	struct module *list[MODULES_MAX];
	_Atomic(size_t) count;
	struct hook_numbers numbers;
	_Atomic(size_t) n_leaving;                 /* modules that the main thread is to let go */
	uint64_t looked_for_gone_ns, gone_look_ns; /* when, and what it took */
	unsigned gone_looks;                       /* in a row, in which none was gone */
	uint64_t let_go, refused;
	uint32_t alike;                      /* the last number: module.alike */
	uint64_t patched_ns, patched_gap_ns; /* of modules_look.c: the last look, and the next */
	size_t patched_count;                /* modules that there were at the last look */
	bool driver_seen;
	uint64_t end_ns;          /* from when on nothing is looked into any more; 0: not yet */
	enum look looking;        /* of the look that goes on */
	bool paused;              /* modules are found, and hooked later */
	bool expecting;           /* what is taken in now is hooked beforehand */
	uint64_t whole_ns;        /* time spent reading whole what ran when tracing began */
	struct account own_reads; /* the same, of files that hooks of users name */
	struct hook_slot slots[WIRE_HOOKS_MAX];
	struct miss *misses;
	struct miss *standing; /* of these, what modules_misses listed last; it owns no texts */
	struct modules_person persons[PERSONS_MOST]; /* by the last bits of their pids */
	struct quota listed;                         /* of misses */
	size_t n_misses, n_functions_missed;         /* the second: of the first */
	size_t left_out[MISS_LAST + 1];              /* beyond */
	uint64_t more[MISS_LAST + 1]; /* processes over the budget that are not named */
	size_t n_told;                /* behind n_misses: made by modules_misses, for the moment */
};

/*
 * Takes in what module_open found in a file, or notes what it said of it. The module is NULL
 * afterwards where it is not hooked.
 */
void modules_settle(struct modules *modules, struct seen_file *file, int answer,
                    struct module *module, const char *path, struct err *err);

/* A target has a module mapped: one that was hooked beforehand counts from now on. */
void modules_used(struct modules *modules, struct module *module);

/* It is used, so it is not let go. With the lock held. */
void modules_stay(struct modules *modules, struct module *module);

/* Whether the kernel need not tell of who maps it (modules_away.c). */
void modules_set_known(struct modules *modules, const struct module *module, bool known);

/* Process `pid` had the module mapped since `since_ns`, before it was hooked. */
void modules_late(struct modules *modules, struct module *module, uint32_t pid, uint64_t since_ns);

/*
 * A file, or a process' list of them, that could not be looked into, told once for each path, with
 * the lock held.
 */
void modules_not_looked_into(struct modules *modules, const char *path, uint32_t pid,
                             const char *why);

/*
 * As person_of_process(), asked anew after 10 ms, and without the helper's lock: there can be many
 * records of one process, and who holds that lock takes long. With the lock.
 */
uint64_t modules_person(struct modules *modules, pid_t pid);

/* The kernel puts no probe into memory that is shared, or may be written to: told of a module's. */
void modules_tell_unprobed(struct modules *modules, const struct module *module, pid_t pid,
                           const struct mapping *mapping);

/* What the programs know a file by. */
struct wire_file modules_file_id(const struct seen_file *file, uint64_t stamp);

/* Whether one of its threads has made a call, or that cannot be found out. */
bool modules_calls_cuda(const struct programs *programs, pid_t pid);

/*
 * Two containers of one image: the kernel has both modules' probes in one place. The programs are
 * told which may be so (HOOK_DOUBLE), before the module is attached.
 */
void modules_mark_double(struct modules *modules, struct module *module);

/* A target has a driver mapped. */
void modules_driver_appeared(struct modules *modules, const struct module *driver);

/* Calls of the runtime that were left out without returns, and that the driver did not tell of. */
void modules_tell_alone(struct modules *modules);

/* ---- runtimes that a process has without a driver (modules_away.c) ----------------------------
 */

#define RUNTIMES_MOST 16

struct modules_runtimes {
	struct module *away[RUNTIMES_MOST]; /* that it has mapped, and whose probes are away */
	size_t n;
};

void modules_note_runtime(struct modules_runtimes *runtimes, struct module *module);

/*
 * Such a process needs no probes: see capture/inside. Its first call loads the driver, and is
 * missed where they were away. From then on it needs them.
 */
void modules_driver_came(struct modules *modules, uint32_t pid,
                         const struct modules_runtimes *runtimes);

/* ---- files (unseen.c) ------------------------------------------------------------------- */

struct file_key modules_key(const struct wire_file *file);
struct seen_file *modules_file(struct modules *modules, struct file_key key);

/*
 * Reads the file behind `fd`, which becomes the modules', with the lock held, which is let go
 * meanwhile. What is at the key already has to be out of date.
 */
struct seen_file *modules_read(struct modules *modules, struct file_key key, int fd,
                               const char *path, enum elf_depth depth, enum look look,
                               struct err *err);

/* Whether what is open is still what was read as this file. */
bool modules_is_same(const struct seen_file *file, int fd);

/* What is held waits for a look, and a huge .symtab takes long: it is read when nobody waits. */
void modules_put_off(struct modules *modules, struct file_key key, int fd, const char *path,
                     pid_t pid, uint64_t since_ns);

/* The kernel need not tell of a file any more whose answer will be the same. */
void modules_settled(struct modules *modules, const struct seen_file *file, uint64_t stamp);

/* Forgets a file; a module is unhooked, and said to have been written anew. */
void modules_forget(struct modules *modules, struct seen_file *file);
