// SPDX-License-Identifier: MIT
/*
 * Parts of frames are behind the stacks in a file, and stacks have them all the same. Of files that
 * are damaged, cut off or too large the rest is read.
 */
#include "trace_events.h"

#include <sys/stat.h>

#include "base/array.h"
#include "trace/define.h"
#include "trace/chunk.h"
#include "trace/objects.h"

/* ---- a file with the lines of its frames ---------------------------------------------------- */

enum { FRAMES = 4000, NAME = 800 };

static struct stack_frame frames[FRAMES], inner[FRAMES], outer[FRAMES];
static const struct stack_frame *at[FRAMES], *parts[FRAMES][2];
static struct stack stacks[FRAMES];
static char names[FRAMES][NAME + 1];

/* Each stack is one frame; what was inlined there has a long name, so that parts fill chunks. */
static void make_stacks(void)
{
	uint32_t seed = 1;

	for (uint32_t i = 0; i < FRAMES; i++) {
		for (size_t c = 0; c < NAME; c++, seed = seed * 1664525 + 1013904223)
			names[i][c] = (char)('a' + (seed >> 24) % 26);
		frames[i] = (struct stack_frame){ .id = i, .function = "step", .offset = i };
		inner[i] = (struct stack_frame){ .id = FRAMES + i,
			                         .inlined = true,
			                         .function = names[i],
			                         .file = "x.h",
			                         .line = i + 1 };
		outer[i] = (struct stack_frame){
			.id = 2 * FRAMES + i, .function = "step", .file = "x.cu", .line = i + 9
		};
		at[i] = &frames[i];
		stacks[i] = (struct stack){ .id = i, .n_frames = 1, .frames = &at[i] };
		parts[i][0] = &inner[i];
		parts[i][1] = &outer[i];
		frames[i].n_parts = 2;
		frames[i].parts = parts[i];
	}
}

static int write_parts(void)
{
	struct run_info run = default_run_info();
	struct kept_list list = { 0 };
	int fd = memory_file();

	make_stacks();
	for (uint32_t i = 0; i < FRAMES; i++) {
		const struct sample sample = { .weight_ns = 1000, .stack = &stacks[i] };
		const struct event event = { .type = EVENT_SAMPLE,
			                     .time_ns = RUN_BEGIN_NS + 1000 * i,
			                     .process = the_process(),
			                     .tid = 4242,
			                     .sample = &sample };

		keep_event(&list, &event);
	}
	write_list(fd, &run, &list);
	free(list.at);
	return fd;
}

/* The head of the definitions that are the n-th from the end. */
static struct chunk_at definitions(int fd, size_t from_end)
{
	struct chunk_at found = { 0 };
	struct file_in in;
	struct err err = { 0 };

	assert_int_equal(file_in_open(&in, path_of(fd), &err), 0);
	for (size_t i = in.n_chunks; i-- > 0 && !found.offset;) {
		if (in.chunks[i].head.type == CHUNK_DEFINITIONS && !from_end--)
			found = in.chunks[i];
	}
	file_in_close(&in);
	assert_true(found.offset > 0);
	return found;
}

static void damage(int fd, size_t from_end)
{
	struct chunk_at chunk = definitions(fd, from_end);

	assert_int_equal(
		pwrite(fd, "?damaged?", 9,
	               (off_t)chunk.offset + FORMAT_CHUNK_BYTES + chunk.head.stored_bytes / 2),
		9);
}

struct found {
	size_t events, whole, parted, without; /* samples, by what their stacks are */
	uint64_t damaged_chunks;
	bool cut_short;
};

static void count(struct found *found, const struct kept *kept)
{
	const struct stack *stack = kept->sample.stack;
	size_t i;

	found->events++;
	if (!stack) {
		found->without++;
		return;
	}
	i = stack->frames[0]->inlined ? stack->frames[0]->line - 1 : stack->frames[0]->offset;
	assert_in_range(i, 0, FRAMES - 1);
	if (stack->n_frames == 1) {
		assert_same_frame(stack->frames[0], &frames[i]);
		found->whole++;
		return;
	}
	assert_int_equal(stack->n_frames, 2);
	assert_same_frame(stack->frames[0], &inner[i]);
	assert_same_frame(stack->frames[1], &outer[i]);
	found->parted++;
}

static struct found read_file(int fd)
{
	struct keeper keeper = { .consumer.ops = &keeper_ops };
	struct consumer *consumer = &keeper.consumer;
	struct found found = { 0 };
	struct trace_file *file;
	struct err err = { 0 };

