// SPDX-License-Identifier: MIT
/* Which return belongs to which entry, and which one is counted as without an entry. */
#include "bpf_native.h"

struct pt_regs {
	__u64 ip, sp, r9, result;
};

/* What a thread of the target has done so far. */
static struct task_struct {
	__u64 min_flt, nvcsw, nivcsw;
	struct {
		int mode;
	} seccomp;
} task_of_me;
static size_t looks; /* at it */

/* Return addresses that the kernel has replaced, the innermost call's first. */
struct return_instance {
	unsigned long stack, orig_ret_vaddr;
	struct return_instance *next;
};
static struct return_instance replaced[20], *innermost;
static const void *read_from;

#define TRAMPOLINE                              0x7ffff000u
#define PT_REGS_IP(ctx)                         ((ctx)->ip)
#define PT_REGS_SP(ctx)                         ((ctx)->sp)
#define PT_REGS_RC(ctx)                         ((ctx)->result)
#define PT_REGS_PARM1(ctx)                      0
#define PT_REGS_PARM2(ctx)                      0
#define PT_REGS_PARM3(ctx)                      0
#define PT_REGS_PARM4(ctx)                      0
#define PT_REGS_PARM5(ctx)                      0
#define BPF_CORE_READ(from, field, ...)         (read_from = (from), READ_##field)
#define READ_mm                                 TRAMPOLINE
#define READ_seccomp                            task_of_me.seccomp
#define READ_min_flt                            task_of_me.min_flt
#define READ_nvcsw                              task_of_me.nvcsw
#define READ_nivcsw                             task_of_me.nivcsw
#define READ_utask                              innermost
#define READ_stack                              (((const struct return_instance *)read_from)->stack)
#define READ_orig_ret_vaddr                     (((const struct return_instance *)read_from)->orig_ret_vaddr)
#define READ_next                               (((const struct return_instance *)read_from)->next)
#define bpf_get_func_ip(ctx)                    ((ctx)->ip)
#define bpf_get_current_task()                  ((__u64)0)
#define bpf_get_current_task_btf()              (looks++, &task_of_me)
#define bpf_core_enum_value_exists(type, value) 1
#define bpf_probe_read_user(into, bytes, from)                                                     \
	((from) ? (memcpy(into, from, bytes), 0L) : (long)-EFAULT)
#define bpf_probe_read_user_str(into, most, from) ((void)(into), (void)(from), (long)-EFAULT)

#undef __TARGET_ARCH_arm64 /* the frames of the other one, on every machine */
#include "bpf/calls.h"

enum { LAUNCH, ALLOC, CALLBACK, HOOKS };

#define LEVELS 64

static __u64 stack_words[LEVELS]; /* of the target: it grows downwards */
static __u32 me = 100;

static __u64 sp_of(int level)
{
	return (uintptr_t)&stack_words[LEVELS - 2 - level];
}

static struct wire_thread *thread(void)
{
	return bpf_map_lookup_elem(&threads, &me);
}

static __u64 no_entry(void)
{
	return state.lost[LOST_NO_ENTRY];
}

/* A call of the function at `ip`, at a level of the stack, as call_enter does it. */
static void enter_at(__u64 ip, __u32 hook, int level)
{
	struct pt_regs regs = { .ip = ip, .sp = sp_of(level) };
	__u64 cookie = cookie_with_hook(hook) | cookie_with_words(2) |
	               cookie_with_out0(COOKIE_NONE) | cookie_with_out1(COOKIE_NONE) |
	               cookie_with_blob(COOKIE_NONE) | cookie_with_string(COOKIE_NONE) |
	               cookie_with_kernel(COOKIE_NONE) | cookie_with_name_key(COOKIE_NONE);

	native_now_ns += 1000000;
	if (call_entered(&regs, cookie))
		call_declined(&regs, cookie);
	if (!(state.mode[hook] & HOOK_RETURN_GONE))
		stack_words[LEVELS - 2 - level] = TRAMPOLINE;
}

static void enter(__u32 hook, int level)
{
	enter_at(0x1000 + hook, hook, level);
}

static void leave(int level)
{
	struct pt_regs regs = { .sp = sp_of(level) + 8 };

	native_now_ns += 5000000; /* not in the trap of the one before */
	stack_words[LEVELS - 2 - level] = 0;
	call_returned(&regs);
}

/* The target has gone back to a level otherwise, and its stack is used for something else. */
static void jump_to(int level)
{
	for (int i = level; i < LEVELS - 1; i++)
		stack_words[LEVELS - 2 - i] = 0;
}

