/* SPDX-License-Identifier: MIT */
/*
 * All modules that targets have shown, hooked as they come to light. Looking may be done on any
 * thread; a hook's number can be turned into the hook without a lock at any time.
 */
#pragma once

#include "probe/module.h"
#include "trace/event.h"

struct modules;

struct modules_options {
	struct programs *programs;
	const struct selection *selection; /* outlives the modules */
	bool returns;
	struct own_hooks *own; /* NULL: users ask for none */
	/* Whether nothing is to be hooked for a process; without the lock. NULL: for each it is. */
	bool (*keeps_off)(void *data, pid_t pid);
	void *data;
	bool lets_go; /* modules that nobody maps any more (modules_gone.c); not with own hooks,
	               * agents or calls recorded inside, which keep what they know of modules */
};

struct modules *modules_new(const struct modules_options *options);
void modules_free(struct modules *modules); /* unhooks everything */

enum look {
	LOOK_RUNNING, /* what is there when tracing begins */
	LOOK_HELD,    /* the process waits until the look is over */
	LOOK_LATE,    /* it does not: what is new now may have been called already */
	LOOK_AGAIN,   /* the same, but what it maps is told of by itself (modules_mapped) */
};

struct look_result {
	size_t modules;            /* CUDA modules mapped by this process */
	size_t hooked;             /* of these, newly hooked */
	bool driver;               /* one of them is the driver's */
	const struct module *told; /* modules_mapped: what the file is that was told of */
	bool own;                  /* a file with hooks that users asked for */
	bool foreign; /* its program is not of this machine (32-bit, another architecture) */
};

/*
 * Hooks what `pid` has mapped. `since_ns` is when the mapping was seen (LOOK_LATE). A negative
 * errno when the process cannot be looked at; single files that cannot be read become misses.
 */
int modules_look(struct modules *modules, pid_t pid, enum look look, uint64_t since_ns,
                 struct look_result *result, struct err *err);

/* LOOK_HELD by a thread that waits for one file, which may be another than it was. */
int modules_look_held(struct modules *modules, pid_t tid, const struct wire_file *file,
                      struct look_result *result, struct err *err);

/* LOOK_LATE, of a process whose mappings were nobody's business before: each file is compared. */
int modules_look_joined(struct modules *modules, pid_t pid, uint64_t since_ns,
                        struct look_result *result, struct err *err);

/*
 * A process was seen to map a file (WIRE_MAP). It is looked into, by way of the process or, if that
 * is gone, by the file's path, which has to lead to the same file. What cannot be looked into is
 * remembered, and told if nothing changes that.
 */
void modules_mapped(struct modules *modules, const struct wire_map *map,
                    struct look_result *result);

/*
 * What is told of from now on came before the end, and is being read: there can be any number of
 * it, so it is looked into for a second, and told as not looked into after that.
 */
void modules_end(struct modules *modules);

/*
 * Hooks the file behind `fd`, which becomes the modules', before a process is seen to map it. Until
 * then it counts for nothing but its hooks. Returns as module_open does.
 */
int modules_expect(struct modules *modules, int fd, const char *path, struct err *err);

/* Looks whether files of modules were written anew, and hooks them again then. To be
 * called often. */
void modules_check_files(struct modules *modules);

/*
 * Looks, when it is due, whether targets have written code of their own over probes, and tells. To
 * be called often, on a thread that may take long. At the end it is always due: MODULES_LAST_LOOK.
 */
#define MODULES_LAST_LOOK UINT64_MAX
void modules_check_patched(struct modules *modules, uint64_t now_ns);

/*
 * Reads whole one file that looks had no time for (its .symtab is huge: elf_file.h), and hooks what
 * turns out to be a module: then it returns true. On any thread.
 */
bool modules_decide(struct modules *modules);
bool modules_undecided(struct modules *modules); /* whether there is one */

/*
 * Modules that no process has mapped any more are looked for now and then, which takes long: on a
 * thread that may (the one of modules_check_files). modules_let_go gives their hooks' numbers back,
 * on the main thread, two seconds later, after `number` was called for each: what sums still carry
 * it is named by what is known by then. `again`: this process had files that there was no room for.
 */
struct modules_gone {
	void (*number)(void *data, uint16_t id);
	void (*again)(void *data, pid_t pid);
	void *data;
};

void modules_look_for_gone(struct modules *modules, uint64_t now_ns);
void modules_let_go(struct modules *modules, uint64_t now_ns, const struct modules_gone *gone);

struct modules_figures {
	size_t modules;           /* that are hooked */
	uint64_t let_go, refused; /* so far; the second: files for which there were no hooks left */
};
void modules_figures(struct modules *modules, struct modules_figures *figures);
bool modules_let_go_any(struct modules *modules);

/* The hook of a record, NULL for a number never given out; *module is set along with it. */
const struct hook *modules_hook(const struct modules *modules, uint16_t id,
                                const struct module **module);

/* For the governor and the summary. Call them on the main thread, which alone shortens the list. */
size_t modules_count(const struct modules *modules);
struct module *modules_at(const struct modules *modules, size_t index);
void modules_pause(struct modules *modules, bool pause); /* hooks none that appear meanwhile */

/* For tests: functions that are hooked at this moment. */
size_t modules_hooked(const struct modules *modules);
void modules_lock(struct modules *modules); /* around changes of hooks and misses */
void modules_unlock(struct modules *modules);

/*
 * Probes that are not needed, since all who have the module mapped are recorded inside. With the
 * lock held. modules_watch: from now on probes are back before a held process goes on with a file
 * that it maps, and soon after any other one has mapped it. False: this module's are to stay. Then
 * module_move_hooks and module_take_away, as long as module->probes is PROBES_WATCHED.
 * modules_put_back: true where they were away. What fails is told.
 */
bool modules_watch(struct modules *modules, struct module *module);
bool modules_put_back(struct modules *modules, struct module *module);

/* The module that a mapping is of; NULL: of none that was looked into. */
struct mapping;
const struct module *modules_of_mapping(struct modules *modules, const struct mapping *mapping);

/* What could not be hooked, and what was hooked late; texts are owned by the modules. */
size_t modules_misses(struct modules *modules, const struct miss **misses);

/* After probes of it were attached: functions that could not be hooked, each once. */
void modules_tell_unhooked(struct modules *modules, struct module *module);

/* So many processes there are of this kind beside those that a miss names. */
void modules_more(struct modules *modules, enum miss_kind kind, uint64_t processes);

/* Calls of a function that were counted inside of processes, or in children that they forked: told
 * anew when they are more. *slot is 0 at first. */
struct modules_counted {
	uint64_t calls, processes;
	uint64_t alone; /* of the runtime, without returns: in which no call of the driver was seen
	                 */
	uint64_t in_children, parents;
};
void modules_counted(struct modules *modules, size_t *slot, const char *name, const char *lib,
                     const struct modules_counted *counted);

void modules_miss(struct modules *modules, enum miss_kind kind, const char *name, const char *lib,
                  uint32_t pid, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* Hooks of --hook for which no file was seen, as misses. Once, at the end, with the lock held. */
void modules_tell_unseen_hooks(struct modules *modules);

/* Processes so far that ended before a CUDA library of theirs could be looked into. */
uint64_t modules_unseen(const struct modules *modules);
