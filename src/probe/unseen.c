// SPDX-License-Identifier: MIT
#include "probe/unseen.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/xalloc.h"

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

static struct unseen_file *find(const struct unseen *unseen, const struct wire_file *id)
{
	return MAP_FIND(unseen->files, id);
}

static bool has_user(const struct unseen_file *file, const struct unseen_user *user)
{
	const struct unseen_user *last = file->n_users ? &file->users[file->n_users - 1] : NULL;

	return last && last->pid == user->pid && last->born_ns == user->born_ns;
}

void unseen_add(struct unseen *unseen, const struct wire_file *id, const char *name,
                const struct unseen_user *user)
{
	struct unseen_file *file = find(unseen, id);

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
	struct unseen_file *file = find(unseen, id);
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

static int compare_users(const void *left, const void *right)
{
	const struct unseen_user *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->born_ns < b->born_ns ? -1 : a->born_ns > b->born_ns;
}

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
	struct unseen_user *all = xmalloc((unseen->n_users + 1) * sizeof(*all));
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
	free(all);
	return sum;
}
