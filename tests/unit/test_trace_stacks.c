// SPDX-License-Identifier: MIT
/* Stacks in trace files: of calls and of samples, each kept once, and bounded when they are read.
 */
#include "../golden/stacks.h"

#include "profile/collect.h"
#include "profile/profile_write.h"
#include "trace/codec.h"
#include "trace/define.h"
#include "trace/filter.h"
#include "trace/objects.h"
#include "trace/run_record.h"
#include "trace/stack.h"

/* ---- random stacks ------------------------------------------------------------------------- */

static uint64_t seed = 1;

static uint64_t below(uint64_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % limit;
}

static const char *some_text(const char *what, char *text, size_t size)
{
	if (!below(4))
		return NULL;
	snprintf(text, size, "%s %u \x1b", what, (unsigned)below(50));
	return text;
}

static const struct stack_frame *random_frame(struct stacks *stacks)
{
	char function[64], module[64], file[64], build_id[64];
	struct stack_frame frame = { .kind = (enum frame_kind)below(FRAME_COUNT),
		                     .inlined = below(2),
		                     .line = (uint32_t)below(UINT32_MAX),
		                     .first_line = (uint32_t)below(100),
		                     .offset = below(2) ? UINT64_MAX - below(9) : below(9) };

	frame.function = some_text("f", function, sizeof(function));
	frame.module = some_text("lib", module, sizeof(module));
	frame.file = some_text("", file, sizeof(file));
	frame.build_id = some_text("id", build_id, sizeof(build_id));
	return stacks_frame(stacks, &frame);
}

static const struct stack *random_stack(struct stacks *stacks)
{
	const struct stack_frame *frames[FORMAT_FRAMES_MAX];
	struct stack stack = { .end = (enum stack_end)below(STACK_END_COUNT),
		               .python_cut = below(2),
		               .n_frames = 1 + below(below(20) ? 30 : FORMAT_FRAMES_MAX),
		               .frames = frames };

	for (size_t i = 0; i < stack.n_frames; i++)
		frames[i] = random_frame(stacks);
	return stacks_stack(stacks, &stack);
}

/* ---- round trips --------------------------------------------------------------------------- */

static const char *some_waker(void)
{
	static const char *const names[] = { "loader", "", "nccl-proxy", "a;b\n" };

	return names[below(ARRAY_SIZE(names))];
}

static void add_random_event(struct kept_list *list, const struct stack *stack, uint64_t time_ns)
{
	struct call call = call_at("cudaMalloc", 0, 0);
	struct sample sample = { .kind = (enum sample_kind)below(SAMPLE_KIND_COUNT),
		                 .weight_ns = below(1ull << 62),
		                 .stack = stack,
		                 .blocked = (enum blocked)below(BLOCKED_COUNT),
		                 .waker_tid = (uint32_t)below(1 << 22),
		                 .waker = below(2) ? some_waker() : NULL,
		                 .count = below(1ull << 40),
		                 .wait = (enum wait_kind)below(WAIT_COUNT),
		                 .rival_pid = (uint32_t)below(1 << 22),
		                 .rival = below(2) ? some_waker() : NULL };
	struct activity activity = { .kind = below(2) ? ACTIVITY_COPY : ACTIVITY_SET,
		                     .begin_ns = time_ns,
		                     .end_ns = time_ns,
		                     .graph_node = below(3),
		                     .stack = stack };
	struct event event = { .time_ns = time_ns, .process = the_process(), .tid = 4242 };

	sample.runnable_ns = below(2) ? below(sample.weight_ns + 1) : 0;
	call.begin_ns = call.end_ns = time_ns;
	call.stack = stack;
	event.type = below(3) ? below(2) ? EVENT_CALL : EVENT_SAMPLE : EVENT_ACTIVITY;
	event.activity = event.type == EVENT_ACTIVITY ? &activity : NULL;
	event.call = event.type == EVENT_CALL ? &call : NULL;
	event.sample = event.type == EVENT_SAMPLE ? &sample : NULL;
	keep_event(list, &event);
}

static void check_list(struct kept_list *list)
{
	struct run_info run = default_run_info();
	struct trace_file *file;
	struct keeper keeper;
	int fd = memory_file();

	write_list(fd, &run, list);
	file = read_list(fd, NULL, &keeper);
	assert_same_list(list, &keeper.list);
	trace_close(file);
	keeper_free(&keeper);
	close(fd);
}

