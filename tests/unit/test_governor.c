// SPDX-License-Identifier: MIT
/*
 * What is given up, and when. Modules and programs are stood in for: what the governor does to
 * them is written down in `done`. A hit costs 1 us, without its return 400 ns; times are in
 * milliseconds.
 */
#include "unit.h"

#include "capture/governor.h"

#define MS        1000000ull
#define BEGIN_NS  (5000 * MS)
#define CALL_NS   1000
#define INSIDE_NS 100
#define ENTRY_NS  400
#define PERCENT   (250 * MS / CALL_NS / 100) /* hits in 250 ms that take 1 % of them */

/* ---- stand-ins ----------------------------------------------------------------------------- */

static struct {
	struct hook hooks[2][4];
	struct module module[2];
	struct wire_state state;
	enum mechanism mechanism;
	bool attached[2], paused;
	int locked;
	char done[2048]; /* "unhooked cuA" "misses: ..." */
} world;

__attribute__((format(printf, 1, 2))) static void write_down(const char *fmt, ...)
{
	size_t len = strlen(world.done);
	va_list ap;

	assert_int_equal(world.locked, 1);
	va_start(ap, fmt);
	vsnprintf(world.done + len, sizeof(world.done) - len, fmt, ap);
	va_end(ap);
}

size_t modules_count(const struct modules *modules)
{
	return 2;
}

struct module *modules_at(const struct modules *modules, size_t index)
{
	return &world.module[index];
}

void modules_lock(struct modules *modules)
{
	world.locked++;
}

void modules_unlock(struct modules *modules)
{
	world.locked--;
}

void modules_miss(struct modules *modules, enum miss_kind kind, const char *name, const char *lib,
                  uint32_t pid, const char *fmt, ...)
{
	static const char *const kinds[] = { [MISS_UNHOOKED] = "unhooked",
		                             [MISS_ENTRY_ONLY] = "entry only",
		                             [MISS_ESTIMATED] = "estimated" };
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	write_down("%s %s %s: %s\n", kinds[kind], name ? name : "-", lib ? lib : "-", why);
}

void modules_tell_unhooked(struct modules *modules, struct module *module)
{
}

struct wire_state *programs_state(struct programs *programs)
{
	return &world.state;
}

enum mechanism programs_mechanism(const struct programs *programs)
{
	return world.mechanism;
}

int module_attach(struct module *module, struct err *err)
{
	world.attached[module - world.module] = true;
	return 0;
}

void modules_pause(struct modules *modules, bool pause)
{
	world.paused = pause;
}

void module_detach(struct module *module)
{
	world.attached[module - world.module] = false;
}

bool module_relink_little(struct module *module)
{
	bool any = false;

	for (size_t i = 0; i < module->n_hooks; i++)
		any |= module->hooks[i].hooked && module->hooks[i].given_up;
	for (size_t i = 0; i < module->n_hooks; i++)
		module->hooks[i].hooked &= !module->hooks[i].given_up;
	return any;
}

void module_drop_returns(struct module *module)
{
	write_down("returns of %s dropped\n", module->name);
	for (size_t i = 0; i < module->n_hooks; i++)
		world.state.mode[module->hooks[i].id] = HOOK_ENTRY_ONLY;
}

/* ---- a governor and its world -------------------------------------------------------------- */

static struct governor *governor;
static uint64_t now_ns;

static void add_hook(size_t module, size_t at, const char *name, enum hook_group group)
{
	world.hooks[module][at] = (struct hook){
		.id = (uint16_t)(module * 4 + at), .name = name, .group = group, .hooked = true
	};
	world.module[module].n_hooks = at + 1;
}

static int make_world(void **state)
{
	memset(&world, 0, sizeof(world));
	world.module[0] = (struct module){ .name = "libcuda.so.1", .hooks = world.hooks[0] };
	world.module[1] = (struct module){ .name = "libcudart.so.13", .hooks = world.hooks[1] };
	add_hook(0, 0, "cuLaunchKernel", HOOK_CORE);
	add_hook(0, 1, "cuMemAlloc_v2", HOOK_CORE);
	add_hook(0, 2, "cuCtxGetCurrent", HOOK_LITTLE);
	add_hook(1, 0, "cudaMalloc", HOOK_CORE);
	add_hook(1, 1, "cudaGetLastError", HOOK_LITTLE);
	add_hook(1, 2, "cudaGetDevice", HOOK_LITTLE);
	world.attached[0] = world.attached[1] = true;
	return 0;
}

