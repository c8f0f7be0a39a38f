// SPDX-License-Identifier: MIT
/* A page of memleak, made by hand, as text, as JSON and as a picture. */
#include "unit.h"

#include "gpus/gpus.h"
#include "place_stacks.h"
#include "watch/page.h"

#define SECOND 1000000000ull
#define KIB    1024ull

static const struct process train = { .id = 0, .pid = 12, .comm = "train" };
static const struct process evil = { .id = 1, .pid = 13, .comm = "\033[31mevil" };
static const struct function cuda_malloc = { .id = 0,
	                                     .name = "cudaMalloc",
	                                     .layer = LAYER_RUNTIME };

struct scene {
	struct watch_place places[4], left[2];
	struct watch_process_memory processes[2];
	struct watch_memory_totals totals[4];
	struct watch_failure failures[2];
	struct watch_memory memory;
	struct watch_page page;
	struct places *made;
	struct page_options options;
	const struct gpus_sample *gpus;
	struct buf out;
};

static void begin(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	scene->memory = (struct watch_memory){ .older_ns = 10 * SECOND,
		                               .places = scene->places,
		                               .left = scene->left,
		                               .processes = scene->processes,
		                               .totals = scene->totals,
		                               .failures = scene->failures };
	scene->page = (struct watch_page){ .number = 1,
		                           .time_ns = 100 * SECOND,
		                           .begin_ns = 50 * SECOND,
		                           .before_ns = 98 * SECOND,
		                           .memory = &scene->memory };
	scene->made = places_new(false);
	scene->options = (struct page_options){ .top = 20, .places = scene->made };
	buf_puts(&scene->out, "");
}

static struct watch_place *add_place(struct scene *scene, const struct process *process,
                                     uint64_t bytes)
{
	struct watch_place *place = &scene->places[scene->memory.n_places++];

	*place = (struct watch_place){ .process = process,
		                       .kind = MEMORY_DEVICE,
		                       .function = &cuda_malloc,
		                       .count = 2,
		                       .bytes = bytes,
		                       .older_count = 2,
		                       .older_bytes = bytes,
		                       .oldest_ns = 40 * SECOND };
	return place;
}

static struct watch_process_memory *add_process(struct scene *scene, const struct process *process,
                                                uint64_t bytes)
{
	struct watch_process_memory *row = &scene->processes[scene->memory.n_processes++];

	scene->totals[scene->memory.n_totals++] = (struct watch_memory_totals){
		.process = process, .kind = MEMORY_DEVICE, .live = { 2, bytes }
	};
	*row = (struct watch_process_memory){ .process = process,
		                              .live = { 2, bytes },
		                              .peak_bytes = 2 * bytes };
	return row;
}

static const char *text_of(struct scene *scene)
{
	struct page_out out = { &scene->page, &scene->options, NULL, .text = &scene->out };

	places_take(scene->made, &scene->page, scene->gpus);
	buf_reset(&scene->out);
	buf_puts(&scene->out, "");
	out.table = page_table(&out);
	page_memory_text(&out);
	table_close(out.table);
	return scene->out.data;
}

static void end(struct scene *scene)
{
	places_free(scene->made);
	buf_free(&scene->out);
}

#define HAS(text, part)     assert_non_null(strstr(text, part))
#define HAS_NOT(text, part) assert_null(strstr(text, part))

static void test_page_tells_processes_and_places(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 64 * KIB);
	add_place(&scene, &train, 64 * KIB);
	assert_string_equal(
		text_of(&scene),
		"Memory: 1 process holds 64.00 KiB\n"
		"\n"
		"  PROCESS          LIVE  COUNT        PEAK        GROWTH  FAILED  FREES UNKNOWN\n"
		"  12 (train)  64.00 KiB      2  128.00 KiB  +32.00 KiB/s       0              0\n"
		"\n"
		"PLACES WITH LIVE MEMORY OLDER THAN 10.0 s\n"
		"      BYTES  COUNT  OLDEST  TREND  PID  FUNCTION    PLACE\n"
		"  64.00 KiB      2  60.0 s  new     12  cudaMalloc  (no stack)\n");
	end(&scene);
}

static const struct stack_frame of_nccl = { .function = "ncclCommInitRank",
	                                    .module = "/usr/lib/libnccl.so.2" },
				*const nccl_frames[] = { &of_nccl };
static const struct stack by_nccl = { .n_frames = 1, .frames = nccl_frames };

static struct gpus_sample *nvml_of(uint64_t bytes)
{
	static struct gpus_sample sample;

