// SPDX-License-Identifier: MIT
/* This process is its own target where a target's memory or symbols are looked at. */
#include "unit.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/clock.h"
#include "capture/kernels.h"
#include "probe/helper.h"

/* Beyond the largest pid that Linux gives out: processes of which /proc knows nothing. */
#define PROCESS 5000001
#define OTHER   5000002

static int make(void **state)
{
	*state = kernels_new(NULL);
	return 0;
}

static int destroy(void **state)
{
	kernels_free(*state);
	return 0;
}

static void named(struct kernels *kernels, uint32_t tgid, uint64_t handle, const char *text,
                  enum wire_name_source source)
{
	static struct wire_name name;

	name.head.tgid = tgid;
	name.key = handle;
	name.source = source;
	snprintf(name.text, sizeof(name.text), "%s", text);
	kernels_named(kernels, &name);
}

static void assert_kernel(struct kernels *kernels, uint32_t tgid, uint64_t handle, const char *name)
{
	const struct kernel *kernel = kernels_find(kernels, tgid, handle);

	assert_non_null(kernel);
	assert_string_equal(kernel->name, name);
}

/* ---- names --------------------------------------------------------------------------------- */

static void test_a_name_is_demangled(void **state)
{
	const struct kernel *kernel;

	named(*state, PROCESS, 0x10, "_Z9vectorAddPKfPfi", NAME_OF_CALL);
	kernel = kernels_find(*state, PROCESS, 0x10);
	assert_true(kernel->resolved);
	assert_string_equal(kernel->mangled, "_Z9vectorAddPKfPfi");
	assert_string_equal(kernel->name, "vectorAdd(float const*, float*, int)");
}

static void test_a_name_given_by_a_call_wins_over_one_read_through_the_handle(void **state)
{
	named(*state, PROCESS, 0x10, "given", NAME_OF_CALL);
	named(*state, PROCESS, 0x10, "found", NAME_OF_HANDLE);
	assert_kernel(*state, PROCESS, 0x10, "given");
	named(*state, PROCESS, 0x11, "found", NAME_OF_HANDLE);
	named(*state, PROCESS, 0x11, "given", NAME_OF_CALL);
	assert_kernel(*state, PROCESS, 0x11, "given");
}

static void test_the_last_name_of_a_kind_counts(void **state)
{
	named(*state, PROCESS, 0x10, "first", NAME_OF_CALL);
	named(*state, PROCESS, 0x10, "second", NAME_OF_CALL);
	assert_kernel(*state, PROCESS, 0x10, "second");
	named(*state, PROCESS, 0x11, "first", NAME_OF_HANDLE);
	named(*state, PROCESS, 0x11, "second", NAME_OF_HANDLE);
	assert_kernel(*state, PROCESS, 0x11, "second");
}

static void test_what_cannot_be_a_name_is_none(void **state)
{
	named(*state, PROCESS, 0x10, "", NAME_OF_HANDLE);
	named(*state, PROCESS, 0x10, "\x7f\x45LF\x02", NAME_OF_HANDLE);
	named(*state, PROCESS, 0, "kernel", NAME_OF_CALL);
	assert_kernel(*state, PROCESS, 0x10, "0x10");
	assert_kernel(*state, PROCESS, 0, "0x0");
}

static void test_one_kernel_however_many_handles_and_processes_lead_to_it(void **state)
{
	const struct kernel *kernel;

	named(*state, PROCESS, 0x10, "vectorAdd", NAME_OF_CALL);
	named(*state, PROCESS, 0x20, "vectorAdd", NAME_OF_HANDLE);
	named(*state, OTHER, 0x10, "vectorAdd", NAME_OF_CALL);
	kernel = kernels_find(*state, PROCESS, 0x10);
	assert_ptr_equal(kernels_find(*state, PROCESS, 0x20), kernel);
	assert_ptr_equal(kernels_find(*state, OTHER, 0x10), kernel);
}

static void test_handles_of_two_processes_may_be_equal(void **state)
{
	named(*state, PROCESS, 0x10, "mine", NAME_OF_CALL);
	named(*state, OTHER, 0x10, "yours", NAME_OF_CALL);
	assert_kernel(*state, PROCESS, 0x10, "mine");
	assert_kernel(*state, OTHER, 0x10, "yours");
}