static int free_world(void **state)
{
	governor_free(governor);
	governor = NULL;
	return 0;
}

/* `percent` 0: no limit was given. The first interval, a short one, is over. */
static void govern(double percent)
{
	const struct governor_options options = {
		.cost = { .entry_ns = ENTRY_NS, .call_ns = CALL_NS, .inside_ns = INSIDE_NS },
		.max_percent = percent,
		.returns = true,
	};

	now_ns = BEGIN_NS;
	governor = governor_new(&options, now_ns);
	now_ns += 50 * MS;
	assert_null(governor_tick(governor, now_ns));
}

static void hit_on(uint32_t tid, const char *name, uint64_t times)
{
	struct wire_call call = { .head = { .tid = tid } };
	uint16_t hook = WIRE_HOOKS_MAX;

	for (uint16_t i = 0; i < 8; i++) {
		const char *one = world.hooks[i / 4][i % 4].name;

		if (one && !strcmp(one, name))
			hook = i;
	}
	assert_true(hook < WIRE_HOOKS_MAX);
	call.head.hook = hook;
	if (world.state.mode[hook] == HOOK_ENTRY_ONLY)
		call.head.flags = WIRE_NO_RETURN;
	while (times--)
		governor_hit(governor, &call);
}

static void hit(const char *name, uint64_t times)
{
	hit_on(11, name, times);
}

static const char *tick_after(uint64_t ms)
{
	now_ns += ms * MS;
	return governor_tick(governor, now_ns);
}

static void assert_done(const char *expected)
{
	assert_string_equal(world.done, expected);
	world.done[0] = '\0';
}

static void assert_percent(double least, double most)
{
	double percent = governor_percent(governor);

	if (percent < least || percent > most)
		fail_msg("%.2f %% is not within %.2f and %.2f", percent, least, most);
}

/* ---- the share ----------------------------------------------------------------------------- */

static void test_the_share_is_of_the_threads_own_time(void **state)
{
	govern(50);
	hit("cuLaunchKernel", 20 * PERCENT);
	tick_after(250);
	assert_percent(24.9, 25.1); /* 50 ms of tracing beside 200 ms of work */
}

/* Its cost is another one, and taking its probe away would save little. */
static void test_what_is_recorded_inside_costs_little_and_is_not_given_up(void **state)
{
	struct wire_call call = { .head = { .tid = 11, .hook = 2, .flags = WIRE_BY_AGENT } };
	const char *said;

	govern(0);
	for (uint64_t i = 0; i < 100 * PERCENT; i++)
		governor_told(governor, &call, i % 2);
	said = tick_after(250);
	assert_non_null(said);
	assert_non_null(strstr(said, "recorded inside of the process"));
	assert_null(strstr(said, "--no-returns")); /* would bring its probes back */
	assert_percent(42.8, 42.9); /* 25 ms, and 50 ms of probes, beside 175 ms of work */
	assert_done("");
	assert_true(world.hooks[0][2].hooked);
}

static void test_getters_are_kept_while_agents_may_come(void **state)
{
	const struct governor_options options = { .cost = { .call_ns = CALL_NS },
		                                  .returns = true,
		                                  .getters_ns = BEGIN_NS + 600 * MS };

	now_ns = BEGIN_NS;
	governor = governor_new(&options, now_ns);
	tick_after(50);
	hit("cuCtxGetCurrent", 20 * PERCENT);
	tick_after(250);
	assert_true(world.hooks[0][2].hooked);
	hit("cuCtxGetCurrent", 20 * PERCENT);
	tick_after(300);
	assert_false(world.hooks[0][2].hooked);
}