static void test_random_stacks_come_back(void **state)
{
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
	const struct stack *some[64];
	struct kept_list list = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(some); i++)
		some[i] = random_stack(stacks);
	for (uint64_t i = 0; i < 5000; i++)
		add_random_event(&list, below(5) ? some[below(ARRAY_SIZE(some))] : NULL,
		                 RUN_BEGIN_NS + 1000 * i);
	check_list(&list);
	free(list.at);
	stacks_free(stacks);
}

static void test_many_stacks_of_their_own_come_back(void **state)
{
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
	struct kept_list list = { 0 };

	for (uint64_t i = 0; i < 3000; i++)
		add_random_event(&list, random_stack(stacks), RUN_BEGIN_NS + 1000 * i);
	check_list(&list);
	free(list.at);
	stacks_free(stacks);
}

static void test_the_outermost_frames_of_a_stack_that_is_too_deep_are_not_kept(void **state)
{
	const struct stack_frame frame = { .function = "f" }, *frames[FORMAT_FRAMES_MAX + 100];
	const struct stack deep = { .n_frames = ARRAY_SIZE(frames), .frames = frames };
	struct run_info run = default_run_info();
	struct kept_list list = { 0 };
	struct trace_file *file;
	struct keeper keeper;
	int fd = memory_file();
	const struct stack *read;

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i] = &frame;
	add_random_event(&list, &deep, RUN_BEGIN_NS);
	write_list(fd, &run, &list);
	file = read_list(fd, NULL, &keeper);
	read = keeper.list.at->event.call ? keeper.list.at->call.stack
	                                  : keeper.list.at->sample.stack;
	assert_int_equal(read->n_frames, FORMAT_FRAMES_MAX);
	assert_int_equal(read->end, STACK_TOO_DEEP);
	trace_close(file);
	keeper_free(&keeper);
	free(list.at);
	close(fd);
}

/* All frames of what was read last are complete: parts are told of in the end. */
static void test_parts_of_frames_come_back(void **state)
{
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
	struct kept_list list = { 0 };

	for (uint64_t i = 0; i < 300; i++)
		add_random_event(&list, random_stack(stacks), RUN_BEGIN_NS + 1000 * i);
	for (size_t i = 0; i < list.count; i++) {
		const struct event *event = &list.at[i].event;
		const struct stack *stack = event->call       ? list.at[i].call.stack
		                            : event->activity ? list.at[i].activity.stack
		                                              : list.at[i].sample.stack;
		const struct stack_frame *parts[FORMAT_PARTS_MAX];
		size_t n = 1 + below(below(9) ? 5 : FORMAT_PARTS_MAX);

		for (size_t part = 0; part < n; part++)
			parts[part] = random_frame(stacks);
		assert_true(stacks_set_parts(stacks, stack->frames[0], parts, n));
	}
	check_list(&list);
	free(list.at);
	stacks_free(stacks);
}

/* No chunk is above 8 MiB, or a reader refuses it: these are 12. */
static void test_many_parts_are_in_several_chunks(void **state)
{
	enum { COUNT = 12000 };
	static struct stack_frame frames[COUNT], parts[COUNT];
	static const struct stack_frame *at[COUNT], *part_of[COUNT];
	static struct stack stacks[COUNT];
	static char names[COUNT][1001];
	struct kept_list list = { 0 };

	for (uint32_t i = 0; i < COUNT; i++) {
		for (size_t c = 0; c < sizeof(names[i]) - 1; c++)
			names[i][c] = (char)('a' + below(26));
		frames[i] = (struct stack_frame){ .id = i, .function = "f", .offset = i };
		parts[i] = (struct stack_frame){ .id = COUNT + i, .function = names[i] };
		at[i] = &frames[i];
		stacks[i] = (struct stack){ .id = i, .n_frames = 1, .frames = &at[i] };
		add_random_event(&list, &stacks[i], RUN_BEGIN_NS + 1000 * i);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		part_of[i] = &parts[i];
		frames[i].parts = &part_of[i];
		frames[i].n_parts = 1;
	}
	check_list(&list);
	free(list.at);
}

