// SPDX-License-Identifier: MIT
/* Trace files that ask for more than is kept of one, or for more work than they are worth. */
#include "trace_events.h"

#include <errno.h>

#include "analysis/missed.h"
#include "base/array.h"
#include "base/text.h"
#include "trace/chunk.h"
#include "trace/define.h"
#include "trace/codec.h"
#include "trace/objects.h"
#include "trace/run_record.h"
#include "trace/writer.h"

/* ---- a consumer that counts ---------------------------------------------------------------- */

struct counter {
	struct consumer consumer; /* first */
	uint64_t events, last_ns;
};

static int count_event(struct consumer *self, const struct event *event, struct err *err)
{
	struct counter *counter = (struct counter *)self;

	assert_true(event->type == EVENT_RANGE || event->time_ns >= counter->last_ns);
	counter->last_ns = event->time_ns;
	counter->events++;
	return 0;
}

static int count_begin(struct consumer *self, const struct run_info *run, struct err *err)
{
	((struct counter *)self)->events = ((struct counter *)self)->last_ns = 0;
	return 0;
}

static int count_end(struct consumer *self, const struct run_info *run, struct err *err)
{
	return 0;
}

static const struct consumer_ops counter_ops = { .begin = count_begin,
	                                         .event = count_event,
	                                         .end = count_end };

struct outcome {
	int read;
	uint64_t events;
	struct run_info run; /* without its misses */
	size_t n_misses;
	char error[sizeof(((struct err *)NULL)->text)];
};

static struct outcome read_file(int fd)
{
	struct counter counter = { .consumer.ops = &counter_ops };
	struct consumer *consumer = &counter.consumer;
	struct outcome outcome = { 0 };
	struct trace_file *file;
	struct err err = { 0 };

	assert_int_equal(trace_open(path_of(fd), &file, &err), 0);
	for (unsigned i = 0; i < 2; i++) /* a second reading finds the same */
		outcome.read = trace_read(file, NULL, &consumer, 1, &err);
	outcome.events = counter.events;
	outcome.run = *trace_run(file);
	outcome.n_misses = outcome.run.n_misses;
	outcome.run.misses = NULL; /* the file's */
	outcome.run.n_misses = 0;
	snprintf(outcome.error, sizeof(outcome.error), "%s", err.text);
	trace_close(file);
	close(fd);
	return outcome;
}

static void assert_told(const struct outcome *outcome)
{
	struct buf out = { 0 };

	assert_int_equal(outcome->read, -EBADMSG);
	assert_true(outcome->run.over_budget > 0 && outcome->run.damaged_chunks > 0);
	assert_has(outcome->error, "more than is kept of one file");
	assert_false(missed_nothing(&outcome->run));
	assert_true(missed_of_file(&outcome->run, &out));
	assert_has(out.data, "are more than is kept of one file");
	buf_free(&out);
}

/* ---- writing ------------------------------------------------------------------------------- */

static struct consumer *begin(int fd)
{
	struct run_info run = default_run_info();
	struct consumer *writer = writer_new(fd, "test.cuscope");
	struct err err = { 0 };

	assert_int_equal(writer->ops->begin(writer, &run, &err), 0);
	return writer;
}

static void add(struct consumer *writer, const struct event *event)
{
	struct err err = { 0 };

	assert_int_equal(writer->ops->event(writer, event, &err), 0);
}

static void end(struct consumer *writer)
{
	struct run_info run = default_run_info();
	struct err err = { 0 };

	assert_int_equal(writer->ops->end(writer, &run, &err), 0);
	writer->ops->free(writer);
}

/* ---- definitions --------------------------------------------------------------------------- */

static void define_kernel(struct buf *raw, uint64_t id, const char *name)
{
	struct buf body = { 0 };

	buf_reset(raw);
	record_varint(&body, id);
	record_varint(&body, 1);
	record_text(&body, name);
	record_varint(&body, 0);
	record_text(&body, "");
	record_add(raw, DEFINE_KERNEL, &body);
	buf_free(&body);
}

static bool read_raw(struct objects *objects, const struct buf *raw)
{
	struct bytes in = bytes_of(raw->data, raw->len);

	return objects_read(objects, &in) && in.at == in.end;
}

