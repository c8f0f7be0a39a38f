// SPDX-License-Identifier: MIT
/* Channels from the calls that make, set and free them. */
#include "support.h"

#include "analysis/channels.h"
#include "base/array.h"
#include "cuda/api.h"
#include "nvidia/devices.h"

#define CLIENT 0xc1d00001
#define DEVICE 0x5c000001
#define GROUP  0x5c000010

static struct consumer *channels;
static double now_us;

static int set_up(void **state)
{
	(void)state;
	channels = channels_new();
	now_us = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	consumer_free(channels);
	return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static const struct function *function_of(const char *name, const char *arguments)
{
	static struct function functions[64];
	static uint32_t n;
	struct api_text text = { .name = name, .cls = CLASS_OTHER, .spec = arguments };
	struct api *made;

	for (uint32_t i = 0; i < n; i++) {
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	}
	assert_true(n < ARRAY_SIZE(functions));
	functions[n] = (struct function){ .id = n,
		                          .name = name,
		                          .lib = "nvidia",
		                          .layer = LAYER_KERNEL,
		                          .cls = CLASS_OTHER,
		                          .api = api_from_text(&text, &made) };
	return &functions[n++];
}

static void call_flags(const struct process *process, const struct function *function,
                       uint32_t flags, const uint64_t *args, size_t n)
{
	struct call call = { .function = function, .flags = flags };
	struct event event = {
		.type = EVENT_OTHER_CALL, .process = process, .tid = process->pid, .call = &call
	};
	const struct api_arg *known;

	now_us += 10;
	call.begin_ns = US(now_us);
	call.end_ns = event.time_ns = US(now_us + 5);
	call.args.n_args = (uint8_t)api_args(function->api, &known);
	assert_true(n <= call.args.n_args);
	if (n)
		memcpy(call.args.arg, args, n * sizeof(*args));
	channels->ops->event(channels, &event, NULL);
}

#define CALL(process, function, ...)                                                               \
	call_flags(process, function, 0, (const uint64_t[]){ __VA_ARGS__ },                        \
	           sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

#define ALLOC "client:handle parent:handle object:*handle "

static const struct function *alloc_group(void)
{
	return function_of("RM_ALLOC KEPLER_CHANNEL_GROUP_A", ALLOC "vaspace:handle engine:uint");
}

static const struct function *alloc_channel(void)
{
	return function_of("RM_ALLOC HOPPER_CHANNEL_GPFIFO_A",
	                   ALLOC "entries:uint engine:uint channel_id:*uint");
}

static const struct function *control(const char *name, const char *arguments)
{
	char all[128];

	snprintf(all, sizeof(all), "client:handle object:handle %s", arguments);
	return function_of(name, all);
}

static void make_group(uint32_t handle)
{
	CALL(the_process(), alloc_group(), CLIENT, DEVICE, handle, 0, 1);
}

static void make_channel(uint32_t handle, uint32_t group, uint32_t id)
{
	CALL(the_process(), alloc_channel(), CLIENT, group, handle, 1024, 9, id);
}

static void free_one(uint32_t client, uint32_t handle)
{
	CALL(the_process(), function_of("RM_FREE", "client:handle parent:handle object:handle"),
	     client, 0, handle);
}

static const struct channel_row *rows(size_t n)
{
	struct channels_left_out left_out;
	const struct channel_row *found;
	size_t is;

	found = channels_rows(channels, &is, &left_out);
	assert_int_equal(is, n);
	return found;
}

static struct channels_left_out left_out(void)
{
	struct channels_left_out out;
	size_t n;

	channels_rows(channels, &n, &out);
	return out;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_a_group_and_its_channels_with_what_is_set(void **state)
{
	const struct channel_row *row;

	(void)state;
	make_group(GROUP);
	make_channel(GROUP + 1, GROUP, 33);
	CALL(the_process(),
	     control("RM_CONTROL GPFIFO_GET_WORK_SUBMIT_TOKEN (channel)", "token:*hex"), CLIENT,
	     GROUP + 1, 0x30021);
	CALL(the_process(), control("RM_CONTROL SET_TIMESLICE (TSG)", "timeslice_us:u64"), CLIENT,
	     GROUP, 2000);
	CALL(the_process(), control("RM_CONTROL SET_INTERLEAVE_LEVEL (TSG)", "level:uint"), CLIENT,
	     GROUP, 2);
	CALL(the_process(),
	     control("RM_CONTROL GR_SET_CTXSW_PREEMPTION_MODE",
	             "flags:hex channel:handle graphics:uint compute:uint"),
	     CLIENT, 0x5c000002, 1, GROUP, 7, 2);
	row = rows(2);
	assert_int_equal(row[0].kind, CHANNEL_GROUP);
	assert_string_equal(row[0].class_name, "KEPLER_CHANNEL_GROUP_A");
	assert_int_equal(row[0].parent, DEVICE);
	assert_int_equal(row[0].engine, 1);
	assert_false(row[0].knows_id);
	assert_int_equal(row[0].timeslice_us, 2000);
	assert_int_equal(row[0].level, 2);
	assert_true(row[0].knows_compute);
	assert_int_equal(row[0].compute, 2);
	assert_false(row[0].knows_graphics); /* its flag says that this is to be left alone */
	assert_int_equal(row[1].kind, CHANNEL_CHANNEL);
	assert_int_equal(row[1].handle, GROUP + 1);
	assert_int_equal(row[1].parent, GROUP);
	assert_int_equal(row[1].engine, 9);
	assert_true(row[1].knows_id);
	assert_int_equal(row[1].id, 33);
	assert_int_equal(row[1].token, 0x30021);
	assert_false(row[1].knows_timeslice);
	assert_int_equal(row[1].begin_ns, US(20));
	assert_int_equal(row[1].end, CHANNEL_HELD);
}

static void test_what_was_made_in_an_object_ends_with_it(void **state)
{
	static const uint32_t freed[] = { GROUP, DEVICE, CLIENT };

	for (size_t i = 0; i < ARRAY_SIZE(freed); i++) {
		make_group(GROUP);
		make_channel(GROUP + 1, GROUP, 3);
		make_channel(GROUP + 2, GROUP, 4);
		free_one(CLIENT, freed[i]);
		for (size_t k = 0; k < 3; k++) {
			assert_int_equal(rows(3)[k].end, CHANNEL_FREED);
			assert_int_equal(rows(3)[k].end_ns, US(45));
		}
		tear_down(state);
		set_up(state);
	}
}

static void test_others_go_on(void **state)
{
	(void)state;
	make_group(GROUP);
	make_channel(GROUP + 1, GROUP, 3);
	make_group(GROUP + 10);
	make_channel(GROUP + 11, GROUP + 10, 4);
	free_one(CLIENT, GROUP + 1);
	free_one(CLIENT + 1, GROUP + 10); /* of another client */
	free_one(CLIENT, 0x77777777);     /* memory */
	assert_int_equal(rows(4)[0].end, CHANNEL_HELD);
	assert_int_equal(rows(4)[1].end, CHANNEL_FREED);
	assert_int_equal(rows(4)[2].end, CHANNEL_HELD);
	assert_int_equal(rows(4)[3].end, CHANNEL_HELD);
}

static void test_a_handle_is_used_again(void **state)
{
	(void)state;
	make_group(GROUP);
	free_one(CLIENT, GROUP);
	make_group(GROUP);
	make_group(GROUP); /* the end of the second one was not seen */
	assert_int_equal(rows(3)[0].end_ns, US(25));
	assert_int_equal(rows(3)[1].end_ns, US(40));
	assert_int_equal(rows(3)[2].end, CHANNEL_HELD);
	CALL(the_process(), control("RM_CONTROL SET_TIMESLICE (TSG)", "timeslice_us:u64"), CLIENT,
	     GROUP, 9);
	assert_false(rows(3)[0].knows_timeslice);
	assert_int_equal(rows(3)[2].timeslice_us, 9);
}

static void test_a_process_takes_its_channels_with_it(void **state)
{
	static const struct process other = { .id = 9, .pid = 900, .comm = "other" };
	struct event event = { .type = EVENT_EXIT, .time_ns = US(100), .process = the_process() };

	(void)state;
	make_group(GROUP);
	CALL(&other, alloc_group(), CLIENT, DEVICE, GROUP, 0, 1); /* the same handles */
	channels->ops->event(channels, &event, NULL);
	assert_int_equal(rows(2)[0].end, CHANNEL_EXITED);
	assert_int_equal(rows(2)[0].end_ns, US(100));
	assert_int_equal(rows(2)[1].end, CHANNEL_HELD);
	assert_ptr_equal(rows(2)[1].process, &other);
}

static void test_what_failed_made_nothing(void **state)
{
	const uint64_t args[] = { CLIENT, DEVICE, GROUP };

	(void)state;
	call_flags(the_process(), alloc_group(), CALL_FAILED, args, ARRAY_SIZE(args));
	call_flags(the_process(), alloc_group(), CALL_UNFINISHED, args, ARRAY_SIZE(args));
	rows(0);
	make_group(GROUP);
	call_flags(the_process(),
	           function_of("RM_FREE", "client:handle parent:handle object:handle"), CALL_FAILED,
	           (const uint64_t[]){ CLIENT, 0, GROUP }, 3);
	assert_int_equal(rows(1)[0].end, CHANNEL_HELD);
}

static void test_calls_about_older_channels_are_counted(void **state)
{
	(void)state;
	CALL(the_process(), control("RM_CONTROL SET_TIMESLICE (TSG)", "timeslice_us:u64"), CLIENT,
	     GROUP, 2000);
	CALL(the_process(), control("RM_CONTROL PERF_BOOST", ""), CLIENT, GROUP);
	rows(0);
	assert_int_equal(left_out().unknown, 1);
}

/* A file can have any names and any arguments. */
static void test_arguments_that_are_not_there_are_0(void **state)
{
	(void)state;
	call_flags(the_process(), function_of("RM_ALLOC X_CHANNEL_GPFIFO_A", ""), 0, NULL, 0);
	assert_int_equal(rows(1)[0].handle, 0);
	assert_false(rows(1)[0].knows_id);
	/* an object that was made in itself */
	make_channel(CLIENT, CLIENT, 5);
	free_one(CLIENT, CLIENT);
	assert_int_equal(rows(2)[1].end, CHANNEL_FREED);
}

static void test_a_process_has_a_share_of_the_room(void **state)
{
	static const struct process others[] = { { .id = 9, .pid = 900, .comm = "a" },
		                                 { .id = 10, .pid = 901, .comm = "b" },
		                                 { .id = 11, .pid = 902, .comm = "c" },
		                                 { .id = 12, .pid = 903, .comm = "d" } };

	(void)state;
	for (uint32_t i = 0; i < CHANNELS_OF_PROCESS + 10; i++)
		make_group(i + 1);
	rows(CHANNELS_OF_PROCESS);
	assert_int_equal(left_out().no_room, 10);
	for (size_t k = 0; k < ARRAY_SIZE(others); k++) {
		for (uint32_t i = 0; i < CHANNELS_OF_PROCESS; i++)
			CALL(&others[k], alloc_group(), CLIENT, DEVICE, i + 1, 0, 1);
	}
	rows(CHANNELS_KEPT);
	assert_int_equal(left_out().no_room, 10 + 5 * CHANNELS_OF_PROCESS - CHANNELS_KEPT);
}

static void test_engines_have_names(void **state)
{
	char name[NVIDIA_ENGINE_NAME];

	(void)state;
	assert_string_equal(nvidia_engine_name(1, name), "GR0");
	assert_string_equal(nvidia_engine_name(9, name), "COPY0");
	assert_string_equal(nvidia_engine_name(18, name), "COPY9");
	assert_string_equal(nvidia_engine_name(19, name), "NVDEC0");
	assert_string_equal(nvidia_engine_name(29, name), "NVENC2");
	assert_string_equal(nvidia_engine_name(0, name), "engine 0");
	assert_string_equal(nvidia_engine_name(UINT32_MAX, name), "engine 4294967295");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_group_and_its_channels_with_what_is_set),
		TEST(test_what_was_made_in_an_object_ends_with_it),
		TEST(test_others_go_on),
		TEST(test_a_handle_is_used_again),
		TEST(test_a_process_takes_its_channels_with_it),
		TEST(test_what_failed_made_nothing),
		TEST(test_calls_about_older_channels_are_counted),
		TEST(test_arguments_that_are_not_there_are_0),
		TEST(test_a_process_has_a_share_of_the_room),
		TEST(test_engines_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
