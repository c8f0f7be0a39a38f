// SPDX-License-Identifier: MIT
/* The modules of a run: those that were found and hooked, and what could not be. */
#include "probe/modules_inside.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "probe/fold.h"
#include "probe/helper.h"
#include "probe/patched.h"
#include "probe/person.h"

#define MISSES_MAX    4096 /* whatever targets do */
#define FUNCTIONS_MAX 2048 /* of these may be single functions: any file can have thousands */
#define TOLD_MAX                                                                                   \
	(2 * MISS_LAST + 5)   /* and those that are made anew whenever they are asked for          \
	                       */
#define MISSES_OF_ONE    64   /* with a process's number: by loading a library again and again */
#define MISSES_OF_PERSON 2048 /* of all processes of somebody but root */
#define PERSON_NS        10000000ull /* how long a process is taken for the same user's */
#define LATE_NAMED       8           /* processes of a module that are told of one by one */
#define LATE_MAX         16384       /* of a module that are known; the others are counted */

struct modules *modules_new(const struct modules_options *options)
{
	struct modules *modules = xcalloc(1, sizeof(*modules));

	modules->options = *options;
	modules->unseen = unseen_new();
	modules->shares = shares_init();
	modules->listed = (struct quota){ .process = { .most = MISSES_OF_ONE },
		                          .user = { .most = MISSES_OF_PERSON },
		                          .all = { .most = MISSES_MAX } };
	pthread_mutex_init(&modules->lock, NULL);
	pthread_cond_init(&modules->read, NULL);
	return modules;
}

static void undecided_free(struct undecided *undecided)
{
	helper_close(undecided->fd);
	free(undecided->path);
	free(undecided);
}

static void miss_free(struct miss *miss)
{
	free((char *)miss->name);
	free((char *)miss->lib);
	free((char *)miss->why);
}

/* What modules_misses added when it was asked last. */
static void drop_told(struct modules *modules)
{
	while (modules->n_told)
		miss_free(&modules->misses[modules->n_misses + --modules->n_told]);
}

void modules_free(struct modules *modules)
{
	struct undecided *undecided;

	if (!modules)
		return;
	for (size_t i = 0; i < modules->count; i++)
		module_free(modules->list[i]);
	while ((undecided = modules->undecided)) {
		modules->undecided = undecided->next;
		undecided_free(undecided);
	}
	MAP_FREE(modules->files, free);
	drop_told(modules);
	for (size_t i = 0; i < modules->n_misses; i++)
		miss_free(&modules->misses[i]);
	free(modules->misses);
	free(modules->standing);
	quota_free(&modules->listed);
	unseen_free(modules->unseen);
	shares_free(&modules->shares);
	hook_numbers_free(&modules->numbers);
	pthread_cond_destroy(&modules->read);
	pthread_mutex_destroy(&modules->lock);
	free(modules);
}

/* ---- misses -------------------------------------------------------------------------------- */

uint64_t modules_person(struct modules *modules, pid_t pid)
{
	struct modules_person *known = &modules->persons[(unsigned)pid % PERSONS_MOST];
	uint64_t now = clock_now_ns();

	if (known->pid != pid || now - known->at_ns > PERSON_NS)
		*known = (struct modules_person){ pid, person_of_process(pid), now };
	return known->person;
}

/* The slot of the new miss, counted from 1; 0: there was no room. */
static size_t add_miss(struct modules *modules, struct miss miss)
{
	uint64_t person = miss.pid ? modules_person(modules, (pid_t)miss.pid) : PERSON_ROOT;

	if ((miss.name && modules->n_functions_missed == FUNCTIONS_MAX) ||
	    quota_take(&modules->listed, person, miss.pid, 1)) {
		modules->left_out[miss.kind]++;
		miss_free(&miss);
		return 0;
	}
	modules->n_functions_missed += miss.name != NULL;
	drop_told(modules);
	modules->misses = xrealloc(modules->misses,
	                           (modules->n_misses + 1 + TOLD_MAX) * sizeof(*modules->misses));
	modules->misses[modules->n_misses++] = miss;
	return modules->n_misses;
}

