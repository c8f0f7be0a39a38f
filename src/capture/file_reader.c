// SPDX-License-Identifier: MIT
#include "capture/file_reader.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/xalloc.h"

#define CHECK_NS   500000000 /* how often files are looked at for changes */
#define PATIENCE_S 3         /* with the last file */

struct file_reader {
	struct modules *modules;
	void (*found)(void *data);
	void *data;
	pthread_t thread;
	sem_t wake;
	atomic_bool stop;
};

static void *reader_main(void *argument)
{
	struct file_reader *reader = argument;
	struct timespec until;

	while (!atomic_load(&reader->stop)) {
		while (modules_undecided(reader->modules) && !atomic_load(&reader->stop)) {
			if (modules_decide(reader->modules))
				reader->found(reader->data);
		}
		modules_check_files(reader->modules);
		modules_look_for_gone(reader->modules, clock_now_ns());
		modules_check_patched(reader->modules, clock_now_ns());
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += CHECK_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		sem_clockwait(&reader->wake, CLOCK_MONOTONIC, &until); /* not one that is set */
	}
	modules_check_patched(reader->modules, MODULES_LAST_LOOK);
	return NULL;
}

struct file_reader *file_reader_start(struct modules *modules, void (*found)(void *data),
                                      void *data)
{
	struct file_reader *reader = xcalloc(1, sizeof(*reader));
	sigset_t all, old;
	int r;

	reader->modules = modules;
	reader->found = found;
	reader->data = data;
	sem_init(&reader->wake, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals go to the main thread */
	r = pthread_create(&reader->thread, NULL, reader_main, reader);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!r)
		return reader;
	free(reader);
	return NULL;
}

void file_reader_wake(struct file_reader *reader)
{
	int posted = 1;

	if (reader && sem_getvalue(&reader->wake, &posted) == 0 && !posted)
		sem_post(&reader->wake);
}

bool file_reader_stop(struct file_reader *reader)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	struct timespec until;

	if (!reader)
		return true;
	file_reader_wake(reader);
	for (int i = 0; i < 50 && modules_undecided(reader->modules); i++)
		nanosleep(&pause, NULL);
	atomic_store(&reader->stop, true);
	sem_post(&reader->wake);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	if (pthread_clockjoin_np(reader->thread, NULL, CLOCK_MONOTONIC, &until)) {
		pthread_detach(reader->thread);
		return false;
	}
	sem_destroy(&reader->wake);
	free(reader);
	return true;
}
