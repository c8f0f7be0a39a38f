// SPDX-License-Identifier: MIT
/*
 * Modules that no process has mapped any more. A machine that runs for months sees the libraries of
 * many container images, and there are numbers for the hooks of some fifteen of them at a time.
 *
 * Whether one is mapped is found out by reading the maps of all processes, on a thread of its own.
 * Whoever maps it meanwhile is told of, since the programs do not know the file while it is looked
 * for. Those that nobody had are let go by the main thread, between two records: nobody else looks
 * at hooks without the lock where modules are let go (modules_options.lets_go).
 */
#include "probe/modules_inside.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/later.h"
#include "base/map.h"
#include "base/process.h"
#include "probe/helper.h"

#define SECOND 1000000000ull

#define UNUSED_NS (600 * SECOND) /* a module stays for so long after it was seen to be used */
#define SOON_NS   (300 * SECOND) /* and is looked for from here on, if others are */
#define CROWD_NS  (2 * SECOND)   /* the same where half of the room is taken */

/* Between two looks where there is a crowd: they double while nothing is found to be let go. */
#define GAP_LEAST_NS (2 * SECOND)
#define GAP_MOST_NS  (300 * SECOND)
#define GAP_OF_LOOK  20 /* times what the last one took: files can come without an end */

/* What a process that has just ended had told is on its way for so long, and has to find its hook.
 */
#define ON_ITS_WAY_NS (2 * SECOND)

/* A process whose maps cannot be read may have anything: but not for as long as it likes. */
#define BELIEVED_NS (3600 * SECOND)

/* ---- which ones are looked for ------------------------------------------------------------- */

/* For whoever maps it first, as long as it is there. */
static bool stays_beforehand(const struct module *module)
{
	struct stat st;

	return module->beforehand && !module->rewritten && !file_stat(module->fd, &st) &&
	       st.st_nlink;
}

static bool may_go(const struct modules *modules, const struct module *module, uint64_t now_ns,
                   uint64_t unused_ns)
{
	uint64_t age_ns = now_ns > module->used_ns ? now_ns - module->used_ns : 0;

	if (module->leaving != LEAVING_NOT || module->probes != PROBES_THERE)
		return false;
	if (age_ns < unused_ns &&
	    (age_ns < CROWD_NS || !shares_are_crowded(&modules->shares, module->owner)))
		return false;
	return !stays_beforehand(module);
}

static bool any_may_go(const struct modules *modules, uint64_t now_ns)
{
	for (size_t i = 0; i < modules->count; i++) {
		if (may_go(modules, modules->list[i], now_ns, UNUSED_NS))
			return true;
	}
	return false;
}

static size_t ask_for_all(struct modules *modules, uint64_t now_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < modules->count; i++) {
		struct module *module = modules->list[i];

		if (!may_go(modules, module, now_ns, SOON_NS))
			continue;
		module->leaving = LEAVING_ASKED;
		modules_set_known(modules, module, false);
		n++;
	}
	return n;
}

/* ---- looking for them ---------------------------------------------------------------------- */

struct wanted_file {
	struct file_key key;
	struct module *module;
	UT_hash_handle hh;
};

struct search {
	const struct programs *programs;
	struct wanted_file *files;
	bool unread; /* the maps of a process that uses CUDA */
};

static int note_mapping(const struct mapping *mapping, void *data)
{
	struct search *search = data;
	const struct file_key key = { .dev = mapping->dev, .inode = mapping->inode };
	struct wanted_file *file = MAP_FIND(search->files, &key);

	if (file)
		file->module->mapped = true;
	return 0;
}

/* One of its threads has made a call, or that cannot be found out. */
bool modules_calls_cuda(const struct programs *programs, pid_t pid)
{
	AT_END(process_list_end) DIR *threads = process_list(pid);
	bool calls = !threads && errno != ENOENT;
	pid_t tid;

	while (!calls && (tid = process_next(threads)))
		calls = programs_thread_known(programs, tid);
	return calls;
}

static void read_maps(struct search *search, pid_t pid)
{
	struct err err = { 0 };

	if (maps_each(pid, note_mapping, search, &err) < 0 && err.code != -ESRCH)
		search->unread |= modules_calls_cuda(search->programs, pid);
}