static void test_what_was_asked_for_and_missed_comes_back(void **state)
{
	struct run_info run = default_run_info();
	struct kept_run kept = { 0 };
	struct buf raw = { 0 };

	run.stacks = stacks_asked();
	run_write(&run, &raw);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	assert_int_equal(kept.info.stacks.sample_ns, run.stacks.sample_ns);
	assert_int_equal(kept.info.stacks.calls, run.stacks.calls);
	assert_int_equal(kept.info.stacks.one_in, run.stacks.one_in);
	assert_int_equal(kept.info.stacks.call_ns, run.stacks.call_ns);
	assert_memory_equal(kept.info.stacks.missed, run.stacks.missed, sizeof(run.stacks.missed));
	run_free(&kept);
	buf_free(&raw);
}

static uint32_t calls_read_back(uint32_t calls, const char *written, const char *instead)
{
	struct run_info run = default_run_info();
	struct kept_run kept = { 0 };
	struct buf raw = { 0 };
	char *at;

	run.stacks = (struct run_stacks){ 1, calls, 1, 5 };
	run_write(&run, &raw);
	at = memmem(raw.data, raw.len, written, 4);
	assert_non_null(at);
	memcpy(at, instead, 4);
	assert_true(run_read(&kept, (const uint8_t *)raw.data, raw.len));
	calls = kept.info.stacks.calls;
	run_free(&kept);
	buf_free(&raw);
	return calls;
}

/* Between two of a CPU and two of a thread: which calls, and of one in how many. */
static void test_calls_of_stacks_are_read_as_older_files_have_them(void **state)
{
	const uint32_t waits = STACK_CALLS_WAITS;

	assert_int_equal(calls_read_back(STACK_CALLS_ALL, "\1\37\1\5", "\1\37\1\5"),
	                 STACK_CALLS_ALL);
	assert_int_equal(calls_read_back(waits, "\1\10\1\5", "\1\10\1\5"), waits);
	assert_int_equal(calls_read_back(waits, "\1\10\1\5", "\1\1\1\5"), STACK_CALLS_WORK);
	assert_int_equal(calls_read_back(waits, "\1\10\1\5", "\1\0\1\5"), 0);
	assert_int_equal(calls_read_back(waits, "\1\10\1\5", "\1\177\1\5"), STACK_CALLS_ALL);
}

/* ---- the profile --------------------------------------------------------------------------- */

struct profiling {
	struct work *work;
	struct consumer *consumers[2];
};

static void begin_profile(struct profiling *p)
{
	struct collect_options options = { .kinds = WEIGHTS_ALL };

	options.work = p->work = work_new(WORK_BYTES_LIVE);
	p->consumers[0] = work_consumer(p->work);
	p->consumers[1] = collect_new(&options);
}

static char *end_profile(struct profiling *p)
{
	const struct profile_info info = { 0 };
	struct err err = { 0 };
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(profile_write(collect_profile(p->consumers[1]), &info, PROFILE_FOLDED, out,
	                               "x", &err),
	                 0);
	fclose(out);
	consumer_free(p->consumers[1]);
	work_free(p->work);
	return text;
}

static void put_scene(struct scene *scene)
{
	put_stacks(scene, new_process(5151, "python3"), new_kernel("gemm()", true),
	           new_kernel("softmax()", true));
	sort_scene(scene);
	number_calls(scene);
}

static void test_the_profile_of_a_file_is_that_of_the_run(void **state)
{
	struct run_info run = default_run_info();
	struct scene scene = { 0 };
	struct err err = { 0 };
	struct profiling p;
	struct trace_file *file;
	int fd = memory_file();
	char *live, *of_file;

	put_scene(&scene);
	begin_profile(&p);
	assert_int_equal(consumers_begin(p.consumers, 2, &run, &err), 0);
	for (size_t i = 0; i < scene.list.count; i++) {
		struct event event = event_of(&scene.list.at[i]);

		assert_int_equal(consumers_event(p.consumers, 2, &event, &err), 0);
	}
	assert_int_equal(consumers_end(p.consumers, 2, &run, &err), 0);
	live = end_profile(&p);

	write_list(fd, &run, &scene.list);
	begin_profile(&p);
	assert_int_equal(trace_open(path_of(fd), &file, &err), 0);
	assert_int_equal(trace_read(file, NULL, p.consumers, 2, &err), 0);
	of_file = end_profile(&p);
	trace_close(file);
	assert_non_null(strstr(live, "[GPU_Kernel]gemm() 800\n"));
	assert_string_equal(live, of_file);
	free(live);
	free(of_file);
	free(scene.list.at);
	close(fd);
}

/* ---- what leaves events out ---------------------------------------------------------------- */

