// SPDX-License-Identifier: MIT
/*
 * What files say of their functions (entry_file.h), for as long as they stay as they are. A library
 * is mapped by many processes, and decoding its functions and looking through its code takes tens
 * of milliseconds. So it is done once for each file, and by another thread where the asker can
 * wait. Of an owner one file is looked at at a time: one that takes long makes nobody else wait.
 *
 * 16 files and 16 MiB of code are kept, those that were asked for last.
 */
#include "divert/divert_plan.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "divert/divert_stop.h"
#include "probe/helper.h"
#include "probe/module.h"
#include "probe/person.h"

#define FILES_MAX 16
#define WORKS_MAX 4           /* files that are looked at at a time, each of another owner */
#define CODE_MAX  (16u << 20) /* bytes, of all files */
#define WORK_NS   5000000000u /* then others are not made to wait for it any more */

/* What was asked, and the answers. */
struct judged {
	dev_t dev;
	uint64_t inode, stamp; /* stamp 0: the file cannot tell, so that this serves once */
	struct entry_function *functions;
	size_t count, bytes;
	uint64_t used;
};

enum work_state { WORK_RUNS, WORK_DONE, WORK_LEFT };

/* The other thread's. Who comes second, to its end or to give it up, frees it. */
struct work {
	pthread_t thread;
	int fd, rc;
	char *path;
	struct judged *judged;
	uint64_t begin_ns, owner;
	_Atomic enum work_state state;
};

struct judged_files {
	struct judged *kept[FILES_MAX];
	size_t count, bytes;
	uint64_t asked;
	struct work *works[WORKS_MAX]; /* NULL: nothing is under way */
	uint64_t refused; /* inode of the file that a thread could not judge last; 0: none */
};

struct judged_files *judged_files_new(void)
{
	return xcalloc(1, sizeof(struct judged_files));
}

/* ---- one file -------------------------------------------------------------------------------- */

static struct judged *judged_new(const struct divert_module *module,
                                 const struct divert_function *functions, size_t count)
{
	struct judged *judged = xcalloc(1, sizeof(*judged));

	judged->dev = module->dev;
	judged->inode = module->inode;
	judged->stamp = module_file_stamp(module->fd);
	judged->count = count;
	judged->functions = xcalloc(count + 1, sizeof(*judged->functions));
	for (size_t i = 0; i < count; i++)
		judged->functions[i] = (struct entry_function){ .address = functions[i].address,
			                                        .offset = functions[i].offset,
			                                        .size = functions[i].size,
			                                        .probed = true,
			                                        .probe = functions[i].probe,
			                                        .keep = true };
	return judged;
}

static void judged_free(struct judged *judged)
{
	if (!judged)
		return;
	for (size_t i = 0; i < judged->count; i++)
		free(judged->functions[i].code);
	free(judged->functions);
	free(judged);
}

static int judge(struct judged *judged, int fd, const char *path, struct err *err)
{
	int rc = entry_file_judge(fd, path, judged->functions, judged->count, err);

	for (size_t i = 0; i < judged->count; i++)
		judged->bytes += judged->functions[i].code_bytes;
	if (module_file_stamp(fd) != judged->stamp)
		judged->stamp = 0; /* it was written meanwhile */
	return rc;
}

/* Whether the same was asked of the same file. */
static bool answers(const struct judged *judged, const struct divert_module *module, uint64_t stamp,
                    const struct divert_function *functions, size_t count)
{
	if (!stamp || judged->stamp != stamp || judged->inode != module->inode ||
	    judged->dev != module->dev || judged->count != count)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct entry_function *function = &judged->functions[i];

		if (function->address != functions[i].address ||
		    function->offset != functions[i].offset ||
		    function->size != functions[i].size || function->probe != functions[i].probe)
			return false;
	}
	return true;
}

/* ---- those that are kept --------------------------------------------------------------------- */

static struct judged *find(struct judged_files *files, const struct divert_module *module,
                           const struct divert_function *functions, size_t count)
{
	uint64_t stamp = module_file_stamp(module->fd);

	for (size_t i = 0; i < files->count; i++)
		if (answers(files->kept[i], module, stamp, functions, count))
			return files->kept[i];
	return NULL;
}

static void drop_oldest(struct judged_files *files)
{
	size_t oldest = 0;

	for (size_t i = 1; i < files->count; i++)
		if (files->kept[i]->used < files->kept[oldest]->used)
			oldest = i;
	files->bytes -= files->kept[oldest]->bytes;
	judged_free(files->kept[oldest]);
	files->kept[oldest] = files->kept[--files->count];
}

