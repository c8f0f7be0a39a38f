// SPDX-License-Identifier: MIT
/* Trace files that are cut off, altered, foreign or newer: what is whole is read, with a word. */
#include "trace/format.h"
#include "trace_events.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "trace/chunk.h"
#include "trace/writer.h"
#include "trace/objects.h"

/* ---- a small file of many chunks ----------------------------------------------------------- */

#define EVENTS 24
#define EACH   3 /* events in a chunk */

struct image {
	unsigned char *data;
	size_t bytes;
	struct kept_list list; /* what was written */
};

static int open_scratch(void *data, const char **name, struct err *err)
{
	*(int *)data = memory_file();
	*name = "scratch";
	return dup(*(int *)data);
}

static void add_event(struct image *image, unsigned i)
{
	static struct kernel *kernel;
	struct call call;
	struct event event = { .process = the_process(), .tid = 4243 };
	struct thread thread = { "worker", 20 };
	struct range range = { .kind = RANGE_PUSHPOP, .name = "step" };

	if (!kernel)
		kernel = new_kernel("tick()", true);
	call = i % 2 ? launch_at("cuLaunchKernel", 10 * i, kernel)
	             : alloc_at("cudaMalloc", 10 * i, 0x7f0000000000 + 512 * i, 4096);
	event.type = i % 8 ? EVENT_CALL : EVENT_THREAD;
	call.correlation = i;
	event.call = i % 8 ? &call : NULL;
	event.thread = i % 8 ? NULL : &thread;
	event.time_ns = call.end_ns;
	if (i % 8 == 5) {
		event.type = EVENT_RANGE;
		event.call = NULL;
		event.range = &range;
		range.begin_ns = call.begin_ns;
		range.end_ns = call.end_ns;
	}
	keep_event(&image->list, &event);
}

/* Every snapshot of a window ends a chunk: the last one has them all. */
static int write_chunks(struct kept_list *list)
{
	struct run_info run = default_run_info();
	int fd = -1;
	struct writer_window options = { .open = open_scratch, .data = &fd };
	struct consumer *writer = writer_new_window(&options);
	struct err err = { 0 };

	assert_int_equal(writer->ops->begin(writer, &run, &err), 0);
	for (size_t i = 0; i < list->count; i++) {
		struct event event = event_of(&list->at[i]);

		assert_int_equal(writer->ops->event(writer, &event, &err), 0);
		if (i % EACH == EACH - 1) {
			assert_int_equal(writer_snapshot(writer, &run, &err), 0);
			close(fd);
		}
	}
	assert_int_equal(writer->ops->end(writer, &run, &err), 0);
	writer->ops->free(writer);
	return fd;
}

static int make_image(void **state)
{
	struct image *image = calloc(1, sizeof(*image));
	struct stat st;
	int fd;

	for (unsigned i = 0; i < EVENTS; i++)
		add_event(image, i);
	fd = write_chunks(&image->list);
	assert_int_equal(fstat(fd, &st), 0);
	image->bytes = (size_t)st.st_size;
	image->data = malloc(image->bytes);
	assert_int_equal(pread(fd, image->data, image->bytes, 0), image->bytes);
	close(fd);
	*state = image;
	return 0;
}

static int free_image(void **state)
{
	struct image *image = *state;

	free(image->data);
	free(image->list.at);
	free(image);
	return 0;
}

/* ---- reading it ---------------------------------------------------------------------------- */

struct outcome {
	int opened, read; /* what trace_open and trace_read returned */
	size_t events;
	uint64_t last_ns; /* of the last of them */
	bool cut_short, end_damaged;
	uint64_t damaged_chunks, damaged_events;
	struct err err;
};

/* What was read is what was written, in its order, with nothing but gaps. */
static void assert_in_order(struct kept_list *written, struct kept_list *read)
{
	size_t at = 0;

	for (size_t i = 0; i < read->count; i++, at++) {
		while (at < written->count &&
		       event_of(&written->at[at]).time_ns != event_of(&read->at[i]).time_ns)
			at++;
		assert_true(at < written->count);
		assert_same_event(&written->at[at], &read->at[i]);
	}
}

