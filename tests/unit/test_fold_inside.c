// SPDX-License-Identifier: MIT
/* Calls summed up in user space: the same rows as the eBPF programs make of the same calls. */
#include "bpf_native.h"

#include "base/array.h"
#include "bpf/fold_calls.h"
#include "capture/watch/fold_inside.h"
#include "probe/fold.h"
#include "probe/fold_plan.h"

#define PID  100
#define BORN 900

static struct wire_thread native_thread;
static struct fold_inside *sums;
static struct ledger *launches, *copies;
static struct ledger_process process = { BORN, PID };
static unsigned firsts;

static void count_first(void *data, const struct wire_call *call)
{
	assert_int_equal((__u16)*kernels_generation(PID), call->generation);
	firsts++;
}

static struct ledger *new_ledger(size_t key_bytes, size_t value_bytes, size_t tgid_at,
                                 size_t max_at, size_t room)
{
	const struct ledger_layout layout = { .key_bytes = key_bytes,
		                              .words = value_bytes / 8,
		                              .tgid_at = tgid_at,
		                              .max_at = max_at,
		                              .room = room };

	return ledger_new(NULL, &layout);
}

static void make_inside(size_t room)
{
	struct fold_inside_options options = { .tools = FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES,
		                               .first = count_first };

	launches = new_ledger(sizeof(struct fold_launch_key), sizeof(struct fold_launch),
	                      offsetof(struct fold_launch_key, tgid),
	                      offsetof(struct fold_launch, max_ns) / 8, room);
	copies = new_ledger(sizeof(struct fold_copies_key), sizeof(struct fold_copies),
	                    offsetof(struct fold_copies_key, tgid),
	                    offsetof(struct fold_copies, max_ns) / 8, room);
	options.kernels_mix = state.kernels_mix;
	options.launches = launches;
	options.copies = copies;
	sums = fold_inside_new(&options);
}

static int fresh(void **state_of_test)
{
	__u32 zero = 0, ring = 1;
	static struct wire_thread blank;

	native_forget();
	native_most = 10000;
	native_now_ns = 1000;
	memset(native_records, 0, sizeof(native_records));
	memset(&state, 0, sizeof(state));
	state.kernels_mix = 0x9e3779b1;
	memset(&native_thread, 0, sizeof(native_thread));
	native_thread.tgid = PID;
	native_thread.born_ns = BORN;
	settings.fold = FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES;
	fold_set_shares((struct wire_settings *)&settings);
	bpf_map_update_elem(&blank_thread, &zero, &blank, BPF_ANY);
	bpf_map_update_elem(&rings, &zero, &ring, BPF_ANY);
	for (__u32 i = 0; i < 64; i++) {
		__u32 key = FOLD_BY_TYPES(i >> 3, i), way = api_types_direction(i >> 3, i & 7);

		bpf_map_update_elem(&fold_directions, &key, &way, BPF_ANY);
		key = FOLD_BY_KIND(i);
		way = api_kind_direction(key);
		bpf_map_update_elem(&fold_directions, &key, &way, BPF_ANY);
	}
	firsts = 0;
	make_inside(FOLD_LAUNCHES_ROOM);
	return 0;
}

static int forget(void **state_of_test)
{
	fold_inside_free(sums);
	ledger_free(launches);
	ledger_free(copies);
	native_forget();
	return 0;
}

/* ---- both at once --------------------------------------------------------------------------- */

static uint64_t random_below(uint64_t limit)
{
	static uint64_t seed = 88172645463325252ull;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % limit;
}

/* The same call to both. */
static void call(const char *symbol, const struct wire_call *like)
{
	struct wire_call *in_kernel = &native_thread.frame[0].call;
	const struct api *api = api_find(symbol);
	struct fold_plan plan;

	assert_non_null(api);
	fold_plan(api, ABI_NATIVE, &plan);
	plan.per_thread = api_is_per_thread(symbol);
	assert_int_not_equal(FOLD_SEND, plan.op);
	*in_kernel = *like;
	fold_begin(&native_thread, &plan);
	fold(&native_thread, &plan, 0);
	fold_inside_call(sums, process, &plan, like);
}

static struct wire_call some_call(void)
{
	static const int results[] = { 0, 0, 0, 0, 0, 0, 2, 901, 904 };
	struct wire_call some = { .head = { .type = WIRE_CALL,
		                            .words = WIRE_WORDS,
		                            .tgid = PID,
		                            .tid = PID + (uint32_t)random_below(3) } };

	some.begin_ns = native_now_ns += 1 + random_below(100);
	some.head.time_ns = native_now_ns += 1 + random_below(100000);
	some.result = results[random_below(ARRAY_SIZE(results))];
	if (!random_below(50))
		some.head.flags |= WIRE_NO_RETURN;
	for (size_t i = 0; i < WIRE_WORDS; i++)
		some.word[i] = random_below(4) << (random_below(8) ? 0 : 12);
	return some;
}

