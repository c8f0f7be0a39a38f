// SPDX-License-Identifier: MIT
/* Looking at processes, and at what they were seen to map. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/later.h"
#include "base/process.h"
#include "probe/account.h"
#include "probe/helper.h"
#include "probe/modules_inside.h"
#include "probe/patched.h"
#include "probe/person.h"

/* For reading whole what runs when tracing begins; then it waits like all others. */
#define WHOLE_NS 2000000000ull

/* For what was mapped before the end, and is told of after it. */
#define AFTER_END_NS 1000000000ull

#define TOO_LATE "the trace ended before it, and what else the process maps, was looked into"
#define TOO_MUCH                                                                                   \
	"to look at what this user's processes map has taken too long: it is not looked into for " \
	"the next 20 s or so"

struct modules_look_search {
	struct modules *modules;
	pid_t pid;
	enum look look;
	uint64_t since_ns;
	const struct wire_file *told; /* this one may be another than it was */
	bool told_found;              /* it was looked into, and had this stamp */
	uint64_t told_stamp;
	bool every; /* so may all */
	struct look_result *result;
	uint64_t exe_inode;
	bool failed;      /* to open what is mapped: it may have been replaced just then */
	bool second_time; /* that it still is, tells that it was not */
	bool told_failed; /* the file that was told of is one of these */
	bool driver_came; /* mapped since it was looked at last */
	struct modules_runtimes runtimes;
	uint64_t person, busy_ns; /* who pays for it, and since when */
	bool over;                /* what he has for new files: no more of it in this look */
};

static bool is_after_end(const struct modules *modules)
{
	return modules->end_ns && clock_now_ns() >= modules->end_ns;
}

void modules_end(struct modules *modules)
{
	modules->end_ns = clock_now_ns() + AFTER_END_NS;
}

static uint64_t exe_inode(pid_t pid)
{
	struct process_file exe;

	return process_look(pid, PROCESS_FILE, "exe", &exe, sizeof(exe)) < 0 ? 0 : exe.inode;
}

/* ---- looking at a process ------------------------------------------------------------------ */

/* The program itself may have cudart linked in, and be called into at once. */
static enum elf_depth depth_of(struct modules_look_search *search, const struct mapping *mapping)
{
	if (mapping->inode != search->exe_inode)
		return ELF_SMALL_SYMTAB;
	if (search->look == LOOK_HELD)
		return ELF_WHOLE;
	return search->look == LOOK_RUNNING && search->modules->whole_ns < WHOLE_NS
	               ? ELF_WHOLE
	               : ELF_SMALL_SYMTAB;
}

/* Reads a file that no look has met before. */
static struct seen_file *see_file(struct modules_look_search *search, const struct mapping *mapping,
                                  struct file_key key, int fd)
{
	struct modules *modules = search->modules;
	size_t before = modules->count;
	uint64_t begin_ns = clock_now_ns(), stamp = module_file_stamp(fd);
	int again = helper_dup(fd); /* if it has to be put off */
	struct err err = { 0 };
	struct seen_file *file = modules_read(modules, key, fd, mapping->path,
	                                      depth_of(search, mapping), search->look, &err);

	if (search->look == LOOK_RUNNING)
		modules->whole_ns += clock_now_ns() - begin_ns;
	if (file->put_off) {
		modules_put_off(modules, key, again, mapping->path, search->pid,
		                search->look == LOOK_LATE ? search->since_ns : clock_now_ns());
		return NULL;
	}
	if (again >= 0)
		helper_close(again);
	if (file->refused)
		file->refused_to = person_of_process(search->pid);
	file->refused_pid = search->pid;
	modules_settled(modules, file, stamp);
	if (file->module && modules->count > before) {
		search->result->hooked++;
		if (search->look == LOOK_LATE)
			modules_late(modules, file->module, (uint32_t)search->pid,
			             search->since_ns);
	}
	return file;
}