static struct miss make_miss(enum miss_kind kind, const char *lib, uint32_t pid, const char *fmt,
                             va_list ap)
{
	char why[512];

	vsnprintf(why, sizeof(why), fmt, ap);
	return (struct miss){
		.kind = kind, .lib = lib ? xstrdup(lib) : NULL, .pid = pid, .why = xstrdup(why)
	};
}

void modules_miss(struct modules *modules, enum miss_kind kind, const char *name, const char *lib,
                  uint32_t pid, const char *fmt, ...)
{
	struct miss miss;
	va_list ap;

	va_start(ap, fmt);
	miss = make_miss(kind, lib, pid, fmt, ap);
	va_end(ap);
	miss.name = name ? xstrdup(name) : NULL;
	add_miss(modules, miss);
}

void modules_more(struct modules *modules, enum miss_kind kind, uint64_t processes)
{
	modules->more[kind] = processes;
}

void modules_not_looked_into(struct modules *modules, const char *path, uint32_t pid,
                             const char *why)
{
	for (size_t i = 0; i < modules->n_misses; i++) {
		const struct miss *miss = &modules->misses[i];

		if (miss->kind == MISS_NOT_HOOKED && !miss->name && miss->lib &&
		    !strcmp(miss->lib, path))
			return; /* looks come again and again */
	}
	modules_miss(modules, MISS_NOT_HOOKED, NULL, path, pid, "%s", why);
}

/* A miss that stands for several processes, and is told anew when they are more. */
__attribute__((format(printf, 6, 7))) static void count_miss(struct modules *modules, size_t *slot,
                                                             enum miss_kind kind, const char *lib,
                                                             uint64_t processes, const char *fmt,
                                                             ...)
{
	struct miss miss, *old = *slot ? &modules->misses[*slot - 1] : NULL;
	va_list ap;

	va_start(ap, fmt);
	miss = make_miss(kind, lib, 0, fmt, ap);
	va_end(ap);
	miss.processes = processes;
	if (!old) {
		*slot = add_miss(modules, miss);
		return;
	}
	miss_free(old);
	*old = miss;
}

static char *why_counted(const struct modules_counted *counted)
{
	struct buf why = { 0 };

	if (counted->calls)
		buf_printf(&why, "%lu calls inside of %lu process%s, and not recorded one by one",
		           counted->calls, counted->processes, counted->processes == 1 ? "" : "es");
	if (counted->alone)
		buf_printf(&why,
		           "%lu call%s that the runtime refused or answered without a hooked call "
		           "of the driver, not recorded without returns",
		           counted->alone, counted->alone == 1 ? "" : "s");
	if (counted->in_children)
		buf_printf(&why, "%s%lu call%s in children that %lu process%s forked, not recorded",
		           counted->calls ? "; " : "", counted->in_children,
		           counted->in_children == 1 ? "" : "s", counted->parents,
		           counted->parents == 1 ? "" : "es");
	return why.data;
}

void modules_counted(struct modules *modules, size_t *slot, const char *name, const char *lib,
                     const struct modules_counted *counted)
{
	const size_t no_room = SIZE_MAX;
	struct miss *miss;

	if (!*slot) {
		*slot = add_miss(modules, (struct miss){ .kind = MISS_COUNTED,
		                                         .name = xstrdup(name),
		                                         .lib = xstrdup(lib) });
		*slot = *slot ? *slot : no_room;
	}
	if (*slot == no_room)
		return;
	miss = &modules->misses[*slot - 1];
	miss->calls = counted->calls + counted->in_children + counted->alone;
	miss->processes =
		counted->processes > counted->parents ? counted->processes : counted->parents;
	free((char *)miss->why);
	miss->why = why_counted(counted);
}

