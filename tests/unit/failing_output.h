/* SPDX-License-Identifier: MIT */
/* Places that cannot be written to, or not for long, for the tests of write errors. */
#ifndef TESTS_UNIT_FAILING_OUTPUT_H
#define TESTS_UNIT_FAILING_OUTPUT_H

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support.h"

static inline FILE *full_disk(void)
{
	return fopen("/dev/full", "w");
}

/* A pipe whose reader is gone. */
static inline FILE *closed_pipe(void)
{
	int ends[2];

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	return fdopen(ends[1], "w");
}

/* From here on no file of this program can grow beyond `bytes`: a disk that is full soon. */
static inline void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static inline void unlimit_file_size(void)
{
	limit_file_size(RLIM_INFINITY);
}

/*
 * Feeds `calls` allocations to a new consumer until it fails; returns what it then said. The
 * consumer is flushed at the end and freed.
 */
static inline struct err feed_until_error(struct consumer *consumer, size_t calls)
{
	struct run_info info = default_run_info();
	struct call call = alloc_at("cudaMalloc", 10, 0x7f12c0000000, 1 << 20);
	struct event event = { .type = EVENT_CALL,
		               .time_ns = call.end_ns,
		               .process = the_process(),
		               .tid = 4243,
		               .call = &call };
	struct err err = { 0 };
	int rc = consumers_begin(&consumer, 1, &info, &err);

	for (size_t i = 0; i < calls && !rc; i++)
		rc = consumer->ops->event(consumer, &event, &err);
	if (!rc)
		rc = consumers_flush(&consumer, 1, &err);
	if (!rc)
		rc = consumers_end(&consumer, 1, &info, &err);
	assert_int_equal(rc, err.code);
	consumer_free(consumer);
	return err;
}

#endif
