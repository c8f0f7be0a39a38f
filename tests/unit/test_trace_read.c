// SPDX-License-Identifier: MIT
/* Reading parts of a trace file, what is known of its run, and writing its last part only. */
#include "trace_events.h"

#include "trace/filter.h"

#include <errno.h>
#include <sys/stat.h>

/* ---- events -------------------------------------------------------------------------------- */

static const struct process *one, *two;

static void push_to(struct consumer *writer, const struct event *event)
{
	struct err err = { 0 };

	assert_int_equal(writer->ops->event(writer, event, &err), 0);
}

static void put_call(struct consumer *writer, const struct process *process, double at_us)
{
	struct call call = call_at("cudaMalloc", at_us, 10);
	struct event event = { .type = EVENT_CALL,
		               .time_ns = call.end_ns,
		               .process = process,
		               .tid = process->pid,
		               .call = &call };

	push_to(writer, &event);
}

static void put_other(struct consumer *writer, const struct process *process, enum event_type type,
                      double at_us)
{
	struct thread thread = { "main", 20 };
	struct event event = { .type = type,
		               .time_ns = US(at_us),
		               .process = process,
		               .tid = process->pid,
		               .thread = type == EVENT_THREAD ? &thread : NULL };

	push_to(writer, &event);
}

/* Those that ended at that time. Where they come, calls of later times may stand before. */
static void put_activity(struct consumer *writer, const struct process *process, double end_us)
{
	struct activity activity = { .kind = ACTIVITY_SET,
		                     .begin_ns = US(end_us) - 500,
		                     .end_ns = US(end_us),
		                     .stream = 7 };
	struct event event = { .type = EVENT_ACTIVITY,
		               .time_ns = activity.end_ns,
		               .process = process,
		               .activity = &activity };

	push_to(writer, &event);
}

static void put_range(struct consumer *writer, const char *name, double begin_us, double end_us)
{
	struct range range = { .begin_ns = US(begin_us), .end_ns = US(end_us), .name = name };
	struct event event = { .type = EVENT_RANGE,
		               .time_ns = range.end_ns,
		               .process = one,
		               .tid = one->pid,
		               .range = &range };

	push_to(writer, &event);
}

/* What was read, in short: "process call@10 exit"; times are in microseconds. */
static void assert_read(const struct keeper *keeper, const char *expected)
{
	char text[1024] = "";
	size_t len = 0;

	for (size_t i = 0; i < keeper->list.count; i++) {
		const struct event *event = &keeper->list.at[i].event;
		const char *name = event->type == EVENT_CALL       ? "call"
		                   : event->type == EVENT_PROCESS  ? "process"
		                   : event->type == EVENT_THREAD   ? "thread"
		                   : event->type == EVENT_ACTIVITY ? "activity"
		                   : event->type == EVENT_RANGE    ? keeper->list.at[i].name
		                                                   : "exit";

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s@%llu", i ? " " : "",
		                        name,
		                        (unsigned long long)(event->time_ns - RUN_BEGIN_NS) / 1000);
	}
	assert_string_equal(text, expected);
}

/* ---- files of several chunks: each snapshot of a window ends one --------------------------- */

static int scratch = -1;

static int open_scratch(void *data, const char **name, struct err *err)
{
	if (scratch >= 0)
		close(scratch);
	scratch = memory_file();
	*name = "scratch";
	return dup(scratch);
}

static struct consumer *open_window(uint64_t last_ns, uint64_t last_bytes)
{
	struct writer_window options = { .last_ns = last_ns,
		                         .last_bytes = last_bytes,
		                         .open = open_scratch };
	struct consumer *writer = writer_new_window(&options);
	struct run_info run = default_run_info();
	struct err err = { 0 };

	if (!one) {
		one = new_process(100, "one");
		two = new_process(200, "two");
	}
	assert_int_equal(writer->ops->begin(writer, &run, &err), 0);
	return writer;
}

static void snapshot(struct consumer *writer, double end_us)
{
	struct run_info run = default_run_info();
	struct err err = { 0 };

	run.end_ns = US(end_us);
	assert_int_equal(writer_snapshot(writer, &run, &err), 0);
}