/* False where there is no list of processes, or no time for all. */
static bool read_all_maps(struct search *search)
{
	AT_END(process_list_end) DIR *processes = process_list(0);
	pid_t pid;

	while (!end_is_near() && (pid = process_next(processes)))
		read_maps(search, pid);
	return processes && !end_is_near();
}

static void want_files(struct modules *modules, struct search *search)
{
	struct seen_file *file, *next;

	HASH_ITER (hh, modules->files, file, next) {
		struct wanted_file *wanted;

		if (!file->module || file->module->leaving != LEAVING_ASKED || file->module->mapped)
			continue;
		wanted = MAP_ADD(search->files, key, &file->key);
		wanted->module = file->module;
	}
}

static void search_free(struct search *search)
{
	MAP_FREE(search->files, free);
}

/*
 * Twice: a process may have forked and ended between the moments at which its child and it would
 * have been read. Lets go of the lock meanwhile. Modules that are asked for stay where they are.
 */
static bool look_twice(struct modules *modules, bool *unread)
{
	bool listed = true;

	for (int i = 0; i < 2 && listed; i++) {
		struct search search = { .programs = modules->options.programs };

		want_files(modules, &search);
		pthread_mutex_unlock(&modules->lock);
		listed = read_all_maps(&search);
		pthread_mutex_lock(&modules->lock);
		*unread |= search.unread;
		search_free(&search);
	}
	return listed;
}

/* ---- what comes of it ---------------------------------------------------------------------- */

void modules_stay(struct modules *modules, struct module *module)
{
	module->used_ns = clock_now_ns();
	if (module->leaving == LEAVING_NOT)
		return;
	if (module->leaving == LEAVING_NOW)
		shares_file_back(&modules->shares, module->owner, module_wants(module));
	module->leaving = LEAVING_NOT;
	modules_set_known(modules, module, true);
}

static struct module *oldest_unmapped(struct modules *modules)
{
	struct module *oldest = NULL;

	for (size_t i = 0; i < modules->count; i++) {
		struct module *module = modules->list[i];

		if (module->leaving == LEAVING_ASKED && !module->mapped &&
		    (!oldest || module->used_ns < oldest->used_ns))
			oldest = module;
	}
	return oldest;
}

/* Where there is a crowd, those that were used last stay for as long as there is room. */
static size_t decide(struct modules *modules, uint64_t now_ns, bool unread)
{
	struct module *module;
	size_t n = 0;

	while ((module = oldest_unmapped(modules))) {
		uint64_t age_ns = now_ns > module->used_ns ? now_ns - module->used_ns : 0;
		bool goes =
			age_ns >= UNUSED_NS || shares_are_crowded(&modules->shares, module->owner);

		if (!goes || (unread && age_ns < BELIEVED_NS)) {
			module->leaving = LEAVING_NOT;
			modules_set_known(modules, module, true);
			continue;
		}
		if (unread)
			modules_miss(modules, MISS_NOT_HOOKED, NULL, module->name, 0,
			             "its hooks were given back, and a process that uses CUDA and "
			             "whose maps cannot be read may have it mapped");
		module->leaving = LEAVING_NOW;
		module->left_ns = now_ns;
		shares_file_gone(&modules->shares, module->owner, module_wants(module));
		n++;
	}
	return n;
}

static void keep_mapped(struct modules *modules, uint64_t now_ns)
{
	for (size_t i = 0; i < modules->count; i++) {
		struct module *module = modules->list[i];

		if (module->leaving == LEAVING_ASKED && module->mapped) {
			modules_stay(modules, module);
			module->used_ns = now_ns;
		}
		module->mapped = false;
	}
}

/* Not at once again where nothing came of it, and no file has come since. */
static bool is_due(const struct modules *modules, uint64_t now_ns)
{
	uint64_t gap_ns = GAP_LEAST_NS << (modules->gone_looks < 8 ? modules->gone_looks : 8);

	gap_ns = gap_ns < GAP_MOST_NS ? gap_ns : GAP_MOST_NS;
	if (gap_ns < GAP_OF_LOOK * modules->gone_look_ns)
		gap_ns = GAP_OF_LOOK * modules->gone_look_ns;
	return !modules->looked_for_gone_ns || now_ns >= modules->looked_for_gone_ns + gap_ns;
}

