// SPDX-License-Identifier: MIT
/* A profile as it is collected: equal stacks, weights, ends, memory. */
#include "unit.h"

#include "profile_scene.h"

static struct buf text;

static void assert_completeness(const struct profile *profile, const char *expected)
{
	buf_reset(&text);
	profile_completeness(profile, &text);
	assert_string_equal(text.data, expected);
}

static void test_weights_of_each_kind_are_summed(void **state)
{
	struct profile *profile = profile_new(NULL);
	struct profile_sums sums;

	scene_fill(profile);
	scene_fill(profile);
	profile_total(profile, &sums);
	assert_int_equal(sums.ns[WEIGHT_CPU], 200 * MS);
	assert_int_equal(sums.ns[WEIGHT_GPU], 120 * MS);
	assert_int_equal(sums.ns[WEIGHT_OFF_CPU], 80 * MS);
	assert_int_equal(sums.count[WEIGHT_CPU], 12);
	assert_int_equal(profile_stacks(profile), 9);
	profile_free(profile);
}

static void test_equal_stacks_are_one_whoever_made_them(void **state)
{
	struct profile *profile = profile_new(NULL);
	struct stack other = scene_in_check, again = scene_in_check;

	again.id = 9;
	scene_add(profile, WEIGHT_CPU, &scene_in_check, 1, NULL);
	scene_add(profile, WEIGHT_CPU, &other, 1, NULL); /* of another source */
	scene_add(profile, WEIGHT_CPU, &again, 1, NULL);
	scene_add(profile, WEIGHT_GPU, &again, 1, NULL);
	assert_int_equal(profile_stacks(profile), 1);
	again.end = STACK_BAD;
	scene_add(profile, WEIGHT_CPU, &again, 1, NULL);
	assert_int_equal(profile_stacks(profile), 2);
	profile_free(profile);
}

static void assert_blocked_name(const struct sample *sample, bool per_thread, const char *expected)
{
	const char *name = profile_blocked_name(sample, 100000, per_thread, &text);

	if (expected)
		assert_string_equal(name, expected);
	else
		assert_null(name);
}

static void test_what_ended_blocked_time_has_a_frame(void **state)
{
	struct sample sample = { .kind = SAMPLE_OFF_CPU, .waker = "loader", .waker_tid = 77 };

	assert_blocked_name(&sample, false, NULL);
	sample.blocked = BLOCKED_WOKEN;
	assert_blocked_name(&sample, false, "[woken by loader]");
	assert_blocked_name(&sample, true, "[woken by loader (77)]");
	sample.blocked = BLOCKED_INTERRUPT;
	assert_blocked_name(&sample, true, "[woken by an interrupt]");
	sample.blocked = BLOCKED_BRIEF;
	assert_blocked_name(&sample, false, "[shorter than 100 us]");
	sample.blocked = BLOCKED_SKIPPED;
	assert_blocked_name(&sample, false, "[stack not walked]");
}

static void test_sums_of_blocked_time_are_no_stacks_that_are_missing(void **state)
{
	struct profile *profile = profile_new(NULL);
	struct profile_sample sample = { .kind = WEIGHT_OFF_CPU, .ns = 5 * MS, .count = 1000 };
	struct profile_sums sums;

	sample.blocked = "[shorter than 100 us]";
	profile_add(profile, &sample);
	assert_int_equal(profile_without_stack(profile), 0);
	sample.blocked = "[woken by loader]";
	sample.stack = &scene_in_check;
	profile_add(profile, &sample);
	sample.blocked = "[woken by an interrupt]";
	profile_add(profile, &sample);
	assert_int_equal(profile_stacks(profile), 3);
	sample.blocked = NULL;
	sample.stack = NULL;
	profile_add(profile, &sample);
	assert_int_equal(profile_without_stack(profile), 1000);
	profile_total(profile, &sums);
	assert_int_equal(sums.ns[WEIGHT_OFF_CPU], 20 * MS);
	profile_free(profile);
}