static struct outcome read_bytes(struct image *image, const void *data, size_t bytes)
{
	struct keeper keeper = { .consumer.ops = &keeper_ops };
	struct consumer *consumer = &keeper.consumer;
	struct outcome outcome = { 0 };
	struct trace_file *file;
	int fd = memory_file();

	assert_int_equal(write(fd, data, bytes), bytes);
	outcome.opened = trace_open(path_of(fd), &file, &outcome.err);
	if (!outcome.opened) {
		outcome.read = trace_read(file, NULL, &consumer, 1, &outcome.err);
		outcome.cut_short = trace_run(file)->cut_short;
		outcome.end_damaged = trace_run(file)->end_damaged;
		outcome.events = keeper.list.count;
		assert_int_equal(keeper.ended, 1);
		outcome.damaged_chunks = trace_run(file)->damaged_chunks;
		outcome.damaged_events = trace_run(file)->damaged_events;
		if (outcome.events)
			outcome.last_ns = event_of(&keeper.list.at[outcome.events - 1]).time_ns;
		assert_in_order(&image->list, &keeper.list);
		assert_int_equal(!outcome.read, !outcome.damaged_chunks);
		trace_close(file);
	}
	if (outcome.opened || outcome.read)
		assert_true(outcome.err.code < 0 && strlen(outcome.err.text) > 10);
	keeper_free(&keeper);
	close(fd);
	return outcome;
}

static void assert_refused(struct image *image, const void *data, size_t bytes, const char *why)
{
	struct outcome outcome = read_bytes(image, data, bytes);

	assert_true(outcome.opened < 0);
	assert_has(outcome.err.text, why);
}

/* ---- cut off ------------------------------------------------------------------------------- */

static void test_what_is_cut_off_anywhere_is_read_up_to_the_last_whole_chunk(void **state)
{
	struct image *image = *state;
	size_t before = 0;

	for (size_t bytes = 0; bytes < image->bytes; bytes++) {
		struct outcome outcome = read_bytes(image, image->data, bytes);

		assert_int_equal(outcome.read, 0);
		assert_true(outcome.events >= before);
		before = outcome.events;
	}
	assert_int_equal(before, EVENTS);
}

static void test_a_file_without_its_end_says_so(void **state)
{
	struct image *image = *state;
	struct outcome whole = read_bytes(image, image->data, image->bytes);
	struct outcome half = read_bytes(image, image->data, image->bytes / 2);

	assert_false(whole.cut_short);
	assert_int_equal(whole.events, EVENTS);
	assert_true(half.cut_short);
	assert_in_range(half.events, EACH, EVENTS - 1);
}

static void test_zeros_behind_the_last_chunk_are_what_a_crash_leaves(void **state)
{
	struct image *image = *state;
	size_t cut = image->bytes / 2;
	unsigned char *data = calloc(1, image->bytes + 10000);
	struct outcome before = read_bytes(image, image->data, cut), after;

	/* the cut-off chunk becomes zeros too, head and all */
	memcpy(data, image->data, cut);
	after = read_bytes(image, data, image->bytes + 10000);
	assert_int_equal(after.opened, 0);
	assert_true(after.cut_short);
	assert_true(after.events + EACH >= before.events);
	free(data);
}

/* ---- altered ------------------------------------------------------------------------------- */

static void test_no_flipped_bit_makes_a_wrong_event(void **state)
{
	struct image *image = *state;

	for (size_t i = 0; i < image->bytes; i++) {
		for (unsigned bit = 0; bit < 8; bit += 3) {
			image->data[i] ^= 1u << bit;
			read_bytes(image, image->data, image->bytes); /* compares */
			image->data[i] ^= 1u << bit;
		}
	}
}

struct place {
	struct chunk_head head;
	size_t offset;
};

static size_t find_chunks(const struct image *image, struct place *places, size_t room)
{
	size_t at = FORMAT_HEADER_BYTES, n = 0;

	while (at + FORMAT_CHUNK_BYTES <= image->bytes && n < room &&
	       chunk_head_read(image->data + at, &places[n].head)) {
		places[n].offset = at;
		at += FORMAT_CHUNK_BYTES + places[n++].head.stored_bytes;
	}
	assert_in_range(n, 12, room - 1);
	return n;
}