static int fresh(void **unused)
{
	static struct wire_thread blank;
	__u32 zero = 0, ring = 1, target = 0;

	native_forget();
	native_now_ns = 1000;
	memset(native_records, 0, sizeof(native_records));
	memset(&state, 0, sizeof(state));
	memset(stack_words, 0, sizeof(stack_words));
	memset(&task_of_me, 0, sizeof(task_of_me));
	looks = 0;
	settings = (struct wire_settings){ .returns = 1, .nested_returns = 1 };
	bpf_map_update_elem(&blank_thread, &zero, &blank, BPF_ANY);
	bpf_map_update_elem(&rings, &zero, &ring, BPF_ANY);
	bpf_map_update_elem(&targets, &me, &target, BPF_ANY);
	return 0;
}

static int forget(void **unused)
{
	native_forget();
	return 0;
}

/* ---- returns that are expected -------------------------------------------------------------- */

static void test_a_return_finds_its_entry(void **unused)
{
	enter(ALLOC, 0);
	enter(LAUNCH, 2);
	leave(2);
	leave(0);
	assert_int_equal(native_records[WIRE_CALL], 2);
	assert_int_equal(thread()->depth, 0);
	assert_int_equal(no_entry(), 0);
}

static void test_a_return_without_an_entry_is_counted(void **unused)
{
	enter(ALLOC, 0);
	leave(0);
	leave(0);
	assert_int_equal(no_entry(), 1);
}

static void test_returns_of_calls_too_deep_are_no_loss(void **unused)
{
	for (int i = 0; i < 20; i++)
		enter(CALLBACK, i);
	for (int i = 19; i >= 0; i--)
		leave(i);
	assert_int_equal(state.lost[LOST_TOO_DEEP], 20 - WIRE_DEPTH_MAX);
	assert_int_equal(native_records[WIRE_CALL], WIRE_DEPTH_MAX);
	assert_int_equal(no_entry(), 0);
	leave(0);
	assert_int_equal(no_entry(), 1);
}

/* Its probe is on its way out: some returns still come. */
static void test_returns_that_are_given_up_but_still_come_are_no_loss(void **unused)
{
	state.mode[LAUNCH] = HOOK_ENTRY_ONLY;
	enter(LAUNCH, 1);
	leave(1);
	assert_int_equal(no_entry(), 0);
}

static void test_both_returns_of_a_jump_between_functions_are_no_loss(void **unused)
{
	state.mode[LAUNCH] = state.mode[ALLOC] = HOOK_ENTRY_ONLY;
	enter(CALLBACK, 0);
	enter(LAUNCH, 3);
	enter(ALLOC, 3); /* in the place of the one before */
	stack_words[LEVELS - 2 - 3] = TRAMPOLINE;
	leave(3);
	stack_words[LEVELS - 2 - 3] = TRAMPOLINE;
	leave(3);
	leave(0);
	assert_int_equal(no_entry(), 0);
}

/* ---- returns that will not come hide no others ---------------------------------------------- */

static void test_a_hook_without_a_return_hides_no_loss(void **unused)
{
	state.mode[LAUNCH] = HOOK_ENTRY_ONLY | HOOK_RETURN_GONE;
	enter(CALLBACK, 0);
	for (int i = 0; i < 10; i++)
		enter(LAUNCH, 2);
	leave(2);
	assert_int_equal(no_entry(), 1);
	leave(0);
	assert_int_equal(no_entry(), 1);
}

static void test_a_hook_without_a_return_that_is_too_deep_hides_no_loss(void **unused)
{
	state.mode[LAUNCH] = HOOK_ENTRY_ONLY | HOOK_RETURN_GONE;
	for (int i = 0; i < WIRE_DEPTH_MAX; i++)
		enter(CALLBACK, i);
	enter(LAUNCH, WIRE_DEPTH_MAX);
	assert_int_equal(state.lost[LOST_TOO_DEEP], 1);
	leave(WIRE_DEPTH_MAX);
	assert_int_equal(no_entry(), 1);
}

/* It began before the probes of returns went. */
static void test_a_return_that_was_taken_away_hides_no_loss_after_its_call(void **unused)
{
	state.mode[LAUNCH] = HOOK_ENTRY_ONLY;
	enter(LAUNCH, 2);
	state.mode[LAUNCH] |= HOOK_RETURN_GONE;
	jump_to(2);
	enter(ALLOC, 2);
	leave(2);
	leave(2);
	assert_int_equal(no_entry(), 1);
}