/* Without a list of processes nothing is known of anybody. */
static size_t look_and_decide(struct modules *modules, uint64_t now_ns)
{
	uint64_t begin_ns = clock_now_ns();
	bool unread = false, listed;

	ask_for_all(modules, now_ns);
	listed = look_twice(modules, &unread);
	for (size_t i = 0; i < modules->count; i++)
		modules->list[i]->mapped |= !listed;
	keep_mapped(modules, now_ns);
	modules->gone_look_ns = clock_now_ns() - begin_ns;
	return decide(modules, now_ns + modules->gone_look_ns, unread);
}

void modules_look_for_gone(struct modules *modules, uint64_t now_ns)
{
	size_t n = 0;

	if (!modules->options.lets_go)
		return;
	LOCKED(&modules->lock);
	if (is_due(modules, now_ns) && any_may_go(modules, now_ns)) {
		n = look_and_decide(modules, now_ns);
		modules->n_leaving += n;
		modules->gone_looks = n ? 0 : modules->gone_looks + 1;
		modules->looked_for_gone_ns = now_ns;
	}
}

/* ---- letting go ---------------------------------------------------------------------------- */

static void forget_files(struct modules *modules, const struct module *module)
{
	struct seen_file *file, *next;

	HASH_ITER (hh, modules->files, file, next) {
		if (file->module != module)
			continue;
		MAP_DROP(modules->files, file);
	}
}

/* Its links are closed on another thread: nobody is there to meet the probes meanwhile. */
static void let_go(struct modules *modules, size_t at, const struct modules_gone *gone)
{
	struct module *module = modules->list[at];

	for (size_t i = 0; i < module->n_hooks; i++) {
		const struct hook *hook = &module->hooks[i];

		if (hook->id == HOOK_NO_ID)
			continue;
		gone->number(gone->data, hook->id);
		atomic_store(&modules->slots[hook->id].hook, NULL);
		modules->slots[hook->id].module = NULL;
	}
	hook_numbers_give_back(&modules->numbers, module);
	forget_files(modules, module);
	module_take_away(module);
	modules->list[at] = modules->list[modules->count - 1];
	modules->count--;
	module_free(module);
	modules->let_go++;
}

/* There was no room for them: the processes that wanted it may still be there. */
static size_t forget_refused(struct modules *modules, pid_t *pids, size_t room)
{
	struct seen_file *file, *next;
	size_t n = 0;

	HASH_ITER (hh, modules->files, file, next) {
		if (!file->refused || file->reading || file->put_off)
			continue;
		if (n < room && file->refused_pid)
			pids[n++] = file->refused_pid;
		MAP_DROP(modules->files, file);
	}
	return n;
}

#define AGAIN_MAX 64 /* others are hooked when they are mapped next */

void modules_let_go(struct modules *modules, uint64_t now_ns, const struct modules_gone *gone)
{
	uint64_t before = modules->let_go;
	pid_t again[AGAIN_MAX];
	size_t n = 0;

	if (!modules->n_leaving)
		return;
	pthread_mutex_lock(&modules->lock);
	modules->n_leaving = 0;
	for (size_t i = modules->count; i-- > 0;) {
		struct module *module = modules->list[i];

		if (module->leaving != LEAVING_NOW)
			continue;
		if (module->busy || now_ns < module->left_ns + ON_ITS_WAY_NS)
			modules->n_leaving++;
		else
			let_go(modules, i, gone);
	}
	if (modules->let_go != before)
		n = forget_refused(modules, again, AGAIN_MAX);
	pthread_mutex_unlock(&modules->lock);
	while (n)
		gone->again(gone->data, again[--n]);
}

void modules_figures(struct modules *modules, struct modules_figures *figures)
{
	LOCKED(&modules->lock);
	*figures = (struct modules_figures){ .modules = modules->count,
		                             .let_go = modules->let_go,
		                             .refused = modules->refused };
}

bool modules_let_go_any(struct modules *modules)
{
	struct modules_figures figures;

	modules_figures(modules, &figures);
	return figures.let_go > 0;
}
