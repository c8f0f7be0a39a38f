// SPDX-License-Identifier: MIT
/* Trace files that are cut off, altered, foreign or newer: what is whole is read, with a word. */
#include "trace/format.h"
#include "trace_events.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "trace/bytes.h"
#include "trace/chunk.h"
#include "trace/file_out.h"

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

	if (!kernel)
		kernel = new_kernel("tick()", true);
	call = i % 2 ? launch_at("cuLaunchKernel", 10 * i, kernel)
	             : alloc_at("cudaMalloc", 10 * i, 0x7f0000000000 + 512 * i, 4096);
	event.type = i % 8 ? EVENT_CALL : EVENT_THREAD;
	call.correlation = i;
	event.call = i % 8 ? &call : NULL;
	event.thread = i % 8 ? NULL : &thread;
	event.time_ns = call.end_ns;
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
	bool cut_short;
	struct err err;
};

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
		outcome.events = keeper.list.count;
		assert_int_equal(keeper.ended, 1);
		assert_true(keeper.list.count <= image->list.count);
		for (size_t i = 0; i < keeper.list.count; i++)
			assert_same_event(&image->list.at[i], &keeper.list.at[i]);
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

static void what_is_cut_off_anywhere_is_read_up_to_the_last_whole_chunk(void **state)
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

static void a_file_without_its_end_says_so(void **state)
{
	struct image *image = *state;
	struct outcome whole = read_bytes(image, image->data, image->bytes);
	struct outcome half = read_bytes(image, image->data, image->bytes / 2);

	assert_false(whole.cut_short);
	assert_int_equal(whole.events, EVENTS);
	assert_true(half.cut_short);
	assert_in_range(half.events, EACH, EVENTS - 1);
}

static void zeros_behind_the_last_chunk_are_what_a_crash_leaves(void **state)
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

static void no_flipped_bit_makes_a_wrong_event(void **state)
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

static void damage_in_the_middle_is_told_and_what_came_before_is_read(void **state)
{
	struct image *image = *state;
	struct outcome outcome;

	image->data[image->bytes / 2] ^= 0x10;
	outcome = read_bytes(image, image->data, image->bytes);
	image->data[image->bytes / 2] ^= 0x10;
	assert_int_equal(outcome.opened, 0);
	assert_int_equal(outcome.read, -EBADMSG);
	assert_in_range(outcome.events, 1, EVENTS - 1);
	assert_has(outcome.err.text, "is damaged at byte");
}

/* ---- other files --------------------------------------------------------------------------- */

static void an_empty_file_is_told_from_a_foreign_one(void **state)
{
	struct image *image = *state;

	assert_refused(image, "", 0, "is empty");
	assert_refused(image, "{\"version\": 1}\n", 15, "is no trace");
	assert_refused(image, "x", 1, "is no trace");
	assert_refused(image, image->data, 5, "ends within its header");
	assert_refused(image, image->data, 40, "nothing was recorded");
}

static void a_newer_format_is_refused_and_a_newer_minor_one_is_read(void **state)
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

static void what_cannot_be_read_at_all_is_refused(void **state)
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

static void chunks_and_records_that_are_not_known_are_passed_over(void **state)
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

/* ---- writing ------------------------------------------------------------------------------- */

static void limit_files_to(rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_chunk_that_does_not_fit_is_cut_off_again(void **state)
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
		cmocka_unit_test(what_is_cut_off_anywhere_is_read_up_to_the_last_whole_chunk),
		cmocka_unit_test(a_file_without_its_end_says_so),
		cmocka_unit_test(zeros_behind_the_last_chunk_are_what_a_crash_leaves),
		cmocka_unit_test(no_flipped_bit_makes_a_wrong_event),
		cmocka_unit_test(damage_in_the_middle_is_told_and_what_came_before_is_read),
		cmocka_unit_test(an_empty_file_is_told_from_a_foreign_one),
		cmocka_unit_test(a_newer_format_is_refused_and_a_newer_minor_one_is_read),
		cmocka_unit_test(what_cannot_be_read_at_all_is_refused),
		cmocka_unit_test(chunks_and_records_that_are_not_known_are_passed_over),
		cmocka_unit_test(a_chunk_that_does_not_fit_is_cut_off_again),
	};

	return cmocka_run_group_tests(tests, make_image, free_image);
}