	sample = (struct gpus_sample){ .n = 1, .n_processes = bytes ? 1 : 0 };
	sample.processes[0] = (struct gpu_process){ .pid = train.pid, .gpus = 1, .bytes = bytes };
	return &sample;
}

static void test_page_tells_what_no_call_holds(void **state)
{
	struct scene scene;
	const char *text;

	begin(&scene);
	places_begin(scene.made, nvml_of(0)); /* NVML did not know it when the watch began */
	add_process(&scene, &train, 64 * KIB);
	add_place(&scene, &train, 48 * KIB);
	add_place(&scene, &train, 16 * KIB)->stack = &by_nccl;
	scene.gpus = nvml_of(564 * KIB);
	text = text_of(&scene);
	HAS(text,
	    "MEMORY THAT NO CALL HOLDS\n"
	    "  PROCESS        BY NVML   BY CALLS    OF NCCL        REST  REST AT FIRST  SINCE "
	    "THEN\n"
	    "  12 (train)  564.00 KiB  64.00 KiB  16.00 KiB  500.00 KiB     500.00 KiB  +0 "
	    "B\n");
	scene.gpus = nvml_of(600 * KIB);
	HAS(text_of(&scene), "536.00 KiB     500.00 KiB  +36.00 KiB\n");
	scene.gpus = nvml_of(63 * KIB); /* an older reading than what calls tell */
	HAS(text_of(&scene), " 16.00 KiB     -              -  -\n");
	scene.gpus = NULL;
	HAS_NOT(text_of(&scene), "NO CALL HOLDS");
	end(&scene);
}

static void test_page_does_not_split_what_is_older_than_the_watch(void **state)
{
	struct scene scene;

	begin(&scene);
	places_begin(scene.made, nvml_of(400 * KIB));
	add_process(&scene, &train, 64 * KIB);
	scene.gpus = nvml_of(564 * KIB);
	HAS(text_of(&scene), "  0 B  500.00 KiB              -  -\n");
	end(&scene);
}

static const struct stack cut_short = {
	.id = 2, .end = STACK_NO_TABLE, .python_cut = true, .n_frames = 2, .frames = native_frames
};

static void test_page_names_lines_of_python_and_functions(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 96 * KIB);
	add_place(&scene, &train, 64 * KIB)->stack = &in_python;
	add_place(&scene, &train, 32 * KIB)->stack = &cut_short;
	HAS(text_of(&scene), "cudaMalloc  " IN_PYTHON_PLACE "\n");
	HAS(scene.out.data, "cudaMalloc  " IN_NATIVE_PLACE "\n");
	HAS(scene.out.data, "  1 of these have stacks that are cut short: a file without unwind "
	                    "tables\n");
	HAS_NOT(scene.out.data, "#0");
	end(&scene);
}

static void test_stacks_stand_below_their_places(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 96 * KIB);
	add_place(&scene, &train, 64 * KIB)->stack = &in_python;
	add_place(&scene, &train, 32 * KIB)->stack = &cut_short;
	scene.options.stacks = true;
	HAS(text_of(&scene), "cudaMalloc  " IN_PYTHON_PLACE "\n"
	                     "     #0  cudaMalloc (libcudart.so.13)\n"
	                     "     #1  " IN_NATIVE_PLACE "\n"
	                     "     #2  " IN_PYTHON_PLACE "\n");
	HAS(scene.out.data, "     #1  " IN_NATIVE_PLACE "\n"
	                    "     ...  cut short: a file without unwind tables\n"
	                    "     ...  some frames of Python are not known\n");
	end(&scene);
}

static void test_what_came_too_fast_is_told(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, KIB);
	scene.memory.too_fast = 12;
	scene.memory.no_stack = 3;
	HAS(text_of(&scene), "  12 allocations without a place: they came faster");
	HAS(scene.out.data, "  3 allocations without a place: their stack was not kept");
	end(&scene);
}

static void test_names_of_functions_cannot_reach_the_terminal(void **state)
{
	static const struct stack_frame evil_frame = { .kind = FRAME_PYTHON,
		                                       .function = "f\033[31m\n",
		                                       .file = "/tmp/\033]0;x\007.py",
		                                       .line = 1 };
	static const struct stack_frame *const frames[] = { &evil_frame };
	static const struct stack evil_stack = { .id = 3, .n_frames = 1, .frames = frames };
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, KIB);
	add_place(&scene, &train, KIB)->stack = &evil_stack;
	scene.options.stacks = true;
	HAS_NOT(text_of(&scene), "\033");
	HAS_NOT(scene.out.data, "\007");
	end(&scene);
}

