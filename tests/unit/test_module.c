// SPDX-License-Identifier: MIT
/*
 * A module's hooks and what is attached of them. This file stands in for src/probe/attach.c and
 * programs.c: what is attached is written down, by name.
 */
#include "elf_build.h"
#include "unit.h"

#include "base/clock.h"
#include "probe/hook_numbers.h"
#include "probe/module.h"

/* ---- stand-ins ----------------------------------------------------------------------------- */

struct attachment {
	char names[512]; /* "cuA *cuB ": the second by a link of its own */
	bool returns;
};

static struct module *module;
static struct wire_state state_of_hooks;
static char log_text[2048]; /* "+cuA cuB returns" "-cuA cuB" */
static const char *refused; /* the kernel does not take this one */

static void write_down(char sign, const struct attachment *a, const char *what)
{
	size_t len = strlen(log_text);

	snprintf(log_text + len, sizeof(log_text) - len, "%c%s%s\n", sign, a->names, what);
}

/* The hook that a point belongs to, which its cookie numbers. */
static const struct hook *hook_at(const struct attach_point *point)
{
	const struct hook *hook = module->hooks;

	while (hook->id != cookie_hook(point->cookie))
		assert_true(++hook < module->hooks + module->n_hooks);
	assert_int_equal(point->offset, hook->entry + hook->placement.skip);
	assert_int_equal(point->cookie & ~cookie_with_moved(1), hook_cookie(hook));
	return hook;
}

int programs_map(const struct programs *programs, const char *name)
{
	return -1;
}

int attach_own(struct programs *programs, int fd, struct attach_point *points, size_t count,
               bool returns, struct attachment **attachment, struct err *err)
{
	fail_msg("no test here has hooks of its own");
	return -1;
}

static bool ends; /* whether the end of cuscope would have kept it from being attached */

int attach(struct programs *programs, int fd, struct attach_point *points, size_t count,
           bool returns, bool until_end, struct attachment **attachment, struct err *err)
{
	struct attachment *a = calloc(1, sizeof(*a));
	size_t hooked = 0;

	assert_int_equal(fd, module->fd);
	ends = until_end;
	for (size_t i = 0; i < count; i++) {
		const struct hook *hook = hook_at(&points[i]);

		points[i].error = refused && !strcmp(hook->name, refused) ? -EINVAL : 0;
		if (points[i].error)
			continue;
		hooked++;
		strcat(strcat(a->names, cookie_moved(points[i].cookie) ? "*" : ""), hook->name);
		strcat(a->names, " ");
	}
	if (!hooked) {
		free(a);
		return err_set(err, EINVAL, "hooking: refused");
	}
	a->returns = returns;
	write_down('+', a, returns ? "returns" : "entries");
	*attachment = a;
	return 0;
}

uint64_t attachment_took_ns(const struct attachment *attachment)
{
	return 0;
}

void attachment_free(struct attachment *attachment)
{
	if (attachment)
		write_down('-', attachment, "");
	free(attachment);
}

void attachment_free_later(struct attachment *attachment)
{
	write_down('-', attachment, "later");
	free(attachment);
}

/* Hooks whose returns the programs took for gone before they went. */
static size_t gone_too_early;

void attachment_drop_returns(struct attachment *attachment)
{
	for (size_t i = 0; i < WIRE_HOOKS_MAX; i++)
		gone_too_early += (state_of_hooks.mode[i] & HOOK_RETURN_GONE) != 0;
	write_down('-', attachment, "returns");
}

struct wire_state *programs_state(struct programs *programs)
{
	return &state_of_hooks;
}

static void assert_log(const char *expected)
{
	assert_string_equal(log_text, expected);
	log_text[0] = '\0';
}

static void no_number_is_used_again(void *data, uint16_t id)
{
	fail_msg("number %u", id);
}

static int number_from(size_t first)
{
	struct hook_numbers *numbers = calloc(1, sizeof(*numbers));
	struct shares shares = shares_init();
	const char *why;
	int r;

	quota_add(&shares.hooks, 0, 0, first);
	numbers->next = first;
	r = hook_numbers_take(numbers, &shares, module, no_number_is_used_again, NULL, &why);
	hook_numbers_free(numbers);
	free(numbers);
	shares_free(&shares);
	return r;
}

/* ---- a module ------------------------------------------------------------------------------ */

/* A library of both layers. Its functions begin with a mark for indirect jumps, then a push. */
#define FUNCTION(name) "int " name "(int n) { return g(n) + g(n); }\n"