/* What was done since is the user's to pay for; a command that is held is who runs this. */
static void pay(struct modules_look_search *search, enum look_time what)
{
	uint64_t busy_ns = helper_busy_ns();

	if (search->look != LOOK_HELD)
		look_time_charge(what, search->person, busy_ns - search->busy_ns);
	if (search->look == LOOK_RUNNING)
		look_time_charge(LOOK_AT_RUNNING, search->person, busy_ns - search->busy_ns);
	search->busy_ns = busy_ns;
}

/* Another thread reads it: who is held waits for that, others are told of by what they map. */
static struct seen_file *wait_for(struct modules_look_search *search, struct file_key key)
{
	struct seen_file *file = modules_file(search->modules, key);

	while (file && file->reading && search->look != LOOK_AGAIN) {
		pthread_cond_wait(&search->modules->read, &search->modules->lock);
		file = modules_file(search->modules, key);
	}
	return file;
}

static bool is_told(const struct modules_look_search *search, const struct file_key *key)
{
	struct file_key told;

	if (!search->told)
		return false;
	told = modules_key(search->told);
	return !memcmp(&told, key, sizeof(told));
}

static bool may_be_another(const struct modules_look_search *search, const struct seen_file *file)
{
	if (file->reading || file->put_off)
		return false;
	return search->every || (is_told(search, &file->key) && search->told->stamp != file->stamp);
}

/* There were no hooks left for who mapped it first: it is no less this one's for that. */
static bool may_have_hooks(const struct modules_look_search *search, const struct seen_file *file)
{
	uint64_t person = file->refused ? person_of_process(search->pid) : PERSON_UNKNOWN;

	return person != PERSON_UNKNOWN && person != file->refused_to;
}

static void found(struct modules_look_search *search, struct module *module)
{
	struct look_result *result = search->result;

	result->modules += module->has[LAYER_DRIVER] || module->has[LAYER_RUNTIME];
	result->own |= module->own != NULL;
	result->driver |= module->has[LAYER_DRIVER];
	search->modules->looking = search->look;
	modules_used(search->modules, module);
}

static void tell_found(struct modules_look_search *search, const struct seen_file *file)
{
	search->told_found = !file->reading && !file->put_off;
	search->told_stamp = file->stamp;
}

/* Probes that were away are needed by who has it mapped. */
static void came(struct modules_look_search *search, const struct seen_file *file)
{
	search->driver_came |= file->module && file->module->has[LAYER_DRIVER];
	if (file->module && modules_put_back(search->modules, file->module) && search->every)
		modules_late(search->modules, file->module, (uint32_t)search->pid,
		             search->since_ns);
}

/*
 * What cannot be opened is tried a second time, from maps read anew: a process that is gone has
 * none then, and what was replaced meanwhile is another. (One that ends has maps for a moment whose
 * files are gone.) What hangs is told of by itself.
 */
static void not_opened(struct modules_look_search *search, const struct mapping *mapping,
                       const struct err *err)
{
	const struct file_key key = { .dev = mapping->dev, .inode = mapping->inode };

	if (err->code == -ENODEV || err->code == -ETIMEDOUT)
		return;
	search->failed = true;
	if (!search->second_time || err->code == -ESRCH || process_is_over(search->pid))
		return;
	search->told_failed |= is_told(search, &key);
	modules_not_looked_into(search->modules, mapping->path, (uint32_t)search->pid, err->text);
}

/* The list of what it has mapped, of a process that is there. */
static void not_listed(const struct modules_look_search *search, const struct err *err)
{
	char path[64];

	if (err->code == -ESRCH || err->code == -ETIMEDOUT)
		return;
	snprintf(path, sizeof(path), "/proc/%d/maps", search->pid);
	modules_not_looked_into(search->modules, path, (uint32_t)search->pid, err->text);
}

