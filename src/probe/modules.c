// SPDX-License-Identifier: MIT
#include "probe/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <uthash.h>

#include "base/xalloc.h"
#include "probe/fold.h"
#include "probe/maps.h"

#define UNDECIDED 2 /* what module_open says of a file that has to be read whole */

struct file_key {
	uint64_t dev, inode;
};

/* A file that was looked into: a module, or none (NULL). */
struct seen_file {
	struct file_key key;
	struct module *module;
	bool foreign;
	UT_hash_handle hh;
};

/* A file whose .symtab was too large for a look, kept open until there is time to read it. */
struct undecided {
	struct seen_file *file;
	int fd;
	char *path;
	pid_t pid; /* that showed it, and when */
	uint64_t since_ns;
	struct undecided *next;
};

struct hook_slot {
	_Atomic(const struct hook *) hook;
	const struct module *module; /* written before hook */
};

struct modules {
	struct modules_options options;
	pthread_mutex_t lock;
	struct seen_file *files;
	struct undecided *undecided;
	struct module **list;
	size_t count;
	int next_hook;
	bool driver_seen;
	struct hook_slot slots[WIRE_HOOKS_MAX];
	struct miss *misses;
	size_t n_misses;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

struct modules *modules_new(const struct modules_options *options)
{
	struct modules *modules = xcalloc(1, sizeof(*modules));