static void test_the_busiest_thread_counts(void **state)
{
	govern(50);
	hit_on(11, "cuLaunchKernel", PERCENT);
	hit_on(12, "cuLaunchKernel", 2 * PERCENT);
	hit_on(13, "cuLaunchKernel", PERCENT);
	tick_after(250);
	assert_percent(2.0, 2.1);
}

static void test_an_entry_alone_costs_less(void **state)
{
	govern(50);
	world.state.mode[0] = HOOK_ENTRY_ONLY;
	hit("cuLaunchKernel", 5 * PERCENT);
	tick_after(250);
	assert_percent(2.0, 2.1);
}

static void test_every_interval_begins_at_nothing(void **state)
{
	govern(50);
	hit("cuLaunchKernel", 2 * PERCENT);
	tick_after(250);
	tick_after(250);
	assert_percent(0, 0);
	hit("cudaGetDevice", 2 * PERCENT);
	tick_after(250);
	hit("cudaGetDevice", 60 * PERCENT);
	tick_after(250);
	assert_non_null(strstr(world.done, "600000 calls a second"));
}

static void test_nothing_is_decided_within_an_interval(void **state)
{
	govern(3);
	hit("cudaGetDevice", 30 * PERCENT);
	assert_null(tick_after(249));
	assert_done("");
	assert_non_null(tick_after(1));
}

static void test_a_burst_at_the_begin_is_met_soon(void **state)
{
	govern(3);
	governor_free(governor);
	governor =
		governor_new(&(struct governor_options){ .cost = { ENTRY_NS, CALL_NS } }, now_ns);
	hit("cudaGetDevice", 30 * PERCENT / 5);
	assert_null(tick_after(49));
	assert_non_null(tick_after(1));
}

static void test_below_the_limit_nothing_is_given_up(void **state)
{
	govern(0);
	hit("cudaGetDevice", 2 * PERCENT);
	assert_null(tick_after(250));
	assert_done("");
	assert_int_equal(world.locked, 0);
}

/* ---- getters ------------------------------------------------------------------------------- */

static void test_the_most_frequent_getters_go_until_the_rest_is_within_the_limit(void **state)
{
	const char *said;

	govern(0);
	hit("cudaGetLastError", 4 * PERCENT);
	hit("cudaGetDevice", 8 * PERCENT);
	hit("cuCtxGetCurrent", PERCENT);
	said = tick_after(250);
	assert_non_null(said);
	assert_non_null(strstr(said, "15 %"));
	assert_non_null(strstr(said, "2 functions"));
	assert_done("unhooked cudaGetDevice libcudart.so.13: 80000 calls a second cost 9.2 %\n"
	            "unhooked cudaGetLastError libcudart.so.13: 40000 calls a second cost 4.6 %\n"
	            "unhooked - libcudart.so.13: everything that tells little, for 0 ms while some "
	            "of it was taken away\n");
	assert_int_equal(world.state.mode[6], HOOK_IGNORE);
	assert_int_equal(world.state.mode[5], HOOK_IGNORE);
	assert_int_equal(world.state.mode[2], 0);
	assert_false(world.hooks[1][1].hooked);
	assert_true(world.hooks[0][2].hooked);
	assert_int_equal(world.locked, 0);
}

static void test_what_is_unhooked_is_not_given_up_again(void **state)
{
	govern(0);
	hit("cudaGetDevice", 8 * PERCENT);
	tick_after(250);
	world.done[0] = '\0';
	hit("cudaGetDevice", 8 * PERCENT); /* records that were on their way */
	tick_after(250);
	assert_done("");
}

/* ---- without a limit of the user's --------------------------------------------------------- */

static void test_what_tells_much_is_kept_and_the_cost_is_said(void **state)
{
	const char *said;

	govern(0);
	hit("cuLaunchKernel", 20 * PERCENT);
	said = tick_after(250);
	assert_non_null(said);
	assert_non_null(strstr(said, "25 %"));
	assert_non_null(strstr(said, "--max-overhead"));
	hit("cuLaunchKernel", 20 * PERCENT);
	assert_null(tick_after(250));
	assert_done("");
	assert_true(governor_scale(governor, now_ns) == 1);
}