static const char source[] = "int g(int n);\n" FUNCTION("cuInit") FUNCTION("cuLaunchKernel")
	FUNCTION("cuMemAlloc_v2") FUNCTION("cuCtxGetCurrent") FUNCTION("cuDeviceGetCount")
		FUNCTION("cuNotYetKnown") FUNCTION("cudaMalloc") FUNCTION("cudaLaunchKernel")
			FUNCTION("__cudaLaunchKernel");

#ifdef __x86_64__
#define FLAGS " -fno-toplevel-reorder -fcf-protection=full"
#else
#define FLAGS " -fno-toplevel-reorder"
#endif

static void open_selected(const struct selection *selection)
{
	struct err err = { 0 };

	memset(&state_of_hooks, 0, sizeof(state_of_hooks));
	log_text[0] = '\0';
	refused = NULL;
	assert_int_equal(module_open(reopen(), "/opt/cuda/lib/libboth.so.1", ELF_WHOLE, selection,
	                             &module, &err),
	                 0);
	assert_int_equal(number_from(100), 0);
	module->returns = true;
}

static int close_module(void **state)
{
	module_free(module);
	module = NULL;
	return 0;
}

static const struct selection everything = { .all_calls = true };
static const struct selection defaults;

static struct hook *hook_named(const char *name)
{
	for (size_t i = 0; i < module->n_hooks; i++) {
		if (!strcmp(module->hooks[i].name, name))
			return &module->hooks[i];
	}
	fail_msg("there is no hook %s", name);
	return NULL;
}

static void attach_module(bool runtime_launches)
{
	struct err err = { 0 };

	state_of_hooks.driver_works = !runtime_launches;
	assert_int_equal(module_attach(module, &err), 0);
}

/* ---- its hooks ----------------------------------------------------------------------------- */

static void test_every_function_has_a_hook(void **state)
{
	size_t on = 0;

	open_selected(&defaults);
	assert_int_equal(module->n_hooks, 9);
	assert_string_equal(module->name, "libboth.so.1");
	assert_true(module->has[LAYER_DRIVER] && module->has[LAYER_RUNTIME]);
	for (size_t i = 0; i < module->n_hooks; i++) {
		assert_int_equal(module->hooks[i].id,
		                 module->hooks[i].group == HOOK_OFF ? HOOK_NO_ID : 100 + on++);
		assert_false(module->hooks[i].hooked);
	}
}

static void test_a_hook_knows_its_function(void **state)
{
	const struct hook *hook;

	open_selected(&defaults);
	hook = hook_named("cudaMalloc");
	assert_int_equal(hook->layer, LAYER_RUNTIME);
	assert_ptr_equal(hook->api, api_find("cudaMalloc"));
	assert_int_equal(hook->plan.out[0], 0);
	assert_int_equal(hook->group, HOOK_CORE);
	hook = hook_named("cuNotYetKnown");
	assert_null(hook->api);
	assert_int_equal(hook->plan.regs, 0);
	assert_int_equal(hook->plan.out[0], PLAN_NO_ARG);
	assert_int_equal(hook->plan.kernel, PLAN_NO_ARG);
}

#ifdef __x86_64__
/* A place that the kernel emulates, not the mark that it would single-step. */
static void test_a_hook_has_its_place_within_the_function(void **state)
{
	open_selected(&defaults);
	assert_int_equal(hook_named("cuInit")->placement.skip, 4);
	assert_true(hook_named("cuInit")->placement.emulated);
}
#endif

static void test_what_only_jumps_to_another_function_is_not_hooked(void **state)
{
	const struct hook *hook;

	open_selected(&everything);
	hook = hook_named("__cudaLaunchKernel");
	assert_int_equal(hook->group, HOOK_OFF);
	assert_non_null(strstr(hook->why, "only jumps"));
}

/* Of a library with so many names; half of them might jump to another, and they differ at the end.
 */