	modules->options = *options;
	pthread_mutex_init(&modules->lock, NULL);
	return modules;
}

static void undecided_free(struct undecided *undecided)
{
	if (undecided->fd >= 0)
		close(undecided->fd);
	free(undecided->path);
	free(undecided);
}

void modules_free(struct modules *modules)
{
	struct undecided *undecided;
	struct seen_file *file, *next;

	if (!modules)
		return;
	for (size_t i = 0; i < modules->count; i++)
		module_free(modules->list[i]);
	while ((undecided = modules->undecided)) {
		modules->undecided = undecided->next;
		undecided_free(undecided);
	}
	HASH_ITER (hh, modules->files, file, next) {
		HASH_DEL(modules->files, file);
		free(file);
	}
	for (size_t i = 0; i < modules->n_misses; i++) {
		free((char *)modules->misses[i].name);
		free((char *)modules->misses[i].lib);
		free((char *)modules->misses[i].why);
	}
	free(modules->misses);
	free(modules->list);
	pthread_mutex_destroy(&modules->lock);
	free(modules);
}

/* ---- misses -------------------------------------------------------------------------------- */

static void add_miss(struct modules *modules, struct miss miss)
{
	modules->misses =
		xrealloc(modules->misses, (modules->n_misses + 1) * sizeof(*modules->misses));
	modules->misses[modules->n_misses++] = miss;
}

void modules_miss(struct modules *modules, enum miss_kind kind, const char *name, const char *lib,
                  uint32_t pid, const char *fmt, ...)
{
	struct miss miss = { .kind = kind,
		             .name = name ? xstrdup(name) : NULL,
		             .lib = lib ? xstrdup(lib) : NULL,
		             .pid = pid };
	char why[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	miss.why = xstrdup(why);
	add_miss(modules, miss);
}

size_t modules_misses(struct modules *modules, const struct miss **misses)
{
	*misses = modules->misses;
	return modules->n_misses;
}

/* ---- taking a module in -------------------------------------------------------------------- */

static void publish_hooks(struct modules *modules, struct module *module)
{
	for (size_t i = 0; i < module->n_hooks; i++) {
		struct hook_slot *slot = &modules->slots[module->hooks[i].id];

		slot->module = module;
		atomic_store_explicit(&slot->hook, &module->hooks[i], memory_order_release);
	}
}

static void report_unhooked(struct modules *modules, const struct module *module)
{
	for (size_t i = 0; i < module->n_hooks; i++) {
		const struct hook *hook = &module->hooks[i];

		if (hook->error)
			modules_miss(modules, MISS_NOT_HOOKED, hook->name, module->name, 0, "%s",
			             strerror(-hook->error));
	}
}

/* Before they are attached: a call without a plan would be sent. */
static int plan_hooks(struct modules *modules, const struct module *module)
{
	int r = 0;

	for (size_t i = 0; i < module->n_hooks && !r; i++) {
		const struct hook *hook = &module->hooks[i];

		if (hook->api && hook->group != HOOK_OFF)
			r = fold_hook(modules->options.programs, hook->id, hook->api);
	}
	return r;
}

/* Launches are seen in the driver once there is one: until then, in the runtime. */
static void driver_appeared(struct modules *modules)
{
	if (modules->driver_seen)
		return;
	modules->driver_seen = true;
	if (modules->options.selection->layers == LAYERS_AUTO &&
	    !modules->options.selection->n_only)
		programs_state(modules->options.programs)->driver_tells = 1;
	for (size_t i = 0; i < modules->count; i++)
		module_drop_runtime_launches(modules->list[i], modules->options.programs);
}

static int take_in(struct modules *modules, struct module *module, struct err *err)
{
	int next = module_number_hooks(module, modules->next_hook), r = 0;

	if (next < 0) {
		err_set(err, ENOSPC, "more than %d functions in all modules", WIRE_HOOKS_MAX);
		module_free(module);
		return -ENOSPC;
	}
	modules->next_hook = next;
	modules->list = xrealloc(modules->list, (modules->count + 1) * sizeof(*modules->list));
	modules->list[modules->count++] = module;
	publish_hooks(modules, module);
	if (modules->options.selection->fold)
		r = plan_hooks(modules, module);
	if (module->has[LAYER_DRIVER])
		driver_appeared(modules);
	if (r)
		err_set(err, r, "telling the eBPF programs what to sum up: %s", strerror(-r));
	else
		r = module_attach(module, modules->options.programs, modules->options.returns,
		                  !modules->driver_seen, err);
	report_unhooked(modules, module);
	return r;
}

/* Takes in what module_open found in a file, or notes what it said of it. */
static void settle(struct modules *modules, struct seen_file *file, int answer,
                   struct module *module, const char *path, struct err *err)
{
	if (answer == 0) {
		answer = take_in(modules, module, err);
		file->module = answer == -ENOSPC ? NULL : module;
	}
	file->foreign = answer == -EPROTONOSUPPORT;
	if (answer < 0 && answer != -EPROTONOSUPPORT && answer != -ENOEXEC)
		modules_miss(modules, MISS_NOT_HOOKED, NULL, path, 0, "%s", err->text);
}

static void note_late(struct modules *modules, const struct module *module, pid_t pid,
                      uint64_t since_ns)
{
	modules_miss(modules, MISS_HOOKED_LATE, NULL, module->name, pid,
	             "%.1f ms after it was loaded", (now_ns() - since_ns) / 1e6);
}

/* ---- what looks had no time for ------------------------------------------------------------ */

static struct undecided *next_undecided(struct modules *modules)
{
	struct undecided *first;

	pthread_mutex_lock(&modules->lock);
	first = modules->undecided;
	if (first)
		modules->undecided = first->next;
	pthread_mutex_unlock(&modules->lock);
	return first;
}

bool modules_decide(struct modules *modules)
{
	struct undecided *undecided = next_undecided(modules);
	struct module *module = NULL;
	struct err err = { 0 };
	int answer;

	bool found;

	if (!undecided)
		return false;
	/* without the lock: a look must not wait for this */
	answer = module_open(undecided->fd, undecided->path, ELF_WHOLE, modules->options.selection,
	                     &module, &err);
	undecided->fd = -1;
	pthread_mutex_lock(&modules->lock);
	settle(modules, undecided->file, answer, module, undecided->path, &err);
	found = undecided->file->module;
	if (found)
		note_late(modules, module, undecided->pid, undecided->since_ns);
	pthread_mutex_unlock(&modules->lock);
	undecided_free(undecided);
	return found;
}

/* ---- looking at a process ------------------------------------------------------------------ */

struct search {
	struct modules *modules;
	pid_t pid;
	enum look look;
	uint64_t since_ns;
	struct look_result *result;
	uint64_t exe_inode;
};

static uint64_t exe_inode(pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* What is held waits for a look, and a huge .symtab takes long: it is read when nobody waits. */
static void put_off(struct search *search, const struct mapping *mapping, struct seen_file *file)
{
	struct undecided *undecided;
	int fd = mapping_open(search->pid, mapping, NULL);

	if (fd < 0)
		return;
	undecided = xcalloc(1, sizeof(*undecided));
	*undecided = (struct undecided){ .file = file,
		                         .fd = fd,
		                         .path = xstrdup(mapping->path),
		                         .pid = search->pid,
		                         .since_ns = search->look == LOOK_LATE ? search->since_ns
		                                                               : now_ns(),
		                         .next = search->modules->undecided };
	search->modules->undecided = undecided;
}

/* Reads a file that no look has met before. */
static struct seen_file *see_file(struct search *search, const struct mapping *mapping,
                                  struct file_key key, int fd)
{
	struct modules *modules = search->modules;
	struct seen_file *file = xcalloc(1, sizeof(*file));
	/* the program itself may have cudart linked in, and be called into at once */
	bool whole = mapping->inode == search->exe_inode;
	struct module *module = NULL;
	struct err err = { 0 };
	int answer = module_open(fd, mapping->path, whole ? ELF_WHOLE : ELF_SMALL_SYMTAB,
	                         modules->options.selection, &module, &err);

	file->key = key;
	if (answer == UNDECIDED)
		put_off(search, mapping, file);
	else
		settle(modules, file, answer, module, mapping->path, &err);
	HASH_ADD(hh, modules->files, key, sizeof(file->key), file);
	programs_file_known(modules->options.programs,
	                    major(mapping->dev) << 20 | minor(mapping->dev), mapping->inode);
	if (file->module) {
		search->result->hooked++;
		if (search->look == LOOK_LATE)
			note_late(modules, file->module, search->pid, search->since_ns);
	}
	return file;
}

static void found(struct look_result *result, const struct module *module)
{
	result->modules++;
	result->driver |= module->has[LAYER_DRIVER];
}

static int look_at(const struct mapping *mapping, void *data)
{
	struct search *search = data;
	struct file_key key = { .dev = mapping->dev, .inode = mapping->inode };
	struct seen_file *file;

	HASH_FIND(hh, search->modules->files, &key, sizeof(key), file);
	if (!file) {
		int fd = mapping_open(search->pid, mapping, NULL);

		if (fd < 0)
			return 0; /* gone already, or not to be read: the next look tries again */
		file = see_file(search, mapping, key, fd);
	}
	if (file->module && mapping->offset <= file->module->hooks[0].entry)
		found(search->result, file->module);
	if (file->foreign && mapping->inode == search->exe_inode)
		search->result->foreign = true;
	return 0;
}

int modules_look(struct modules *modules, pid_t pid, enum look look, uint64_t since_ns,
                 struct look_result *result, struct err *err)
{
	struct look_result unused;
	struct search search = { .modules = modules,
		                 .pid = pid,
		                 .look = look,
		                 .since_ns = since_ns,
		                 .result = result ? result : &unused };
	int r;

	memset(search.result, 0, sizeof(*search.result));
	pthread_mutex_lock(&modules->lock);
	search.exe_inode = exe_inode(pid);
	r = maps_each(pid, look_at, &search, err);
	pthread_mutex_unlock(&modules->lock);
	return r;
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

bool modules_have_driver(const struct modules *modules)
{
	return modules->driver_seen;
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