/* One that is true at this moment, behind all others. */
__attribute__((format(printf, 4, 5))) static void
tell_now(struct modules *modules, enum miss_kind kind, uint64_t processes, const char *fmt, ...)
{
	struct miss *miss;
	va_list ap;

	modules->misses = xrealloc(modules->misses,
	                           (modules->n_misses + TOLD_MAX) * sizeof(*modules->misses));
	miss = &modules->misses[modules->n_misses + modules->n_told++];
	va_start(ap, fmt);
	*miss = make_miss(kind, NULL, 0, fmt, ap);
	va_end(ap);
	miss->processes = processes;
}

static void tell_unseen(struct modules *modules, bool cuda, const char *what)
{
	AT_END(buf_free) struct buf names = { 0 };
	uint64_t n = unseen_processes(modules->unseen, cuda, &names);

	if (n)
		tell_now(modules, MISS_UNSEEN, n,
		         "%lu process%s ended before %s could be looked into (%s)", n,
		         n == 1 ? "" : "es", what, names.data);
}

uint64_t modules_unseen(const struct modules *modules)
{
	AT_END(buf_free) struct buf names = { 0 };

	return unseen_processes(modules->unseen, true, &names);
}

/* Their .symtab is huge: at the end of a trace nobody comes to it any more. */
static void tell_undecided(struct modules *modules)
{
	size_t n = modules->n_undecided + modules->deciding;

	if (n)
		tell_now(modules, MISS_NOT_HOOKED, 0,
		         "%zu file%s with a large symbol table %s not read yet", n,
		         n == 1 ? "" : "s", n == 1 ? "was" : "were");
}

/* How many there are of a kind beside those that have a miss each. */
static void tell_unlisted(struct modules *modules, enum miss_kind kind)
{
	uint64_t more = modules->more[kind];

	if (more)
		tell_now(modules, kind, more, "%lu more process%s, not named", more,
		         more == 1 ? "" : "es");
	if (modules->left_out[kind])
		tell_now(modules, kind, 0, "%zu more such things were missed and are not listed",
		         modules->left_out[kind]);
}

/* Calls that were counted are none where a probe has told of them in the end, as it may do later.
 */
static size_t stand(struct modules *modules)
{
	size_t all = modules->n_misses + modules->n_told, n = 0;

	modules->standing = xrealloc(modules->standing, (all + 1) * sizeof(*modules->standing));
	for (size_t i = 0; i < all; i++) {
		if (modules->misses[i].kind != MISS_COUNTED || modules->misses[i].calls)
			modules->standing[n++] = modules->misses[i];
	}
	return n;
}

size_t modules_misses(struct modules *modules, const struct miss **misses)
{
	size_t n;

	drop_told(modules);
	modules_tell_alone(modules);
	tell_unseen(modules, true, "their CUDA libraries");
	tell_unseen(modules, false, "their programs or other files");
	tell_undecided(modules);
	for (size_t kind = 0; kind <= MISS_LAST; kind++)
		tell_unlisted(modules, (enum miss_kind)kind);
	n = stand(modules);
	*misses = modules->standing;
	return n;
}

void modules_late(struct modules *modules, struct module *module, uint32_t pid, uint64_t since_ns)
{
	uint64_t late_ns = module->hooked_ns > since_ns ? module->hooked_ns - since_ns : 0;
	size_t n;
	struct late_process *late = MAP_FIND(module->late, &pid);

	if (late) { /* it was unloaded, and its probes were away when it was loaded again */
		if (module->came_back)
			modules_miss(modules, MISS_UNHOOKED, NULL, module->name, pid,
			             "calls of %.1f ms after it was loaded again", late_ns / 1e6);
		return;
	}
	if (HASH_COUNT(module->late) < LATE_MAX) {
		late = MAP_ADD(module->late, pid, &pid);
	} else {
		module->late_unknown++;
	}
	n = HASH_COUNT(module->late) + module->late_unknown;
	if (n <= LATE_NAMED) {
		modules_miss(modules, MISS_HOOKED_LATE, NULL, module->name, pid,
		             "%.1f ms after it was loaded", late_ns / 1e6);
		return;
	}
	module->latest_ns = late_ns > module->latest_ns ? late_ns : module->latest_ns;
	count_miss(modules, &module->late_miss, MISS_HOOKED_LATE, module->name, n - LATE_NAMED,
	           "in %zu more processes, up to %.1f ms after they had loaded it", n - LATE_NAMED,
	           module->latest_ns / 1e6);
}

