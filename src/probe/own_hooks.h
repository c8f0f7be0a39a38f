/* SPDX-License-Identifier: MIT */
/*
 * Hooks that users ask for, as they are in the kernel: numbers, plans, and what was attached. Those
 * on files belong to a module (struct own_module); those of the kernel to the list itself.
 */
#pragma once

#include "hooks/hook_list.h"
#include "probe/attach.h"
#include "probe/elf_file.h"
#include "probe/own_functions.h"
#include "probe/own_plan.h"
#include "trace/event.h"

struct own_hook {
	uint16_t id, plan;
	char *name, *lib;             /* as the trace has them */
	const struct hook_spec *spec; /* with a tracepoint's fields, where it is of one */
	const struct api *api;        /* of the arguments that are shown */
	struct api *made;
	struct hook_spec *own_spec; /* NULL: the list's */
	bool returns;               /* its return is waited for, if its kind does */
	int error;                  /* why it could not be hooked: a negative errno */
};

struct own_hooks;

/* The list outlives it. `returns` false: spans are moments. */
struct own_hooks *own_hooks_new(const struct hook_list *list, struct programs *programs,
                                bool returns);
void own_hooks_free(struct own_hooks *own);

/* Which programs the hooks of a list want (enum own_hooks_kind). */
unsigned own_hooks_kinds(const struct hook_list *list);

const struct hook_list *own_hooks_list(const struct own_hooks *own);
struct programs *own_hooks_programs(const struct own_hooks *own);

/* The hook of a record; NULL for a number never given out. On any thread. */
const struct own_hook *own_hooks_get(const struct own_hooks *own, uint16_t id);

/*
 * One more, with a number and a plan: filled here, and from then on the list's. `places` as for
 * own_plan_make(). `returns` false: a span is a moment, its entry, as without returns at all. NULL:
 * there is no room left, or the kernel refuses; a sentence says so.
 */
struct own_hook *own_hooks_add(struct own_hooks *own, size_t spec, const char *name,
                               const char *lib, const struct own_place *places, size_t n,
                               bool returns, struct err *err);

/* Calls that threads are in, as unfinished, with the present as their end. They are taken away. */
void own_hooks_open_calls(struct programs *programs, programs_record_fn each, void *data);

uint64_t own_hook_cookie(const struct own_hook *hook);
bool own_hooks_returns(const struct own_hooks *own);

/* ---- of a file ----------------------------------------------------------------------------- */

struct own_module {
	char *path;
	uint64_t person; /* whose names it has */
	struct own_functions functions;
	struct own_hook **hooks; /* in the order of the functions; NULL: not hooked */
	struct attachment *spans, *moments;
	char *refused; /* why it has no functions; NULL: it was read */
};

/*
 * False where it takes too long to read now, at this depth: nobody may wait for it (ELF_WHOLE).
 * *module is NULL where the file has nothing to do with these hooks, or is no program or library.
 */
bool own_module_open(int fd, const char *path, enum elf_depth depth, const struct hook_list *list,
                     struct own_module **module);
void own_module_free(struct own_module *module); /* detaches */

/* Whether one offset is hooked in both, which may be of one file; either may be NULL. */
bool own_module_meets(const struct own_module *own, const struct own_module *other);
void own_module_detach(struct own_module *module);

/*
 * Hooks at most `room` functions of the file behind `fd`. What cannot be hooked is told to `miss`,
 * with the name of a function or a glob.
 */
typedef void (*own_miss_fn)(void *data, enum miss_kind kind, const char *name, const char *why);
void own_module_attach(struct own_hooks *own, struct own_module *module, int fd, const char *lib,
                       size_t room, own_miss_fn miss, void *data);

/* Hooks of files for which no file was seen: told to `miss`. Once, at the end. */
void own_hooks_tell_unseen(const struct own_hooks *own, own_miss_fn miss, void *data);