static void test_a_longjmp_across_calls_too_deep_hides_no_loss(void **unused)
{
	for (int i = 1; i < 20; i++)
		enter(CALLBACK, i);
	jump_to(0);
	enter(ALLOC, 0);
	leave(0);
	leave(0);
	assert_int_equal(no_entry(), 1);
}

static void test_a_longjmp_and_more_calls_below_hide_no_loss(void **unused)
{
	for (int i = 1; i < 20; i++)
		enter(CALLBACK, i);
	jump_to(0);
	enter(ALLOC, 30);
	leave(30);
	leave(30);
	assert_int_equal(no_entry(), 1);
}

static void test_a_longjmp_within_a_call_that_was_not_looked_at_ends_it_not(void **unused)
{
	state.mode[LAUNCH] = HOOK_IGNORE;
	enter(LAUNCH, 1);
	enter(CALLBACK, 3);
	jump_to(2);
	enter(ALLOC, 2);
	leave(2);
	leave(1);
	assert_int_equal(no_entry(), 0);
}

static void test_a_return_from_above_calls_too_deep_ends_them(void **unused)
{
	for (int i = 1; i < 20; i++)
		enter(CALLBACK, i);
	leave(0); /* entered before the hooks, and left by nothing but this */
	assert_int_equal(no_entry(), 1);
	leave(15);
	assert_int_equal(no_entry(), 2);
}

/* ---- one file as two modules ---------------------------------------------------------------- */

/* Both programs run in the trap of one call; then it returns. How many calls that were. */
static int calls_of_a_trap(__u64 between_ns, __u64 faults, __u64 slept, __u64 preempted)
{
	enter_at(0x1000, ALLOC, 0);
	native_now_ns += between_ns;
	task_of_me.min_flt += faults;
	task_of_me.nvcsw += slept;
	task_of_me.nivcsw += preempted;
	enter_at(0x1000, LAUNCH, 0);
	while (thread()->depth)
		leave(0);
	return native_records[WIRE_CALL];
}

static void make_double(__u32 hook)
{
	state.mode[hook] |= HOOK_DOUBLE;
}

static int alike(void **unused)
{
	fresh(unused);
	make_double(ALLOC);
	make_double(LAUNCH);
	return 0;
}

/* It costs each call something, and most files are no others'. */
static void test_the_thread_is_looked_at_in_traps_of_files_that_are_alike_alone(void **unused)
{
	enter(ALLOC, 0);
	leave(0);
	assert_int_equal(looks, 0);
	make_double(ALLOC);
	enter(ALLOC, 0);
	leave(0);
	assert_int_equal(looks, 2);
	enter(LAUNCH, 0);
	leave(0);
	assert_int_equal(looks, 2);
}

/* The second was attached, and both marked, after the program of the first had run. */
static void test_files_that_become_alike_within_a_trap_have_one_call(void **unused)
{
	enter_at(0x1000, ALLOC, 0);
	make_double(ALLOC);
	make_double(LAUNCH);
	native_now_ns -= 1000000 - 10000; /* 10 us later, all in all */
	enter_at(0x1000, LAUNCH, 0);
	while (thread()->depth)
		leave(0);
	assert_int_equal(native_records[WIRE_CALL], 1);
}

static void test_a_trap_of_two_modules_is_one_call(void **unused)
{
	assert_int_equal(calls_of_a_trap(0, 0, 0, 0), 1);
}

static void test_a_trap_in_which_the_thread_lost_its_processor_is_one_call(void **unused)
{
	assert_int_equal(calls_of_a_trap(50000000, 0, 0, 1), 1);
}

static void test_a_thread_that_did_something_between_makes_two_calls(void **unused)
{
	assert_int_equal(calls_of_a_trap(0, 1, 0, 0), 2);
	native_records[WIRE_CALL] = 0;
	assert_int_equal(calls_of_a_trap(50000000, 0, 1, 1), 2);
	native_records[WIRE_CALL] = 0;
	assert_int_equal(calls_of_a_trap(50000000, 0, 0, 0), 2);
}

/* ---- calls of the runtime without returns --------------------------------------------------- */

#define CALLER 0x4000

/* Its return address is put there by the call, and then, perhaps, taken by another's probe. */
static void enter_runtime(int level)
{
	struct pt_regs regs = { .ip = 0x1000 + ALLOC, .sp = sp_of(level) };

	stack_words[LEVELS - 2 - level] = CALLER + (__u64)level;
	runtime_note(thread(), &regs, ALLOC);
}