static int look_at(const struct mapping *mapping, void *data)
{
	struct modules_look_search *search = data;
	struct file_key key = { .dev = mapping->dev, .inode = mapping->inode };
	struct seen_file *file = wait_for(search, key);
	bool again = file && may_have_hooks(search, file);
	struct err err = { 0 };
	int fd = -1;

	if (!file && end_is_near()) {
		modules_not_looked_into(search->modules, mapping->path, (uint32_t)search->pid,
		                        TOO_LATE);
		return 1;
	}
	if (!file && search->look != LOOK_HELD &&
	    (search->over || look_time_is_over(LOOK_INTO_FILES, search->person))) {
		modules_not_looked_into(search->modules, mapping->path, (uint32_t)search->pid,
		                        TOO_MUCH);
		return 0;
	}
	if (!file || again || may_be_another(search, file)) {
		fd = mapping_open(search->pid, mapping, &err);
		if (fd < 0) {
			not_opened(search, mapping, &err);
			return 0; /* the next look tries again */
		}
		if (file && !again && modules_is_same(file, fd)) {
			helper_close(fd);
		} else {
			if (file)
				modules_forget(search->modules, file);
			pay(search, LOOK_AT_MAPS);
			file = see_file(search, mapping, key, fd);
			pay(search, LOOK_INTO_FILES);
		}
	}
	if (!file)
		return 0;
	if (file->module) {
		modules_stay(search->modules, file->module);
		modules_note_runtime(&search->runtimes, file->module);
		modules_tell_unprobed(search->modules, file->module, search->pid, mapping);
	}
	if (is_told(search, &key))
		tell_found(search, file);
	if (search->every || is_told(search, &key))
		came(search, file);
	if (file->module &&
	    (!file->module->n_hooks || mapping->offset <= file->module->hooks[0].entry))
		found(search, file->module);
	if (file->foreign && mapping->inode == search->exe_inode)
		search->result->foreign = true;
	return 0;
}

static int search_all(struct modules_look_search *search, struct err *err)
{
	struct look_result unused;
	struct err own = { 0 };
	int r;

	if (!search->result)
		search->result = &unused;
	memset(search->result, 0, sizeof(*search->result));
	pthread_mutex_lock(&search->modules->lock);
	search->exe_inode = exe_inode(search->pid);
	r = maps_each(search->pid, look_at, search, &own);
	if (!r && search->failed) {
		search->second_time = true;
		*search->result = (struct look_result){ .hooked = search->result->hooked };
		maps_each(search->pid, look_at, search, NULL);
	}
	if (r < 0)
		not_listed(search, &own);
	if (search->driver_came)
		modules_driver_came(search->modules, (uint32_t)search->pid, &search->runtimes);
	pthread_mutex_unlock(&search->modules->lock);
	pay(search, LOOK_AT_MAPS);
	if (err)
		*err = own;
	return r;
}

static uint64_t person_now(struct modules *modules, pid_t pid)
{
	LOCKED(&modules->lock);
	return modules_person(modules, pid);
}

/* What that takes is paid for as well: a helper is asked. */
static bool is_kept_off(struct modules_look_search *search)
{
	const struct modules_options *options = &search->modules->options;

	search->busy_ns = helper_busy_ns();
	if (!options->keeps_off || !options->keeps_off(options->data, search->pid))
		return false;
	pay(search, LOOK_AT_MAPS);
	return true;
}

static void refuse(const struct modules_look_search *search, const char *why)
{
	struct err err = { 0 };

	LOCKED(&search->modules->lock);
	err_set(&err, EBUSY, "%s", why);
	not_listed(search, &err);
}

int modules_look(struct modules *modules, pid_t pid, enum look look, uint64_t since_ns,
                 struct look_result *result, struct err *err)
{
	struct modules_look_search search = {
		.modules = modules, .pid = pid, .look = look, .since_ns = since_ns, .result = result
	};

	memset(result, 0, sizeof(*result));
	if (process_is_over(pid)) /* all other questions cost ten times as much */
		return err_set(err, ESRCH, "process %d has ended", pid);
	search.person = person_now(modules, pid);
	if (look == LOOK_AGAIN &&
	    (is_after_end(modules) || look_time_is_over(LOOK_AT_MAPS, search.person)))
		return 0; /* what it has executed is told of */
	if (look == LOOK_RUNNING && look_time_is_over(LOOK_AT_RUNNING, search.person)) {
		refuse(&search, TOO_MUCH);
		return 0;
	}
	return is_kept_off(&search) ? 0 : search_all(&search, err);
}