static void test_young_memory_is_not_shown(void **state)
{
	struct watch_place *place;
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 64 * KIB);
	place = add_place(&scene, &train, 64 * KIB);
	place->older_count = place->older_bytes = 0;
	HAS_NOT(text_of(&scene), "PLACES");
	HAS(scene.out.data, "nothing of it is older than 10.0 s");
	end(&scene);
}

static void test_kinds_are_told_apart_where_there_are_others_than_device(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 64 * KIB);
	HAS_NOT(text_of(&scene), "    device ");
	scene.totals[scene.memory.n_totals++] = (struct watch_memory_totals){
		.process = &train, .kind = MEMORY_HOST, .live = { 7, 3 * KIB }
	};
	HAS(text_of(&scene), "    device    64.00 KiB      2");
	HAS(scene.out.data, "    host       3.00 KiB      7");
	end(&scene);
}

static void test_top_says_how_many_there_are(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 64 * KIB);
	add_place(&scene, &train, 64 * KIB);
	add_place(&scene, &train, 1 * KIB)->kind = MEMORY_HOST;
	scene.options.top = 1;
	HAS(text_of(&scene), "THE LARGEST 1 OF 2 PLACES");
	HAS(scene.out.data, "64.00 KiB      2  60.0 s");
	HAS_NOT(scene.out.data, "1.00 KiB");
	end(&scene);
}

static void test_what_was_there_before_is_not_taken_for_nothing(void **state)
{
	struct scene scene;

	begin(&scene);
	HAS(text_of(&scene), "Memory: nothing was allocated since the watch began");
	HAS(scene.out.data, "before is not known");
	end(&scene);
}

static void test_process_that_ended_leaves_what_it_had_not_freed(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 0)->ended = true;
	scene.totals[0].exit = (struct watch_count){ 2, 64 * KIB };
	scene.left[scene.memory.n_left++] = *add_place(&scene, &train, 64 * KIB);
	scene.memory.n_places = 0;
	HAS(text_of(&scene), "12 (train) ended; it had not freed 2 allocations, 64.00 KiB");
	HAS(scene.out.data, "PLACES OF WHAT WAS NOT FREED");
	HAS(scene.out.data, "not freed");
	HAS(scene.out.data, "Memory: 0 processes hold 0 B");
	end(&scene);
}

static void test_process_that_freed_everything_is_praised(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 0)->ended = true;
	HAS(text_of(&scene), "12 (train) ended; it had freed everything\n");
	end(&scene);
}

/* That its memory went with it is no rate at which it shrinks. */
static void test_a_process_that_ended_has_no_growth(void **state)
{
	struct watch_process_memory *row;
	struct scene scene;

	begin(&scene);
	row = add_process(&scene, &train, 64 * KIB);
	HAS(text_of(&scene), "+32.00 KiB/s");
	row->ended = true;
	row->live = (struct watch_count){ 0 };
	HAS(text_of(&scene), "12 (train), ended   0 B      0  128.00 KiB       -  ");
	HAS_NOT(scene.out.data, "KiB/s");
	end(&scene);
}

static void test_of_many_processes_those_that_run_are_shown(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 0)->ended = true;
	add_process(&scene, &evil, 64 * KIB);
	scene.options.top = 1;
	HAS(text_of(&scene), "  13 (\\x1b[31mevil)  64.00 KiB");
	HAS_NOT(scene.out.data, "12 (train), ended");
	HAS(scene.out.data, "  ... and 1 more (--top)\n");
	end(&scene);
}

static void test_of_many_that_ended_as_many_as_asked_for_are_told(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 0)->ended = true;
	add_process(&scene, &evil, 0)->ended = true;
	scene.options.top = 1;
	HAS(text_of(&scene),
	    "12 (train) ended; it had freed everything\n  ... and 1 more (--top)\n");
	HAS_NOT(scene.out.data, "evil) ended");
	end(&scene);
}

static void test_failures_have_their_names(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 0)->failed = 3;
	scene.failures[scene.memory.n_failures++] = (struct watch_failure){
		.process = &train, .function = &cuda_malloc, .result = 2, .count = 3, .bytes = KIB
	};
	HAS(text_of(&scene), "cudaMalloc  cudaErrorMemoryAllocation");
	end(&scene);
}

static void test_names_of_processes_cannot_reach_the_terminal(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &evil, KIB);
	add_place(&scene, &evil, KIB);
	HAS_NOT(text_of(&scene), "\033");
	end(&scene);
}

static void test_suspects_are_red_where_there_are_colours(void **state)
{
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, KIB);
	add_place(&scene, &train, KIB);
	scene.options.color = true;
	for (int i = 0; i < 4; i++) {
		scene.places[0].older_bytes = scene.places[0].bytes += KIB;
		text_of(&scene);
	}
	HAS(scene.out.data, "\033[31m  5.00 KiB      2  60.0 s  suspect 3x   12  cudaMalloc  (no "
	                    "stack)\033[0m\n");
	end(&scene);
}

