// SPDX-License-Identifier: MIT
/*
 * Files that were looked into. A file is known by device, inode number, size and the time of its
 * last change: a number alone is used again, and a file can be written anew. Files of modules stay
 * open, so that their numbers are theirs; of others only what was found is kept.
 */
#include "probe/modules_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/xalloc.h"
#include "probe/helper.h"

/* The time of a change is that of a clock tick: a file that was just written may be again in it. */
#define YOUNG_NS 1000000000ll

struct file_key modules_key(const struct wire_file *file)
{
	dev_t dev = makedev((unsigned)(file->dev >> 20), (unsigned)(file->dev & 0xfffff));

	return (struct file_key){ .dev = dev, .inode = file->inode };
}

struct seen_file *modules_file(struct modules *modules, struct file_key key)
{
	return MAP_FIND(modules->files, &key);
}

/* What is no module and was found longest ago is read again if it is mapped once more. */
static void forget_oldest(struct modules *modules)
{
	struct seen_file *file, *next;

	HASH_ITER (hh, modules->files, file, next) {
		if (file->module || file->reading || file->put_off)
			continue;
		MAP_DROP(modules->files, file);
		return;
	}
}

static struct seen_file *add_file(struct modules *modules, struct file_key key)
{
	struct seen_file *file = xcalloc(1, sizeof(*file));

	if (HASH_COUNT(modules->files) >= SEEN_FILES_MAX)
		forget_oldest(modules);
	file->key = key;
	HASH_ADD(hh, modules->files, key, sizeof(file->key), file);
	return file;
}

static bool is_young(int fd)
{
	struct timespec now;
	struct stat st;
	int64_t age;

	if (file_stat(fd, &st))
		return true;
	clock_gettime(CLOCK_REALTIME, &now);
	age = (int64_t)(now.tv_sec - st.st_ctim.tv_sec) * 1000000000 +
	      (now.tv_nsec - st.st_ctim.tv_nsec);
	return age < YOUNG_NS;
}

bool modules_is_same(const struct seen_file *file, int fd)
{
	return file->stamp && file->stamp == module_file_stamp(fd);
}

/* The module that this file is already, under another name for its device. */
static struct module *module_of(const struct modules *modules, int fd)
{
	uint64_t stamp = module_file_stamp(fd);
	struct stat st;

	if (file_stat(fd, &st))
		return NULL;
	for (size_t i = 0; i < modules->count; i++) {
		struct module *module = modules->list[i];

		if (module->inode == st.st_ino && module->dev == st.st_dev &&
		    module->stamp == stamp && !module->rewritten)
			return module;
	}
	return NULL;
}

static uint64_t cpu_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * Reads it without the lock. Files that hooks of users name are chosen by their names, and anybody
 * can make such files, with as many symbols as he likes. So the time that looks spend on them is
 * bounded, and what is beyond is put off: as a depth at which nothing is decided.
 */
static int open_bounded(struct modules *modules, int fd, const char *path, enum elf_depth depth,
                        struct module **module, struct err *err)
{
	const struct selection *selection = modules->options.selection;
	bool own = own_functions_wanted(selection->hooks, path);
	uint64_t begin_ns = cpu_now_ns();
	int answer;

	if (own && depth == ELF_SMALL_SYMTAB &&
	    account_is_over(&modules->own_reads, clock_now_ns()))
		depth = ELF_DYNSYM_ONLY;
	pthread_mutex_unlock(&modules->lock);
	answer = module_open(fd, path, depth, selection, module, err);
	pthread_mutex_lock(&modules->lock);
	if (own)
		account_charge(&modules->own_reads, cpu_now_ns() - begin_ns, clock_now_ns());
	return answer;
}

struct seen_file *modules_read(struct modules *modules, struct file_key key, int fd,
                               const char *path, enum elf_depth depth, enum look look,
                               struct err *err)
{
	struct seen_file *file = add_file(modules, key);
	uint64_t stamp = module_file_stamp(fd);
	bool young = is_young(fd);
	struct module *module = NULL;
	int answer;