int modules_look_held(struct modules *modules, pid_t tid, const struct wire_file *file,
                      struct look_result *result, struct err *err)
{
	struct modules_look_search search = {
		.modules = modules, .pid = tid, .look = LOOK_HELD, .told = file, .result = result
	};
	int r = search_all(&search, err);

	LOCKED(&modules->lock);
	if (search.told_found)
		modules->held[modules->n_held++ % HELD_FILES] = *file;
	return r;
}

/* Its number may be another file's by the time that this is asked. */
static bool was_held_for(const struct modules *modules, const struct wire_file *file)
{
	for (size_t i = 0; i < HELD_FILES && i < modules->n_held; i++) {
		if (!memcmp(&modules->held[i], file, sizeof(*file)))
			return true;
	}
	return false;
}

int modules_look_joined(struct modules *modules, pid_t pid, uint64_t since_ns,
                        struct look_result *result, struct err *err)
{
	struct modules_look_search search = { .modules = modules,
		                              .pid = pid,
		                              .look = LOOK_LATE,
		                              .since_ns = since_ns,
		                              .every = true,
		                              .result = result };

	memset(result, 0, sizeof(*result));
	if (process_is_over(pid))
		return err_set(err, ESRCH, "process %d has ended", pid);
	search.person = person_now(modules, pid);
	if (is_after_end(modules) || look_time_is_over(LOOK_AT_MAPS, search.person)) {
		refuse(&search, is_after_end(modules) ? TOO_LATE : TOO_MUCH);
		return 0;
	}
	return is_kept_off(&search) ? 0 : search_all(&search, err);
}

/* ---- what was seen to be mapped ------------------------------------------------------------ */

/* The path that the kernel told, "" where it told none. */
static void read_path(const struct wire_map *map, char path[WIRE_PATH_MAX + 2])
{
	const char *names = ((const struct wire_map_path *)map)->names, *name = names;
	char *at = path + WIRE_PATH_MAX + 1;

	*at = '\0';
	for (; name < names + map->head.bytes; name += strlen(name) + 1) {
		size_t len = strnlen(name, (size_t)(names + map->head.bytes - name));

		if (len + 1 > (size_t)(at - path) || name[len])
			break; /* cannot be */
		at -= len + 1;
		at[0] = '/';
		memcpy(at + 1, name, len);
	}
	memmove(path, at, strlen(at) + 1);
}

/*
 * The path of a file that was found by the one that the kernel told, as maps would have it: from
 * this process's root. In a chroot the kernel's begins outside.
 */
static const char *path_from_root(int fd, const char *told)
{
	char link[64], path[PATH_MAX];
	size_t len = strlen(told);
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	if (n <= 0 || (size_t)n > len || memcmp(told + len - (size_t)n, path, (size_t)n) != 0)
		return told;
	return told + len - (size_t)n;
}

static struct seen_file *read_by_path(struct modules *modules, const struct wire_map *map,
                                      struct seen_file *old, struct file_key key, const char *path)
{
	struct modules_look_search search = { .modules = modules,
		                              .pid = (pid_t)map->head.tgid,
		                              .look = LOOK_AGAIN,
		                              .result = &(struct look_result){ 0 } };
	struct mapping mapping = { .dev = key.dev, .inode = key.inode, .path = path };
	/* where it did not come to an end it would not by its path: others are not to be blamed */
	bool may_open = *path && !helper_gave_up((pid_t)map->head.tgid);
	int fd = may_open ? mapping_open_gone((pid_t)map->parent, person_of_uid(map->uid), &mapping)
	                  : -ENOENT;

	if (fd >= 0 && module_file_stamp(fd) != map->file.stamp) {
		helper_close(fd); /* the number is another file's by now */
		fd = -ESTALE;
	}
	if (fd < 0)
		return NULL;
	if (old)
		modules_forget(modules, old);
	mapping.path = path_from_root(fd, path);
	return see_file(&search, &mapping, key, fd);
}

/*
 * What is known of the file that was told of: found in the process, or before. A thread that was
 * held had it looked into, if it is still what it was then. Otherwise its path may lead to it.
 */