static uint64_t ns_of_launches(int count)
{
	struct module *many = NULL;
	struct err err = { 0 };
	uint64_t begin_ns;
	int fd;

	run("awk 'BEGIN { print \".text\"; n = \"cudaLaunchKernel\";"
	    " for (l = \"\"; length(l) < 100;) l = l \"x\"; for (i = 0; i < %d; i++) {"
	    " printf \".globl %%s\\n.type %%s,@function\\n%%s: ret\\n\", n, n, n;"
	    " n = (i %% 2 ? \"__\" : \"\") \"cudaLaunch\" l i } }' >many.s &&"
	    " gcc -shared -nostdlib -o many.so many.s && rm many.s",
	    count);
	fd = open(in_dir("many.so"), O_RDONLY);
	begin_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
	assert_int_equal(module_open(fd, "many.so", ELF_WHOLE, &defaults, &many, &err), 0);
	begin_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
	assert_int_equal(many->n_hooks, count);
	module_free(many);
	return begin_ns;
}

static void test_four_times_the_launches_take_four_times_the_time(void **state)
{
	uint64_t few_ns = ns_of_launches(4000);

	assert_true(ns_of_launches(16000) < 8 * few_ns);
}

static void test_hooks_have_no_numbers_beyond_the_last(void **state)
{
	int wants;

	open_selected(&defaults);
	wants = (int)module_wants(module);
	assert_true(wants > 0 && wants < 9);
	assert_int_equal(number_from(WIRE_HOOKS_MAX - 1 - (size_t)wants), 0);
	assert_int_equal(number_from(WIRE_HOOKS_MAX - (size_t)wants), -ENOSPC);
}

static void test_what_holds_no_functions_is_no_module(void **state)
{
	struct module *none = NULL;
	struct err err = { 0 };
	int fd = open("/dev/null", O_RDONLY);

	assert_true(module_open(fd, "/dev/null", ELF_WHOLE, &defaults, &none, &err) != 0);
	assert_null(none);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	open_selected(&defaults); /* something for close_module */
}

/* ---- attaching ----------------------------------------------------------------------------- */

static void test_by_default_what_tells_much_is_attached_together(void **state)
{
	open_selected(&defaults);
	attach_module(false);
	assert_log("+cuInit cuLaunchKernel cuMemAlloc_v2 cuNotYetKnown cudaMalloc returns\n");
	assert_true(hook_named("cuInit")->hooked);
	assert_false(hook_named("cuCtxGetCurrent")->hooked);
	assert_false(hook_named("cudaLaunchKernel")->hooked);
}

static void test_without_a_driver_launches_are_attached_in_the_runtime(void **state)
{
	open_selected(&defaults);
	attach_module(true);
	assert_log("+cuInit cuLaunchKernel cuMemAlloc_v2 cuNotYetKnown cudaMalloc returns\n"
	           "+cudaLaunchKernel returns\n");
	assert_int_equal(module_hook_group(module, HOOK_RUNTIME_LAUNCH, false, NULL), 0);
	assert_log("-cudaLaunchKernel later\n");
	assert_false(hook_named("cudaLaunchKernel")->hooked);
	assert_int_equal(module_hook_group(module, HOOK_RUNTIME_LAUNCH, false, NULL), 0);
	assert_log("");
	assert_int_equal(module_hook_group(module, HOOK_RUNTIME_LAUNCH, true, NULL), 0);
	assert_log("+cudaLaunchKernel returns\n");
	assert_true(hook_named("cudaLaunchKernel")->hooked);
}

static void give_up(const char *name)
{
	hook_named(name)->given_up = true;
	module_relink_little(module);
}

static void test_what_tells_little_is_attached_apart(void **state)
{
	open_selected(&everything);
	attach_module(false);
	assert_log("+cuInit cuLaunchKernel cuMemAlloc_v2 cuNotYetKnown cudaMalloc returns\n"
	           "+cuCtxGetCurrent cuDeviceGetCount returns\n");
	module_relink_little(module);
	assert_log("");
	give_up("cuDeviceGetCount");
	assert_log("-cuCtxGetCurrent cuDeviceGetCount \n+cuCtxGetCurrent returns\n");
	assert_false(hook_named("cuDeviceGetCount")->hooked);
	assert_true(hook_named("cuCtxGetCurrent")->hooked);
	give_up("cuCtxGetCurrent");
	assert_log("-cuCtxGetCurrent \n");
}

static void test_a_function_that_is_refused_keeps_no_other_from_being_hooked(void **state)
{
	open_selected(&everything);
	refused = "cuMemAlloc_v2";
	attach_module(false);
	assert_int_equal(hook_named("cuMemAlloc_v2")->error, -EINVAL);
	assert_false(hook_named("cuMemAlloc_v2")->hooked);
	assert_int_equal(hook_named("cuInit")->error, 0);
	assert_true(hook_named("cuInit")->hooked);
}