static void test_kernels_are_numbered_without_gaps(void **state)
{
	named(*state, PROCESS, 0x10, "a", NAME_OF_CALL);
	named(*state, PROCESS, 0x20, "b", NAME_OF_CALL);
	named(*state, PROCESS, 0x30, "a", NAME_OF_CALL);
	assert_int_equal(kernels_find(*state, PROCESS, 0x10)->id, 0);
	assert_int_equal(kernels_find(*state, PROCESS, 0x20)->id, 1);
	assert_int_equal(kernels_find(*state, PROCESS, 0x40)->id, 2);
}

/* ---- another handle of a kernel ------------------------------------------------------------ */

static void test_an_alias_has_the_name(void **state)
{
	named(*state, PROCESS, 0x10, "vectorAdd", NAME_OF_CALL);
	kernels_alias(*state, PROCESS, 0x20, 0x10);
	assert_kernel(*state, PROCESS, 0x20, "vectorAdd");
	named(*state, PROCESS, 0x20, "found", NAME_OF_HANDLE);
	assert_kernel(*state, PROCESS, 0x20, "vectorAdd");
}

static void test_an_alias_of_nothing_is_nothing(void **state)
{
	kernels_alias(*state, PROCESS, 0x20, 0x10);
	assert_kernel(*state, PROCESS, 0x20, "0x20");
	named(*state, PROCESS, 0x10, "vectorAdd", NAME_OF_CALL);
	kernels_alias(*state, PROCESS, 0, 0x10);
	kernels_alias(*state, OTHER, 0x30, 0x10);
	assert_kernel(*state, PROCESS, 0, "0x0");
	assert_kernel(*state, OTHER, 0x30, "0x30");
}

/* ---- without a name ------------------------------------------------------------------------ */

static void test_a_kernel_without_a_name_is_its_handle(void **state)
{
	const struct kernel *kernel = kernels_find(*state, PROCESS, 0x55d0c0ffee);

	assert_false(kernel->resolved);
	assert_null(kernel->mangled);
	assert_string_equal(kernel->name, "0x55d0c0ffee");
	assert_ptr_equal(kernels_find(*state, PROCESS, 0x55d0c0ffee), kernel);
}

static void test_a_name_that_comes_later_counts_from_then_on(void **state)
{
	assert_kernel(*state, PROCESS, 0x10, "0x10");
	named(*state, PROCESS, 0x10, "vectorAdd", NAME_OF_HANDLE);
	assert_kernel(*state, PROCESS, 0x10, "vectorAdd");
}

/* What nvcc makes of a kernel for the host: launched by this function's address up to CUDA 12. */
void _Z9vectorAddPKfPfi(void);

__attribute__((noinline, noclone)) void _Z9vectorAddPKfPfi(void)
{
	__asm__ volatile("");
}

static void test_a_host_stub_is_named_by_its_symbol(void **state)
{
	uint64_t stub = (uintptr_t)_Z9vectorAddPKfPfi;
	const struct kernel *kernel = kernels_find(*state, getpid(), stub);

	assert_true(kernel->resolved);
	assert_string_equal(kernel->name, "vectorAdd(float const*, float*, int)");
}

/* Code that no symbol of a function covers. */
extern const char code_without_a_name[];
__asm__(".text\ncode_without_a_name: .skip 64\n");

static void test_an_address_without_a_symbol_is_its_place_in_its_file(void **state)
{
	uint64_t address = (uintptr_t)code_without_a_name;
	const struct kernel *kernel = kernels_find(*state, getpid(), address);
	const char *offset = strstr(kernel->name, "test_kernels+0x");

	assert_false(kernel->resolved);
	assert_non_null(offset);
	assert_int_equal(strtoull(strchr(offset, '+') + 1, NULL, 16) % 4096, address % 4096);
}

/* ---- a process that wants all of the time -------------------------------------------------- */

