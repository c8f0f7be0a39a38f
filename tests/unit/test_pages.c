// SPDX-License-Identifier: MIT
/* Pages of launches and bandwidth: tables, JSON, and the lines of gpuprobe. */
#include "unit.h"

#include "watch/page.h"

static const struct process app = { .pid = 7, .comm = "app\033[31m" };
static const struct kernel tick = { .mangled = "_Z4tickv", .name = "tick()", .resolved = true };
static const struct kernel hidden = { .name = "0x1234" };
static const struct watch_shape shapes[] = { { { 2, 1, 1 }, { 64, 1, 1 }, 90 },
	                                     { { 1, 1, 1 }, { 32, 1, 1 }, 10 } };

static struct watch_kernel kernels[3];
static struct watch_copies_row rows[2];
static struct watch_launches launches;
static struct watch_copies copies;
static struct watch_page page;
static struct page_options options;
static uint64_t lost[LOST_COUNT];
static struct buf out;

static int set_up(void **state)
{
	const struct watch_kernel counted = { .process = &app,
		                              .kernel = &tick,
		                              .handle = 0xabc0,
		                              .count = 100,
		                              .before = 60,
		                              .ns = 200000,
		                              .max_ns = 9000,
		                              .timed = 100,
		                              .shapes = shapes,
		                              .n_shapes = 2 };

	kernels[0] = kernels[1] = kernels[2] = counted;
	kernels[0].threads[5] = 10;
	kernels[0].threads[7] = 90;
	kernels[0].duration[10] = 100;
	kernels[1].kernel = NULL; /* a graph */
	kernels[1].handle = 0xfeed;
	kernels[1].count = 5;
	kernels[1].n_shapes = 0;
	kernels[2].kernel = &hidden;
	kernels[2].count = 1;
	rows[0] = (struct watch_copies_row){ .process = &app,
		                             .direction = DIRECTION_H2D,
		                             .host = WATCH_HOST_PINNED,
		                             .calls = 4,
		                             .bytes = 4 << 20,
		                             .bytes_before = 2 << 20,
		                             .ns = 2000000,
		                             .max_ns = 1000000 };
	rows[0].sizes[20] = 4;
	rows[1] = (struct watch_copies_row){ .process = &app, .set = true, .captured = 3 };
	launches = (struct watch_launches){ kernels, 3 };
	copies = (struct watch_copies){ rows, 2 };
	memset(lost, 0, sizeof(lost));
	page = (struct watch_page){ .number = 2,
		                    .time_ns = 3000000000,
		                    .before_ns = 1000000000,
		                    .launches = &launches,
		                    .copies = &copies,
		                    .lost = lost };
	options = (struct page_options){ .top = 20, .returns = true };
	return 0;
}

static int tear_down(void **state)
{
	buf_free(&out);
	return 0;
}

static const char *text(void)
{
	buf_reset(&out);
	page_text(&page, &options, &out);
	return out.data;
}

static const char *json(void)
{
	buf_reset(&out);
	page_json(&page, &options, &out);
	return out.data;
}

static void has(const char *in, const char *what)
{
	if (!strstr(in, what))
		fail_msg("no \"%s\" in:\n%s", what, in);
}

static void has_not(const char *in, const char *what)
{
	if (strstr(in, what))
		fail_msg("\"%s\" in:\n%s", what, in);
}

static const struct function nccl = { .name = "nccl.all\033[2J", .lib = "libnccl.so.2" };
static const struct function moment = { .name = "mark", .lib = "libmine.so" };
static struct watch_hook hooked[2];
static struct watch_hooks hooks;

static void add_hooks(void)
{
	hooked[0] = (struct watch_hook){ .process = &app,
		                         .function = &nccl,
		                         .sized = true,
		                         .bytes = 4 << 20,
		                         .bytes_before = 2 << 20,
		                         .calls = 100,
		                         .calls_before = 60,
		                         .unfinished = 1,
		                         .timed = 99,
		                         .ns = 990000,
		                         .max_ns = 50000 };
	hooked[1] = (struct watch_hook){
		.process = &app, .ended = true, .function = &moment, .calls = 3
	};
	hooks = (struct watch_hooks){ hooked, 2 };
	page.hooks = &hooks;
}

static void test_hooks_have_calls_sizes_and_times(void **state)
{
	has_not(text(), "Hooks");
	has_not(json(), "\"hooks\":{");
	add_hooks();
	page.launches = NULL;
	page.copies = NULL;
	has(text(), "Hooks: 103 calls, 22 a second\n"
	            "  PROCESS          CALLS   /S  UNFINISHED     BYTES         NOW   IN CALLS   "
	            "   MEAN   LONGEST  HOOK\n"
	            "  7 (app\\x1b[31m)    100   20           1  4.00 MiB  1.00 MiB/s  990.00 us  "
	            "10.00 us  50.00 us  nccl.all\\x1b[2J\n"
	            "  7 (app\\x1b[31m)      3  1.5           -         -           -          -  "
	            "       -         -  mark\n");
	has(json(), "\"hooks\":{\"calls\":103,\"calls_per_second\":21.500,\"rows\":[{\"pid\":7,");
	has(json(), "\"ended\":false,\"library\":\"libnccl.so.2\",\"hook\":\"nccl.all\\u001b[2J\","
	            "\"calls\":100,\"calls_per_second\":20.000,\"unfinished\":1,\"bytes\":4194304,"
	            "\"bytes_per_second\":1048576,\"call_ns\":990000,\"mean_call_ns\":10000,"
	            "\"max_call_ns\":50000}");
	has(json(), "\"hook\":\"mark\",\"calls\":3,\"calls_per_second\":1.500,\"unfinished\":0}]}");
}

