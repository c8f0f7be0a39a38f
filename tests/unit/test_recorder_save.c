// SPDX-License-Identifier: MIT
/* A recording of the flight recorder, from the window to the file in the spool. */
#include "support.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "node/recorder_process.h"
#include "trace/reader.h"
#include "trace/writer.h"

#define SECOND 1000000000ll

static char folder[] = "/tmp/cuscope-save-XXXXXX";
static struct recorder_settings settings = { .spool = { .bytes = 64 << 20, .files = 10 } };
static struct recorder_saver saver = { .settings = &settings };
static int ours;

static int no_file(void *data, const char **name, struct err *err)
{
	return -1;
}

static int set_up(void **state)
{
	struct err err = { 0 };
	int pair[2];

	if (!mkdtemp(folder) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return -1;
	ours = pair[0];
	saver.socket = pair[1];
	saver.spool = spool_open(folder, &err);
	saver.writer = writer_new_window(
		&(struct writer_window){ .last_ns = 30 * SECOND, .open = no_file });
	return saver.spool < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	char command[128];

	saver.writer->ops->free(saver.writer);
	close(saver.spool);
	close(saver.socket);
	close(ours);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* What its child says of it. */
static struct recorder_message save(const struct run_info *run)
{
	const struct recorder_save order = { .ticket = 7,
		                             .rule = RULE_SLOW_STEP,
		                             .reason = "slow_step: a test" };
	struct pollfd ready = { .fd = ours, .events = POLLIN };
	struct recorder_message message;

	recorder_save(&saver, &order, run);
	assert_int_equal(poll(&ready, 1, 20000), 1);
	assert_int_equal(recorder_receive(ours, &message), 0);
	waitpid(saver.child, NULL, 0);
	saver.child = 0;
	return message;
}

/* The clock was an hour ahead when the recorder began, and has been set since. */
static void test_a_recording_tells_the_time_that_it_was_written_at(void **state)
{
	struct timespec real, monotonic;
	struct recorder_message message;
	struct run_info run = { 0 };
	struct trace_file *file;
	struct err err = { 0 };
	char path[256];
	int64_t offset;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_REALTIME, &real);
	offset = (real.tv_sec - monotonic.tv_sec) * SECOND + real.tv_nsec - monotonic.tv_nsec;
	run.begin_ns = (uint64_t)monotonic.tv_sec * SECOND - SECOND;
	run.end_ns = run.begin_ns + SECOND;
	run.realtime_offset_ns = offset + 3600 * SECOND;
	message = save(&run);
	assert_int_equal(message.kind, RECORDER_SAVED);
	assert_int_equal(message.saved.why, 0);
	assert_int_equal(message.saved.ticket, 7);
	assert_non_null(strstr(message.saved.name, "-slow_step-000001.cuscope"));
	snprintf(path, sizeof(path), "%s/%s", folder, message.saved.name);
	assert_int_equal(trace_open(path, &file, &err), 0);
	assert_string_equal(trace_run(file)->reason, "slow_step: a test");
	assert_in_range(trace_run(file)->realtime_offset_ns - offset + SECOND, 0, 2 * SECOND);
	trace_close(file);
}

/* What was measured after a rule has a name of its own. */
static void test_gpu_times_after_a_rule_have_their_name(void **state)
{
	struct run_info run = { .begin_ns = 1, .end_ns = 2 };
	struct recorder_message message;

	settings.gpu_times = true;
	message = save(&run);
	settings.gpu_times = false;
	assert_int_equal(message.saved.why, 0);
	assert_non_null(strstr(message.saved.name, "-slow_step_gpu-000002.cuscope"));
}

static void put_call(struct consumer *writer, const struct process *process, double at_us)
{
	struct call call = call_at("cudaMalloc", at_us, 1);
	struct event event = { .type = EVENT_CALL,
		               .time_ns = call.end_ns,
		               .process = process,
		               .tid = process->pid,
		               .call = &call };
	struct err err = { 0 };

	call.args.arg[0] = (uint64_t)at_us * 0x9e3779b97f4a7c15;
	assert_int_equal(writer->ops->event(writer, &event, &err), 0);
}

/* Whose events are not all there, since when, and how many; before what else was missed. */
static void test_a_recording_tells_of_whom_there_is_less(void **state)
{
	const struct miss other = { .kind = MISS_HOOKED_LATE, .lib = "libcuda.so.1" };
	struct run_info run = default_run_info();
	const struct run_info *told;
	struct consumer *before = saver.writer;
	struct process quiet = { .id = 0, .pid = 1, .person = 1235 };
	struct process flood = { .id = 1, .pid = 2, .person = 1234 };
	struct recorder_message message;
	struct trace_file *file;
	struct err err = { 0 };
	char path[256];

	saver.writer = writer_new_window(&(struct writer_window){
		.last_ns = 30 * SECOND, .last_bytes = 50000, .shared = true, .open = no_file });
	for (unsigned i = 0; i < 20000; i++) {
		if (i % 1000 == 0)
			put_call(saver.writer, &quiet, i * 100);
		put_call(saver.writer, &flood, i * 100 + 50);
	}
	run.end_ns = US(2000000);
	run.misses = &other;
	run.n_misses = 1;
	message = save(&run);
	saver.writer->ops->free(saver.writer);
	saver.writer = before;
	assert_int_equal(message.saved.why, 0);
	snprintf(path, sizeof(path), "%s/%s", folder, message.saved.name);
	assert_int_equal(trace_open(path, &file, &err), 0);
	told = trace_run(file);
	assert_int_equal(told->n_misses, 2);
	assert_int_equal(told->misses[0].kind, MISS_OVER_BUDGET);
	assert_memory_equal(told->misses[0].why, "user 1234: only the last ", 25);
	assert_int_equal(told->misses[1].kind, MISS_HOOKED_LATE);
	assert_int_equal(told->lost[LOST_OVER_BUDGET] + message.saved.events, 20020);
	assert_int_equal(told->begin_ns, US(0));
	trace_close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_recording_tells_the_time_that_it_was_written_at),
		cmocka_unit_test(test_gpu_times_after_a_rule_have_their_name),
		cmocka_unit_test(test_a_recording_tells_of_whom_there_is_less),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