static void write_three_chunks(void)
{
	struct consumer *writer = open_window(0, 0);

	put_other(writer, one, EVENT_PROCESS, 1);
	put_other(writer, one, EVENT_THREAD, 2);
	put_call(writer, one, 10);
	snapshot(writer, 20);
	put_call(writer, one, 90);
	put_other(writer, two, EVENT_PROCESS, 101);
	put_call(writer, two, 110);
	snapshot(writer, 120);
	put_other(writer, two, EVENT_EXIT, 200);
	put_call(writer, one, 210);
	snapshot(writer, 220);
	writer->ops->free(writer);
}

static void read_part(double from_us, double to_us, struct keeper *keeper)
{
	struct trace_read_options options = { .from_ns = from_us ? US(from_us) : 0,
		                              .to_ns = to_us ? US(to_us) : 0 };

	trace_close(read_list(scratch, &options, keeper));
}

/* ---- parts --------------------------------------------------------------------------------- */

static void test_a_part_has_the_events_of_its_time_and_the_processes_before(void **state)
{
	struct keeper keeper;

	write_three_chunks();
	read_part(0, 0, &keeper);
	assert_read(&keeper, "process@1 thread@2 call@20 call@100 process@101 call@120 exit@200 "
	                     "call@220");
	keeper_free(&keeper);
	read_part(110, 205, &keeper);
	assert_read(&keeper, "process@1 thread@2 process@101 call@120 exit@200");
	keeper_free(&keeper);
	read_part(0, 100, &keeper);
	assert_read(&keeper, "process@1 thread@2 call@20 call@100");
	keeper_free(&keeper);
	read_part(210, 0, &keeper);
	assert_read(&keeper, "process@1 thread@2 process@101 call@220");
	keeper_free(&keeper);
}

static void test_only_the_processes_that_are_asked_for_are_passed_on(void **state)
{
	static const uint32_t pids[] = { 200, 7 };
	struct trace_read_options options = { .pids = pids, .n_pids = 2 };
	struct keeper keeper;

	write_three_chunks();
	trace_close(read_list(scratch, &options, &keeper));
	assert_read(&keeper, "process@101 call@120 exit@200");
	keeper_free(&keeper);
}

static void test_only_the_calls_that_are_asked_for_are_passed_on(void **state)
{
	struct filter_choice choice = { .max_calls = 2 };
	struct trace_read_options options = { .filter = filter_new(&choice) };
	struct keeper keeper;

	write_three_chunks();
	trace_close(read_list(scratch, &options, &keeper));
	assert_read(&keeper, "process@1 thread@2 call@20 call@100 process@101 exit@200");
	keeper_free(&keeper);
	filter_free(options.filter);
}

/* An event chunk that is damaged does not matter to who does not want it. */
static void test_chunks_outside_of_the_time_are_not_touched(void **state)
{
	struct keeper keeper = { .consumer.ops = &keeper_ops };
	struct consumer *consumer = &keeper.consumer;
	struct trace_read_options options = { .from_ns = US(110) };
	struct trace_file *file;
	struct err err = { 0 };
	struct stat st;
	unsigned damaged = 0;

	write_three_chunks();
	assert_int_equal(fstat(scratch, &st), 0);
	for (off_t at = 16; at < st.st_size; at++) {
		unsigned char byte, flipped;

		assert_int_equal(pread(scratch, &byte, 1, at), 1);
		flipped = byte ^ 0x40;
		assert_int_equal(pwrite(scratch, &flipped, 1, at), 1);
		memset(&keeper.list, 0, sizeof(keeper.list));
		if (!trace_open(path_of(scratch), &file, &err)) {
			int all, part;

			all = trace_read(file, NULL, &consumer, 1, &err);
			trace_close(file);
			assert_int_equal(trace_open(path_of(scratch), &file, &err), 0);
			part = trace_read(file, &options, &consumer, 1, &err);
			trace_close(file);
			damaged += all == -EBADMSG && !part;
		}
		keeper_free(&keeper);
		assert_int_equal(pwrite(scratch, &byte, 1, at), 1);
	}
	assert_in_range(damaged, 30, 200); /* the bytes of the first event chunk's payload */
}

static bool stop_at_once(void *data, double share)
{
	return false;
}

