// SPDX-License-Identifier: MIT
/* What is written to a trace file is read from it again. */
#include "trace_events.h"

#include "base/array.h"
#include "report/summary/summary.h"

/* ---- random events ------------------------------------------------------------------------- */

static uint64_t seed = 1;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t below(uint64_t limit)
{
	return any() % limit;
}

/* Small, large, or the same as often before. */
static uint64_t some_value(void)
{
	switch (below(5)) {
	case 0:
		return any();
	case 1:
		return 0x7f0000000000 + 4096 * below(1000);
	case 2:
		return UINT64_MAX - below(3);
	default:
		return below(4);
	}
}

static const char *const functions[] = { "cudaLaunchKernel",    "cuLaunchKernel",
	                                 "cudaMalloc",          "cudaFree",
	                                 "cudaMemcpyAsync",     "cuMemcpyHtoD_v2",
	                                 "cuModuleGetFunction", "cuSomethingUnknown" };

static const struct process *processes[3];
static struct kernel *kernels[5];

static void make_objects(void)
{
	if (processes[0])
		return;
	processes[0] = new_process(100, "one");
	processes[1] = new_process(200, "two \x1b[31m");
	processes[2] = new_process(100, "onceagain");
	((struct process *)processes[1])->person = 1ull << 40 | 4026532000u;
	((struct process *)processes[2])->person = UINT64_MAX; /* it is not known */
	for (unsigned i = 0; i < 5; i++) {
		kernels[i] = new_kernel(i ? "void gemm<float>(int)" : "0x55d0", i != 0);
		kernels[i]->mangled = i ? "_Z4gemmIfEvi" : NULL;
	}
}

static void random_args(struct api_call *args)
{
	for (unsigned i = 0; i < API_ARGS_MAX; i++)
		args->arg[i] = some_value();
	args->handle = below(2) ? args->arg[0] : some_value();
	args->stream = below(2) ? args->arg[3] : some_value();
	args->has_stream = below(2);
	args->event = some_value();
	args->address = below(2) ? args->arg[1] : some_value();
	args->source = some_value();
	args->bytes = below(2) ? args->arg[2] : some_value();
	args->shmem_bytes = some_value();
	args->direction = (enum api_direction)below(DIRECTION_COUNT);
	for (unsigned i = 0; i < 3; i++) {
		args->grid[i] = (uint32_t)some_value();
		args->block[i] = (uint32_t)some_value();
	}
}

/* Those of a call before, by the number that says so; or others, with a number or without. */
static void number_args(struct call *call, size_t function)
{
	static struct call last[ARRAY_SIZE(functions)];
	static uint64_t numbers;

	if (last[function].args_number && below(3)) {
		call->args = last[function].args;
		call->args_number = last[function].args_number;
		return;
	}
	random_args(&call->args);
	call->args_number = below(4) ? ++numbers : 0;
	last[function] = *call;
}

static void add_call(struct kept_list *list, uint64_t *now)
{
	size_t function = below(ARRAY_SIZE(functions));
	struct call call = call_at(functions[function], 0, 0);
	struct event event = { .type = EVENT_CALL,
		               .process = processes[below(3)],
		               .tid = (uint32_t)(100 + below(4)),
		               .call = &call };

	call.begin_ns = *now;
	*now += below(100000);
	event.time_ns = *now;
	call.flags = below(2) ? 0 : (uint32_t)below(32);
	call.end_ns = call_has_end(&call) ? *now : 0;
	if (!below(20))
		call.end_ns = below(1ull << 62);
	call.depth = (uint32_t)below(3);
	call.result = below(2) ? 0 : (int32_t)some_value();
	call.correlation = below(10) ? list->count : some_value();
	if (call.function->api)
		number_args(&call, function);
	if (call.op == OP_LAUNCH || !below(10))
		call.kernel = kernels[below(5)];
	if (call.op == OP_NAME_KERNEL)
		call.text = below(2) ? "_Z6kernelv" : "";
	keep_event(list, &event);
}