static void test_the_cost_is_said_again_when_it_has_doubled(void **state)
{
	govern(0);
	hit("cuLaunchKernel", 4 * PERCENT);
	assert_non_null(strstr(tick_after(250), "about 4 %"));
	hit("cuLaunchKernel", 7 * PERCENT);
	assert_null(tick_after(250));
	hit("cuLaunchKernel", 20 * PERCENT);
	assert_non_null(strstr(tick_after(250), "about 25 %"));
	hit("cuLaunchKernel", 4 * PERCENT);
	assert_null(tick_after(250));
	hit("cuLaunchKernel", 30 * PERCENT);
	assert_null(tick_after(250));
	hit("cuLaunchKernel", 60 * PERCENT);
	assert_non_null(strstr(tick_after(250), "about 150 %"));
}

static void test_at_the_end_there_is_the_average_and_the_most(void **state)
{
	double percent, most;

	govern(0);
	hit("cuLaunchKernel", 20 * PERCENT);
	tick_after(250);
	tick_after(250);
	governor_cost(governor, &percent, &most);
	assert_true(percent > 11.3 && percent < 11.4); /* of 550 ms */
	assert_true(most > 24.9 && most < 25.1);
}

/* ---- returns ------------------------------------------------------------------------------- */

static void test_returns_go_where_getters_were_not_enough(void **state)
{
	govern(5);
	hit("cudaGetDevice", 2 * PERCENT);
	hit("cuLaunchKernel", 7 * PERCENT);
	hit("cudaMalloc", PERCENT);
	tick_after(250);
	assert_done("unhooked cudaGetDevice libcudart.so.13: 20000 calls a second cost 2.2 %\n"
	            "unhooked - libcudart.so.13: everything that tells little, for 0 ms while some "
	            "of it was taken away\n"
	            "entry only cuLaunchKernel libcuda.so.1: durations and results given up for "
	            "--max-overhead 5%\n");
	assert_int_equal(world.state.mode[0], HOOK_ENTRY_ONLY);
	assert_int_equal(world.state.mode[4], 0);
}

static void test_returns_that_hang_together_go_together(void **state)
{
	world.mechanism = MECHANISM_MULTI;
	govern(5);
	hit("cuLaunchKernel", 6 * PERCENT);
	hit("cuMemAlloc_v2", 2 * PERCENT);
	hit("cudaMalloc", PERCENT);
	tick_after(250);
	/* 60 % of eight of nine are saved: enough for the third to stay */
	assert_done("returns of libcuda.so.1 dropped\n"
	            "entry only - libcuda.so.1: durations and results given up for "
	            "--max-overhead 5%\n");
	assert_int_equal(world.state.mode[4], 0);
	assert_percent(4.6, 4.7);
}

static void test_a_limit_that_is_kept_takes_no_returns(void **state)
{
	govern(5);
	hit("cuLaunchKernel", 4 * PERCENT);
	tick_after(250);
	assert_done("");
}

/* What the loss of returns has saved is seen in the next interval. */
static void test_after_returns_one_interval_is_waited_for(void **state)
{
	govern(1);
	hit("cuLaunchKernel", 50 * PERCENT);
	tick_after(250);
	assert_done("entry only cuLaunchKernel libcuda.so.1: durations and results given up for "
	            "--max-overhead 1%\n");
	hit("cuLaunchKernel", 50 * PERCENT);
	tick_after(250);
	assert_non_null(strstr(world.done, "windows"));
}

/* ---- windows ------------------------------------------------------------------------------- */

/* Returns are gone already, and 10 % are too much still. */
static void begin_windows(void)
{
	govern(5);
	world.state.mode[0] = HOOK_ENTRY_ONLY;
	hit("cuLaunchKernel", 10 * PERCENT * CALL_NS / ENTRY_NS * 10 / 11);
	tick_after(250);
}

static void test_at_last_everything_is_measured_in_windows(void **state)
{
	begin_windows();
	assert_done("estimated - -: measured in windows of 1000 ms every 2.0 s for "
	            "--max-overhead 5%, since the calls of thread 11 cost it more\n");
	assert_int_equal(world.locked, 0);
}