static void test_reading_that_is_stopped_ends_well(void **state)
{
	struct trace_read_options options = { .progress = stop_at_once };
	struct keeper keeper;

	write_three_chunks();
	trace_close(read_list(scratch, &options, &keeper));
	assert_read(&keeper, "");
	keeper_free(&keeper);
}

/* What ran on the GPU may come a second after calls of its time, in a later chunk. */
static void test_what_comes_late_is_found_by_its_time(void **state)
{
	struct consumer *writer = open_window(0, 0);
	struct keeper keeper;

	put_other(writer, one, EVENT_PROCESS, 1);
	put_call(writer, one, 10);
	put_call(writer, one, 500);
	snapshot(writer, 520);
	put_call(writer, one, 1000);
	put_activity(writer, one, 30);
	put_range(writer, "step", 5, 40);
	snapshot(writer, 1020);
	put_activity(writer, one, 600);
	put_range(writer, "step", 41, 700);
	snapshot(writer, 1030);
	writer->ops->free(writer);
	read_part(0, 100, &keeper);
	assert_read(&keeper, "process@1 call@20 activity@30 step@40");
	keeper_free(&keeper);
	read_part(550, 650, &keeper);
	assert_read(&keeper, "process@1 activity@600");
	keeper_free(&keeper);
	read_part(650, 0, &keeper);
	assert_read(&keeper, "process@1 call@1010 step@700");
	keeper_free(&keeper);
}

/* ---- the last part ------------------------------------------------------------------------- */

static void test_a_window_in_time_drops_what_is_older(void **state)
{
	struct consumer *writer = open_window(100000, 0);
	struct trace_file *file;
	struct keeper keeper;

	put_other(writer, one, EVENT_PROCESS, 1);
	put_call(writer, one, 10);
	snapshot(writer, 20);
	put_call(writer, one, 90);
	snapshot(writer, 110);
	put_call(writer, one, 190);
	snapshot(writer, 200);
	file = read_list(scratch, NULL, &keeper);
	/* the process is older: it stands where the trace begins now */
	assert_read(&keeper, "process@90 call@100 call@200");
	assert_int_equal(trace_run(file)->begin_ns, US(90));
	assert_int_equal(trace_run(file)->end_ns, US(200));
	assert_int_equal(trace_events(file), 2);
	trace_close(file);
	keeper_free(&keeper);
	writer->ops->free(writer);
}

static void test_a_window_that_is_shortened_drops_what_is_older_then(void **state)
{
	struct consumer *writer = open_window(100000, 0);
	struct writer_stats stats;
	struct keeper keeper;

	put_other(writer, one, EVENT_PROCESS, 1);
	put_call(writer, one, 110);
	snapshot(writer, 130);
	put_call(writer, one, 190);
	writer_shorten(writer, 1000000); /* a longer one changes nothing */
	writer_shorten(writer, 40000);
	snapshot(writer, 200);
	trace_close(read_list(scratch, NULL, &keeper));
	assert_read(&keeper, "process@190 call@200");
	keeper_free(&keeper);
	writer_stats(writer, &stats);
	assert_true(stats.held > stats.bytes); /* definitions stay */
	writer->ops->free(writer);
}

static void test_a_window_in_bytes_keeps_no_more_and_at_least_one_chunk(void **state)
{
	struct consumer *writer = open_window(0, 4000);
	struct writer_stats stats;
	struct keeper keeper;

	put_other(writer, one, EVENT_PROCESS, 1);
	for (unsigned i = 0; i < 1000; i++) {
		put_call(writer, one, 100 * i);
		if (i % 10 == 9)
			snapshot(writer, 100 * i + 50);
		writer_stats(writer, &stats);
		assert_true(stats.bytes <= 4000);
	}
	trace_close(read_list(scratch, NULL, &keeper));
	assert_in_range(keeper.list.count, 100, 900);
	assert_in_range(stats.dropped_ns, US(100), keeper.list.at[1].event.time_ns - 1);
	assert_int_equal(keeper.list.at[0].event.type, EVENT_PROCESS);
	assert_int_equal(keeper.list.at[keeper.list.count - 1].event.time_ns, US(99910));
	keeper_free(&keeper);
	writer->ops->free(writer);
}