	assert_int_equal(trace_open(path_of(fd), &file, &err), 0);
	trace_read(file, NULL, &consumer, 1, &err);
	for (size_t i = 0; i < keeper.list.count; i++)
		count(&found, &keeper.list.at[i]);
	found.damaged_chunks = trace_run(file)->damaged_chunks;
	found.cut_short = trace_run(file)->cut_short;
	trace_close(file);
	keeper_free(&keeper);
	close(fd);
	return found;
}

static void test_stacks_have_the_parts_that_are_behind_them(void **state)
{
	struct found found = read_file(write_parts());

	assert_int_equal(found.events, FRAMES);
	assert_int_equal(found.parted, FRAMES);
	assert_int_equal(found.damaged_chunks, 0);
}

static void test_frames_whose_parts_are_damaged_stay_whole(void **state)
{
	int fd = write_parts();
	struct found found;

	damage(fd, 0);
	found = read_file(fd);
	assert_int_equal(found.events, FRAMES);
	assert_int_equal(found.without, 0);
	assert_in_range(found.whole, 1, FRAMES - 1);
	assert_int_equal(found.whole + found.parted, FRAMES);
	assert_int_equal(found.damaged_chunks, 1); /* once, though it is looked at twice */
}

/* Of two chunks of parts the first is lost: those of the second refer to frames in it, or not. */
static void test_parts_behind_damage_are_there(void **state)
{
	int fd = write_parts();
	struct found found;

	damage(fd, 1);
	found = read_file(fd);
	assert_int_equal(found.events, FRAMES);
	assert_int_equal(found.without, 0);
	assert_in_range(found.parted, 1, FRAMES - 1);
	assert_int_equal(found.damaged_chunks, 1);
}

static void test_a_file_that_was_cut_off_before_its_parts_has_whole_frames(void **state)
{
	int fd = write_parts();
	struct chunk_at last = { 0 };
	struct found found;
	struct stat st;

	for (size_t i = 0; last.head.type != CHUNK_EVENTS; i++) {
		struct file_in in;
		struct err err = { 0 };

		assert_int_equal(file_in_open(&in, path_of(fd), &err), 0);
		assert_true(i < in.n_chunks);
		last = in.chunks[in.n_chunks - 1 - i];
		file_in_close(&in);
	}
	assert_int_equal(fstat(fd, &st), 0);
	assert_in_range(last.offset, 1, (uint64_t)st.st_size - 1);
	assert_int_equal(
		ftruncate(fd, (off_t)last.offset + FORMAT_CHUNK_BYTES + last.head.stored_bytes), 0);
	found = read_file(fd);
	assert_true(found.cut_short);
	assert_true(found.events > 0);
	assert_int_equal(found.without, 0);
	assert_int_equal(found.whole + found.parted, found.events);
}

/* ---- definitions that make no sense --------------------------------------------------------- */

static void define(struct buf *raw, enum definition tag, const uint64_t *numbers, size_t n)
{
	struct buf body = { 0 };

	for (size_t i = 0; i < n; i++)
		record_varint(&body, numbers[i]);
	record_add(raw, tag, &body);
	buf_free(&body);
}

#define DEFINE(raw, tag, ...)                                                                      \
	define(raw, tag, (const uint64_t[]){ __VA_ARGS__ },                                        \
	       ARRAY_SIZE(((const uint64_t[]){ __VA_ARGS__ })))

static bool look(struct objects *objects, const struct buf *raw)
{
	struct bytes in = bytes_of(raw->data, raw->len);

	return objects_look_ahead(objects, &in);
}

static bool read_all(struct objects *objects, const struct buf *raw)
{
	struct bytes in = bytes_of(raw->data, raw->len);

	return objects_read(objects, &in) && in.at == in.end;
}

/* Which of these bytes is wrong is found both times, so that it is told of once: by the second. */
static void test_what_is_damaged_is_so_at_both_times(void **state)
{
	static const uint64_t bad[][8] = {
		{ 5, 0, 0, 0, 0, 0, 0 },  /* not the next number */
		{ 1, 0, 0, 0, 0, 0, 1 },  /* a text, and it is not there */
		{ 1, 0, 0, 0, 0, 0, 16 }, /* what is of later is no damage */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct objects *objects = objects_new();
		struct buf raw = { 0 };
		bool good = bad[i][6] == 16;

		DEFINE(&raw, DEFINE_FRAME, 0, 0, 0, 0, 0, 0, 0);
		define(&raw, DEFINE_FRAME, bad[i], 7);
		assert_int_equal(look(objects, &raw), good);
		objects_know_frames(objects);
		assert_int_equal(read_all(objects, &raw), good);
		objects_free(objects);
		buf_free(&raw);
	}
}