static void test_processes_and_threads_are_apart_where_asked_for(void **state)
{
	const struct process first = { 0, 10, "a" }, second = { 1, 11, "a" };
	size_t expected[] = { 1, 2, 3 };

	for (int i = 0; i < 3; i++) {
		struct profile *profile = profile_new(
			&(struct profile_options){ .per_process = i == 1, .per_thread = i == 2 });
		struct profile_sample sample = { .stack = &scene_in_check, .ns = 1 };

		sample.process = &first;
		sample.tid = 10;
		profile_add(profile, &sample);
		sample.tid = 12;
		sample.thread = "worker";
		profile_add(profile, &sample);
		sample.process = &second;
		sample.tid = 11;
		profile_add(profile, &sample);
		assert_int_equal(profile_stacks(profile), expected[i]);
		profile_free(profile);
	}
}

static void test_completeness_names_every_end_with_its_share(void **state)
{
	struct profile *profile = profile_new(NULL);
	struct stack cut = scene_in_jit;

	assert_completeness(profile, "no stacks");
	scene_add(profile, WEIGHT_CPU, &scene_in_check, 1, NULL);
	assert_completeness(profile, "all 1 stacks whole");
	scene_add(profile, WEIGHT_CPU, &scene_cut, 1, NULL);
	scene_add(profile, WEIGHT_GPU, &scene_in_launch, 1, "[GPU_Copy]HtoD");
	scene_add(profile, WEIGHT_GPU, NULL, 1, "[GPU_Copy]HtoD");
	cut.python_cut = true;
	scene_add(profile, WEIGHT_CPU, &cut, 1, NULL);
	assert_completeness(profile,
	                    "50.0 % of 4 stacks whole; 25.0 % end in a file without unwind tables "
	                    "(mostly libcuda.so.1); 25.0 % end at a frame that led nowhere; in "
	                    "25.0 % frames of Python are missing; of 20.0 % of all samples the "
	                    "stack is not known");
	for (int i = 0; i < 4000; i++)
		scene_add(profile, WEIGHT_CPU, &scene_in_check, 1, NULL);
	buf_reset(&text);
	profile_completeness(profile, &text);
	assert_non_null(strstr(text.data, "99.9 % of 4004 stacks whole; <0.1 %"));
	profile_free(profile);
}

static void test_stacks_by_frame_pointers_are_not_called_cut(void **state)
{
	struct profile *profile = profile_new(NULL);
	struct stack by_pointers = scene_in_jit;

	by_pointers.end = STACK_BY_POINTERS;
	scene_add(profile, WEIGHT_CPU, &by_pointers, 1, NULL);
	assert_completeness(profile, "all 1 stacks reach their begin, 100.0 % by frame pointers, "
	                             "which may miss a frame");
	scene_add(profile, WEIGHT_CPU, &scene_in_check, 1, NULL);
	scene_add(profile, WEIGHT_CPU, &scene_cut, 2, NULL);
	scene_add(profile, WEIGHT_CPU, &by_pointers, 1, NULL);
	assert_completeness(profile, "75.0 % of 4 stacks reach their begin, 50.0 % by frame "
	                             "pointers, which may miss a frame; 25.0 % end in a file "
	                             "without unwind tables (mostly libcuda.so.1)");
	profile_free(profile);
}

/* A stack of its own for each number: three levels of names. */
static void add_numbered(struct profile *profile, unsigned number, unsigned depth)
{
	struct stack_frame *frames = calloc(depth, sizeof(*frames));
	const struct stack_frame **outwards = calloc(depth, sizeof(*outwards));
	struct stack stack = { .id = number, .n_frames = depth, .frames = outwards };
	char(*names)[32] = calloc(depth, sizeof(*names));

	for (unsigned i = 0; i < depth; i++) {
		snprintf(names[i], sizeof(names[i]), "f%u_%u", i,
		         i + 3 < depth ? 0 : number >> (6 * (depth - 1 - i)));
		frames[i].function = names[i];
		outwards[depth - 1 - i] = &frames[i];
	}
	scene_add(profile, WEIGHT_CPU, &stack, 1, NULL);
	free(names);
	free(outwards);
	free(frames);
}