static void test_a_window_in_bytes_is_no_larger_when_nothing_ends_its_chunks(void **state)
{
	struct consumer *writer = open_window(0, 8000);
	struct writer_stats stats;
	unsigned us = 0, random = 1;
	struct keeper keeper;

	put_other(writer, one, EVENT_PROCESS, 1);
	for (unsigned i = 0; i < 20000; i++) {
		random = random * 1103515245 + 12345; /* what cannot be packed */
		us += 1 + (random >> 16);
		put_call(writer, one, us);
	}
	snapshot(writer, us + 1);
	writer_stats(writer, &stats);
	assert_in_range(stats.bytes, 6000, 8000);
	trace_close(read_list(scratch, NULL, &keeper));
	assert_int_equal(keeper.list.at[keeper.list.count - 1].event.time_ns, US(us + 10));
	keeper_free(&keeper);
	writer->ops->free(writer);
}

/* Their names go with the ranges, and a range that was open all the time is cut at the begin. */
static void test_a_window_drops_ranges_and_their_names(void **state)
{
	struct consumer *writer = open_window(100000, 0);
	struct trace_file *file;
	struct writer_stats before, after;
	struct keeper keeper;

	put_other(writer, one, EVENT_PROCESS, 1);
	for (unsigned i = 0; i < 100; i++) {
		char name[32];

		snprintf(name, sizeof(name), "step %u", i);
		put_call(writer, one, 100 * i);
		put_range(writer, name, i ? 100 * i - 99 : 1, 100 * i + 1);
		snapshot(writer, 100 * i + 20);
		if (i == 10)
			writer_stats(writer, &before);
	}
	writer_stats(writer, &after);
	assert_in_range(after.bytes, before.bytes - 50, before.bytes + 50);
	put_range(writer, "all", 0, 9950);
	snapshot(writer, 9960);
	file = read_list(scratch, NULL, &keeper);
	assert_read(&keeper, "process@9900 call@9910 step 99@9901 all@9950");
	assert_int_equal(trace_run(file)->begin_ns, US(9900));
	assert_int_equal(keeper.list.at[3].range.begin_ns, US(9900));
	trace_close(file);
	keeper_free(&keeper);
	writer->ops->free(writer);
}

/* ---- the run ------------------------------------------------------------------------------- */

static void test_all_that_is_known_of_a_run_comes_back(void **state)
{
	static const struct miss misses[] = {
		{ MISS_NOT_HOOKED, "cuFoo", "libcuda.so.1", 0, "too short", 0 },
		{ MISS_HOOKED_LATE, NULL, "libcudart.so.13", 42, "1 ms", 0 },
		{ MISS_ESTIMATED, NULL, NULL, 0, NULL, 0 },
		{ MISS_GPU_TIMES, NULL, NULL, 42, "another profiler runs", 0 },
		{ MISS_UNSEEN, NULL, NULL, 0, "ended before", 4001 },
	};
	struct run_info run = default_run_info();
	const struct run_info *read;
	struct kept_list none = { 0 };
	struct keeper keeper;
	struct trace_file *file;
	int fd = memory_file();

	for (unsigned i = 0; i < LOST_COUNT; i++)
		run.lost[i] = i * 1000;
	run.misses = misses;
	run.n_misses = 5;
	run.gpu_times = true;
	run.gpu_clock_error_ns = 1250;
	run.realtime_offset_ns = -5;
	run.boottime_offset_ns = 3600000000000;
	run.estimate_scale = 2.5;
	run.holds = 7;
	run.longest_hold_ns = 8;
	run.overhead_percent = 12.25;
	run.overhead_most_percent = 36.5;
	run.hostname = "host";
	run.kernel_release = "6.1";
	run.machine = "aarch64";
	run.command = "app 'a b'";
	run.boot = "0fd86ccc-7be0-45e5-b838-6b80e45e7eee";
	write_list(fd, &run, &none);
	file = read_list(fd, NULL, &keeper);
	read = &keeper.run;
	assert_int_equal(read->begin_ns, run.begin_ns);
	assert_int_equal(read->end_ns, run.end_ns);
	assert_int_equal(read->realtime_offset_ns, -5);
	assert_int_equal(read->boottime_offset_ns, 3600000000000);
	assert_memory_equal(read->lost, run.lost, sizeof(run.lost));
	assert_true(read->estimate_scale == 2.5 && read->returns && !read->cut_short);
	assert_int_equal(read->holds, 7);
	assert_int_equal(read->longest_hold_ns, 8);
	assert_true(read->overhead_percent == 12.25 && read->overhead_most_percent == 36.5);
	assert_true(read->gpu_times);
	assert_int_equal(read->gpu_clock_error_ns, 1250);
	assert_int_equal(read->n_misses, 5);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(read->misses[i].kind, misses[i].kind);
		assert_int_equal(read->misses[i].pid, misses[i].pid);
		assert_int_equal(read->misses[i].processes, misses[i].processes);
		assert_same_text(read->misses[i].name, misses[i].name);
		assert_same_text(read->misses[i].lib, misses[i].lib);
		assert_same_text(read->misses[i].why, misses[i].why);
	}
	assert_same_text(read->hostname, "host");
	assert_same_text(read->kernel_release, "6.1");
	assert_same_text(read->boot, run.boot);
	assert_same_text(read->machine, "aarch64");
	assert_same_text(read->driver_version, NULL);
	assert_same_text(read->command, "app 'a b'");
	trace_close(file);
	close(fd);
}