static void add_activity(struct kept_list *list, uint64_t *now)
{
	struct activity activity = {
		.kind = (enum activity_kind)below(ACTIVITY_COUNT),
		.begin_ns = *now - below(1000),
		.end_ns = *now,
		.correlation = some_value(),
		.device = (uint32_t)below(8),
		.context = (uint32_t)some_value(),
		.stream = (uint32_t)some_value(),
		.grid = { (uint32_t)some_value(), 1, 2 },
		.block = { (uint32_t)some_value(), 1, 2 },
		.registers = (uint32_t)some_value(),
		.shmem_static = (uint32_t)some_value(),
		.shmem_dynamic = (uint32_t)some_value(),
		.graph = some_value(),
		.graph_node = some_value(),
		.bytes = some_value(),
		.direction = (enum api_direction)below(DIRECTION_COUNT),
		.source = (enum activity_memory)below(8),
		.destination = (enum activity_memory)below(8),
		.peer_device = (uint32_t)some_value(),
	};
	struct event event = { .type = EVENT_ACTIVITY,
		               .time_ns = *now + below(2),
		               .process = processes[below(3)],
		               .activity = &activity };

	if (activity.kind == ACTIVITY_KERNEL)
		activity.kernel = kernels[below(5)];
	keep_event(list, &event);
}

/* Known late, as activities are while a program is traced: up to a second after calls of their
 * time. */
static void add_range(struct kept_list *list, uint64_t now)
{
	static const char *const names[] = { "", "step", "forward", "aten::mm \x1b[31m",
		                             "cudaSync" };
	uint64_t end_ns = now - below(1000000000);
	char numbered[32];
	struct range range = {
		.kind = (enum range_kind)below(RANGE_COUNT),
		.begin_ns = end_ns - below(100000),
		.end_ns = end_ns,
		.name = names[below(5)],
		.domain = below(3)   ? NULL
		          : below(2) ? "NCCL"
		                     : "",
		.depth = (uint32_t)below(5),
		.correlation = below(2) ? some_value() : 0,
		.context = (uint32_t)some_value(),
		.stream = (uint32_t)some_value(),
		.category = (uint32_t)some_value(),
		.color = (uint32_t)some_value(),
	};
	struct event event = { .type = EVENT_RANGE,
		               .time_ns = end_ns + below(2),
		               .process = processes[below(3)],
		               .tid = (uint32_t)(100 + below(4)),
		               .range = &range };

	if (!below(3)) {
		snprintf(numbered, sizeof(numbered), "step %u", (unsigned)below(100000));
		range.name = numbered;
	}
	keep_event(list, &event);
}

static void add_metrics(struct kept_list *list, uint64_t now)
{
	uint64_t end_ns = now - below(2000000000);
	struct gpu_metrics_sample metrics = { .gpu = (uint32_t)below(RUN_GPUS_MAX),
		                              .source = below(2) ? GPU_METRICS_GPM
		                                                 : GPU_METRICS_UTILIZATION,
		                              .begin_ns = end_ns - below(100000000),
		                              .end_ns = end_ns };
	struct event event = { .type = EVENT_METRICS,
		               .time_ns = end_ns,
		               .process = processes[below(3)],
		               .metrics = &metrics };

	for (enum gpu_metric i = 0; i < GPU_METRICS; i++)
		metrics.value[i] =
			(int64_t)below(gpu_metric_info(i)->is_rate ? GPU_RATE_MOST + 2
		                                                   : GPU_SHARE_WHOLE + 2) -
			1;
	keep_event(list, &event);
}

static void add_other(struct kept_list *list, uint64_t *now)
{
	struct thread thread = { .comm = "worker", .priority = (int32_t)below(40) - 20 };
	struct event event = { .time_ns = *now, .process = processes[below(3)] };

	event.type = below(3) ? EVENT_THREAD : below(2) ? EVENT_PROCESS : EVENT_EXIT;
	event.tid = (uint32_t)below(1000);
	event.thread = event.type == EVENT_THREAD ? &thread : NULL;
	keep_event(list, &event);
}

static struct kept_list random_list(size_t count)
{
	struct kept_list list = { 0 };
	uint64_t now = RUN_BEGIN_NS + 2000000000;

	make_objects();
	while (list.count < count) {
		unsigned what = (unsigned)below(20);

		if (what == 0)
			add_other(&list, &now);
		else if (what < 4)
			add_activity(&list, &now);
		else if (what < 6)
			add_range(&list, now);
		else if (what < 7)
			add_metrics(&list, now);
		else
			add_call(&list, &now);
		if (!below(50))
			now -= below(1000); /* delivered late */
	}
	return list;
}

/* ---- round trips --------------------------------------------------------------------------- */

static void check_list(struct kept_list *list)
{
	struct run_info run = default_run_info();
	struct trace_file *file;
	struct keeper keeper;
	int fd = memory_file();

	write_list(fd, &run, list);
	file = read_list(fd, NULL, &keeper);
	assert_int_equal(trace_events(file), list->count);
	assert_same_list(list, &keeper.list);
	trace_close(file);
	keeper_free(&keeper);
	close(fd);
}