static void test_where_nothing_can_be_hooked_that_is_an_error(void **state)
{
	const char *only[] = { "cudaMalloc" };
	const struct selection selection = { .only = only, .n_only = 1 };
	struct err err = { 0 };

	open_selected(&selection);
	refused = "cudaMalloc";
	assert_int_equal(module_attach(module, &err), -EINVAL);
	assert_string_equal(err.text, "hooking: refused");
	assert_int_equal(hook_named("cudaMalloc")->error, -EINVAL);
}

static void test_detaching_leaves_nothing(void **state)
{
	open_selected(&everything);
	attach_module(true);
	log_text[0] = '\0';
	module_detach(module);
	assert_log("-cuInit cuLaunchKernel cuMemAlloc_v2 cuNotYetKnown cudaMalloc \n"
	           "-cudaLaunchKernel \n-cuCtxGetCurrent cuDeviceGetCount \n");
	for (size_t i = 0; i < module->n_hooks; i++)
		assert_false(module->hooks[i].hooked);
}

/* ---- attaching again, as measuring in windows does ----------------------------------------- */

static void test_what_is_attached_is_not_attached_twice(void **state)
{
	open_selected(&everything);
	attach_module(false);
	log_text[0] = '\0';
	attach_module(false);
	assert_log("");
	module_detach(module);
	log_text[0] = '\0';
	attach_module(false);
	assert_log("+cuInit cuLaunchKernel cuMemAlloc_v2 cuNotYetKnown cudaMalloc returns\n"
	           "+cuCtxGetCurrent cuDeviceGetCount returns\n");
}

static void test_what_was_given_up_is_not_attached_again(void **state)
{
	open_selected(&everything);
	attach_module(false);
	give_up("cuCtxGetCurrent");
	module_detach(module);
	log_text[0] = '\0';
	attach_module(false);
	assert_log("+cuInit cuLaunchKernel cuMemAlloc_v2 cuNotYetKnown cudaMalloc returns\n"
	           "+cuDeviceGetCount returns\n");
	assert_false(hook_named("cuCtxGetCurrent")->hooked);
}

static void test_returns_that_were_given_up_stay_so(void **state)
{
	open_selected(&everything);
	attach_module(false);
	log_text[0] = '\0';
	module_drop_returns(module);
	assert_int_equal(gone_too_early, 0);
	assert_log("-cuInit cuLaunchKernel cuMemAlloc_v2 cuNotYetKnown cudaMalloc returns\n");
	assert_int_equal(state_of_hooks.mode[hook_named("cuInit")->id],
	                 HOOK_ENTRY_ONLY | HOOK_RETURN_GONE);
	assert_int_equal(state_of_hooks.mode[hook_named("cudaMalloc")->id],
	                 HOOK_ENTRY_ONLY | HOOK_RETURN_GONE);
	assert_int_equal(state_of_hooks.mode[hook_named("cuCtxGetCurrent")->id], 0);
	module_detach(module);
	log_text[0] = '\0';
	attach_module(false);
	assert_log("+cuInit cuLaunchKernel cuMemAlloc_v2 cuNotYetKnown cudaMalloc entries\n"
	           "+cuCtxGetCurrent cuDeviceGetCount returns\n");
}

/* ---- taken away and put back ---------------------------------------------------------------- */

static bool is_of_memory(void *data, const struct hook *hook)
{
	return !strcmp(hook->name, "cuMemAlloc_v2") || !strcmp(hook->name, "cuCtxGetCurrent") ||
	       !strcmp(hook->name, "cudaLaunchKernel");
}

static int move_those_of_memory(void)
{
	struct err err = { 0 };

	return module_move_hooks(module, is_of_memory, NULL, &err);
}

static void test_probes_go_but_for_those_with_links_of_their_own(void **state)
{
	open_selected(&everything);
	attach_module(false);
	log_text[0] = '\0';
	assert_int_equal(move_those_of_memory(), 0);
	assert_log("+*cuMemAlloc_v2 *cuCtxGetCurrent returns\n");
	assert_int_equal(state_of_hooks.mode[hook_named("cuMemAlloc_v2")->id], HOOK_MOVED);
	assert_int_equal(state_of_hooks.mode[hook_named("cuInit")->id], 0);
	module_take_away(module);
	assert_log("-cuInit cuLaunchKernel cuMemAlloc_v2 cuNotYetKnown cudaMalloc later\n"
	           "-cuCtxGetCurrent cuDeviceGetCount later\n");
	assert_true(hook_named("cuMemAlloc_v2")->hooked);
	assert_false(hook_named("cuInit")->hooked);
	assert_int_equal(module_put_back(module, NULL), 0);
	assert_log("+cuInit cuLaunchKernel cuNotYetKnown cudaMalloc returns\n"
	           "+cuDeviceGetCount returns\n");
	assert_true(hook_named("cuInit")->hooked);
	assert_int_equal(move_those_of_memory(), 0); /* they have their links */
	assert_log("");
}