static void test_parts_that_lead_to_themselves_are_taken_once(void **state)
{
	struct objects *objects = objects_new();
	struct buf raw = { 0 };
	const struct stack *stack;

	DEFINE(&raw, DEFINE_FRAME, 0, 0, 0, 0, 0, 0, 0);
	DEFINE(&raw, DEFINE_STACK, 0, 0, 0, 2, 0, 0); /* frame 0, twice */
	DEFINE(&raw, DEFINE_PARTS, 0, 3, 0, 0, 0);
	assert_true(look(objects, &raw));
	objects_know_frames(objects);
	assert_true(read_all(objects, &raw));
	stack = objects_stack(objects, 0);
	assert_int_equal(stack->n_frames, 6);
	objects_free(objects);
	buf_free(&raw);
}

/* 512 frames of 64 parts each: the 16 outermost have 1,024, and the others stay whole. */
static void test_stacks_do_not_grow_beyond_a_depth(void **state)
{
	uint64_t deep[4 + FORMAT_FRAMES_MAX] = { 0, 0, 0, FORMAT_FRAMES_MAX };
	uint64_t of_frame[2 + FORMAT_PARTS_MAX] = { 0, FORMAT_PARTS_MAX };
	struct objects *objects = objects_new();
	struct buf raw = { 0 };

	for (size_t i = 0; i < FORMAT_PARTS_MAX; i++)
		of_frame[2 + i] = 1;
	DEFINE(&raw, DEFINE_FRAME, 0, 0, 0, 0, 0, 0, 0);
	DEFINE(&raw, DEFINE_FRAME, 1, 0, 1, 0, 0, 0, 0);
	define(&raw, DEFINE_STACK, deep, ARRAY_SIZE(deep));
	define(&raw, DEFINE_PARTS, of_frame, ARRAY_SIZE(of_frame));
	assert_true(look(objects, &raw));
	objects_know_frames(objects);
	assert_true(read_all(objects, &raw));
	assert_int_equal(objects_stack(objects, 0)->n_frames,
	                 STACK_PARTED_DEPTH + FORMAT_FRAMES_MAX -
	                         STACK_PARTED_DEPTH / FORMAT_PARTS_MAX);
	assert_false(objects_stack(objects, 0)->frames[0]->inlined);
	objects_free(objects);
	buf_free(&raw);
}

/* Frames have half of the room, whatever a file says: what else it defines has its own. */
static void test_frames_without_end_leave_room_for_all_else(void **state)
{
	struct objects *objects = objects_new();
	uint64_t frame[7] = { 0 }, n = OBJECTS_BYTES_AHEAD / 256;
	struct buf raw = { 0 };

	for (; *frame < n; ++*frame)
		define(&raw, DEFINE_FRAME, frame, ARRAY_SIZE(frame));
	DEFINE(&raw, DEFINE_STACK, 0, 0, 0, 1, 2 * (n - 1));
	DEFINE(&raw, DEFINE_STACK, 1, 0, 0, 1, 0);
	DEFINE(&raw, DEFINE_PROCESS, 0, 4242, 0);
	assert_true(look(objects, &raw));
	objects_know_frames(objects);
	assert_in_range(objects_over_budget(objects), 1, n / 10);
	assert_true(read_all(objects, &raw));
	assert_non_null(objects_process(objects, 0));
	assert_null(objects_stack(objects, 0)); /* of a frame that there was no room for */
	assert_true(objects_lost(objects, OBJECT_STACK, 0));
	assert_non_null(objects_stack(objects, 1));
	objects_free(objects);
	buf_free(&raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks_have_the_parts_that_are_behind_them),
		cmocka_unit_test(test_frames_whose_parts_are_damaged_stay_whole),
		cmocka_unit_test(test_parts_behind_damage_are_there),
		cmocka_unit_test(test_a_file_that_was_cut_off_before_its_parts_has_whole_frames),
		cmocka_unit_test(test_what_is_damaged_is_so_at_both_times),
		cmocka_unit_test(test_parts_that_lead_to_themselves_are_taken_once),
		cmocka_unit_test(test_stacks_do_not_grow_beyond_a_depth),
		cmocka_unit_test(test_frames_without_end_leave_room_for_all_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