static struct outcome read_altered(struct image *image, size_t at, size_t bytes)
{
	struct outcome outcome;

	image->data[at] ^= 0x10;
	outcome = read_bytes(image, image->data, bytes);
	image->data[at] ^= 0x10;
	assert_int_equal(outcome.opened, 0);
	return outcome;
}

static void test_a_bad_byte_costs_its_chunk_and_what_refers_to_it(void **state)
{
	struct image *image = *state;
	struct place places[100];
	size_t n = find_chunks(image, places, 100), met[CHUNK_NAMES + 1] = { 0 };

	for (size_t i = 0; i < n; i++) {
		enum chunk_type type = places[i].head.type;
		size_t payload = places[i].offset + FORMAT_CHUNK_BYTES;
		struct outcome outcome = read_altered(
			image, payload + places[i].head.stored_bytes / 2, image->bytes);

		met[type]++;
		assert_int_equal(outcome.events + outcome.damaged_events, EVENTS);
		if (type == CHUNK_RUN || type == CHUNK_INDEX) { /* another says the same */
			assert_int_equal(outcome.read, 0);
			assert_int_equal(outcome.events, EVENTS);
			continue;
		}
		assert_int_equal(outcome.damaged_chunks, 1);
		assert_has(outcome.err.text, "is damaged at byte");
		if (type == CHUNK_END)
			assert_int_equal(outcome.events, EVENTS);
		else if (type == CHUNK_EVENTS)
			assert_in_range(outcome.damaged_events, 1, EACH);
		else
			assert_in_range(outcome.damaged_events, 1, EVENTS);
		assert_false(outcome.cut_short);
		assert_int_equal(outcome.end_damaged, type == CHUNK_END);
	}
	for (enum chunk_type type = CHUNK_RUN; type <= CHUNK_NAMES; type++)
		assert_int_not_equal(met[type], 0);
}

static void test_a_bad_head_costs_nothing_where_there_is_an_index(void **state)
{
	struct image *image = *state;
	struct place places[100];
	size_t n = find_chunks(image, places, 100);

	for (size_t i = 0; i + 1 < n; i++) {
		struct outcome outcome = read_altered(image, places[i].offset + 20, image->bytes);

		assert_int_equal(outcome.read, 0);
		assert_int_equal(outcome.events, EVENTS);
	}
}

static void test_without_an_index_the_next_head_is_looked_for(void **state)
{
	struct image *image = *state;
	struct place places[100];
	size_t n = find_chunks(image, places, 100), end = places[n - 2].offset;
	uint64_t last_ns = read_bytes(image, image->data, end).last_ns;

	for (size_t i = 1; i < n - 2; i++) {
		struct outcome outcome = read_altered(image, places[i].offset + 20, end);

		assert_int_equal(outcome.read, -EBADMSG);
		assert_true(outcome.cut_short);
		if (places[i].head.type == CHUNK_EVENTS && i < n - 3)
			assert_int_equal(outcome.last_ns, last_ns);
	}
}

/* A file that lacks bytes in the middle has an end, and is not one whose writer was stopped. */
static void test_what_is_missing_in_the_middle_is_damage_and_no_missing_end(void **state)
{
	struct image *image = *state;
	struct place places[100];
	size_t n = find_chunks(image, places, 100), end = places[n - 2].offset;
	unsigned char *data = calloc(1, image->bytes);

	assert_int_equal(places[n - 2].head.type, CHUNK_END);
	/* from behind a head on, more and more: at last all chunks up to the end, and the end */
	for (size_t i = n - 3; i > 1; i--) {
		for (size_t k = i + 1; k < n; k++) {
			size_t from = places[i].offset + FORMAT_CHUNK_BYTES;
			size_t to = places[k].offset;
			struct outcome outcome;

			if (to == from) /* an empty chunk */
				continue;
			memcpy(data, image->data, from);
			memcpy(data + from, image->data + to, image->bytes - to);
			outcome = read_bytes(image, data, image->bytes - (to - from));
			assert_int_equal(outcome.opened, 0);
			assert_int_equal(outcome.read, -EBADMSG);
			assert_has(outcome.err.text, "is damaged at byte");
			assert_false(outcome.cut_short);
			if (to > end)
				assert_true(outcome.end_damaged);
		}
	}
	free(data);
}

