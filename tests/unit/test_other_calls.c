// SPDX-License-Identifier: MIT
/* Calls that are no CUDA calls: of the kernel side, and of hooks. */
#include "trace_events.h"

#include "analysis/memory.h"
#include "cuda/error.h"
#include "cuda/api.h"
#include "report/contents.h"
#include "trace/filter.h"

static const struct function *function_of(enum api_layer layer, uint32_t id, const char *name)
{
	static struct function functions[LAYER_COUNT];
	static struct api *made[LAYER_COUNT];

	if (!made[layer])
		api_from_text(&(struct api_text){ .name = "RM_ALLOC",
		                                  .op = OP_ALLOC,
		                                  .spec = "object:*handle size:bytes" },
		              &made[layer]);
	functions[layer] = (struct function){ .id = id,
		                              .name = name,
		                              .lib = "nvidia",
		                              .layer = layer,
		                              .cls = CLASS_OTHER,
		                              .api = made[layer] };
	return &functions[layer];
}

static struct call other_call(enum api_layer layer, uint32_t id, const char *name)
{
	return (struct call){ .function = function_of(layer, id, name),
		              .begin_ns = US(20),
		              .end_ns = US(30),
		              .depth = 1,
		              .result = 0x51,
		              .flags = CALL_FAILED,
		              .args = { .n_args = 2, .arg = { 7, 4096 } } };
}

static struct event event_with(const struct call *call)
{
	return (struct event){ .type = call_event_type(call),
		               .time_ns = call->end_ns,
		               .process = the_process(),
		               .tid = 4242,
		               .call = call };
}

static void test_layers_say_what_an_event_is(void **state)
{
	struct call kernel = other_call(LAYER_KERNEL, 0, "open"),
		    hook = other_call(LAYER_HOOK, 1, "nccl"), cuda = call_at("cudaMalloc", 1, 1);

	assert_int_equal(call_event_type(&kernel), EVENT_OTHER_CALL);
	assert_int_equal(call_event_type(&hook), EVENT_OTHER_CALL);
	assert_int_equal(call_event_type(&cuda), EVENT_CALL);
	assert_string_equal(api_layer_name(LAYER_KERNEL), "kernel");
	assert_string_equal(api_layer_name(LAYER_HOOK), "hook");
}

static void test_statuses_have_the_names_of_their_layer(void **state)
{
	assert_string_equal(cuda_error_name(LAYER_KERNEL, 0), "NV_OK");
	assert_string_equal(cuda_error_name(LAYER_KERNEL, 1), "NV_ERR_BROKEN_FB");
	assert_string_equal(cuda_error_name(LAYER_KERNEL, 0x51), "NV_ERR_NO_MEMORY");
	assert_string_equal(cuda_error_name(LAYER_KERNEL, 0x8a), "NV_ERR_MC_FLA_OFFSET_TABLE_FULL");
	assert_string_equal(cuda_error_name(LAYER_KERNEL, 0xffff), "NV_ERR_GENERIC");
	assert_string_equal(cuda_error_name(LAYER_KERNEL, -25), "ENOTTY");
	assert_null(cuda_error_name(LAYER_KERNEL, 0x8b));
	assert_null(cuda_error_name(LAYER_KERNEL, INT32_MIN));
	assert_null(cuda_error_name(LAYER_HOOK, 2));
	assert_false(cuda_error_is_status(LAYER_KERNEL, 600));
	assert_false(cuda_error_is_shutdown(LAYER_HOOK, 4));
}

