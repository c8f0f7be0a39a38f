// SPDX-License-Identifier: MIT
/* Files that looks had no time for, and who had mapped what is read at last. */
#include "probe/modules_inside.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/xalloc.h"

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
			close(fd);
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

	pthread_mutex_lock(&modules->lock);
	first = modules->undecided;
	if (first) {
		modules->undecided = first->next;
		modules->n_undecided--;
		modules->deciding = true;
	}
	pthread_mutex_unlock(&modules->lock);
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
		             "and %llu more times it was loaded before it was hooked",
		             (unsigned long long)more);
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
	bool any;

	pthread_mutex_lock(&modules->lock);
	any = modules->undecided;
	pthread_mutex_unlock(&modules->lock);
	return any;
}

bool modules_decide(struct modules *modules)
{
	struct undecided *undecided = next_undecided(modules);
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
	free(undecided);
	return found;
}