static void test_two_bad_bytes_are_counted(void **state)
{
	struct image *image = *state;
	struct place places[100];
	size_t n = find_chunks(image, places, 100), first = 0;
	struct outcome outcome;

	while (places[first].head.type != CHUNK_EVENTS)
		first++;
	for (size_t i = first + 1; i < n; i++) {
		if (places[i].head.type != CHUNK_EVENTS)
			continue;
		image->data[places[first].offset + FORMAT_CHUNK_BYTES] ^= 1;
		outcome = read_altered(image, places[i].offset + FORMAT_CHUNK_BYTES, image->bytes);
		image->data[places[first].offset + FORMAT_CHUNK_BYTES] ^= 1;
		assert_int_equal(outcome.damaged_chunks, 2);
		assert_int_equal(outcome.events + outcome.damaged_events, EVENTS);
		assert_has(outcome.err.text, "2 parts of it");
	}
}

/* ---- other files --------------------------------------------------------------------------- */

static void test_an_empty_file_is_told_from_a_foreign_one(void **state)
{
	struct image *image = *state;

	assert_refused(image, "", 0, "is empty");
	assert_refused(image, "{\"version\": 1}\n", 15, "is no trace");
	assert_refused(image, "x", 1, "is no trace");
	assert_refused(image, image->data, 5, "ends within its header");
	assert_refused(image, image->data, 40, "nothing was recorded");
}

static void test_a_newer_format_is_refused_and_a_newer_minor_one_is_read(void **state)
{
	struct image *image = *state;
	unsigned char major = image->data[8];

	image->data[10] = 200; /* minor */
	assert_int_equal(read_bytes(image, image->data, image->bytes).events, EVENTS);
	image->data[10] = 0;
	image->data[8] = major + 1;
	assert_refused(image, image->data, image->bytes, "newer cuscope");
	image->data[8] = major;
}