static void test_json_has_the_same(void **state)
{
	struct scene scene;
	struct json json;
	struct page_out out = { &scene.page, &scene.options, NULL, .json = &json };

	begin(&scene);
	add_process(&scene, &train, 64 * KIB);
	add_place(&scene, &train, 64 * KIB);
	places_take(scene.made, &scene.page, NULL);
	json = (struct json){ .out = &scene.out };
	out.table = page_table(&out);
	page_memory_json(&out);
	table_close(out.table);
	HAS(scene.out.data, "\"places\":[{\"pid\":12,\"process\":\"train\",\"ended\":false,"
	                    "\"kind\":\"device\",\"function\":\"cudaMalloc\",\"count\":2,"
	                    "\"bytes\":65536,\"older_count\":2,\"older_bytes\":65536,"
	                    "\"oldest_ns\":60000000000,\"trend\":\"new\",\"grew\":0,"
	                    "\"grown_bytes\":0}]");
	end(&scene);
}

static void test_json_has_the_frames_of_a_stack(void **state)
{
	struct scene scene;
	struct json json;
	struct page_out out = { &scene.page, &scene.options, NULL, .json = &json };

	begin(&scene);
	add_process(&scene, &train, KIB);
	add_place(&scene, &train, KIB)->stack = &in_python;
	places_take(scene.made, &scene.page, NULL);
	json = (struct json){ .out = &scene.out };
	out.table = page_table(&out);
	page_memory_json(&out);
	table_close(out.table);
	HAS(scene.out.data, "\"place_name\":\"" IN_PYTHON_PLACE "\",\"place\":"
	                    "{\"function\":\"Cache.fill\",\"file\":\"/app/train.py\","
	                    "\"line\":88},\"stacks\":1,\"stack_whole\":true,\"stack\":"
	                    "[{\"function\":\"cudaMalloc\",\"module\":\"libcudart.so.13\"},"
	                    "{\"function\":\"Model::grow(int)\",\"module\":\"app\"},");
	end(&scene);
}

static void test_picture_has_the_process_and_its_failures(void **state)
{
	const struct memory_plot_frame frame = { .end_ns = 100 * SECOND };
	struct memory_plot *plot = memory_plot_new(50 * SECOND);
	struct scene scene;

	begin(&scene);
	add_process(&scene, &train, 64 * KIB)->failed = 2;
	scene.failures[scene.memory.n_failures++] = (struct watch_failure){
		.process = &train, .function = &cuda_malloc, .result = 2, .count = 2, .bytes = KIB
	};
	places_take(scene.made, &scene.page, NULL);
	page_plot(plot, &scene.page, scene.made);
	memory_plot_draw(plot, &frame, &scene.out);
	HAS(scene.out.data, "train");
	HAS(scene.out.data, "2 allocations failed");
	memory_plot_free(plot);
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page_tells_processes_and_places),
		cmocka_unit_test(test_page_tells_what_no_call_holds),
		cmocka_unit_test(test_page_does_not_split_what_is_older_than_the_watch),
		cmocka_unit_test(test_json_has_the_frames_of_a_stack),
		cmocka_unit_test(test_names_of_functions_cannot_reach_the_terminal),
		cmocka_unit_test(test_what_came_too_fast_is_told),
		cmocka_unit_test(test_stacks_stand_below_their_places),
		cmocka_unit_test(test_page_names_lines_of_python_and_functions),
		cmocka_unit_test(test_young_memory_is_not_shown),
		cmocka_unit_test(test_kinds_are_told_apart_where_there_are_others_than_device),
		cmocka_unit_test(test_top_says_how_many_there_are),
		cmocka_unit_test(test_what_was_there_before_is_not_taken_for_nothing),
		cmocka_unit_test(test_process_that_ended_leaves_what_it_had_not_freed),
		cmocka_unit_test(test_process_that_freed_everything_is_praised),
		cmocka_unit_test(test_a_process_that_ended_has_no_growth),
		cmocka_unit_test(test_of_many_processes_those_that_run_are_shown),
		cmocka_unit_test(test_of_many_that_ended_as_many_as_asked_for_are_told),
		cmocka_unit_test(test_failures_have_their_names),
		cmocka_unit_test(test_names_of_processes_cannot_reach_the_terminal),
		cmocka_unit_test(test_suspects_are_red_where_there_are_colours),
		cmocka_unit_test(test_json_has_the_same),
		cmocka_unit_test(test_picture_has_the_process_and_its_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