static char *long_name(void)
{
	char *name = malloc(FORMAT_TEXT_MAX + 1);

	memset(name, 'k', FORMAT_TEXT_MAX);
	name[FORMAT_TEXT_MAX] = '\0';
	return name;
}

static void test_definitions_beyond_the_budget_are_lost_and_no_damage(void **state)
{
	struct objects *objects = objects_new();
	char *name = long_name();
	struct buf raw = { 0 };
	uint64_t most = OBJECTS_BYTES_MAX / FORMAT_TEXT_MAX;

	for (uint64_t id = 0; id < most + 10; id++) {
		define_kernel(&raw, id, name);
		assert_true(read_raw(objects, &raw));
	}
	assert_in_range(objects_over_budget(objects), 10, 20);
	assert_non_null(objects_kernel(objects, most - 10));
	assert_null(objects_kernel(objects, most + 9));
	assert_true(objects_lost(objects, OBJECT_KERNEL, most + 9));
	/* a new name for one that is there is too much as well: it keeps its old one */
	define_kernel(&raw, 0, name);
	assert_true(read_raw(objects, &raw));
	assert_in_range(objects_over_budget(objects), 11, 21);
	assert_non_null(objects_kernel(objects, 0));
	objects_free(objects);
	buf_free(&raw);
	free(name);
}

/* Each event of a kernel can have outputs write its name again. */
static void test_names_are_cut(void **state)
{
	struct objects *objects = objects_new();
	struct buf raw = { 0 };
	char *name = long_name();

	define_kernel(&raw, 0, name);
	assert_true(read_raw(objects, &raw));
	assert_int_equal(strlen(objects_kernel(objects, 0)->name), TEXT_NAME_MAX);
	assert_string_equal(objects_kernel(objects, 0)->name + TEXT_NAME_MAX - 4, "k...");
	objects_free(objects);
	buf_free(&raw);
	free(name);
}

static void test_names_of_ranges_are_cut(void **state)
{
	struct names *names = names_new();
	char *name = long_name();
	struct buf raw = { 0 };

	names_number(names, name);
	names_number(names, "short");
	names_take(names, &raw);
	assert_true(names_read(names, (uint8_t *)raw.data, raw.len));
	assert_int_equal(strlen(names_text(names, 1)), NAMES_TEXT_MAX);
	assert_string_equal(names_text(names, 2), "short");
	names_free(names);
	buf_free(&raw);
	free(name);
}