static struct seen_file *file_told(struct modules *modules,
                                   const struct modules_look_search *search,
                                   const struct wire_map *map, const char *path)
{
	struct file_key key = modules_key(&map->file);
	struct seen_file *file = modules_file(modules, key);
	bool found_so = search->told_found && file && file->stamp == search->told_stamp;
	bool known =
		file && (found_so || file->stamp == map->file.stamp || (map->held && !file->stamp));

	if (file && (file->reading || file->put_off))
		return NULL;
	if (known)
		return file;
	return read_by_path(modules, map, file, key, path);
}

static void remember_user(struct modules *modules, const struct wire_map *map, const char *path)
{
	const char *slash = strrchr(path, '/');
	const struct unseen_user user = { .pid = map->head.tgid,
		                          .born_ns = map->born_ns,
		                          .time_ns = map->held ? UINT64_MAX : map->head.time_ns };

	unseen_add(modules->unseen, &map->file, slash ? slash + 1 : path, &user);
}

/* It was read, and is nothing for us. */
static bool is_nothing(struct modules *modules, const struct wire_map *map)
{
	const struct seen_file *file;

	LOCKED(&modules->lock);
	file = modules_file(modules, modules_key(&map->file));
	return file && file->stamp == map->file.stamp && !file->module && !file->reading &&
	       !file->put_off && !file->refused && !file->foreign;
}

static uint64_t person_of(struct modules *modules, const struct wire_map *map)
{
	uint64_t person = person_now(modules, (pid_t)map->head.tgid);

	return person == PERSON_UNKNOWN ? person_of_uid(map->uid) : person;
}

/* Looks for the file in the process, and for others there. Whether it may be hooked at all. */
static bool look_for_told(struct modules_look_search *search, const struct wire_map *map)
{
	bool maps_over = map->held; /* all of them were looked at then */

	if (is_after_end(search->modules)) {
		search->over = true;
		return true;
	}
	if (!map->held) {
		search->person = person_of(search->modules, map);
		search->over = look_time_is_over(LOOK_INTO_FILES, search->person);
		maps_over = look_time_is_over(LOOK_AT_MAPS, search->person);
	}
	if ((search->over && maps_over) || process_is_over(search->pid))
		return true; /* its path must do */
	if (!search->over && is_kept_off(search))
		return false;
	if (!maps_over)
		search_all(search, NULL); /* it may be gone */
	return true;
}

void modules_mapped(struct modules *modules, const struct wire_map *map, struct look_result *result)
{
	struct modules_look_search search = { .modules = modules,
		                              .pid = (pid_t)map->head.tgid,
		                              .look = LOOK_AGAIN,
		                              .told = &map->file,
		                              .result = result,
		                              .person = PERSON_UNKNOWN };
	char path[WIRE_PATH_MAX + 2];
	struct seen_file *file;

	memset(result, 0, sizeof(*result));
	search.busy_ns = helper_busy_ns();
	read_path(map, path);
	if (!is_nothing(modules, map) && !look_for_told(&search, map))
		return;
	pthread_mutex_lock(&modules->lock);
	file = file_told(modules, &search, map, search.over ? "" : path);
	if (!file && map->held && was_held_for(modules, &map->file)) {
		; /* it was looked into, and hooked if it was to be */
	} else if (!file && search.told_failed) {
		; /* the process is there, and why was told */
	} else if (!file && search.over) {
		modules_not_looked_into(modules, path, map->head.tgid,
		                        is_after_end(modules) ? TOO_LATE : TOO_MUCH);
	} else if (!file) {
		remember_user(modules, map, path);
	} else {
		modules_settled(modules, file, map->file.stamp);
		if (file->module && !result->modules)
			found(&search, file->module);
		if (file->module) {
			modules_stay(modules, file->module);
			modules_put_back(modules, file->module);
		}
		result->told = file->module;
		if (file->module && !map->held && map->head.time_ns < file->module->hooked_ns)
			modules_late(modules, file->module, map->head.tgid, map->head.time_ns);
	}
	pthread_mutex_unlock(&modules->lock);
	pay(&search, LOOK_INTO_FILES);
}

/* ---- before anything is mapped ------------------------------------------------------------- */