static int open_scratch(void *data, const char **name, struct err *err)
{
	*(int *)data = memory_file();
	*name = "scratch";
	return dup(*(int *)data);
}

/* What a window holds in the end. */
static struct trace_file *read_last(struct writer_window *options, struct kept_list *list,
                                    struct keeper *keeper)
{
	struct run_info run = default_run_info();
	struct consumer *writer;
	struct trace_file *file;
	struct err err = { 0 };
	int fd = -1;

	options->data = &fd;
	writer = writer_new_window(options);
	assert_int_equal(writer->ops->begin(writer, &run, &err), 0);
	for (size_t i = 0; i < list->count; i++) {
		struct event event = event_of(&list->at[i]);

		assert_int_equal(writer->ops->event(writer, &event, &err), 0);
	}
	assert_int_equal(writer->ops->end(writer, &run, &err), 0);
	writer->ops->free(writer);
	file = read_list(fd, NULL, keeper);
	close(fd);
	return file;
}

/* The definitions of stacks that older events were of are among what --last keeps. */
static void test_the_last_part_of_a_run_has_its_stacks(void **state)
{
	struct writer_window options = { .last_bytes = 2000, .open = open_scratch };
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
	struct kept_list list = { 0 }, last = { 0 };
	const struct stack *some[8];
	struct trace_file *file;
	struct keeper keeper;

	for (size_t i = 0; i < ARRAY_SIZE(some); i++)
		some[i] = random_stack(stacks);
	for (uint64_t i = 0; i < 4000; i++)
		add_random_event(&list, some[below(8)], RUN_BEGIN_NS + 1000 * i);
	file = read_last(&options, &list, &keeper);
	assert_in_range(keeper.list.count, 1, list.count - 1);
	last = (struct kept_list){ list.at + list.count - keeper.list.count, keeper.list.count };
	assert_same_list(&last, &keeper.list);
	trace_close(file);
	keeper_free(&keeper);
	free(list.at);
	stacks_free(stacks);
}

/* Samples and what is of stacks: nine of ten events are another user's, who has most and gives. */
static void test_stacks_stay_where_others_events_are_taken_out_between(void **state)
{
	struct writer_window options = { .last_bytes = 60000,
		                         .shared = true,
		                         .open = open_scratch };
	const struct process *other = new_process(4343, "other");
	struct stacks *stacks = stacks_new(STACKS_BYTES_MAX);
	struct kept_list list = { 0 };
	const struct stack *some[8];
	struct trace_file *file;
	struct keeper keeper;
	size_t n = 0;

	((struct process *)other)->person = 7;
	for (size_t i = 0; i < ARRAY_SIZE(some); i++)
		some[i] = random_stack(stacks);
	for (uint64_t i = 0; i < 6000; i++) {
		add_random_event(&list, some[below(8)], RUN_BEGIN_NS + 1000 * i);
		if (i % 10)
			list.at[i].event.process = other;
	}
	file = read_last(&options, &list, &keeper);
	assert_in_range(keeper.list.count, 700, 3000);
	for (size_t i = 0; i < list.count; i += 10) {
		while (keeper.list.at[n].event.process->person == 7)
			n++;
		assert_same_event(&list.at[i], &keeper.list.at[n++]);
	}
	trace_close(file);
	keeper_free(&keeper);
	free(list.at);
	stacks_free(stacks);
}

static size_t count_of(const struct kept_list *list, enum event_type type, bool with_stack)
{
	size_t n = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct kept *kept = &list->at[i];

		n += kept->event.type == type &&
		     (!with_stack || (type == EVENT_CALL ? kept->call.stack : kept->sample.stack));
	}
	return n;
}

static void test_calls_that_are_chosen_keep_their_stacks(void **state)
{
	const struct filter_choice kernel = { .kernel = "gemm*" }, first = { .max_calls = 1 };
	struct run_info run = default_run_info();
	struct trace_read_options options = { 0 };
	struct scene scene = { 0 };
	struct trace_file *file;
	struct keeper keeper;
	int fd = memory_file();

	put_scene(&scene);
	write_list(fd, &run, &scene.list);
	options.filter = filter_new(&kernel);
	file = read_list(fd, &options, &keeper);
	assert_int_equal(count_of(&keeper.list, EVENT_CALL, false), 2);
	assert_int_equal(count_of(&keeper.list, EVENT_CALL, true), 1);
	assert_int_equal(count_of(&keeper.list, EVENT_SAMPLE, false), 0); /* has no kernel */
	trace_close(file);
	keeper_free(&keeper);
	filter_free(options.filter);
	options.filter = filter_new(&first);
	file = read_list(fd, &options, &keeper);
	assert_int_equal(count_of(&keeper.list, EVENT_CALL, true), 1);
	assert_int_equal(count_of(&keeper.list, EVENT_SAMPLE, false), 2); /* until its end */
	trace_close(file);
	keeper_free(&keeper);
	filter_free(options.filter);
	free(scene.list.at);
	close(fd);
}