/* One of any size, as it is asked for now. */
static void keep(struct judged_files *files, struct judged *judged)
{
	while (files->count &&
	       (files->count == FILES_MAX || files->bytes + judged->bytes > CODE_MAX))
		drop_oldest(files);
	judged->used = ++files->asked;
	files->bytes += judged->bytes;
	files->kept[files->count++] = judged;
}

int judged_files_get(struct judged_files *files, const struct divert_module *module,
                     const struct divert_function *functions, size_t count,
                     const struct entry_function **judged, struct err *err)
{
	struct judged *found = find(files, module, functions, count);
	int rc;

	if (found) {
		found->used = ++files->asked;
		*judged = found->functions;
		return 0;
	}
	found = judged_new(module, functions, count);
	rc = judge(found, module->fd, module->path, err);
	if (rc) {
		judged_free(found);
		return rc;
	}
	keep(files, found);
	*judged = found->functions;
	return 0;
}

/* ---- the other thread ------------------------------------------------------------------------ */

static void work_free(struct work *work)
{
	if (work->fd >= 0)
		close(work->fd);
	free(work->path);
	judged_free(work->judged);
	free(work);
}

static void *run(void *arg)
{
	struct work *work = arg;
	enum work_state running = WORK_RUNS;
	struct err err;

	work->rc = judge(work->judged, work->fd, work->path, &err);
	if (!atomic_compare_exchange_strong(&work->state, &running, WORK_DONE))
		work_free(work);
	return NULL;
}

static void leave(struct work *work)
{
	enum work_state running = WORK_RUNS;

	if (!atomic_compare_exchange_strong(&work->state, &running, WORK_LEFT))
		work_free(work);
}

/* False: then whoever asks does it. */
static bool begin(struct work **place, const struct divert_module *module,
                  const struct divert_function *functions, size_t count)
{
	struct work *work = xcalloc(1, sizeof(*work));
	sigset_t all, old;
	int rc;

	work->fd = helper_dup(module->fd);
	work->path = xstrdup(module->path);
	work->judged = judged_new(module, functions, count);
	work->begin_ns = stop_now_ns();
	work->owner = module->owner;
	sigfillset(&all); /* signals go to the main thread */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = work->fd < 0 || !work->judged->stamp || pthread_create(&work->thread, NULL, run, work);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		work_free(work);
		return false;
	}
	pthread_detach(work->thread);
	*place = work;
	return true;
}

/* Takes what a thread has found out. */
static void finish(struct judged_files *files, struct work **place)
{
	struct work *work = *place;

	if (!work || atomic_load(&work->state) != WORK_DONE)
		return;
	if (work->rc) {
		files->refused = work->judged->inode;
	} else {
		keep(files, work->judged);
		work->judged = NULL;
	}
	work_free(work);
	*place = NULL;
}

/* Where it can be begun: of its owner nothing may be under way. Else *waits_for is that work. */
static struct work **free_place(struct judged_files *files, uint64_t owner,
                                const struct work **waits_for)
{
	struct work **place = NULL;

	*waits_for = NULL;
	for (size_t i = 0; i < WORKS_MAX; i++) {
		struct work *work = files->works[i];

		if (!work && !place)
			place = &files->works[i];
		if (work && work->owner == owner)
			*waits_for = work;
	}
	if (!place && !*waits_for)
		*waits_for = files->works[0];
	return *waits_for ? NULL : place;
}

bool judged_files_ready(struct judged_files *files, const struct divert_module *module,
                        const struct divert_function *functions, size_t count)
{
	const struct work *waits_for;
	struct work **place;

	for (size_t i = 0; i < WORKS_MAX; i++)
		finish(files, &files->works[i]);
	if (files->refused == module->inode) { /* it is asked again, for the reason */
		files->refused = 0;
		return true;
	}
	if (find(files, module, functions, count))
		return true;
	place = free_place(files, module->owner, &waits_for);
	/* else all would wait, in the asker, for the next file of him whose first takes so long */
	if (!place && waits_for->owner == module->owner && module->owner != PERSON_ROOT)
		return false;
	if (!place)
		return stop_now_ns() - waits_for->begin_ns > WORK_NS;
	return !begin(place, module, functions, count);
}

void judged_files_free(struct judged_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < WORKS_MAX; i++) {
		if (files->works[i])
			leave(files->works[i]);
	}
	while (files->count)
		drop_oldest(files);
	free(files);
}