/* Half of every two seconds, a millisecond more or less. */
static void test_windows_close_and_open(void **state)
{
	begin_windows();
	for (int i = 0; i < 3; i++) {
		tick_after(1);
		assert_false(world.attached[0] || world.attached[1]);
		assert_true(world.paused);
		tick_after(997);
		assert_false(world.attached[0] || world.attached[1]);
		tick_after(5);
		assert_true(world.attached[0] && world.attached[1]);
		assert_false(world.paused);
		tick_after(997);
		assert_true(world.attached[0] && world.attached[1]);
		tick_after(5);
	}
	assert_int_equal(world.locked, 0);
}

static void test_a_window_has_a_least_length(void **state)
{
	govern(0.1);
	world.state.mode[0] = HOOK_ENTRY_ONLY;
	hit("cuLaunchKernel", 100 * PERCENT);
	tick_after(250);
	assert_non_null(strstr(world.done, "windows of 50 ms"));
}

static void assert_scale(double seen_ms, double all_ms)
{
	double scale = governor_scale(governor, now_ns), expected = all_ms / seen_ms;

	if (scale < 0.99 * expected || scale > 1.01 * expected)
		fail_msg("%.2f is not %.2f", scale, expected);
}

/* Half of its time in a window goes to tracing: outside, it makes twice as many calls. */
static void test_a_thread_that_tracing_slows_down_does_more_outside_of_windows(void **state)
{
	begin_windows();
	tick_after(1);
	tick_after(1003);
	hit("cuLaunchKernel", 1000 * MS / ENTRY_NS / 2);
	tick_after(1003);
	assert_false(world.attached[0]);
	tick_after(1003);
	/* 301 ms before, a second open and two closed, which count twice */
	assert_scale(1304, 1304 + 2 * 2006);
}

static void test_counts_are_scaled_by_the_time_that_was_seen(void **state)
{
	begin_windows();
	assert_scale(300, 300);
	tick_after(1); /* closes */
	now_ns += 299 * MS;
	assert_scale(300, 600);
	tick_after(703); /* opens */
	now_ns += 700 * MS;
	assert_scale(1000, 2000);
	tick_after(303); /* closes */
	now_ns += 694 * MS;
	assert_scale(1300, 3000);
}

static void test_in_windows_nothing_more_is_given_up(void **state)
{
	begin_windows();
	world.done[0] = '\0';
	hit("cudaGetDevice", 10 * PERCENT);
	assert_null(tick_after(250));
	assert_done("");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, free_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_share_is_of_the_threads_own_time),
		TEST(test_the_busiest_thread_counts),
		TEST(test_what_is_recorded_inside_costs_little_and_is_not_given_up),
		TEST(test_getters_are_kept_while_agents_may_come),
		TEST(test_an_entry_alone_costs_less),
		TEST(test_every_interval_begins_at_nothing),
		TEST(test_nothing_is_decided_within_an_interval),
		TEST(test_a_burst_at_the_begin_is_met_soon),
		TEST(test_below_the_limit_nothing_is_given_up),
		TEST(test_the_most_frequent_getters_go_until_the_rest_is_within_the_limit),
		TEST(test_what_is_unhooked_is_not_given_up_again),
		TEST(test_what_tells_much_is_kept_and_the_cost_is_said),
		TEST(test_the_cost_is_said_again_when_it_has_doubled),
		TEST(test_at_the_end_there_is_the_average_and_the_most),
		TEST(test_a_thread_that_tracing_slows_down_does_more_outside_of_windows),
		TEST(test_returns_go_where_getters_were_not_enough),
		TEST(test_returns_that_hang_together_go_together),
		TEST(test_a_limit_that_is_kept_takes_no_returns),
		TEST(test_after_returns_one_interval_is_waited_for),
		TEST(test_at_last_everything_is_measured_in_windows),
		TEST(test_windows_close_and_open),
		TEST(test_a_window_has_a_least_length),
		TEST(test_counts_are_scaled_by_the_time_that_was_seen),
		TEST(test_in_windows_nothing_more_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