static void test_samples_are_recorded_unless_calls_are_chosen_by_how_they_ended(void **state)
{
	struct keeper keeper = { .consumer.ops = &keeper_ops };
	const struct sample sample = { .weight_ns = 1 };
	const struct event event = { .type = EVENT_SAMPLE,
		                     .process = the_process(),
		                     .sample = &sample };
	struct err err = { 0 };

	for (unsigned failed = 0; failed < 2; failed++) {
		const struct chosen_options options = { .failed = failed, .min_duration_ns = 5 };
		struct consumer *chosen = chosen_new(&keeper.consumer, &options);

		assert_int_equal(chosen->ops->event(chosen, &event, &err), 0);
		assert_int_equal(keeper.list.count, 1);
		consumer_free(chosen);
	}
	keeper_free(&keeper);
}

/* ---- definitions that make no sense -------------------------------------------------------- */

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

static bool read_raw(struct objects *objects, struct buf *raw)
{
	struct bytes in = bytes_of(raw->data, raw->len);
	bool good = objects_read(objects, &in) && in.at == in.end;

	buf_reset(raw);
	return good;
}

static void test_stacks_that_cannot_be_are_damage(void **state)
{
	uint64_t deep[4 + FORMAT_FRAMES_MAX + 1] = { 0, 0, 0, FORMAT_FRAMES_MAX + 1 };
	struct objects *objects = objects_new();
	struct buf raw = { 0 };

	DEFINE(&raw, DEFINE_FRAME, 1, 0, 0, 0, 0, 0, 0); /* not the next number */
	assert_false(read_raw(objects, &raw));
	DEFINE(&raw, DEFINE_FRAME, 0, 0, 0, 0, 0, 0); /* cut off */
	assert_false(read_raw(objects, &raw));
	objects_free(objects);
	objects = objects_new();
	DEFINE(&raw, DEFINE_FRAME, 0, 99, 0, 0, 0, 0, 0); /* a kind of later */
	assert_true(read_raw(objects, &raw));
	DEFINE(&raw, DEFINE_STACK, 0, 0, 0, 0); /* no frames */
	assert_false(read_raw(objects, &raw));
	DEFINE(&raw, DEFINE_STACK, 0, 0, 0, 1, 2); /* of a frame that is not there */
	assert_false(read_raw(objects, &raw));
	DEFINE(&raw, DEFINE_STACK, 0, 0, 0, 2, 0); /* cut off */
	assert_false(read_raw(objects, &raw));
	define(&raw, DEFINE_STACK, deep, ARRAY_SIZE(deep));
	assert_false(read_raw(objects, &raw));
	assert_null(objects_stack(objects, 0));
	DEFINE(&raw, DEFINE_STACK, 0, 99, 0, 1, 0); /* an end of later */
	assert_true(read_raw(objects, &raw));
	assert_int_equal(objects_stack(objects, 0)->end, STACK_BAD);
	assert_int_equal(objects_stack(objects, 0)->frames[0]->kind, FRAME_NATIVE);
	objects_free(objects);
	buf_free(&raw);
}

static void test_a_stack_with_a_frame_that_was_lost_is_lost(void **state)
{
	struct objects *objects = objects_new();
	struct buf raw = { 0 };

	DEFINE(&raw, DEFINE_FRAME, 0, 0, 0, 0, 0, 0, 0);
	assert_true(read_raw(objects, &raw));
	objects_lose(objects, 2);
	DEFINE(&raw, DEFINE_STACK, 0, 0, 0, 2, 0, 2); /* frames 0 and 1 */
	assert_true(read_raw(objects, &raw));
	assert_null(objects_stack(objects, 0));
	assert_true(objects_lost(objects, OBJECT_STACK, 0));
	DEFINE(&raw, DEFINE_STACK, 1, 0, 0, 1, 0);
	assert_true(read_raw(objects, &raw));
	assert_non_null(objects_stack(objects, 1));
	objects_free(objects);
	buf_free(&raw);
}