/* ---- taking a module in -------------------------------------------------------------------- */

static void publish_hooks(struct modules *modules, struct module *module)
{
	for (size_t i = 0; i < module->n_hooks; i++) {
		struct hook_slot *slot;

		if (module->hooks[i].id == HOOK_NO_ID)
			continue;
		slot = &modules->slots[module->hooks[i].id];
		slot->module = module;
		atomic_store_explicit(&slot->hook, &module->hooks[i], memory_order_release);
	}
}

static const char *why_unhooked(int error)
{
	if (error == -EINTR)
		return "the trace ended before";
	if (error == -EFAULT)
		return "the kernel cannot write there in some process, so it puts this probe into "
		       "no process";
	return strerror(-error);
}

void modules_tell_unhooked(struct modules *modules, struct module *module)
{
	for (size_t i = 0; i < module->n_hooks; i++) {
		struct hook *hook = &module->hooks[i];
		bool told = hook->error_told;

		hook->error_told |= hook->error != 0;
		if (hook->error && !told && hook->patched)
			modules_miss(modules, MISS_NOT_HOOKED, hook->name, module->name,
			             (uint32_t)hook->patched, "the process %s",
			             patch_why(hook->patch));
		else if (hook->error && !told)
			modules_miss(modules, MISS_NOT_HOOKED, hook->name, module->name, 0, "%s",
			             why_unhooked(hook->error));
	}
}

/* Before they are attached: a call without a plan would be sent. */
static int plan_hooks(struct modules *modules, const struct module *module)
{
	int r = 0;

	for (size_t i = 0; i < module->n_hooks && !r; i++) {
		const struct hook *hook = &module->hooks[i];

		if (hook->api && hook->group != HOOK_OFF)
			r = fold_hook(modules->options.programs, hook->id, hook->api,
			              api_is_per_thread(hook->name));
	}
	return r;
}

/* What the governor had left alone of the function in the file before, and what was counted. */
static void begin_anew(void *data, uint16_t id)
{
	const struct modules *modules = data;

	programs_state(modules->options.programs)->mode[id] = 0;
	programs_state(modules->options.programs)->alone[id] = 0;
}

/* Gives the module its share of all hooks; -ENOSPC: nothing is left for it. */
static int give_hooks(struct modules *modules, struct module *module, struct err *err)
{
	size_t wants = module_wants(module);
	const char *limit = shares_file_limit(wants),
		   *why = modules->count == MODULES_MAX
	                          ? "there are more than 4,096 CUDA libraries and programs"
	                          : shares_take_file(&modules->shares, module->owner);

	if (why)
		return err_set(err, ENOSPC, "%s", why);
	if (limit)
		module_limit(module, SHARE_FILE, limit);
	modules->numbers.by_file = !modules->options.selection->fold;
	if (hook_numbers_take(&modules->numbers, &modules->shares, module, begin_anew, modules,
	                      &why)) {
		shares_file_gone(&modules->shares, module->owner, 0);
		return err_set(err, ENOSPC, "%s", why);
	}
	if (limit)
		modules_miss(modules, MISS_NOT_HOOKED, NULL, module->name, 0,
		             "%zu of its %zu functions: %s", wants - SHARE_FILE, wants, limit);
	return 0;
}

struct own_missed {
	struct modules *modules;
	const char *lib;
};

static void miss_own(void *data, enum miss_kind kind, const char *name, const char *why)
{
	struct own_missed *missed = data;

	modules_miss(missed->modules, kind, name, missed->lib, 0, "%s", why);
}

