// SPDX-License-Identifier: MIT
#include "probe/unseen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/order.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/account.h"
#include "probe/helper.h"
#include "probe/modules_inside.h"

/* All together, and of one file; beyond, processes are counted by the file and not told apart. */
#define USERS_MAX   65536
#define USERS_EACH  16384
#define NAME_BYTES  64
#define NAMES_SHOWN 4

struct unseen_file {
	struct wire_file id;
	char name[NAME_BYTES];
	struct unseen_user *users;
	size_t n_users;
	uint64_t more; /* users that there was no room for */
	UT_hash_handle hh;
};

struct unseen {
	struct unseen_file *files;
	size_t n_users;
	uint64_t more; /* of files that there was no room for */
};

struct unseen *unseen_new(void)
{
	return xcalloc(1, sizeof(struct unseen));
}

static void drop(struct unseen *unseen, struct unseen_file *file)
{
	unseen->n_users -= file->n_users;
	HASH_DEL(unseen->files, file);
	free(file->users);
	free(file);
}

void unseen_free(struct unseen *unseen)
{
	struct unseen_file *file, *next;

	if (!unseen)
		return;
	HASH_ITER (hh, unseen->files, file, next)
		drop(unseen, file);
	free(unseen);
}

static bool has_user(const struct unseen_file *file, const struct unseen_user *user)
{
	const struct unseen_user *last = file->n_users ? &file->users[file->n_users - 1] : NULL;

	return last && last->pid == user->pid && last->born_ns == user->born_ns;
}

void unseen_add(struct unseen *unseen, const struct wire_file *id, const char *name,
                const struct unseen_user *user)
{
	struct unseen_file *file = MAP_FIND(unseen->files, id);

	if (!file && unseen->n_users >= USERS_MAX) {
		unseen->more++;
		return;
	}
	if (!file) {
		file = MAP_ADD(unseen->files, id, id);
		strncpy(file->name, name, sizeof(file->name) - 1);
	}
	if (has_user(file, user))
		return;
	if (unseen->n_users >= USERS_MAX || file->n_users >= USERS_EACH) {
		file->more++;
		return;
	}
	file->users = vec_room(file->users, file->n_users, sizeof(*file->users));
	file->users[file->n_users++] = *user;
	unseen->n_users++;
}

uint64_t unseen_settle(struct unseen *unseen, const struct wire_file *id,
                       void (*each)(void *data, const struct unseen_user *user), void *data)
{
	struct unseen_file *file = MAP_FIND(unseen->files, id);
	uint64_t more;

	if (!file)
		return 0;
	more = file->more;
	for (size_t i = 0; each && i < file->n_users; i++)
		each(data, &file->users[i]);
	drop(unseen, file);
	return more;
}

/* ---- at the end ---------------------------------------------------------------------------- */

static bool is_cuda_name(const char *name)
{
	return !strncmp(name, "libcuda", 7); /* libcuda.so.1, libcudart.so.13, libcudart-1a2b.so */
}

ORDER_BY(compare_users, struct unseen_user, UP(pid), UP(born_ns));

static void add_name(struct buf *names, const char *name, size_t n)
{
	if (n == NAMES_SHOWN)
		buf_puts(names, " and others");
	if (n >= NAMES_SHOWN)
		return;
	buf_puts(names, n ? ", " : "");
	text_add_safe(names, *name ? name : "a file without a name");
}

uint64_t unseen_processes(const struct unseen *unseen, bool cuda, struct buf *names)
{
	AT_END(at_end_free) struct unseen_user *all = xmalloc((unseen->n_users + 1) * sizeof(*all));
	uint64_t sum = cuda ? 0 : unseen->more;
	struct unseen_file *file, *next;
	size_t n = 0, n_names = 0;

	HASH_ITER (hh, unseen->files, file, next) {
		if (is_cuda_name(file->name) != cuda)
			continue;
		memcpy(all + n, file->users, file->n_users * sizeof(*all));
		n += file->n_users;
		sum += file->more;
		add_name(names, file->name, n_names++);
	}
	qsort(all, n, sizeof(*all), compare_users);
	for (size_t i = 0; i < n; i++)
		sum += !i || compare_users(&all[i - 1], &all[i]) != 0;
	return sum;
}

/* Files that looks had no time for, and who had mapped what is read at last. */

/* Files that wait to be read whole: each is kept open. */
#define UNDECIDED_MAX 64

void modules_put_off(struct modules *modules, struct file_key key, int fd, const char *path,
                     pid_t pid, uint64_t since_ns)
{
	struct undecided *undecided;

	if (modules->n_undecided >= UNDECIDED_MAX || fd < 0) {
		modules_not_looked_into(modules, path, (uint32_t)pid,
		                        fd < 0 ? "its symbol table is large, and there was no file "
		                                 "descriptor left to read it later"
		                               : "its symbol table is large, and 64 such files "
		                                 "wait to be read already");
		modules_forget(modules, modules_file(modules, key)); /* the next look tries again */
		if (fd >= 0)
			helper_close(fd);
		return;
	}
	undecided = xcalloc(1, sizeof(*undecided));
	*undecided = (struct undecided){ .key = key,
		                         .fd = fd,
		                         .path = xstrdup(path),
		                         .pid = pid,
		                         .since_ns = since_ns,
		                         .next = modules->undecided };
	modules->undecided = undecided;
	modules->n_undecided++;
}

