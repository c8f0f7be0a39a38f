/* SPDX-License-Identifier: MIT */
/*
 * A module: an ELF file that holds CUDA functions, with a hook for each of them. Known by what it
 * is (device, inode), not by its path: one attach serves every process and every container that
 * maps it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/hash.h"
#include "probe/attach.h"
#include "probe/elf_file.h"
#include "probe/own_hooks.h"
#include "probe/patched.h"
#include "probe/placement.h"
#include "probe/selection.h"

#define HOOK_NO_ID UINT16_MAX

struct hook {
	uint16_t id;      /* set by hook_numbers_take: what its records carry; HOOK_OFF has none */
	const char *name; /* owned by the module */
	const char *also; /* other names of the same code; NULL: none; the module's, too */
	enum api_layer layer;
	const struct api *api; /* NULL: unknown function */
	enum hook_group group;
	const char *why; /* of its group; static; may be NULL */
	struct capture_plan plan;
	struct placement placement;
	uint64_t entry;         /* offset of the function in the file */
	uint64_t address, size; /* as linked; 0: the symbol does not say how long it is */
	int error;              /* why it could not be hooked: a negative errno */
	pid_t patched; /* a process that forbids a probe there: patched.h; 0: nobody was seen to */
	enum patch_kind patch; /* how */
	pid_t written_over;    /* the process that was told to have written over the probe */
	bool hooked;           /* now */
	bool error_told;
	size_t alone_told; /* where it is told how many calls reached no driver; 0: not yet */
	bool given_up;     /* HOOK_LITTLE: not to be hooked again */
	bool moved;        /* it has a link of its own, for as long as the module is attached */
};

/* A process that had a module mapped before it was hooked. */
struct late_process {
	uint32_t pid;
	UT_hash_handle hh;
};

enum module_probes {
	PROBES_THERE,
	PROBES_WATCHED, /* they may go: who maps the file is told of each time */
	PROBES_AWAY,    /* but for those of hooks that were moved */
};

enum module_leaving {
	LEAVING_NOT,
	LEAVING_ASKED, /* whether anybody has it mapped is being found out */
	LEAVING_NOW,   /* nobody has: the main thread is to let it go */
};

struct module {
	dev_t dev;
	uint64_t inode;
	char *path;       /* as the process that showed it names it */
	const char *name; /* its last part */
	int fd;
	uint64_t owner;     /* a person: person.h */
	uint64_t stamp;     /* module_file_stamp of the file as it was read */
	uint64_t written;   /* and module_file_written */
	uint32_t alike;     /* the same number in all that are: modules_mark_double */
	bool has[2];        /* enum api_layer */
	struct hook *hooks; /* in order of the file */
	size_t n_hooks;
	struct programs *programs;                 /* that its probes run */
	bool returns;                              /* are probed as well */
	struct attachment *links[HOOK_LAUNCH + 1]; /* by group; HOOK_SUPPORT is in HOOK_CORE's */
	struct attachment **moved;                 /* of hooks with a link of their own */
	size_t n_moved;
	enum module_probes probes;   /* with the modules' lock */
	bool attached;               /* since module_attach */
	bool is_new;                 /* within module_attach */
	bool came_back;              /* its probes were away once */
	bool no_launches;            /* HOOK_LAUNCH is not hooked for now */
	bool told_unhooked;          /* its probes did not come back once */
	bool no_returns;             /* given up: module_attach leaves them alone */
	bool rewritten;              /* its file is another one by now: not to be attached again */
	bool told_unread;            /* it has changed, and its user's time was used up */
	bool expected;               /* hooked beforehand: no target has mapped it yet */
	bool beforehand;             /* hooked beforehand, and to stay so */
	enum module_leaving leaving; /* with the modules' lock, as the next four */
	uint64_t left_ns;            /* when that was found out */
	uint64_t used_ns;            /* when a process was seen to have it mapped */
	bool mapped;                 /* by one of those that are being looked at */
	bool busy;                   /* somebody reads it without the lock */
	uint64_t hooked_ns;        /* when module_attach was done first, or probes came back last */
	struct late_process *late; /* those that had it mapped by then */
	size_t late_unknown;       /* and how many more, beyond those that are kept */
	uint64_t latest_ns;        /* how long the one had that had it longest */
	struct own_module *own;    /* hooks that users asked for; NULL: none */
	size_t late_miss;          /* what is told of all beyond the first few; see modules.c */
};

/*
 * Reads the file behind `fd`, which becomes the module's. Returns 0, 1 when it is no module (then
 * `fd` is closed), 2 when that was not decided at this depth (fd closed), or a negative errno.
 */
int module_open(int fd, const char *path, enum elf_depth depth, const struct selection *selection,
                struct module **module, struct err *err);
void module_free(struct module *module); /* detaches */

/* Hooks that are not off. */
size_t module_wants(const struct module *module);

/* Turns all but `count` of them off: functions that are known stay before others. */
void module_limit(struct module *module, size_t count, const char *why);

/* Whether two modules have the same functions at the same places: their hooks are as good. */
bool module_is_alike(const struct module *module, const struct module *other);

/*
 * wire_file_stamp of an open file: of its size and last change, which its owner cannot choose; and
 * of its size and when it was last written. 0 where they cannot be had.
 */
uint64_t module_file_stamp(int fd);
uint64_t module_file_written(int fd);

/*
 * Attaches what the hooks' groups ask for and was not given up; does nothing to a module that is
 * attached already. Here and below, what would end a process (patched.h) is left alone.
 */
int module_attach(struct module *module, struct err *err);
void module_detach(struct module *module);
uint64_t module_attach_ns(const struct module *module); /* what its probes took to be put there */

/*
 * Hooks of HOOK_RUNTIME_LAUNCH or HOOK_LAUNCH, put back and taken away; what is so already is left
 * as it is. HOOK_LAUNCH hooks are taken away in two steps: calls that begin are left alone, and
 * later, when none that began before is under way, the probes go.
 */
int module_hook_group(struct module *module, enum hook_group group, bool hook, struct err *err);
void module_ignore_launches(struct module *module, bool ignore);

/*
 * Hooks the HOOK_LITTLE hooks anew, but for those that were given up. Takes about 50 ms: a link
 * loses all its places or none, and closing one waits for a grace period. False where there was
 * nothing to do.
 */
bool module_relink_little(struct module *module);

/*
 * Gives up, for good, the returns of all HOOK_CORE and HOOK_SUPPORT hooks, which hang together
 * where the mechanism is not sessions. Their modes are set first: an entry must not wait for a
 * return that will not be seen.
 */
void module_drop_returns(struct module *module);

/*
 * Probes of a module of which all processes are recorded inside, taken away and put back. First,
 * hooks that `stays` names get a link of their own, and entries are looked at there from that
 * moment on. Calls that began before still return by the old link. With it they stay where they are
 * when all others go. module_put_back does nothing if probes are there.
 */
int module_move_hooks(struct module *module, bool (*stays)(void *data, const struct hook *hook),
                      void *data, struct err *err);
void module_take_away(struct module *module);
int module_put_back(struct module *module, struct err *err);

/* cuInit: where it succeeds, launches of the runtime reach the driver. */
bool hook_proves_driver(const struct hook *hook);

/* For patched.h, one for each hook, which the caller frees; with `hooked` those that are alone. */
struct patch_point *module_patch_points(const struct module *module, bool hooked);

/* Whose stack the stack of a call of it is, where stacks are asked for. */
enum wire_stack_kind hook_stack_kind(const struct hook *hook);

/* The cookie of a hook: its number and plan. */
uint64_t hook_cookie(const struct hook *hook);