/* Hooks that users asked for: each file and each user has a share of them, as of all others. */
static void hook_own(struct modules *modules, struct module *module)
{
	struct own_missed missed = { modules, module->name };
	size_t wants = module->own->functions.n, gets;
	const char *why = NULL;

	gets = wants ? shares_take(&modules->shares, module->owner, wants, &why) : 0;
	if (gets < wants)
		modules_miss(modules, MISS_NOT_HOOKED, NULL, module->name, 0,
		             "%zu of the %zu functions that --hook asks for: %s", wants - gets,
		             wants, why);
	own_module_attach(modules->options.own, module->own, module->fd, module->name, gets,
	                  miss_own, &missed);
}

void modules_tell_unseen_hooks(struct modules *modules)
{
	struct own_missed missed = { modules, NULL };

	if (modules->options.own)
		own_hooks_tell_unseen(modules->options.own, miss_own, &missed);
}

static int take_in(struct modules *modules, struct module *module, struct err *err)
{
	int r = give_hooks(modules, module, err);

	if (r) {
		modules->refused++;
		module_free(module);
		return r;
	}
	module->programs = modules->options.programs;
	module->returns = modules->options.returns;
	module->expected = module->beforehand = modules->expecting;
	module->used_ns = clock_now_ns();
	modules->gone_looks = 0;
	modules->list[modules->count] = module;
	publish_hooks(modules, module);
	modules->count++;
	modules_mark_double(modules, module);
	if (modules->options.selection->fold)
		r = plan_hooks(modules, module);
	if (module->has[LAYER_DRIVER] && !module->expected)
		modules_driver_appeared(modules, module);
	if (module->own && modules->options.own)
		hook_own(modules, module);
	if (r)
		err_set(err, r, "cannot tell the eBPF programs what to sum up: %s", strerror(-r));
	else if (modules->paused)
		return 0;
	else
		r = module_attach(module, err);
	modules_tell_unhooked(modules, module);
	return r;
}

void modules_settle(struct modules *modules, struct seen_file *file, int answer,
                    struct module *module, const char *path, struct err *err)
{
	if (answer == 0) {
		answer = take_in(modules, module, err);
		file->module = answer == -ENOSPC ? NULL : module;
		file->refused = answer == -ENOSPC;
		file->refused_to = PERSON_UNKNOWN;
		file->refused_pid = 0;
	}
	file->foreign = answer == -EPROTONOSUPPORT;
	if (answer < 0 && answer != -EPROTONOSUPPORT && answer != -ENOEXEC)
		modules_miss(modules, MISS_NOT_HOOKED, NULL, path, 0, "%s", err->text);
}

void modules_used(struct modules *modules, struct module *module)
{
	if (!module->expected)
		return;
	module->expected = false;
	if (module->has[LAYER_DRIVER])
		modules_driver_appeared(modules, module);
}

/* ---- reading ------------------------------------------------------------------------------- */

const struct hook *modules_hook(const struct modules *modules, uint16_t id,
                                const struct module **module)
{
	const struct hook *hook;

	if (id >= WIRE_HOOKS_MAX)
		return NULL;
	hook = atomic_load_explicit(&modules->slots[id].hook, memory_order_acquire);
	if (hook && module)
		*module = modules->slots[id].module;
	return hook;
}

size_t modules_count(const struct modules *modules)
{
	return modules->count;
}

struct module *modules_at(const struct modules *modules, size_t index)
{
	return modules->list[index];
}

void modules_pause(struct modules *modules, bool pause)
{
	modules->paused = pause;
}

size_t modules_hooked(const struct modules *modules)
{
	size_t hooked = 0;

	for (size_t m = 0; m < modules->count; m++) {
		for (size_t i = 0; i < modules->list[m]->n_hooks; i++)
			hooked += modules->list[m]->hooks[i].hooked;
	}
	return hooked;
}

void modules_lock(struct modules *modules)
{
	pthread_mutex_lock(&modules->lock);
}

void modules_unlock(struct modules *modules)
{
	pthread_mutex_unlock(&modules->lock);
}