static void test_a_hundred_thousand_kernels_are_kept(void **state)
{
	struct objects *objects = objects_new();
	struct buf raw = { 0 };
	char name[1025];

	memset(name, 'k', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (uint64_t id = 0; id < 100000; id++) {
		define_kernel(&raw, id, name);
		assert_true(read_raw(objects, &raw));
	}
	assert_int_equal(objects_over_budget(objects), 0);
	objects_free(objects);
	buf_free(&raw);
}

/* So that it does not pack to nothing: of a file that does not so much is read. */
static void change_name(char *name)
{
	static uint64_t seed = 88172645463325252u;

	for (size_t i = 0; i < 8192; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		name[i] = (char)('0' + seed % 64);
	}
}

static void test_a_file_with_too_many_names_is_read_and_told_of(void **state)
{
	uint64_t most = OBJECTS_BYTES_MAX / FORMAT_TEXT_MAX, calls = most + 100;
	int fd = memory_file(), kept = dup(fd);
	struct consumer *writer = begin(fd);
	char *name = long_name();
	struct outcome outcome;

	for (uint64_t i = 0; i < calls; i++) {
		struct kernel kernel = { .id = (uint32_t)i, .name = name, .resolved = true };
		struct call call = launch_at("cuLaunchKernel", 10. * (double)i, &kernel);
		struct event event = call_event(the_process(), 4242, &call);

		change_name(name);
		add(writer, &event);
	}
	end(writer);
	outcome = read_file(kept);
	assert_told(&outcome);
	assert_in_range(outcome.events, most - 10, most);
	assert_int_equal(outcome.events + outcome.run.damaged_events, calls);
	free(name);
}

/* ---- what waits ---------------------------------------------------------------------------- */

#define WAITING 300000u

static void announce(struct buf *raw, uint64_t time_ns)
{
	struct buf body = { 0 };

	record_varint(&body, 0);
	record_varint(&body, 4242);
	record_varint(&body, time_ns);
	record_text(&body, "worker");
	record_varint(&body, 0);
	record_add(raw, DEFINE_EVENT_THREAD, &body);
	buf_free(&body);
}

static void fill_announced(struct buf *raw)
{
	static const char process[] = { DEFINE_PROCESS, 4, 0, (char)0x92, 0x21, 0 };

	buf_add(raw, process, sizeof(process));
	for (uint64_t i = 1; i <= WAITING; i++)
		announce(raw, 1000000 + i);
}

static void test_no_more_events_wait_than_may(void **state)
{
	struct objects *objects = objects_new();
	uint64_t taken = 0, last_ns = 0;
	struct buf raw = { 0 };
	struct thread thread;
	struct event event;
	struct bytes in;

	fill_announced(&raw);
	in = bytes_of(raw.data, raw.len);
	while (in.at < in.end) {
		assert_true(objects_read(objects, &in));
		assert_true(objects_waiting(objects) <= OBJECTS_WAITING_MAX);
		while (objects_waiting(objects) > 10) {
			assert_true(objects_take(objects, &event, &thread));
			assert_true(event.time_ns > last_ns);
			last_ns = event.time_ns;
			taken++;
		}
	}
	assert_int_equal(taken + objects_waiting(objects), WAITING);
	objects_free(objects);
	buf_free(&raw);
}

/* As --last leaves it: the chunks that the events belong to are gone. */
static void test_events_that_wait_for_what_is_not_there_are_passed_on_in_order(void **state)
{
	static const uint8_t header[FORMAT_HEADER_BYTES] = FORMAT_MAGIC "\x01";
	struct run_info run = default_run_info();
	struct chunk_head heads[] = { { .type = CHUNK_RUN },
		                      { .type = CHUNK_DEFINITIONS },
		                      { .type = CHUNK_EVENTS, .last_ns = 1 } };
	static const uint8_t no_events[4 * COLUMN_COUNT];
	struct packer *packer = packer_new();
	struct buf file = { 0 }, raw = { 0 };
	struct outcome outcome;
	int fd = memory_file();

	run.begin_ns = 0;
	buf_add(&file, header, sizeof(header));
	run_write(&run, &raw);
	packer_add(packer, &heads[0], raw.data, raw.len, &file);
	buf_reset(&raw);
	fill_announced(&raw);
	packer_add(packer, &heads[1], raw.data, raw.len, &file);
	packer_add(packer, &heads[2], no_events, sizeof(no_events), &file);
	assert_int_equal(write(fd, file.data, file.len), file.len);
	outcome = read_file(fd);
	assert_int_equal(outcome.read, 0);
	assert_int_equal(outcome.events, WAITING);
	packer_free(packer);
	buf_free(&file);
	buf_free(&raw);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void test_each_row_is_counted_once(void **state)
{
	struct kept_rows *rows = rows_new(3);
	struct call call = launch_at("cuLaunchKernel", 10, new_kernel("a()", true));
	struct event event = call_event(the_process(), 1, &call);

	call.args.stream = 0x55;
	for (unsigned i = 0; i < 10; i++)
		assert_true(rows_take(rows, &event)); /* a thread, a stream */
	call.args.stream = 0x56;
	assert_true(rows_take(rows, &event));
	call.args.stream = 0x57;
	assert_false(rows_take(rows, &event));
	event.tid = 2;
	call.args.stream = 0x55;
	assert_false(rows_take(rows, &event));
	event.tid = 1;
	assert_true(rows_take(rows, &event));
	assert_int_equal(rows_refused(rows), 2);
	rows_free(rows);
}

/* Root has no share; of an older file nobody knows who has one. */
static void test_one_user_leaves_rows_for_others(void **state)
{
	const uint64_t persons[] = { 1000, 1001, 0, PROCESS_UNTOLD };
	const unsigned alone[] = { 9, 9, 12, 12 };
	struct call call = launch_at("cuLaunchKernel", 10, new_kernel("a()", true));

	for (size_t i = 0; i < ARRAY_SIZE(persons); i++) {
		struct process one = { .id = 1, .person = persons[i] };
		struct process other = { .id = 2, .person = 1002 };
		struct event event = call_event(&one, 1, &call);
		struct kept_rows *rows = rows_new(12);
		unsigned taken = 0;

		for (event.tid = 1; event.tid < 20; event.tid++)
			taken += rows_take(rows, &event);
		assert_int_equal(taken, alone[i]);
		event.process = &other;
		assert_int_equal(rows_take(rows, &event), taken < 12);
		rows_free(rows);
	}
}

static void test_activities_and_ranges_have_rows_of_their_own(void **state)
{
	struct kept_rows *rows = rows_new(6);
	struct activity activity = { .kind = ACTIVITY_KERNEL, .kernel = new_kernel("c()", true) };
	struct range range = { .kind = RANGE_PUSHPOP, .name = "step", .domain = "a" };
	struct event work = { .type = EVENT_ACTIVITY,
		              .process = the_process(),
		              .activity = &activity };
	struct event step = { .type = EVENT_RANGE, .process = the_process(), .range = &range };

	assert_true(rows_take(rows, &work)); /* no thread, a stream, sizes */
	activity.grid[1] = 7;
	assert_true(rows_take(rows, &work));
	activity.stream = 14;
	assert_true(rows_take(rows, &work));
	assert_true(rows_take(rows, &step));
	range.domain = "b";
	assert_false(rows_take(rows, &step));
	range.domain = "a";
	range.name = "another";
	assert_true(rows_take(rows, &step));
	activity.device = 1;
	assert_false(rows_take(rows, &work));
	rows_free(rows);
}

static void test_a_file_with_threads_without_number_is_read_and_told_of(void **state)
{
	int fd = memory_file(), kept = dup(fd);
	struct consumer *writer = begin(fd);
	uint32_t calls = ROWS_OF_FILE + 1000;
	struct outcome outcome;

	for (uint32_t i = 0; i < calls; i++) {
		struct call call = call_at("cuCtxGetCurrent", i, 0.5);
		struct event event = call_event(the_process(), i + 1, &call);

		add(writer, &event);
	}
	end(writer);
	outcome = read_file(kept);
	assert_told(&outcome);
	assert_int_equal(outcome.events, ROWS_OF_FILE);
	assert_int_equal(outcome.run.damaged_events, 1000);
	assert_int_equal(outcome.run.over_budget, 1000);
}

/* ---- what is told of the run --------------------------------------------------------------- */

static void test_misses_without_number_are_cut_off_and_told_of(void **state)
{
	static struct miss misses[RUN_MISSES_MAX + 3];
	struct run_info run = default_run_info();
	int fd = memory_file(), kept = dup(fd);
	struct consumer *writer = begin(fd);
	struct outcome outcome;
	struct err err = { 0 };

	run.misses = misses;
	run.n_misses = RUN_MISSES_MAX + 3;
	assert_int_equal(writer->ops->end(writer, &run, &err), 0);
	writer->ops->free(writer);
	outcome = read_file(kept);
	assert_told(&outcome);
	assert_int_equal(outcome.n_misses, RUN_MISSES_MAX);
	assert_int_equal(outcome.run.over_budget, 3);
}

/* ---- looking for a head -------------------------------------------------------------------- */

static long reads_so_far(void)
{
	FILE *file = fopen("/proc/self/io", "re");
	char line[64];
	long reads = 0;

	if (!file)
		SKIP("this kernel does not count what a process reads");
	while (fgets(line, sizeof(line), file))
		sscanf(line, "syscr: %ld", &reads);
	fclose(file);
	return reads;
}

/* From the second one on, each is looked at; what is behind them is found. */
static void test_a_file_full_of_magics_is_read_in_blocks(void **state)
{
	size_t room = 4u << 20;
	int fd = memory_file(), kept = dup(fd);
	struct consumer *writer = begin(fd);
	struct call call = call_at("cuInit", 10, 5);
	struct event event = call_event(the_process(), 4242, &call);
	char *magics = malloc(room), *data = malloc(1 << 16);
	struct outcome outcome;
	int hostile = memory_file();
	ssize_t bytes, first;
	long before;

	add(writer, &event);
	end(writer);
	bytes = pread(kept, data, 1 << 16, 0);
	first = FORMAT_HEADER_BYTES + FORMAT_CHUNK_BYTES +
	        (ssize_t)get_fixed((uint8_t *)data + FORMAT_HEADER_BYTES + 8, 4);
	for (size_t i = 0; i < room; i += 4)
		memcpy(magics + i, "CHNK", 4);
	assert_int_equal(write(hostile, data, (size_t)first), first);
	assert_int_equal(write(hostile, magics, room), room);
	assert_int_equal(write(hostile, data + first, (size_t)(bytes - first)), bytes - first);
	before = reads_so_far();
	outcome = read_file(hostile);
	assert_in_range(reads_so_far() - before, 1, 1000);
	assert_int_equal(outcome.read, -EBADMSG);
	assert_int_equal(outcome.events, 1);
	close(kept);
	free(magics);
	free(data);
}

/* ---- what was written ---------------------------------------------------------------------- */

#define LONG_TEXT  4094
#define LONG_TEXTS 30000 /* 120 MB, which pack to 0.3 */

/* Anybody can pass such a text to each of his calls: others' are read all the same. */
static void test_what_was_written_is_read_however_well_it_packs(void **state)
{
	char path[] = "/tmp/cuscope-unit-XXXXXX", text[LONG_TEXT + 1];
	int fd = mkstemp(path);
	struct run_info run = default_run_info();
	struct consumer *writer = writer_new(fd, path);
	struct call call = call_at("cuGraphDebugDotPrint", 1, 1);
	struct event event = { .type = EVENT_PROCESS, .process = new_process(77, "texts") };
	struct outcome outcome;
	struct err err;

	unlink(path);
	memset(text, 'x', LONG_TEXT);
	text[LONG_TEXT] = '\0';
	call.text = text;
	event.time_ns = run.begin_ns;
	assert_int_equal(writer->ops->begin(writer, &run, &err), 0);
	assert_int_equal(writer->ops->event(writer, &event, &err), 0);
	event.type = EVENT_CALL;
	event.call = &call;
	event.tid = 77;
	for (int i = 0; i < LONG_TEXTS; i++) {
		call.begin_ns = event.time_ns;
		event.time_ns = call.end_ns = event.time_ns + 1000;
		assert_int_equal(writer->ops->event(writer, &event, &err), 0);
	}
	run.end_ns = event.time_ns;
	assert_int_equal(writer->ops->end(writer, &run, &err), 0);
	writer->ops->free(writer);
	outcome = read_file(fd);
	assert_int_equal(outcome.read, 0);
	assert_int_equal(outcome.events, LONG_TEXTS + 1);
	assert_false(outcome.run.too_dense);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_definitions_beyond_the_budget_are_lost_and_no_damage),
		cmocka_unit_test(test_names_are_cut),
		cmocka_unit_test(test_names_of_ranges_are_cut),
		cmocka_unit_test(test_a_hundred_thousand_kernels_are_kept),
		cmocka_unit_test(test_a_file_with_too_many_names_is_read_and_told_of),
		cmocka_unit_test(test_no_more_events_wait_than_may),
		cmocka_unit_test(
			test_events_that_wait_for_what_is_not_there_are_passed_on_in_order),
		cmocka_unit_test(test_each_row_is_counted_once),
		cmocka_unit_test(test_one_user_leaves_rows_for_others),
		cmocka_unit_test(test_activities_and_ranges_have_rows_of_their_own),
		cmocka_unit_test(test_a_file_with_threads_without_number_is_read_and_told_of),
		cmocka_unit_test(test_misses_without_number_are_cut_off_and_told_of),
		cmocka_unit_test(test_a_file_full_of_magics_is_read_in_blocks),
		cmocka_unit_test(test_what_was_written_is_read_however_well_it_packs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