static void replace(int level)
{
	size_t n = innermost ? (size_t)(innermost - replaced) + 1 : 0;

	replaced[n] = (struct return_instance){ sp_of(level), stack_words[LEVELS - 2 - level],
		                                innermost };
	innermost = &replaced[n];
	stack_words[LEVELS - 2 - level] = TRAMPOLINE;
}

/* How many calls of the runtime were refused, once the driver is entered at that level. */
static __u64 refused(int level)
{
	struct pt_regs regs = { .ip = 0x1000 + LAUNCH, .sp = sp_of(level) };

	runtime_settle(thread(), &regs);
	assert_int_equal(thread()->runtime_sp, 0);
	return state.alone[ALLOC];
}

static void runtime(void)
{
	innermost = NULL;
	enter(CALLBACK, 0); /* the thread is known */
	leave(0);
}

static void test_a_call_is_within_one_of_which_another_has_the_return(void **unused)
{
	runtime();
	enter_runtime(3);
	replace(3);
	for (int i = 4; i < 18; i++) /* and those of functions between */
		replace(i);
	assert_int_equal(refused(20), 0);
}

static void test_what_another_has_of_a_later_call_is_not_that_one_s(void **unused)
{
	runtime();
	enter_runtime(3);
	replace(3);
	innermost = NULL; /* it is over */
	stack_words[LEVELS - 2 - 3] = 0x5000;
	replace(3); /* of a function that is called from elsewhere */
	assert_int_equal(refused(5), 1);
}

static void test_what_is_left_of_a_longjmp_hides_no_call(void **unused)
{
	runtime();
	stack_words[LEVELS - 2 - 3] = 0x5000;
	enter_runtime(3);
	replace(3);
	stack_words[LEVELS - 2 - 3] = 0x5000;
	replace(3); /* is the innermost in the list, of a call that was left by a longjmp */
	assert_int_equal(refused(5), 0);
	innermost = NULL;
	enter_runtime(3);
	replace(3);
	for (int i = 4; i < 4 + RETURNS_MAX; i++)
		replace(i);
	assert_int_equal(refused(30), 0); /* beyond what is looked at */
}

static void test_a_trampoline_that_is_left_on_the_stack_is_of_no_call(void **unused)
{
	runtime();
	enter_runtime(3);
	replace(3);
	innermost = NULL;
	assert_int_equal(refused(5), 1);
}

static void test_without_probes_of_others_the_return_address_tells(void **unused)
{
	runtime();
	enter_runtime(3);
	assert_int_equal(refused(5), 0);
	enter_runtime(3);
	stack_words[LEVELS - 2 - 3] = 0x5000;
	assert_int_equal(refused(5), 1);
	enter_runtime(3);
	assert_int_equal(refused(2), 2); /* above its place */
}

/* ---- main ---------------------------------------------------------------------------------- */

#define TEST(name)  cmocka_unit_test_setup_teardown(name, fresh, forget)
#define ALIKE(name) cmocka_unit_test_setup_teardown(name, alike, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_return_finds_its_entry),
		TEST(test_a_return_without_an_entry_is_counted),
		TEST(test_returns_of_calls_too_deep_are_no_loss),
		TEST(test_returns_that_are_given_up_but_still_come_are_no_loss),
		TEST(test_both_returns_of_a_jump_between_functions_are_no_loss),
		TEST(test_a_hook_without_a_return_hides_no_loss),
		TEST(test_a_hook_without_a_return_that_is_too_deep_hides_no_loss),
		TEST(test_a_return_that_was_taken_away_hides_no_loss_after_its_call),
		TEST(test_a_longjmp_across_calls_too_deep_hides_no_loss),
		TEST(test_a_longjmp_and_more_calls_below_hide_no_loss),
		TEST(test_a_longjmp_within_a_call_that_was_not_looked_at_ends_it_not),
		TEST(test_a_return_from_above_calls_too_deep_ends_them),
		TEST(test_the_thread_is_looked_at_in_traps_of_files_that_are_alike_alone),
		TEST(test_files_that_become_alike_within_a_trap_have_one_call),
		TEST(test_a_call_is_within_one_of_which_another_has_the_return),
		TEST(test_what_another_has_of_a_later_call_is_not_that_one_s),
		TEST(test_what_is_left_of_a_longjmp_hides_no_call),
		TEST(test_a_trampoline_that_is_left_on_the_stack_is_of_no_call),
		TEST(test_without_probes_of_others_the_return_address_tells),
		ALIKE(test_a_trap_of_two_modules_is_one_call),
		ALIKE(test_a_trap_in_which_the_thread_lost_its_processor_is_one_call),
		ALIKE(test_a_thread_that_did_something_between_makes_two_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