static void compare(struct ledger *ledger, const void *map, size_t key_bytes, size_t value_bytes)
{
	assert_int_equal(native_count(map), ledger_count(ledger));
	for (struct ledger_row *row = ledger_first(ledger); row; row = row->hh.next) {
		const void *value = native_lookup(map, row->key, key_bytes);

		assert_non_null(value);
		assert_memory_equal(value, row->now, value_bytes);
	}
}

static void compare_all(void)
{
	compare(launches, &fold_launches, sizeof(struct fold_launch_key),
	        sizeof(struct fold_launch));
	compare(copies, &fold_copies, sizeof(struct fold_copies_key), sizeof(struct fold_copies));
	assert_int_equal(state.lost_rows, fold_inside_lost_rows(sums));
}

static bool copies_know(int host)
{
	for (struct ledger_row *row = ledger_first(copies); row; row = row->hh.next) {
		if (((const struct fold_copies_key *)row->key)->host == host)
			return true;
	}
	return false;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_calls_in_any_order_make_the_rows_that_the_programs_make(void **state_of_test)
{
	static const char *const symbols[] = {
		"cuLaunchKernel",       "cuLaunchKernelEx",    "cuLaunchKernel_ptsz",
		"cuGraphLaunch",        "cudaLaunchKernel",    "cuMemcpyHtoD_v2",
		"cuMemcpyDtoHAsync_v2", "cuMemcpyDtoD_v2",     "cuMemcpy",
		"cuMemcpy2D_v2",        "cuMemcpy3DAsync_v2",  "cudaMemcpy",
		"cudaMemcpyAsync",      "cudaMemcpy2D",        "cudaMemcpy3D",
		"cuMemsetD8_v2",        "cuMemsetD32Async",    "cudaMemset",
		"cuMemAllocHost_v2",    "cuMemHostAlloc",      "cuMemFreeHost",
		"cuMemHostRegister_v2", "cuMemHostUnregister", "cuMemAllocManaged",
		"cuMemFree_v2",         "cuStreamEndCapture",  "cuStreamBeginCapture_v2",
		"cuEventRecord",        "cuStreamWaitEvent",   "cuStreamBeginCapture_v2",
		"cuMemcpyHtoDAsync_v2", "cuStreamEndCapture",
	};

	for (int i = 0; i < 20000; i++) {
		struct wire_call some = some_call();
		const char *symbol = symbols[random_below(ARRAY_SIZE(symbols))];

		if (!random_below(5000)) { /* something was unloaded */
			++*kernels_generation(PID);
			fold_inside_generation(sums, PID, (uint16_t)*kernels_generation(PID));
		}
		call(random_below(2000) ? symbol : "cuCtxDestroy_v2", &some);
	}
	assert_true(ledger_count(launches) > 50);
	assert_true(ledger_count(copies) > 10);
	assert_true(copies_know(FOLD_HOST_PINNED));
	assert_true(copies_know(FOLD_HOST_MANAGED));
	assert_true(firsts > 20);
	compare_all();
}

static void test_calls_within_others_and_unfinished_ones_count_nothing(void **state_of_test)
{
	struct fold_plan plan;
	struct wire_call some = some_call();

	fold_plan(api_find("cuMemcpyHtoD_v2"), ABI_NATIVE, &plan);
	some.result = 0;
	some.head.flags = WIRE_NESTED;
	fold_inside_call(sums, process, &plan, &some);
	some.head.flags = WIRE_UNFINISHED;
	fold_inside_call(sums, process, &plan, &some);
	some.head.flags = 0;
	some.head.depth = 1;
	fold_inside_call(sums, process, &plan, &some);
	assert_int_equal(0, ledger_count(copies));
	some.head.depth = 0;
	fold_inside_call(sums, process, &plan, &some);
	assert_int_equal(1, ledger_count(copies));
}

/* A record ends behind the last word that its function needs, whatever it says. */
static void test_words_that_a_record_does_not_have_are_zero(void **state_of_test)
{
	const struct fold_launch_key *key;
	struct wire_call brief;
	struct fold_plan plan;

	fold_plan(api_find("cuLaunchKernel"), ABI_NATIVE, &plan);
	memset(&brief, 0xff, sizeof(brief));
	brief.head = (struct wire_head){ .type = WIRE_CALL, .words = 1, .tgid = PID, .tid = PID };
	fold_inside_call(sums, process, &plan, &brief);
	key = ledger_first(launches)->key;
	assert_int_equal(0, key->handle);
	assert_int_equal(0, key->grid[0]);
}

static void test_rows_have_room_for_so_many(void **state_of_test)
{
	struct wire_call some = some_call();
	struct fold_plan plan;

	forget(NULL);
	make_inside(10);
	some.head.flags = 0;
	some.result = 0;
	fold_plan(api_find("cuLaunchKernel"), ABI_NATIVE, &plan);
	for (uint64_t handle = 1; handle <= 12; handle++) {
		memcpy((char *)some.word + FOLD_WHERE_BYTE(plan.at[FOLD_AT_HANDLE]), &handle, 8);
		fold_inside_call(sums, process, &plan, &some);
	}
	assert_int_equal(10, ledger_count(launches));
	assert_int_equal(2, fold_inside_lost_rows(sums));
}

/* Else whoever loads and unloads without end would fill the rows of all. */
static void test_what_another_process_unloads_makes_no_rows(void **state_of_test)
{
	struct wire_call some = some_call();

	some.head.flags = 0;
	some.result = 0;
	for (__u32 other = PID + 1; other < PID + 4; other++) {
		call("cuLaunchKernel", &some);
		++*kernels_generation(other);
		fold_inside_generation(sums, other, (uint16_t)*kernels_generation(other));
	}
	assert_int_equal(1, ledger_count(launches));
	assert_int_equal(1, native_count(&fold_launches));
	++*kernels_generation(PID);
	fold_inside_generation(sums, PID, (uint16_t)*kernels_generation(PID));
	call("cuLaunchKernel", &some);
	assert_int_equal(2, ledger_count(launches));
	assert_int_equal(2, native_count(&fold_launches));
}

/* One process leaves room for others: see test_fold.c. */
static void test_a_process_has_its_share(void **state_of_test)
{
	struct wire_call some = some_call();
	struct fold_plan plan;
	uint64_t handle = 1;

	some.head.flags = 0;
	some.result = 0;
	fold_plan(api_find("cuLaunchKernel"), ABI_NATIVE, &plan);
	for (; handle <= FOLD_LAUNCHES_ROOM; handle++) {
		memcpy((char *)some.word + FOLD_WHERE_BYTE(plan.at[FOLD_AT_HANDLE]), &handle, 8);
		fold_inside_call(sums, process, &plan, &some);
	}
	assert_int_equal(FOLD_LAUNCHES_ROOM / 4 * 3, ledger_count(launches));
	assert_int_equal(FOLD_LAUNCHES_ROOM / 4, fold_inside_lost_rows(sums));
	fold_inside_give_back(sums, process, 5);
	for (int i = 0; i < 10; i++, handle++) {
		memcpy((char *)some.word + FOLD_WHERE_BYTE(plan.at[FOLD_AT_HANDLE]), &handle, 8);
		fold_inside_call(sums, process, &plan, &some);
	}
	assert_int_equal(FOLD_LAUNCHES_ROOM / 4 * 3 + 5, ledger_count(launches));
}

static void capture(const char *symbol, int32_t result)
{
	struct wire_call some = {
		.head = { .type = WIRE_CALL, .words = WIRE_WORDS, .tgid = PID, .tid = PID },
		.result = result
	};
	struct fold_plan plan;

	some.begin_ns = some.head.time_ns = ++native_now_ns;
	for (size_t i = 0; i < WIRE_WORDS; i++)
		some.word[i] = 7;
	fold_plan(api_find(symbol), ABI_NATIVE, &plan);
	fold_inside_call(sums, process, &plan, &some);
}

static const struct fold_launch *only_row(void)
{
	assert_int_equal(1, ledger_count(launches));
	return (const struct fold_launch *)ledger_first(launches)->now;
}

static bool is_the_process(void *data, struct ledger_process one)
{
	return one.born_ns == process.born_ns && one.tgid == process.tgid;
}

static void test_what_a_process_left_open_ends_with_it(void **state_of_test)
{
	capture("cuStreamBeginCapture_v2", 0);
	capture("cuLaunchKernel", 0);
	assert_int_equal(1, only_row()->captured);
	fold_inside_ended(sums, is_the_process, NULL);
	capture("cuLaunchKernel", 0);
	assert_int_equal(1, only_row()->captured);
	assert_int_equal(1, only_row()->count);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fresh, forget)
	const struct CMUnitTest tests[] = {
		T(test_calls_in_any_order_make_the_rows_that_the_programs_make),
		T(test_calls_within_others_and_unfinished_ones_count_nothing),
		T(test_words_that_a_record_does_not_have_are_zero),
		T(test_rows_have_room_for_so_many),
		T(test_what_another_process_unloads_makes_no_rows),
		T(test_a_process_has_its_share),
		T(test_what_a_process_left_open_ends_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
