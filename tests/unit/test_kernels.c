// SPDX-License-Identifier: MIT
/* This process is its own target where a target's memory or symbols are looked at. */
#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

#include "capture/kernels.h"

/* Beyond the largest pid that Linux gives out: processes of which /proc knows nothing. */
#define PROCESS 5000001
#define OTHER   5000002

static int make(void **state)
{
	*state = kernels_new();
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

static void a_name_is_demangled(void **state)
{
	const struct kernel *kernel;

	named(*state, PROCESS, 0x10, "_Z9vectorAddPKfPfi", NAME_OF_CALL);
	kernel = kernels_find(*state, PROCESS, 0x10);
	assert_true(kernel->resolved);
	assert_string_equal(kernel->mangled, "_Z9vectorAddPKfPfi");
	assert_string_equal(kernel->name, "vectorAdd(float const*, float*, int)");
}

static void a_name_given_by_a_call_wins_over_one_read_through_the_handle(void **state)
{
	named(*state, PROCESS, 0x10, "given", NAME_OF_CALL);
	named(*state, PROCESS, 0x10, "found", NAME_OF_HANDLE);
	assert_kernel(*state, PROCESS, 0x10, "given");
	named(*state, PROCESS, 0x11, "found", NAME_OF_HANDLE);
	named(*state, PROCESS, 0x11, "given", NAME_OF_CALL);
	assert_kernel(*state, PROCESS, 0x11, "given");
}

static void the_last_name_of_a_kind_counts(void **state)
{
	named(*state, PROCESS, 0x10, "first", NAME_OF_CALL);
	named(*state, PROCESS, 0x10, "second", NAME_OF_CALL);
	assert_kernel(*state, PROCESS, 0x10, "second");
	named(*state, PROCESS, 0x11, "first", NAME_OF_HANDLE);
	named(*state, PROCESS, 0x11, "second", NAME_OF_HANDLE);
	assert_kernel(*state, PROCESS, 0x11, "second");
}

static void what_cannot_be_a_name_is_none(void **state)
{
	named(*state, PROCESS, 0x10, "", NAME_OF_HANDLE);
	named(*state, PROCESS, 0x10, "\x7f\x45LF\x02", NAME_OF_HANDLE);
	named(*state, PROCESS, 0, "kernel", NAME_OF_CALL);
	assert_kernel(*state, PROCESS, 0x10, "0x10");
	assert_kernel(*state, PROCESS, 0, "0x0");
}

static void one_kernel_however_many_handles_and_processes_lead_to_it(void **state)
{
	const struct kernel *kernel;

	named(*state, PROCESS, 0x10, "vectorAdd", NAME_OF_CALL);
	named(*state, PROCESS, 0x20, "vectorAdd", NAME_OF_HANDLE);
	named(*state, OTHER, 0x10, "vectorAdd", NAME_OF_CALL);
	kernel = kernels_find(*state, PROCESS, 0x10);
	assert_ptr_equal(kernels_find(*state, PROCESS, 0x20), kernel);
	assert_ptr_equal(kernels_find(*state, OTHER, 0x10), kernel);
}

static void handles_of_two_processes_may_be_equal(void **state)
{
	named(*state, PROCESS, 0x10, "mine", NAME_OF_CALL);
	named(*state, OTHER, 0x10, "yours", NAME_OF_CALL);
	assert_kernel(*state, PROCESS, 0x10, "mine");
	assert_kernel(*state, OTHER, 0x10, "yours");
}

static void kernels_are_numbered_without_gaps(void **state)
{
	named(*state, PROCESS, 0x10, "a", NAME_OF_CALL);
	named(*state, PROCESS, 0x20, "b", NAME_OF_CALL);
	named(*state, PROCESS, 0x30, "a", NAME_OF_CALL);
	assert_int_equal(kernels_find(*state, PROCESS, 0x10)->id, 0);
	assert_int_equal(kernels_find(*state, PROCESS, 0x20)->id, 1);
	assert_int_equal(kernels_find(*state, PROCESS, 0x40)->id, 2);
}

/* ---- another handle of a kernel ------------------------------------------------------------ */

static void an_alias_has_the_name(void **state)
{
	named(*state, PROCESS, 0x10, "vectorAdd", NAME_OF_CALL);
	kernels_alias(*state, PROCESS, 0x20, 0x10);
	assert_kernel(*state, PROCESS, 0x20, "vectorAdd");
	named(*state, PROCESS, 0x20, "found", NAME_OF_HANDLE);
	assert_kernel(*state, PROCESS, 0x20, "vectorAdd");
}

static void an_alias_of_nothing_is_nothing(void **state)
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

static void a_kernel_without_a_name_is_its_handle(void **state)
{
	const struct kernel *kernel = kernels_find(*state, PROCESS, 0x55d0c0ffee);

	assert_false(kernel->resolved);
	assert_null(kernel->mangled);
	assert_string_equal(kernel->name, "0x55d0c0ffee");
	assert_ptr_equal(kernels_find(*state, PROCESS, 0x55d0c0ffee), kernel);
}

static void a_name_that_comes_later_counts_from_then_on(void **state)
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

static void a_host_stub_is_named_by_its_symbol(void **state)
{
	uint64_t stub = (uintptr_t)_Z9vectorAddPKfPfi;
	const struct kernel *kernel = kernels_find(*state, getpid(), stub);

	assert_true(kernel->resolved);
	assert_string_equal(kernel->name, "vectorAdd(float const*, float*, int)");
}

/* Code that no symbol of a function covers. */
extern const char code_without_a_name[];
__asm__(".text\ncode_without_a_name: .skip 64\n");

static void an_address_without_a_symbol_is_its_place_in_its_file(void **state)
{
	uint64_t address = (uintptr_t)code_without_a_name;
	const struct kernel *kernel = kernels_find(*state, getpid(), address);
	const char *offset = strstr(kernel->name, "test_kernels+0x");

	assert_false(kernel->resolved);
	assert_non_null(offset);
	assert_int_equal(strtoull(strchr(offset, '+') + 1, NULL, 16) % 4096, address % 4096);
}

/* ---- forgetting ---------------------------------------------------------------------------- */

static void after_a_module_is_unloaded_what_handles_hold_counts(void **state)
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

static void a_process_that_is_gone_is_forgotten(void **state)
{
	named(*state, PROCESS, 0x10, "mine", NAME_OF_CALL);
	named(*state, OTHER, 0x10, "theirs", NAME_OF_CALL);
	kernels_forget(*state, PROCESS);
	assert_kernel(*state, PROCESS, 0x10, "0x10");
	assert_kernel(*state, OTHER, 0x10, "theirs");
}

/* Events that were pushed point at kernels. */
static void kernels_outlive_their_processes(void **state)
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

static void the_place_of_a_name_is_confirmed(void **state)
{
	static const struct kernel_handle handle = { .name = "vectorAdd" };

	assert_int_equal(calibrate(&handle, "vectorAdd", NAME_AT), NAME_AT);
}

static void the_place_of_a_name_is_found(void **state)
{
	static const struct kernel_handle handle = { .name = "vectorAdd" };

	assert_int_equal(calibrate(&handle, "vectorAdd", 8), NAME_AT);
	assert_int_equal(calibrate(&handle, "vectorAdd", UINT64_MAX), NAME_AT);
}

static void the_whole_name_is_compared(void **state)
{
	static const struct kernel_handle handle = { .name = "vectorAdd" };

	assert_true(calibrate(&handle, "vectorAd", NAME_AT) == UINT64_MAX);
	assert_true(calibrate(&handle, "vectorAdd2", NAME_AT) == UINT64_MAX);
}

static void of_a_very_long_name_the_beginning_will_do(void **state)
{
	static char name[3000];
	const struct kernel_handle handle = { .name = name };

	memset(name, 'x', sizeof(name) - 1);
	assert_int_equal(calibrate(&handle, name, NAME_AT), NAME_AT);
}

static void a_handle_without_a_name_has_no_place(void **state)
{
	static const struct kernel_handle handle = { .before = { 1, 2, 3 } };

	assert_true(calibrate(&handle, "vectorAdd", NAME_AT) == UINT64_MAX);
}

/* A handle that ends at the end of a page is looked through as far as it goes. */
static void a_handle_may_end_where_memory_ends(void **state)
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

static void a_process_that_cannot_be_read_changes_nothing(void **state)
{
	assert_int_equal(kernels_calibrate(PROCESS, 0x1000, "vectorAdd", 8), 8);
	assert_int_equal(kernels_calibrate(getpid(), 8, "vectorAdd", 16), 16);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_is_demangled),
		TEST(a_name_given_by_a_call_wins_over_one_read_through_the_handle),
		TEST(the_last_name_of_a_kind_counts),
		TEST(what_cannot_be_a_name_is_none),
		TEST(one_kernel_however_many_handles_and_processes_lead_to_it),
		TEST(handles_of_two_processes_may_be_equal),
		TEST(kernels_are_numbered_without_gaps),
		TEST(an_alias_has_the_name),
		TEST(an_alias_of_nothing_is_nothing),
		TEST(a_kernel_without_a_name_is_its_handle),
		TEST(a_name_that_comes_later_counts_from_then_on),
		TEST(a_host_stub_is_named_by_its_symbol),
		TEST(an_address_without_a_symbol_is_its_place_in_its_file),
		TEST(after_a_module_is_unloaded_what_handles_hold_counts),
		TEST(a_process_that_is_gone_is_forgotten),
		TEST(kernels_outlive_their_processes),
		cmocka_unit_test(the_place_of_a_name_is_confirmed),
		cmocka_unit_test(the_place_of_a_name_is_found),
		cmocka_unit_test(the_whole_name_is_compared),
		cmocka_unit_test(of_a_very_long_name_the_beginning_will_do),
		cmocka_unit_test(a_handle_without_a_name_has_no_place),
		cmocka_unit_test(a_handle_may_end_where_memory_ends),
		cmocka_unit_test(a_process_that_cannot_be_read_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