	file->module = module_of(modules, fd);
	if (file->module) {
		file->stamp = stamp;
		close(fd);
		return file;
	}
	file->reading = true;
	answer = open_bounded(modules, fd, path, depth, &module, err);
	file->reading = false;
	pthread_cond_broadcast(&modules->read);
	file->put_off = answer == UNDECIDED;
	modules->looking = look;
	if (!file->put_off)
		modules_settle(modules, file, answer, module, path, err);
	/* a module stays open, so its number is its own */
	file->stamp = (young && !file->module) || answer == -ETIMEDOUT ? 0 : stamp;
	return file;
}

void modules_forget(struct modules *modules, struct seen_file *file)
{
	struct seen_file *other, *next;
	struct module *module = file->module;

	if (module && !module->rewritten) {
		module_detach(module);
		module->rewritten = true;
		modules_miss(modules, MISS_HOOKED_LATE, NULL, module->name, 0,
		             "its file was written anew while it was hooked: calls since then may "
		             "be missing or wrong");
	}
	MAP_DROP(modules->files, file);
	if (!module)
		return;
	HASH_ITER (hh, modules->files, other, next) {
		if (other->module == module) { /* the same by another key */
			MAP_DROP(modules->files, other);
		}
	}
}

/* ---- files of modules that change ---------------------------------------------------------- */

/* Renamed, linked, with other rights: its content is what it was. */
static bool has_same_content(struct modules *modules, const struct module *module)
{
	struct module *other = NULL;
	bool same = module->written == module_file_written(module->fd) &&
	            module_open(helper_dup(module->fd), module->path, ELF_WHOLE,
	                        modules->options.selection, &other, NULL) == 0 &&
	            module_is_alike(module, other);

	module_free(other);
	return same;
}

static struct seen_file *file_of(const struct modules *modules, const struct module *module)
{
	struct seen_file *file, *next;

	HASH_ITER (hh, modules->files, file, next) {
		if (file->module == module)
			return file;
	}
	return NULL;
}

/* Reads without the lock: a module that is busy stays where it is. */
static void check_module(struct modules *modules, struct module *module)
{
	uint64_t stamp = module_file_stamp(module->fd);
	struct seen_file *file, *again;
	struct err err = { 0 };
	struct file_key key;
	bool same;
	int fd;

	if (stamp == module->stamp || !file_of(modules, module))
		return;
	pthread_mutex_unlock(&modules->lock);
	same = has_same_content(modules, module);
	pthread_mutex_lock(&modules->lock);
	file = file_of(modules, module);
	if (same || !file) {
		module->stamp = stamp;
		if (file)
			file->stamp = stamp;
		return;
	}
	key = file->key;
	fd = helper_dup(module->fd);
	modules_forget(modules, file);
	if (fd < 0)
		return;
	/* while it is being written it is no library yet: the next who maps it has it read again */
	again = modules_read(modules, key, fd, module->path, ELF_WHOLE, LOOK_LATE, &err);
	if (!again->module)
		again->stamp = 0;
	else
		again->module->beforehand |= module->beforehand;
}

void modules_check_files(struct modules *modules)
{
	pthread_mutex_lock(&modules->lock);
	for (size_t i = 0; i < modules->count; i++) {
		struct module *module = modules->list[i];

		if (module->rewritten)
			continue;
		module->busy = true;
		check_module(modules, module);
		module->busy = false;
	}
	pthread_mutex_unlock(&modules->lock);
}

/* ---- mappings ------------------------------------------------------------------------------- */

static bool has_hooks_in(const struct module *module, const struct mapping *mapping)
{
	for (size_t i = 0; i < module->n_hooks; i++) {
		const struct hook *hook = &module->hooks[i];

		if (hook->group != HOOK_OFF && hook->entry >= mapping->offset &&
		    hook->entry - mapping->offset < mapping->end - mapping->start)
			return true;
	}
	return false;
}

void modules_tell_unprobed(struct modules *modules, const struct module *module, pid_t pid,
                           const struct mapping *mapping)
{
	if ((mapping->private && !mapping->writable) || !has_hooks_in(module, mapping))
		return;
	modules_not_looked_into(modules, mapping->path, (uint32_t)pid,
	                        mapping->private ? "the process has its code mapped writable, "
	                                           "where the kernel puts no probes"
	                                         : "the process has its code mapped shared, where "
	                                           "the kernel puts no probes");
}