static void test_what_has_no_room_is_counted_with_its_weight(void **state)
{
	struct profile *profile = profile_new(&(struct profile_options){ .bytes_most = 200000 });
	struct profile_sums all, not_kept;

	scene_add(profile, WEIGHT_CPU, &scene_in_check, 1, NULL);
	for (unsigned i = 1; i < 5000; i++)
		add_numbered(profile, i + 10, 5);
	scene_add(profile, WEIGHT_CPU, &scene_in_check, 1, NULL); /* known: goes on */
	profile_total(profile, &all);
	profile_not_kept(profile, &not_kept);
	assert_int_equal(all.ns[WEIGHT_CPU], 5001 * MS);
	assert_in_range(not_kept.count[WEIGHT_CPU], 2000, 4800);
	assert_int_equal(not_kept.ns[WEIGHT_CPU], not_kept.count[WEIGHT_CPU] * MS);
	assert_true(profile_bytes(profile) <= 200000);
	assert_int_equal(profile_stacks(profile) + not_kept.count[WEIGHT_CPU], 5000);
	buf_reset(&text);
	profile_completeness(profile, &text);
	assert_non_null(strstr(text.data, "there was no memory for more"));
	profile_free(profile);
}

static void test_no_room_at_all_is_no_crash(void **state)
{
	for (size_t bytes = 1; bytes < 40000; bytes += 777) {
		struct profile *profile = profile_new(
			&(struct profile_options){ .per_thread = true, .bytes_most = bytes });
		struct profile_sums all;

		scene_fill(profile);
		profile_total(profile, &all);
		assert_int_equal(all.ns[WEIGHT_CPU], 100 * MS);
		profile_free(profile);
	}
}

static void test_a_hundred_thousand_stacks_fit(void **state)
{
	struct profile *profile = profile_new(NULL);
	struct profile_sums not_kept;

	for (unsigned i = 0; i < 100000; i++)
		add_numbered(profile, i, 30);
	profile_not_kept(profile, &not_kept);
	assert_int_equal(not_kept.count[WEIGHT_CPU], 0);
	assert_int_equal(profile_stacks(profile), 100000);
	assert_true(profile_bytes(profile) < 48 << 20);
	profile_free(profile);
}

static void assert_folded(const struct profile *profile, const char *expected)
{
	const struct profile_info info = { 0 };
	char *written = NULL;
	size_t bytes;
	FILE *out = open_memstream(&written, &bytes);

	assert_int_equal(profile_write(profile, &info, PROFILE_FOLDED, out, "it", NULL), 0);
	fclose(out);
	assert_string_equal(written, expected);
	free(written);
}

/* Two places of a function that turn out to be one line of what was inlined there; and a third. */
static void test_frames_become_what_they_are_in_their_source(void **state)
{
	static const struct stack_frame inner = { 20, FRAME_NATIVE, true, "inner", "a", "a.c", 7, 5,
		                                  9 },
					work = { 21, FRAME_NATIVE, false, "work", "a", "a.c", 3, 1,
		                                 9 };
	static const struct stack_frame *const parts[] = { &inner, &work };
	struct stack_frame places[] = {
		{ 22, FRAME_NATIVE, false, "work", "a", .offset = 8 },
		{ 23, FRAME_NATIVE, false, "work", "a", .offset = 9 },
		{ 24, FRAME_NATIVE, false, "work", "a", .offset = 10 },
	};
	struct profile *profile = profile_new(NULL);

	for (size_t i = 0; i < 3; i++) {
		const struct stack_frame *frames[] = { &scene_nvidia, &places[i], &scene_start };
		const struct stack stack = { .id = (uint32_t)i, .n_frames = 3, .frames = frames };

		scene_add(profile, WEIGHT_CPU, &stack, 1, NULL);
		scene_add(profile, WEIGHT_GPU, &stack, 1, "[GPU_Kernel]k");
	}
	assert_int_equal(profile_stacks(profile), 6);
	places[0].parts = places[1].parts = parts;
	places[0].n_parts = places[1].n_parts = 2;
	profile_take_parts(profile);
	assert_int_equal(profile_stacks(profile), 4);
	assert_folded(profile, "_start;work;inner;nvidia_ioctl 2000\n"
	                       "_start;work;inner;nvidia_ioctl;[GPU_Kernel]k 2000\n"
	                       "_start;work;nvidia_ioctl 1000\n"
	                       "_start;work;nvidia_ioctl;[GPU_Kernel]k 1000\n");
	profile_free(profile);
}