int modules_expect(struct modules *modules, int fd, const char *path, struct err *err)
{
	struct file_key key;
	struct seen_file *file;
	struct stat st;
	int r = 1;

	if (file_stat(fd, &st)) {
		helper_close(fd);
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	}
	key = (struct file_key){ .dev = st.st_dev, .inode = st.st_ino };
	LOCKED(&modules->lock);
	modules->expecting = true;
	file = modules_file(modules, key);
	if (file)
		helper_close(fd);
	else
		file = modules_read(modules, key, fd, path, ELF_WHOLE, LOOK_LATE, err);
	modules->expecting = false;
	if (file->module) {
		const struct wire_file id = modules_file_id(file, file->stamp);

		file->module->beforehand = true;
		modules_stay(modules, file->module);
		if (file->module->expected)
			programs_file_known(modules->options.programs, &id,
			                    KNOWN_TELL | KNOWN_CUDA);
		r = 0;
	}
	return err && err->code ? err->code : r;
}

/*
 * Targets that write code of their own over a probe while it is there. They go on as they want to,
 * and their calls of that function are not seen any more: that is told. Most do so soon after they
 * have loaded a library, so processes are looked at soon, and then ever less often.
 */

#define FIRST_NS 500000000ull
#define LAST_NS  60000000000ull

/* What one look may take, and the last, which the end waits for: there can be any number of
 * processes, with as many mappings as they like. An emulated machine of two busy cores has needed
 * more than 2.5 s for those of an idle system. */
#define LOOK_NS 1500000000ull
#define END_NS  8000000000ull

static bool is_target(void *data, pid_t pid)
{
	return modules_calls_cuda(data, pid);
}

/* Lets go of the lock meanwhile: a module that is busy stays where it is. Whether there was time
 * for all processes. */
static bool check_module(struct modules *modules, struct module *module, uint64_t until_ns)
{
	AT_END(at_end_free) struct patch_point *points = module_patch_points(module, true);
	bool all;

	pthread_mutex_unlock(&modules->lock);
	all = patched_find(module->fd, points, module->n_hooks, is_target,
	                   modules->options.programs, until_ns);
	pthread_mutex_lock(&modules->lock);
	for (size_t i = 0; i < module->n_hooks; i++) {
		struct hook *hook = &module->hooks[i];

		if (!points[i].pid || points[i].kind != PATCH_CODE || !hook->hooked ||
		    hook->written_over == points[i].pid)
			continue;
		hook->written_over = points[i].pid;
		modules_miss(modules, MISS_NOT_HOOKED, hook->name, module->name,
		             (uint32_t)points[i].pid,
		             "the process has written code of its own over the probe: its calls "
		             "since then are not seen");
	}
	return all;
}

static bool is_due(struct modules *modules, uint64_t now_ns)
{
	if (now_ns == MODULES_LAST_LOOK)
		return true;
	if (modules->count != modules->patched_count) { /* a new one: as at the begin */
		modules->patched_count = modules->count;
		modules->patched_gap_ns = FIRST_NS;
		modules->patched_ns = now_ns;
		return false;
	}
	if (now_ns < modules->patched_ns + modules->patched_gap_ns)
		return false;
	modules->patched_ns = now_ns;
	modules->patched_gap_ns *= modules->patched_gap_ns < LAST_NS ? 2 : 1;
	return true;
}

void modules_check_patched(struct modules *modules, uint64_t now_ns)
{
	bool last = now_ns == MODULES_LAST_LOOK, all = true;
	uint64_t until_ns = clock_now_ns() + (last ? END_NS : LOOK_NS);

	LOCKED(&modules->lock);
	if (!modules->paused && is_due(modules, now_ns)) {
		for (size_t i = 0; i < modules->count && all; i++) {
			struct module *module = modules->list[i];

			if (!module->attached || module->rewritten || module->expected ||
			    module->probes != PROBES_THERE)
				continue;
			module->busy = true;
			all = check_module(modules, module, until_ns);
			module->busy = false;
		}
	}
	if (last && !all)
		modules_miss(modules, MISS_NOT_HOOKED, NULL, NULL, 0,
		             "in the end there was no time to look at all processes for code of "
		             "their own over probes: calls past that are not seen");
}
