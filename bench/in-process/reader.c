// SPDX-License-Identifier: MIT
/*
 * cuscope's side: reader CALLER cost|rate. Makes the ring, starts the program with it, and reads as
 * cuscope does, every 20 ms, up to the records that the pipeline takes. Prints what came, as JSON,
 * behind the program's own line.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_ring.h"
#include "agent/agent_probes.h"
#include "agent/tick_clock.h"

#define RING_BYTES ((size_t)32 << 20)
#define WORDS      13

struct reading {
	struct probe_records *by_ticks, *by_ns;
	struct agent_shared shared;
	uint64_t records, bad, words;
	uint64_t now_ns;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint32_t same_thread(void *data, uint32_t tid)
{
	return tid;
}

static void take_wire(void *data, const struct wire_head *record, size_t bytes)
{
	struct reading *reading = data;

	reading->records++;
	reading->words += record->words;
}

static void take(void *data, const struct agent_head *record)
{
	struct reading *reading = data;
	struct probe_records *records = reading->shared.probe_clock == AGENT_CLOCK_TICKS
	                                        ? reading->by_ticks
	                                        : reading->by_ns;

	reading->bad += probe_records_take(records, record, UINT64_MAX) != PROBE_RECORD_TAKEN;
}

static pid_t start(const char *caller, const char *mode, int memfd)
{
	pid_t child = fork();
	char number[16];

	if (child)
		return child;
	fcntl(memfd, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", memfd);
	execl(caller, caller, number, mode, (char *)NULL);
	_exit(127);
}

static void read_all(struct agent_ring *ring, struct tick_clock *ticks, struct reading *reading)
{
	struct err err = { 0 };

	tick_clock_look(ticks);
	agent_ring_shared(ring, &reading->shared);
	if (agent_ring_read(ring, take, reading, &err) < 0) {
		fprintf(stderr, "reader: %s\n", err.text);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	const uint64_t cookies[] = { PROBE_NO_COOKIE,
		                     cookie_with_hook(1) | cookie_with_words(WORDS) };
	struct tick_clock *ticks = tick_clock_new();
	struct reading reading = { 0 };
	struct probe_records_options options = { .pid = 1,
		                                 .cookies = cookies,
		                                 .n_cookies = 2,
		                                 .since_ns = now_ns() - 1000000000,
		                                 .thread = same_thread,
		                                 .record = take_wire,
		                                 .data = &reading };
	struct agent_ring *ring;
	struct rusage used;
	int memfd, status;
	pid_t child;

	if (argc != 3 || agent_ring_new(RING_BYTES, &ring, &memfd, NULL))
		return 2;
	reading.by_ns = probe_records_new(&options);
	options.ticks = ticks;
	reading.by_ticks = probe_records_new(&options);
	child = start(argv[1], argv[2], memfd);
	while (waitpid(child, &status, WNOHANG) == 0) {
		nanosleep(&pause, NULL);
		read_all(ring, ticks, &reading);
	}
	read_all(ring, ticks, &reading);
	getrusage(RUSAGE_SELF, &used);
	printf("{\"records\": %llu, \"bad\": %llu, \"lost\": %llu, \"clock_error_ns\": %llu, "
	       "\"reader_cpu_s\": %.2f}\n",
	       (unsigned long long)reading.records, (unsigned long long)reading.bad,
	       (unsigned long long)reading.shared.probe_lost[AGENT_PROBE_RING],
	       (unsigned long long)tick_clock_error_ns(ticks),
	       (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	               (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