/* 512 frames of 64 parts each: the 16 outermost have 1,024 frames, and the others stay whole. */
static void test_frames_beyond_a_depth_keep_their_parts_together(void **state)
{
	const struct profile_info info = { 0 };
	static const struct stack_frame inner = { 20, FRAME_NATIVE, true, "inner", "a" };
	const struct stack_frame *parts[64], *frames[512];
	struct stack_frame place = { 22,  FRAME_NATIVE,  false,         "work",
		                     "a", .n_parts = 64, .parts = parts };
	const struct stack stack = { .n_frames = 512, .frames = frames };
	struct profile *profile = profile_new(NULL);
	size_t separators = 0, bytes;
	char *written = NULL;
	FILE *out = open_memstream(&written, &bytes);

	for (size_t i = 0; i < 64; i++)
		parts[i] = &inner;
	for (size_t i = 0; i < 512; i++)
		frames[i] = &place;
	scene_add(profile, WEIGHT_CPU, &stack, 1, NULL);
	profile_take_parts(profile);
	assert_int_equal(profile_write(profile, &info, PROFILE_FOLDED, out, "it", NULL), 0);
	fclose(out);
	for (const char *at = written; (at = strchr(at, ';')); at++)
		separators++;
	assert_int_equal(separators + 1, 16 * 64 + (512 - 16));
	free(written);
	profile_free(profile);
}

static void test_gpu_work_has_names(void **state)
{
	const struct kernel kernel = { .name = "gemm(float*)" };
	struct activity activity = { .kind = ACTIVITY_KERNEL, .kernel = &kernel };
	struct buf name = { 0 };

	profile_gpu_name(&activity, &name);
	assert_string_equal(name.data, "[GPU_Kernel]gemm(float*)");
	activity.kind = ACTIVITY_COPY;
	activity.direction = DIRECTION_H2D;
	profile_gpu_name(&activity, &name);
	assert_string_equal(name.data, "[GPU_Copy]HtoD");
	activity.kind = ACTIVITY_SET;
	activity.destination = ACTIVITY_MEMORY_DEVICE;
	profile_gpu_name(&activity, &name);
	assert_string_equal(name.data, "[GPU_Set]Device");
	activity.kind = ACTIVITY_GRAPH_RUN;
	profile_gpu_name(&activity, &name);
	assert_string_equal(name.data, "[GPU_Graph]graph");
	buf_free(&name);
}

static int free_text(void **state)
{
	buf_free(&text);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weights_of_each_kind_are_summed),
		cmocka_unit_test(test_equal_stacks_are_one_whoever_made_them),
		cmocka_unit_test(test_what_ended_blocked_time_has_a_frame),
		cmocka_unit_test(test_sums_of_blocked_time_are_no_stacks_that_are_missing),
		cmocka_unit_test(test_processes_and_threads_are_apart_where_asked_for),
		cmocka_unit_test(test_completeness_names_every_end_with_its_share),
		cmocka_unit_test(test_stacks_by_frame_pointers_are_not_called_cut),
		cmocka_unit_test(test_what_has_no_room_is_counted_with_its_weight),
		cmocka_unit_test(test_no_room_at_all_is_no_crash),
		cmocka_unit_test(test_a_hundred_thousand_stacks_fit),
		cmocka_unit_test(test_frames_become_what_they_are_in_their_source),
		cmocka_unit_test(test_frames_beyond_a_depth_keep_their_parts_together),
		cmocka_unit_test(test_gpu_work_has_names),
	};

	return cmocka_run_group_tests(tests, NULL, free_text);
}