static void test_what_is_wanted_of_probes_that_are_away_holds_when_they_are_back(void **state)
{
	open_selected(&everything);
	attach_module(false);
	assert_true(ends);
	module_take_away(module);
	log_text[0] = '\0';
	hook_named("cuDeviceGetCount")->given_up = true;
	assert_false(module_relink_little(module));
	assert_int_equal(module_hook_group(module, HOOK_RUNTIME_LAUNCH, true, NULL), 0);
	assert_int_equal(module_attach(module, NULL), 0);
	assert_log("");
	state_of_hooks.driver_works = 0; /* launches are looked at in the runtime again */
	assert_int_equal(module_put_back(module, NULL), 0);
	assert_log("+cuInit cuLaunchKernel cuMemAlloc_v2 cuNotYetKnown cudaMalloc returns\n"
	           "+cudaLaunchKernel returns\n+cuCtxGetCurrent returns\n");
	assert_false(ends); /* a trace that ends puts them back, so that no call is missed */
	assert_int_equal(module_put_back(module, NULL), 0);
	assert_log("");
}

static void test_what_gets_no_link_of_its_own_keeps_all_probes(void **state)
{
	open_selected(&everything);
	attach_module(false);
	log_text[0] = '\0';
	refused = "cuCtxGetCurrent";
	assert_int_equal(move_those_of_memory(), -EINVAL);
	refused = NULL;
	assert_log("+*cuMemAlloc_v2 returns\n-*cuMemAlloc_v2 later\n");
	assert_int_equal(state_of_hooks.mode[hook_named("cuMemAlloc_v2")->id], 0);
	assert_true(hook_named("cuCtxGetCurrent")->hooked);
	assert_int_equal(hook_named("cuCtxGetCurrent")->error, 0);
}

static void test_hooks_that_have_links_of_their_own_are_attached_again(void **state)
{
	open_selected(&everything);
	attach_module(false);
	move_those_of_memory();
	module_detach(module);
	log_text[0] = '\0';
	attach_module(false);
	assert_log("+cuInit cuLaunchKernel *cuMemAlloc_v2 cuNotYetKnown cudaMalloc returns\n"
	           "+*cuCtxGetCurrent cuDeviceGetCount returns\n");
}

/* ---- main ---------------------------------------------------------------------------------- */

static int build_library(void **state)
{
	return make_dir(state) || close(build(source, LIBRARY FLAGS));
}

#define TEST(name) cmocka_unit_test_teardown(name, close_module)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_function_has_a_hook),
		TEST(test_a_hook_knows_its_function),
#ifdef __x86_64__
		TEST(test_a_hook_has_its_place_within_the_function),
#endif
		TEST(test_what_only_jumps_to_another_function_is_not_hooked),
		TEST(test_four_times_the_launches_take_four_times_the_time),
		TEST(test_hooks_have_no_numbers_beyond_the_last),
		TEST(test_what_holds_no_functions_is_no_module),
		TEST(test_by_default_what_tells_much_is_attached_together),
		TEST(test_without_a_driver_launches_are_attached_in_the_runtime),
		TEST(test_what_tells_little_is_attached_apart),
		TEST(test_a_function_that_is_refused_keeps_no_other_from_being_hooked),
		TEST(test_where_nothing_can_be_hooked_that_is_an_error),
		TEST(test_detaching_leaves_nothing),
		TEST(test_what_is_attached_is_not_attached_twice),
		TEST(test_what_was_given_up_is_not_attached_again),
		TEST(test_probes_go_but_for_those_with_links_of_their_own),
		TEST(test_what_is_wanted_of_probes_that_are_away_holds_when_they_are_back),
		TEST(test_what_gets_no_link_of_its_own_keeps_all_probes),
		TEST(test_hooks_that_have_links_of_their_own_are_attached_again),
		TEST(test_returns_that_were_given_up_stay_so),
	};

	return cmocka_run_group_tests(tests, build_library, remove_dir);
}