static void test_what_cannot_be_read_at_all_is_refused(void **state)
{
	struct trace_file *file;
	struct err err = { 0 };
	int pipes[2];

	assert_int_equal(trace_open("/nonexistent", &file, &err), -ENOENT);
	assert_has(err.text, "cannot read /nonexistent");
	assert_int_equal(trace_open("/", &file, &err), -EISDIR);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(trace_open(path_of(pipes[0]), &file, &err), -EINVAL);
	assert_has(err.text, "is not a regular file");
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- what a later version may add ---------------------------------------------------------- */

static void test_chunks_and_records_that_are_not_known_are_passed_over(void **state)
{
	struct image *image = *state;
	struct chunk_head head = { .type = 77 }, definitions = { .type = CHUNK_DEFINITIONS };
	static const unsigned char unknown[] = { 99, 3, 'a', 'b', 'c' };
	struct packer *packer = packer_new();
	struct buf file = { 0 };
	size_t first = FORMAT_HEADER_BYTES;

	buf_add(&file, image->data, first);
	packer_add(packer, &head, "later", 5, &file);
	packer_add(packer, &definitions, unknown, sizeof(unknown), &file);
	buf_add(&file, image->data + first, image->bytes - first - FORMAT_TRAILER_BYTES);
	assert_int_equal(read_bytes(image, file.data, file.len).events, EVENTS);
	buf_free(&file);
	packer_free(packer);
}

static bool define_process(struct objects *objects, uint8_t id)
{
	const uint8_t raw[] = { DEFINE_PROCESS, 3, id, 47, 0 /* no name */ };

	struct bytes in = bytes_of(raw, sizeof(raw));

	return objects_read(objects, &in);
}

static void test_whose_a_process_is_older_files_do_not_tell(void **state)
{
	const uint8_t raw[] = { DEFINE_PROCESS, 4, 1, 47, 0, 6 };
	struct objects *objects = objects_new();
	struct bytes in = bytes_of(raw, sizeof(raw));

	assert_true(define_process(objects, 0));
	assert_true(objects_read(objects, &in));
	assert_int_equal(objects_process(objects, 0)->person, PROCESS_UNTOLD);
	assert_int_equal(objects_process(objects, 1)->person, 5);
	objects_free(objects);
}

/* A file could take a million holes, of 8 MiB, with each of its records. */
static void test_there_are_no_more_holes_than_were_lost(void **state)
{
	struct objects *objects = objects_new();

	objects_lose(objects, 10);
	assert_true(define_process(objects, 4));  /* 0 to 3 */
	assert_true(define_process(objects, 11)); /* 5 to 10 */
	assert_true(define_process(objects, 12));
	assert_false(define_process(objects, 14));
	objects_lose(objects, 1);
	assert_true(define_process(objects, 14));
	assert_false(define_process(objects, 16));
	objects_free(objects);
}

static void test_the_name_of_a_function_is_a_word(void **state)
{
	static const unsigned char function[] = {
		0, 6, 'c', 'u', '\033', '[', 'm', 0xff, 0, 0, 0, 0
	};
	struct objects *objects = objects_new();
	struct buf raw = { 0 };
	struct bytes in;

	buf_putc(&raw, DEFINE_FUNCTION);
	buf_putc(&raw, sizeof(function));
	buf_add(&raw, function, sizeof(function));
	in = bytes_of(raw.data, raw.len);
	assert_true(objects_read(objects, &in));
	assert_string_equal(objects_function(objects, 0)->name, "cu??m?");
	objects_free(objects);
	buf_free(&raw);
}

/* ---- writing ------------------------------------------------------------------------------- */

static void limit_files_to(rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_a_chunk_that_does_not_fit_is_cut_off_again(void **state)
{
	struct image *image = *state;
	struct file_out out;
	struct err err = { 0 };
	struct stat st;
	int fd = memory_file();

	file_out_init(&out, fd, "full.cuscope");
	assert_int_equal(file_out_begin(&out, &err), 0);
	assert_int_equal(file_out_chunk(&out, image->data, 100, &err), 0);
	limit_files_to(FORMAT_HEADER_BYTES + 100 + 50); /* of the next, a half is written */
	assert_int_equal(file_out_chunk(&out, image->data, 100, &err), -EFBIG);
	assert_has(err.text, "cannot write full.cuscope");
	limit_files_to(RLIM_INFINITY); /* after a failure nothing more is written */
	assert_int_equal(file_out_chunk(&out, image->data, 100, &err), -EFBIG);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, FORMAT_HEADER_BYTES + 100);
	file_out_free(&out);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_cut_off_anywhere_is_read_up_to_the_last_whole_chunk),
		cmocka_unit_test(test_a_file_without_its_end_says_so),
		cmocka_unit_test(test_zeros_behind_the_last_chunk_are_what_a_crash_leaves),
		cmocka_unit_test(test_no_flipped_bit_makes_a_wrong_event),
		cmocka_unit_test(test_a_bad_byte_costs_its_chunk_and_what_refers_to_it),
		cmocka_unit_test(test_a_bad_head_costs_nothing_where_there_is_an_index),
		cmocka_unit_test(test_without_an_index_the_next_head_is_looked_for),
		cmocka_unit_test(test_what_is_missing_in_the_middle_is_damage_and_no_missing_end),
		cmocka_unit_test(test_two_bad_bytes_are_counted),
		cmocka_unit_test(test_an_empty_file_is_told_from_a_foreign_one),
		cmocka_unit_test(test_a_newer_format_is_refused_and_a_newer_minor_one_is_read),
		cmocka_unit_test(test_what_cannot_be_read_at_all_is_refused),
		cmocka_unit_test(test_chunks_and_records_that_are_not_known_are_passed_over),
		cmocka_unit_test(test_a_chunk_that_does_not_fit_is_cut_off_again),
		cmocka_unit_test(test_there_are_no_more_holes_than_were_lost),
		cmocka_unit_test(test_whose_a_process_is_older_files_do_not_tell),
		cmocka_unit_test(test_the_name_of_a_function_is_a_word),
	};

	return cmocka_run_group_tests(tests, make_image, free_image);
}