static void test_hooks_without_returns_and_beyond_top(void **state)
{
	add_hooks();
	page.launches = NULL;
	page.copies = NULL;
	options.returns = false;
	options.top = 1;
	has_not(text(), "IN CALLS");
	has_not(text(), "mark");
	has(text(), "... and 1 more (--top)");
	has(json(), "\"hook\":\"mark\"");
	has_not(json(), "call_ns");
	hooks.n_rows = 0;
	has(text(), "Hooks: 0 calls, 0 a second\n");
	has(json(), "\"rows\":[]");
}

static void test_rates_are_since_the_page_before(void **state)
{
	has(text(), "Launches: 101 kernels, ");
	has(json(), "\"launches\":100,\"per_second\":20.000");
	has(json(), "\"bytes\":4194304,\"calls_per_second\":2.000,\"bytes_per_second\":1048576");
}

static void test_a_graph_has_a_row_of_its_own(void **state)
{
	has(text(), "; 5 graphs, ");
	has(text(), "graph 0xfeed");
	has(json(), "\"kernel_launches\":101,\"graph_launches\":5");
	has(json(), "\"graph\":\"0xfeed\"");
}

static void test_shapes_and_histograms(void **state)
{
	has(text(), "(2,1,1)x(64,1,1) (1,1,1)x(32,1,1)");
	has(text(), "from 32                     10  #####\n    from 64                      0\n"
	            "    from 128                    90  ####");
	has(json(),
	    "\"launches_by_threads\":[{\"from\":32,\"count\":10},{\"from\":128,\"count\":90}]");
	has(json(), "{\"grid\":[2,1,1],\"block\":[64,1,1],\"launches\":90}");
}

static void test_empty_rows_of_a_histogram_are_one_line(void **state)
{
	memset(kernels[0].threads, 0, sizeof(kernels[0].threads));
	kernels[0].threads[0] = 3;
	kernels[0].threads[3] = 2;
	kernels[0].threads[7] = 1;
	has(text(), "  threads of a launch\n    from 1                       3  ####");
	has(text(), "    from 2                       0\n    from 4                       0\n"
	            "    from 8                       2  ####");
	has(text(), "##\n    ...\n    from 128                     1  ####");
}

static void test_a_histogram_of_nothing_has_no_rows(void **state)
{
	memset(kernels[0].threads, 0, sizeof(kernels[0].threads));
	has(text(), "  threads of a launch\n  time in the launching call\n");
}

static void test_names_of_processes_reach_no_terminal(void **state)
{
	has(text(), "7 (app\\x1b[31m)");
	has_not(text(), "\033");
	has_not(json(), "\033");
}

static void test_without_returns_nothing_is_said_of_times(void **state)
{
	options.returns = false;
	has_not(text(), "CALL  MAX");
	has_not(text(), "IN CALLS");
	has_not(json(), "call_ns");
}

static void test_rows_beyond_top_are_counted(void **state)
{
	options.top = 1;
	has(text(), "... and 2 more (--top)");
	has(json(), "\"graph\"");
}

static void test_copies_with_their_host_memory(void **state)
{
	has(text(), "H2D        sync  pinned");
	has(text(), "1.95 GiB/s"); /* 4 MiB in 2 ms */
	has(json(), "\"host\":\"pinned\"");
	has(text(), "3 calls were recorded into a graph and did not run");
}

static void test_what_was_lost_is_told_at_once(void **state)
{
	has_not(text(), "lost");
	lost[LOST_RING_FULL] = 12;
	lost[LOST_SUMS] = 3;
	has(text(), "lost 12");
	has(text(), "lost 3: calls that found no room");
	has(json(), "\"complete\":false");
	has(json(), "\"no_room\":3");
}

static void test_the_last_page_says_so(void **state)
{
	page.last = true;
	has(text(), "at the end");
	has(text(), "nothing was lost");
	has(json(), "\"last\":true");
}

static void test_classic_lines(void **state)
{
	page.copies = NULL;
	buf_reset(&out);
	page_classic(&page, &options, &out);
	assert_string_equal("total kernel launches: 101\n"
	                    "pid: 7\n"
	                    "\t0xabc0 (_Z4tickv) -> 100\n"
	                    "\t0xabc0 (unknown kernel) -> 1\n",
	                    out.data);
	page.launches = NULL;
	page.copies = &copies;
	buf_reset(&out);
	page_classic(&page, &options, &out);
	assert_string_equal("Traced 4 cudaMemcpy calls\n"
	                    "\tH2D 2097152000.00000 bytes/sec for 0.00200 secs\n",
	                    out.data);
}

static void test_an_empty_page(void **state)
{
	launches.n_kernels = 0;
	copies.n_rows = 0;
	has(text(), "Launches: 0 kernels, 0 a second\nCopies and sets: 0 B, 0 B a second\n");
	has(json(), "\"kernels\":[]");
	buf_reset(&out);
	page_classic(&page, &options, &out);
	assert_string_equal("total kernel launches: 0\nTraced 0 cudaMemcpy calls\n", out.data);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_rates_are_since_the_page_before),
		TEST(test_a_graph_has_a_row_of_its_own),
		TEST(test_shapes_and_histograms),
		TEST(test_empty_rows_of_a_histogram_are_one_line),
		TEST(test_a_histogram_of_nothing_has_no_rows),
		TEST(test_names_of_processes_reach_no_terminal),
		TEST(test_without_returns_nothing_is_said_of_times),
		TEST(test_rows_beyond_top_are_counted),
		TEST(test_copies_with_their_host_memory),
		TEST(test_what_was_lost_is_told_at_once),
		TEST(test_the_last_page_says_so),
		TEST(test_classic_lines),
		TEST(test_an_empty_page),
		TEST(test_hooks_have_calls_sizes_and_times),
		TEST(test_hooks_without_returns_and_beyond_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