/* ---- kernels ------------------------------------------------------------------------------- */

static void put_launch(struct consumer *writer, const struct kernel *kernel, double at_us)
{
	struct call call = launch_at("cuLaunchKernel", at_us, kernel);
	struct event event = { .type = EVENT_CALL,
		               .time_ns = call.end_ns,
		               .process = one,
		               .tid = 100,
		               .call = &call };

	push_to(writer, &event);
}

static void test_a_kernel_that_is_named_later_has_its_new_name_from_then_on(void **state)
{
	struct kernel *kernel = new_kernel("0x55d0", false), *other = new_kernel("other()", true);
	struct consumer *writer = open_window(0, 0);
	struct trace_file *file;
	struct keeper keeper;

	put_launch(writer, other, 5);
	put_launch(writer, kernel, 10);
	snapshot(writer, 20);
	kernel->name = "named(int)";
	kernel->mangled = "_Z5namedi";
	kernel->resolved = true;
	put_launch(writer, kernel, 30);
	snapshot(writer, 40);
	file = read_list(scratch, NULL, &keeper);
	assert_int_equal(keeper.list.count, 3);
	/* one object, with its last name after the end */
	assert_ptr_equal(keeper.list.at[1].call.kernel, keeper.list.at[2].call.kernel);
	assert_same_kernel(keeper.list.at[2].call.kernel, kernel);
	assert_string_equal(keeper.list.at[0].call.kernel->name, "other()");
	assert_int_equal(keeper.list.at[0].call.kernel->id, 0); /* dense, as they were met */
	assert_int_equal(keeper.list.at[1].call.kernel->id, 1);
	trace_close(file);
	keeper_free(&keeper);
	writer->ops->free(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_part_has_the_events_of_its_time_and_the_processes_before),
		cmocka_unit_test(test_only_the_processes_that_are_asked_for_are_passed_on),
		cmocka_unit_test(test_only_the_calls_that_are_asked_for_are_passed_on),
		cmocka_unit_test(test_chunks_outside_of_the_time_are_not_touched),
		cmocka_unit_test(test_reading_that_is_stopped_ends_well),
		cmocka_unit_test(test_what_comes_late_is_found_by_its_time),
		cmocka_unit_test(test_a_window_drops_ranges_and_their_names),
		cmocka_unit_test(test_a_window_in_time_drops_what_is_older),
		cmocka_unit_test(test_a_window_that_is_shortened_drops_what_is_older_then),
		cmocka_unit_test(test_a_window_in_bytes_keeps_no_more_and_at_least_one_chunk),
		cmocka_unit_test(test_a_window_in_bytes_is_no_larger_when_nothing_ends_its_chunks),
		cmocka_unit_test(test_all_that_is_known_of_a_run_comes_back),
		cmocka_unit_test(test_a_kernel_that_is_named_later_has_its_new_name_from_then_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