static void test_stacks_beyond_the_budget_are_lost_and_no_damage(void **state)
{
	uint64_t stack[4 + FORMAT_FRAMES_MAX] = { 0, 0, 0, FORMAT_FRAMES_MAX };
	struct objects *objects = objects_new();
	struct buf raw = { 0 };
	uint64_t n = OBJECTS_BYTES_MAX / (8 * FORMAT_FRAMES_MAX) + 1;

	DEFINE(&raw, DEFINE_FRAME, 0, 0, 0, 0, 0, 0, 0);
	assert_true(read_raw(objects, &raw));
	for (; *stack < n; ++*stack) {
		define(&raw, DEFINE_STACK, stack, ARRAY_SIZE(stack));
		assert_true(read_raw(objects, &raw));
	}
	assert_in_range(objects_over_budget(objects), 1, n / 10);
	assert_non_null(objects_stack(objects, n / 2));
	assert_null(objects_stack(objects, n - 1));
	assert_true(objects_lost(objects, OBJECT_STACK, n - 1));
	objects_free(objects);
	buf_free(&raw);
}

/* Events whose stack was defined in a damaged chunk. */
static void test_events_are_there_when_their_stacks_were_lost(void **state)
{
	const struct stack *stack = STACK_OF(9, STACK_WHOLE, false, AT_START);
	const struct sample sample = { .weight_ns = 7, .stack = stack };
	struct event event = { .type = EVENT_SAMPLE,
		               .time_ns = RUN_BEGIN_NS,
		               .process = the_process(),
		               .tid = 4242,
		               .sample = &sample };
	const struct event_ids ids = { .stack = 3 };
	struct objects *objects = objects_new();
	struct decoder *decoder = decoder_new(objects);
	struct encoder *encoder = encoder_new();
	struct buf raw = { 0 }, chunk = { 0 };
	struct chunk_head head;

	DEFINE(&raw, DEFINE_PROCESS, 0, 4242, 0);
	assert_true(read_raw(objects, &raw));
	encode_event(encoder, &event, &ids);
	encoder_take(encoder, &head, &chunk);
	head.raw_bytes = (uint32_t)chunk.len;
	buf_reserve(&chunk, UNPACK_SPARE);
	assert_true(decoder_begin(decoder, &head, (const uint8_t *)chunk.data));
	assert_int_equal(decoder_next(decoder, &event), DECODED_DAMAGE);
	objects_lose(objects, 3);
	assert_true(decoder_begin(decoder, &head, (const uint8_t *)chunk.data));
	assert_int_equal(decoder_next(decoder, &event), DECODED_EVENT);
	assert_int_equal(event.sample->weight_ns, 7);
	assert_null(event.sample->stack);
	encoder_free(encoder);
	decoder_free(decoder);
	objects_free(objects);
	buf_free(&raw);
	buf_free(&chunk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_stacks_come_back),
		cmocka_unit_test(test_many_stacks_of_their_own_come_back),
		cmocka_unit_test(
			test_the_outermost_frames_of_a_stack_that_is_too_deep_are_not_kept),
		cmocka_unit_test(test_parts_of_frames_come_back),
		cmocka_unit_test(test_many_parts_are_in_several_chunks),
		cmocka_unit_test(test_what_was_asked_for_and_missed_comes_back),
		cmocka_unit_test(test_calls_of_stacks_are_read_as_older_files_have_them),
		cmocka_unit_test(test_the_profile_of_a_file_is_that_of_the_run),
		cmocka_unit_test(test_the_last_part_of_a_run_has_its_stacks),
		cmocka_unit_test(test_stacks_stay_where_others_events_are_taken_out_between),
		cmocka_unit_test(test_calls_that_are_chosen_keep_their_stacks),
		cmocka_unit_test(
			test_samples_are_recorded_unless_calls_are_chosen_by_how_they_ended),
		cmocka_unit_test(test_stacks_that_cannot_be_are_damage),
		cmocka_unit_test(test_a_stack_with_a_frame_that_was_lost_is_lost),
		cmocka_unit_test(test_stacks_beyond_the_budget_are_lost_and_no_damage),
		cmocka_unit_test(test_events_are_there_when_their_stacks_were_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