#define MAPPINGS 6000u
#define LAUNCHES 3000u

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* One page of a file, again and again: each is a mapping of its own. */
static pid_t start_with_mappings(uint64_t *first)
{
	size_t page = (size_t)getpagesize();
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *at = mmap(NULL, MAPPINGS * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();

	assert_true(file >= 0 && at != MAP_FAILED && child >= 0);
	*first = (uintptr_t)at;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (size_t i = 0; i < MAPPINGS; i++)
			mmap(at + i * page, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			     file, 0);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(child, NULL, WUNTRACED);
	munmap(at, MAPPINGS * page);
	close(file);
	return child;
}

/* Each pointer had all of its mappings read: four seconds for a thousand launches. */
static void test_many_addresses_take_a_share_of_the_time(void **state)
{
	size_t page = (size_t)getpagesize();
	uint64_t first;
	pid_t child = start_with_mappings(&first);
	double begin = seconds(), all, known;

	kernels_find(*state, (uint32_t)child, first);
	known = seconds() - begin; /* they were read once, and the file as well */
	for (size_t i = 1; i < LAUNCHES; i++)
		kernels_find(*state, (uint32_t)child, first + i * page);
	for (size_t i = 1; i < LAUNCHES; i++) /* nor are those that lead nowhere looked for */
		kernels_find(*state, (uint32_t)child, 64 * i);
	all = seconds() - begin;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	print_message("the first %.1f ms, %u in all %.1f ms\n", known * 1e3, 2 * LAUNCHES - 1,
	              all * 1e3);
	assert_true(all < 4);
}

/* What was looked for too early is found when it is launched again. */
static void test_a_mapping_that_is_new_is_found_a_moment_later(void **state)
{
	size_t page = (size_t)getpagesize();
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct kernel *kernel;
	uint64_t address;
	char *at;

	kernels_find(*state, (uint32_t)getpid(), 0x40);
	at = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	assert_true(at != MAP_FAILED);
	address = (uintptr_t)at + 0x10;
	kernels_find(*state, (uint32_t)getpid(), address);
	usleep(150000);
	kernel = kernels_find(*state, (uint32_t)getpid(), address);
	assert_string_equal(kernel->name, "test_kernels+0x10");
	munmap(at, page);
	close(file);
}

/* One that is known is not kept for another file that came in its place. */
static void test_what_is_mapped_is_read_again(void **state)
{
	size_t page = (size_t)getpagesize();
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *at = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	uint64_t address = (uintptr_t)at;

	kernels_find(*state, (uint32_t)getpid(), address);
	munmap(at, page);
	usleep(150000);
	assert_null(strchr(kernels_find(*state, (uint32_t)getpid(), address + 1)->name, '+'));
	close(file);
}

/* A module that one process unloads costs nothing of the handles of all. */
static void test_forgetting_costs_what_the_process_has(void **state)
{
	double few, many;

	named(*state, OTHER, 0x10, "theirs", NAME_OF_CALL);
	few = seconds();
	for (unsigned i = 0; i < 20000; i++)
		kernels_expire(*state, OTHER);
	few = seconds() - few;
	for (uint64_t i = 1; i <= 50000; i++)
		kernels_alias(*state, OTHER, 64 * i, 0x10);
	many = seconds();
	for (unsigned i = 0; i < 20000; i++) {
		named(*state, PROCESS, 0x10, "mine", NAME_OF_CALL);
		kernels_expire(*state, OTHER);
		kernels_expire(*state, PROCESS);
		kernels_forget(*state, PROCESS);
	}
	many = seconds() - many;
	print_message("20,000 times: %.2f ms, beside 50,000 handles %.2f ms\n", few * 1e3,
	              many * 1e3);
	assert_true(many < 2);
}

/* ---- forgetting ---------------------------------------------------------------------------- */

static void test_after_a_module_is_unloaded_what_handles_hold_counts(void **state)
{
	named(*state, PROCESS, 0x10, "old", NAME_OF_CALL);
	named(*state, OTHER, 0x10, "theirs", NAME_OF_CALL);
	kernels_expire(*state, PROCESS);
	assert_kernel(*state, PROCESS, 0x10, "old"); /* until something better comes */
	named(*state, PROCESS, 0x10, "new", NAME_OF_HANDLE);
	assert_kernel(*state, PROCESS, 0x10, "new");
	named(*state, OTHER, 0x10, "new", NAME_OF_HANDLE);
	assert_kernel(*state, OTHER, 0x10, "theirs");
}

static void test_a_process_that_is_gone_is_forgotten(void **state)
{
	named(*state, PROCESS, 0x10, "mine", NAME_OF_CALL);
	named(*state, OTHER, 0x10, "theirs", NAME_OF_CALL);
	kernels_forget(*state, PROCESS);
	assert_kernel(*state, PROCESS, 0x10, "0x10");
	assert_kernel(*state, OTHER, 0x10, "theirs");
}

/* Events that were pushed point at kernels. */
static void test_kernels_outlive_their_processes(void **state)
{
	const struct kernel *kernel;

	named(*state, PROCESS, 0x10, "vectorAdd", NAME_OF_CALL);
	kernel = kernels_find(*state, PROCESS, 0x10);
	kernels_forget(*state, PROCESS);
	assert_string_equal(kernel->name, "vectorAdd");
	named(*state, OTHER, 0x20, "vectorAdd", NAME_OF_CALL);
	assert_ptr_equal(kernels_find(*state, OTHER, 0x20), kernel);
}

/* ---- where a handle holds its name --------------------------------------------------------- */

struct kernel_handle {
	uint64_t before[5];
	const char *name;
};

#define NAME_AT offsetof(struct kernel_handle, name)

static uint64_t calibrate(const struct kernel_handle *handle, const char *name, uint64_t offset)
{
	return kernels_calibrate(getpid(), (uintptr_t)handle, name, offset);
}

static void test_the_place_of_a_name_is_confirmed(void **state)
{
	static const struct kernel_handle handle = { .name = "vectorAdd" };

	assert_int_equal(calibrate(&handle, "vectorAdd", NAME_AT), NAME_AT);
}

static void test_the_place_of_a_name_is_found(void **state)
{
	static const struct kernel_handle handle = { .name = "vectorAdd" };

	assert_int_equal(calibrate(&handle, "vectorAdd", 8), NAME_AT);
	assert_int_equal(calibrate(&handle, "vectorAdd", UINT64_MAX), NAME_AT);
}

static void test_the_whole_name_is_compared(void **state)
{
	static const struct kernel_handle handle = { .name = "vectorAdd" };

	assert_true(calibrate(&handle, "vectorAd", NAME_AT) == UINT64_MAX);
	assert_true(calibrate(&handle, "vectorAdd2", NAME_AT) == UINT64_MAX);
}

static void test_of_a_very_long_name_the_beginning_will_do(void **state)
{
	static char name[3000];
	const struct kernel_handle handle = { .name = name };

	memset(name, 'x', sizeof(name) - 1);
	assert_int_equal(calibrate(&handle, name, NAME_AT), NAME_AT);
}

static void test_a_handle_without_a_name_has_no_place(void **state)
{
	static const struct kernel_handle handle = { .before = { 1, 2, 3 } };

	assert_true(calibrate(&handle, "vectorAdd", NAME_AT) == UINT64_MAX);
}

/* A handle that ends at the end of a page is looked through as far as it goes. */
static void test_a_handle_may_end_where_memory_ends(void **state)
{
	size_t page = (size_t)getpagesize();
	char *memory =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kernel_handle *handle = (struct kernel_handle *)(memory + page - sizeof(*handle));

	assert_true(memory != MAP_FAILED && munmap(memory + page, page) == 0);
	handle->name = "vectorAdd";
	assert_int_equal(calibrate(handle, "vectorAdd", 8), NAME_AT);
	assert_true(calibrate(handle, "other", 8) == UINT64_MAX);
	munmap(memory, page);
}

static void test_a_process_that_cannot_be_read_changes_nothing(void **state)
{
	assert_int_equal(kernels_calibrate(PROCESS, 0x1000, "vectorAdd", 8), 8);
	assert_int_equal(kernels_calibrate(getpid(), 8, "vectorAdd", 16), 16);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

/* ---- what a process can make us keep ------------------------------------------------------- */

static size_t allocated(void)
{
	return mallinfo2().uordblks;
}

/* "f(x...x, x...x, ...)": 650 bytes that say 35,000. */
static const char *long_name(unsigned i)
{
	static char name[1024];
	int at = snprintf(name, sizeof(name), "_Z1f500x%08u", i);

	memset(name + at, 'x', 491);
	at += 491;
	for (int n = 0; n < 70; n++, at += 2)
		memcpy(name + at, "S_", 3);
	return name;
}

static void test_names_beyond_the_budget_are_one_kernel(void **state)
{
	struct budget *budget = budget_new(4 << 20, 16 << 20);
	struct kernels *kernels = kernels_new(budget);
	size_t before = allocated();
	struct err err = { 0 };

	assert_int_equal(helper_begin(&err), 0);
	for (unsigned i = 0; i < 20000; i++)
		named(kernels, PROCESS, 0x1000 + 64 * i, long_name(i), NAME_OF_CALL);
	assert_true(allocated() - before < 6 << 20);
	assert_int_equal(strncmp(kernels_find(kernels, PROCESS, 0x1000)->name, "f(x00000000", 11),
	                 0);
	assert_string_equal(kernels_find(kernels, PROCESS, 0x1000 + 64 * 19999)->name,
	                    KERNELS_OTHERS);
	assert_true(budget_refused(budget) > 10000);

	/* another process has its own */
	named(kernels, OTHER, 0x1000, "_Z5otherv", NAME_OF_CALL);
	assert_kernel(kernels, OTHER, 0x1000, "other()");
	kernels_free(kernels);
	budget_free(budget);
	helper_end();
}

/* 510 bytes that say 7,600: reading them takes long, and a program can tell of one name without
 * end. */
static void test_a_name_without_room_for_what_it_says_is_read_once(void **state)
{
	struct budget *budget = budget_new(8 << 10, 16 << 20);
	struct kernels *kernels = kernels_new(budget);
	char name[512] = "_Z1f";
	uint64_t refused, begin_ns;

	memset(name + 4, 'h', 505);
	named(kernels, PROCESS, 0x1000, name, NAME_OF_CALL);
	assert_string_equal(kernels_find(kernels, PROCESS, 0x1000)->name, name);
	refused = budget_refused(budget);
	begin_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 0; i < 100000; i++)
		named(kernels, PROCESS, 0x1000, name, NAME_OF_CALL);
	assert_true(clock_of_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns < 1000000000);
	assert_int_equal(budget_refused(budget), refused);
	kernels_free(kernels);
	budget_free(budget);
}

static void test_handles_are_given_back_at_the_end_of_a_process(void **state)
{
	struct budget *budget = budget_new(1 << 20, 4 << 20);
	struct kernels *kernels = kernels_new(budget);
	size_t used;

	named(kernels, PROCESS, 0x1000, "_Z5firstv", NAME_OF_CALL);
	used = budget_used(budget);
	for (unsigned i = 1; i < 100000; i++)
		kernels_alias(kernels, PROCESS, 0x1000 + 64 * i, 0x1000);
	assert_true(budget_refused(budget) > 0);
	assert_true(budget_used(budget) <= 1 << 20);
	kernels_forget(kernels, PROCESS);
	assert_true(budget_used(budget) <= used);
	kernels_free(kernels);
	budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_name_is_demangled),
		TEST(test_a_name_given_by_a_call_wins_over_one_read_through_the_handle),
		TEST(test_the_last_name_of_a_kind_counts),
		TEST(test_what_cannot_be_a_name_is_none),
		TEST(test_one_kernel_however_many_handles_and_processes_lead_to_it),
		TEST(test_handles_of_two_processes_may_be_equal),
		TEST(test_kernels_are_numbered_without_gaps),
		TEST(test_an_alias_has_the_name),
		TEST(test_an_alias_of_nothing_is_nothing),
		TEST(test_a_kernel_without_a_name_is_its_handle),
		TEST(test_a_name_that_comes_later_counts_from_then_on),
		TEST(test_a_host_stub_is_named_by_its_symbol),
		TEST(test_an_address_without_a_symbol_is_its_place_in_its_file),
		TEST(test_many_addresses_take_a_share_of_the_time),
		TEST(test_a_mapping_that_is_new_is_found_a_moment_later),
		TEST(test_what_is_mapped_is_read_again),
		TEST(test_forgetting_costs_what_the_process_has),
		TEST(test_after_a_module_is_unloaded_what_handles_hold_counts),
		TEST(test_a_process_that_is_gone_is_forgotten),
		TEST(test_kernels_outlive_their_processes),
		cmocka_unit_test(test_the_place_of_a_name_is_confirmed),
		cmocka_unit_test(test_the_place_of_a_name_is_found),
		cmocka_unit_test(test_the_whole_name_is_compared),
		cmocka_unit_test(test_of_a_very_long_name_the_beginning_will_do),
		cmocka_unit_test(test_a_handle_without_a_name_has_no_place),
		cmocka_unit_test(test_a_handle_may_end_where_memory_ends),
		cmocka_unit_test(test_a_process_that_cannot_be_read_changes_nothing),
		cmocka_unit_test(test_names_beyond_the_budget_are_one_kernel),
		cmocka_unit_test(test_a_name_without_room_for_what_it_says_is_read_once),
		cmocka_unit_test(test_handles_are_given_back_at_the_end_of_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