/* What is written and read again: the layer, a name with blanks, arguments, and no op. */
static void test_files_keep_them(void **state)
{
	struct call call = other_call(LAYER_KERNEL, 40, "RM_CONTROL GPFIFO_SCHEDULE (TSG)"), cuda;
	struct kept_list list = { 0 };
	struct run_info run = default_run_info();
	struct event event;
	struct trace_file *file;
	struct keeper keeper;
	int fd = memory_file();

	keep_event(&list, &(struct event){ .type = EVENT_PROCESS,
	                                   .time_ns = US(1),
	                                   .process = the_process() });
	event = event_with(&call);
	keep_event(&list, &event);
	cuda = call_at("cudaMalloc", 10, 100);
	event = event_with(&cuda);
	keep_event(&list, &event);
	write_list(fd, &run, &list);
	file = read_list(fd, &(struct trace_read_options){ 0 }, &keeper);
	assert_int_equal(keeper.list.count, 3);
	event = event_of(&keeper.list.at[1]);
	assert_int_equal(event.type, EVENT_OTHER_CALL);
	assert_int_equal(event.call->function->layer, LAYER_KERNEL);
	assert_string_equal(event.call->function->name, call.function->name);
	assert_int_equal(event.call->op, OP_NONE);
	assert_int_equal(event.call->result, 0x51);
	assert_int_equal(event.call->depth, 1);
	assert_int_equal(event.call->args.arg[1], 4096);
	assert_int_equal(event.call->begin_ns, US(20));
	assert_int_equal(event.call->end_ns, US(30));
	assert_int_equal(keeper.list.at[2].event.type, EVENT_CALL);
	keeper_free(&keeper);
	trace_close(file);
	free(list.at);
	close(fd);
}

/* A name of a file is not believed: no comma, quote or escape comes through. */
static void test_files_cannot_put_marks_into_names(void **state)
{
	struct call call = other_call(LAYER_HOOK, 41, "a,\"b\"\n<c>\x1b[1m");
	struct kept_list list = { 0 };
	struct run_info run = default_run_info();
	struct event event = event_with(&call);
	struct trace_file *file;
	struct keeper keeper;
	int fd = memory_file();

	keep_event(&list, &event);
	write_list(fd, &run, &list);
	file = read_list(fd, &(struct trace_read_options){ 0 }, &keeper);
	assert_string_equal(keeper.list.at[0].call.function->name, "a??b???c??[1m");
	keeper_free(&keeper);
	trace_close(file);
	free(list.at);
	close(fd);
}

/* One that looks like an allocation that failed changes no memory and is no error of CUDA's. */
static void test_analyses_of_cuda_calls_leave_them_out(void **state)
{
	struct call call = other_call(LAYER_KERNEL, 0, "RM_ALLOC");
	struct event event = event_with(&call);
	struct memory *memory = memory_new();
	struct consumer *contents = contents_new();
	struct err err = { 0 };

	call.op = OP_ALLOC;
	call.flags = 0;
	call.args.address = 0x1000;
	call.args.bytes = 4096;
	assert_int_equal(memory_event(memory, &event), 0);
	assert_int_equal(memory_live_bytes(memory, the_process()), 0);
	memory_free(memory);
	assert_int_equal(contents->ops->event(contents, &event, &err), 0);
	assert_int_equal(contents_of(contents)->calls, 0);
	assert_int_equal(contents_of(contents)->others[LAYER_KERNEL], 1);
	consumer_free(contents);
}

/* They are chosen by name and by failure, and do not count towards --max-events. */
static void test_filters_take_them_as_calls(void **state)
{
	struct call call = other_call(LAYER_KERNEL, 0, "RM_ALLOC"),
		    cuda = call_at("cudaFree", 1, 1);
	struct event event = event_with(&call), other = event_with(&cuda);
	struct filter *filter = filter_new(&(struct filter_choice){ .max_calls = 1 });

	assert_true(filter_wants(filter, &event));
	assert_true(filter_wants(filter, &event));
	assert_true(filter_wants(filter, &other));
	assert_false(filter_wants(filter, &event));
	filter_free(filter);
	filter = filter_new(&(struct filter_choice){ .function = "RM_*", .failed = true });
	assert_true(filter_wants(filter, &event));
	assert_false(filter_wants(filter, &other));
	call.flags = 0;
	assert_false(filter_wants(filter, &event));
	filter_free(filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers_say_what_an_event_is),
		cmocka_unit_test(test_statuses_have_the_names_of_their_layer),
		cmocka_unit_test(test_files_keep_them),
		cmocka_unit_test(test_files_cannot_put_marks_into_names),
		cmocka_unit_test(test_analyses_of_cuda_calls_leave_them_out),
		cmocka_unit_test(test_filters_take_them_as_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