/* 4,000 broken ELF files with paths of 4 KiB are 24 MB: more than a chunk may have. */
static void test_any_number_of_misses_fits_in_a_file(void **state)
{
	static struct miss misses[4000];
	struct run_info run = default_run_info();
	struct kept_list list = { 0 };
	struct trace_file *file;
	struct keeper keeper;
	char path[4096], why[2048];
	int fd = memory_file();
	const struct run_info *read;

	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	memset(why, 'w', sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	for (size_t i = 0; i < 4000; i++)
		misses[i] = (struct miss){ .kind = MISS_NOT_HOOKED, .lib = path, .why = why };
	run.misses = misses;
	run.n_misses = 4000;
	write_list(fd, &run, &list);
	file = read_list(fd, NULL, &keeper);
	read = trace_run(file);
	assert_false(read->cut_short);
	assert_in_range(read->n_misses, 500, 3999);
	assert_int_equal(strlen(read->misses[0].lib), 1023);
	assert_string_equal(read->misses[0].lib + 1020, "...");
	assert_int_equal(atoi(read->misses[read->n_misses - 1].why), 4001 - (int)read->n_misses);
	trace_close(file);
	keeper_free(&keeper);
	close(fd);
}

static void test_every_field_of_random_events_comes_back(void **state)
{
	for (uint64_t i = 1; i <= 20; i++) {
		struct kept_list list;

		seed = i * 0x9e3779b97f4a7c15;
		list = random_list(below(3000));
		check_list(&list);
		free(list.at);
	}
}

static void test_what_fills_many_chunks_comes_back(void **state)
{
	struct kept_list list = random_list(60000);

	check_list(&list);
	free(list.at);
}

/* ---- a window that users share -------------------------------------------------------------- */

static int shared_file = -1;

static int open_shared(void *data, const char **name, struct err *err)
{
	*name = "shared";
	return dup(shared_file);
}

static bool is_announced(const struct event *event)
{
	return event->type == EVENT_PROCESS || event->type == EVENT_THREAD;
}

/* How many of a user's are there that definitions do not hold. */
static size_t count_of(struct kept_list *list, uint64_t person)
{
	size_t n = 0;

	for (size_t i = 0; i < list->count; i++)
		n += !is_announced(&list->at[i].event) &&
		     list->at[i].event.process->person == person;
	return n;
}

static void write_shared(struct kept_list *list, uint64_t bytes, struct writer_left_out left[3],
                         size_t *n_left)
{
	const struct writer_window options = { .last_bytes = bytes,
		                               .shared = true,
		                               .open = open_shared };
	struct consumer *writer = writer_new_window(&options);
	struct run_info run = default_run_info();
	struct err err = { 0 };

	for (size_t i = 0; i < list->count; i++) {
		struct event event = event_of(&list->at[i]);

		assert_int_equal(writer->ops->event(writer, &event, &err), 0);
	}
	assert_int_equal(writer_snapshot(writer, &run, &err), 0);
	*n_left = writer_left_out(writer, left, 3);
	writer->ops->free(writer);
}

/*
 * Of the last process there is a tenth of what there is of the others: all of it is held, and of
 * them what came last, each event as it was, and all in their order.
 */
static void test_what_is_taken_out_between_others_leaves_these_as_they_were(void **state)
{
	struct kept_list list = random_list(60000), *read;
	uint64_t persons[3];
	size_t skip[3], n = 0, at = 0, n_left;
	struct writer_left_out left[3];
	struct trace_file *file;
	struct keeper keeper;

	for (size_t i = 0; i < list.count; i++)
		if (list.at[i].event.process != processes[2] || is_announced(&list.at[i].event) ||
		    !below(10))
			list.at[n++] = list.at[i];
	list.count = n;
	shared_file = memory_file();
	write_shared(&list, 2 << 20, left, &n_left);
	file = read_list(shared_file, NULL, &keeper);
	read = &keeper.list;
	for (size_t i = 0; i < 3; i++) {
		persons[i] = processes[i]->person;
		skip[i] = count_of(&list, persons[i]) - count_of(read, persons[i]);
	}
	assert_int_equal(skip[2], 0);
	assert_true(skip[0] > 1000 && skip[1] > 1000);
	assert_true(count_of(read, persons[0]) > 1000 && count_of(read, persons[1]) > 1000);
	assert_int_equal(n_left, 2);
	assert_in_range(left[0].events + left[1].events, (skip[0] + skip[1]) * 9 / 10,
	                skip[0] + skip[1]);
	for (size_t i = 0; i < list.count; i++) {
		struct kept *kept = &list.at[i];
		size_t who = 0;

		if (is_announced(&kept->event))
			continue;
		while (persons[who] != kept->event.process->person)
			who++;
		if (skip[who]) {
			skip[who]--;
			continue;
		}
		while (is_announced(&read->at[at].event))
			at++;
		assert_same_event(kept, &read->at[at++]);
	}
	assert_int_equal(at, read->count);
	trace_close(file);
	keeper_free(&keeper);
	close(shared_file);
	free(list.at);
}

static void test_a_trace_without_events_is_one(void **state)
{
	struct kept_list list = { 0 };

	check_list(&list);
}

static void test_the_begin_of_a_call_is_not_kept(void **state)
{
	struct run_info run = default_run_info();
	struct kept_list list = { 0 };
	struct call call = call_at("cudaMalloc", 1, 2);
	struct event event = { .type = EVENT_CALL_BEGIN,
		               .time_ns = US(1),
		               .process = the_process(),
		               .tid = 4243,
		               .call = &call };
	struct trace_file *file;
	struct keeper keeper;
	int fd = memory_file();

	keep_event(&list, &event);
	event.type = EVENT_CALL;
	event.time_ns = US(3);
	keep_event(&list, &event);
	write_list(fd, &run, &list);
	file = read_list(fd, NULL, &keeper);
	assert_int_equal(keeper.list.count, 1);
	assert_same_event(&list.at[1], &keeper.list.at[0]);
	trace_close(file);
	keeper_free(&keeper);
	free(list.at);
	close(fd);
}

/* A reader takes it for damage, and would miss all that follows. */
static void test_a_call_that_begins_after_its_time_is_kept_as_one_of_no_length(void **state)
{
	struct run_info run = default_run_info();
	struct kept_list list = { 0 };
	struct call call = call_at("cudaMalloc", 5, 9);
	struct event event = { .type = EVENT_CALL,
		               .time_ns = US(3),
		               .process = the_process(),
		               .tid = 4243,
		               .call = &call };
	struct trace_file *file;
	struct keeper keeper;
	int fd = memory_file();

	keep_event(&list, &event);
	write_list(fd, &run, &list);
	file = read_list(fd, NULL, &keeper);
	assert_int_equal(keeper.list.count, 1);
	assert_int_equal(keeper.list.at[0].call.begin_ns, US(3));
	trace_close(file);
	keeper_free(&keeper);
	free(list.at);
	close(fd);
}

/* ---- analyses ------------------------------------------------------------------------------ */

/* What a summary says of a list of events. The caller frees it. */
static char *summary_of(const struct run_info *run, struct kept_list *list)
{
	struct err err = { 0 };
	struct consumer *calls;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	calls = summary_new(&(struct summary_options){ .text = out });
	assert_int_equal(calls->ops->begin(calls, run, &err), 0);
	for (size_t i = 0; i < list->count; i++) {
		struct event event = event_of(&list->at[i]);

		assert_int_equal(calls->ops->event(calls, &event, &err), 0);
	}
	assert_int_equal(calls->ops->end(calls, run, &err), 0);
	calls->ops->free(calls);
	fclose(out);
	return text;
}

static void test_an_analysis_cannot_tell_a_file_from_the_run(void **state)
{
	struct run_info run = default_run_info();
	struct kept_list list = random_list(2000);
	struct trace_file *file;
	struct keeper keeper;
	int fd = memory_file();
	char *live, *later;

	run.lost[LOST_RING_FULL] = 3;
	run.estimate_scale = 1.5;
	write_list(fd, &run, &list);
	file = read_list(fd, NULL, &keeper);
	live = summary_of(&run, &list);
	later = summary_of(trace_run(file), &keeper.list);
	assert_true(strlen(live) > 1000);
	assert_string_equal(live, later);
	free(live);
	free(later);
	trace_close(file);
	keeper_free(&keeper);
	free(list.at);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_field_of_random_events_comes_back),
		cmocka_unit_test(test_any_number_of_misses_fits_in_a_file),
		cmocka_unit_test(test_what_fills_many_chunks_comes_back),
		cmocka_unit_test(test_what_is_taken_out_between_others_leaves_these_as_they_were),
		cmocka_unit_test(test_a_trace_without_events_is_one),
		cmocka_unit_test(test_the_begin_of_a_call_is_not_kept),
		cmocka_unit_test(
			test_a_call_that_begins_after_its_time_is_kept_as_one_of_no_length),
		cmocka_unit_test(test_an_analysis_cannot_tell_a_file_from_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