static struct undecided *next_undecided(struct modules *modules)
{
	struct undecided *first;

	LOCKED(&modules->lock);
	first = modules->undecided;
	if (first) {
		modules->undecided = first->next;
		modules->n_undecided--;
		modules->deciding = true;
	}
	return first;
}

struct settled {
	struct modules *modules;
	struct module *module;
};

static void tell_late(void *data, const struct unseen_user *user)
{
	struct settled *settled = data;

	if (user->time_ns < settled->module->hooked_ns)
		modules_late(settled->modules, settled->module, user->pid, user->time_ns);
}

/* Those that were seen to map a file before it was read. */
static void settle_users(struct modules *modules, const struct wire_file *id, struct module *module)
{
	struct settled settled = { modules, module };
	uint64_t more = unseen_settle(modules->unseen, id, module ? tell_late : NULL, &settled);

	if (module && more)
		modules_miss(modules, MISS_HOOKED_LATE, NULL, module->name, 0,
		             "and %lu more times it was loaded before it was hooked", more);
}

void modules_settled(struct modules *modules, const struct seen_file *file, uint64_t stamp)
{
	const struct wire_file id = modules_file_id(file, stamp);

	if (file->reading || file->put_off)
		return;
	settle_users(modules, &id, file->module);
	if (file->stamp && !file->refused)
		programs_file_known(modules->options.programs, &id, file->module ? KNOWN_CUDA : 0);
}

bool modules_undecided(struct modules *modules)
{

	LOCKED(&modules->lock);
	return modules->undecided;
}

bool modules_decide(struct modules *modules)
{
	AT_END(at_end_free) struct undecided *undecided = next_undecided(modules);
	struct module *module = NULL;
	struct seen_file *file;
	uint64_t stamp;
	struct err err = { 0 };
	bool found = false;
	int answer;

	if (!undecided)
		return false;
	stamp = module_file_stamp(undecided->fd);
	/* without the lock: a look must not wait for this */
	answer = module_open(undecided->fd, undecided->path, ELF_WHOLE, modules->options.selection,
	                     &module, &err);
	pthread_mutex_lock(&modules->lock);
	modules->looking = LOOK_LATE;
	modules->deciding = false;
	file = modules_file(modules, undecided->key);
	if (file && file->put_off) {
		file->put_off = false;
		modules_settle(modules, file, answer, module, undecided->path, &err);
		found = file->module;
		if (found)
			modules_late(modules, file->module, undecided->pid, undecided->since_ns);
		modules_settled(modules, file, stamp);
	} else {
		module_free(module); /* it was written anew meanwhile, and read */
	}
	pthread_mutex_unlock(&modules->lock);
	free(undecided->path);
	return found;
}

/*
 * Files that were looked into. A file is known by device, inode number, size and the time of its
 * last change: a number alone is used again, and a file can be written anew. Files of modules stay
 * open, so that their numbers are theirs; of others only what was found is kept.
 */

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
	uint64_t begin_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID);
	int answer;

	if (own && depth == ELF_SMALL_SYMTAB &&
	    account_is_over(&modules->own_reads, clock_now_ns()))
		depth = ELF_DYNSYM_ONLY;
	pthread_mutex_unlock(&modules->lock);
	answer = module_open(fd, path, depth, selection, module, err);
	pthread_mutex_lock(&modules->lock);
	if (own)
		account_charge(&modules->own_reads, clock_of_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns,
		               clock_now_ns());
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
		helper_close(fd);
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
static void read_again(struct modules *modules, struct module *module, uint64_t stamp)
{
	struct seen_file *file, *again;
	struct err err = { 0 };
	struct file_key key;
	bool same;
	int fd;

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

/* Who changes its files all the time pays for that: files of others wait to be read here, too. */
static void check_module(struct modules *modules, struct module *module)
{
	uint64_t stamp = module_file_stamp(module->fd), busy_ns;
	bool over;

	if (stamp == module->stamp)
		return;
	over = look_time_is_over(LOOK_INTO_FILES, module->owner);
	if ((over && module->told_unread) || !file_of(modules, module)) /* goes through all files */
		return;
	if (over) {
		modules_miss(modules, MISS_HOOKED_LATE, NULL, module->name, 0,
		             "its file has changed, and to look into this user's files has "
		             "taken too long: whether it is another one is looked at later");
		module->told_unread = true;
		return;
	}
	busy_ns = helper_busy_ns();
	read_again(modules, module, stamp);
	look_time_charge(LOOK_INTO_FILES, module->owner, helper_busy_ns() - busy_ns);
}

void modules_check_files(struct modules *modules)
{
	LOCKED(&modules->lock);
	for (size_t i = 0; i < modules->count; i++) {
		struct module *module = modules->list[i];

		if (module->rewritten)
			continue;
		module->busy = true;
		check_module(modules, module);
		module->busy = false;
	}
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
