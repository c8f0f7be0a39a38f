// SPDX-License-Identifier: MIT
/* What the eBPF programs make of calls that are summed up: sizes, live memory, pinned memory. */
#include "bpf_native.h"

#include "bpf/fold_calls.h"
#include "cuda/row.h"
#include "probe/fold_plan.h"

static struct wire_thread native_thread;

/* A call that is about to be folded. */
static struct wire_call *begin(const char *symbol)
{
	static struct fold_plan plans[8];
	struct wire_call *call = &native_thread.frame[0].call;
	const struct api *api = api_find(symbol);
	__u32 hook = 0;

	assert_non_null(api);
	memset(call, 0, sizeof(*call));
	fold_plan(api, ABI_X86_64, &plans[0]);
	plans[0].per_thread = api_is_per_thread(symbol);
	bpf_map_update_elem(&fold_plans, &hook, &plans[0], BPF_ANY);
	call->head.type = WIRE_CALL;
	call->head.tgid = native_thread.tgid;
	call->head.tid = native_thread.tgid;
	call->begin_ns = ++native_now_ns;
	return call;
}

/* Its arguments are there. */
static void enter(void)
{
	__u32 hook = 0;

	fold_begin(&native_thread, bpf_map_lookup_elem(&fold_plans, &hook));
}

static void end(struct wire_call *call)
{
	__u32 hook = 0;
	const struct fold_plan *plan = bpf_map_lookup_elem(&fold_plans, &hook);

	call->head.time_ns = ++native_now_ns;
	fold(&native_thread, plan, 0);
}

static int fresh(void **state_of_test)
{
	__u32 zero = 0, ring = 1;
	static struct wire_thread blank;

	native_forget();
	native_now_ns = 1000;
	memset(native_records, 0, sizeof(native_records));
	memset(&state, 0, sizeof(state));
	memset(&native_thread, 0, sizeof(native_thread));
	native_thread.tgid = 100;
	native_thread.born_ns = 900;
	settings.fold = FOLD_TOOL_MEMORY | FOLD_TOOL_LAUNCHES | FOLD_TOOL_COPIES;
	settings.stacks = 1;
	for (size_t i = 0; i < WIRE_SHARES; i++)
		settings.share[i] = 1u << 20;
	bpf_map_update_elem(&blank_thread, &zero, &blank, BPF_ANY);
	bpf_map_update_elem(&rings, &zero, &ring, BPF_ANY);
	for (__u32 format = 0; format < 256; format++) {
		__u32 bits = api_format_bits(format);

		bpf_map_update_elem(&fold_formats, &format, &bits, BPF_ANY);
	}
	for (__u32 i = 0; i < 64; i++) {
		__u32 key = FOLD_BY_TYPES(i >> 3, i), way = api_types_direction(i >> 3, i & 7);

		bpf_map_update_elem(&fold_directions, &key, &way, BPF_ANY);
		key = FOLD_BY_KIND(i);
		way = api_kind_direction(key);
		bpf_map_update_elem(&fold_directions, &key, &way, BPF_ANY);
	}
	return 0;
}

static int forget(void **state_of_test)
{
	native_forget();
	return 0;
}

/* ---- rows of the table ---------------------------------------------------------------------- */

static uint64_t random_word(void)
{
	static uint64_t seed = 88172645463325252ull;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* The words of one call, as the stream would decode them and as the programs see them. */
static void fill_words(const struct api *api, struct api_raw *raw, struct wire_call *call)
{
	/* kinds and types of copies are small numbers, and not looked at beyond that */
	uint64_t small = api_op(api) != OP_COPY && random_word() & 1 ? 0xffff : 7;

	for (size_t i = 0; i < WIRE_WORDS; i++)
		call->word[i] = random_word() & (random_word() & 1 ? small : 5);
	memset(raw, 0, sizeof(*raw));
	memcpy(raw->out, call->word, sizeof(raw->out));
	memcpy(raw->reg, call->word + WIRE_AT_REG, WIRE_REGS * 8);
	memcpy(raw->stack, call->word + WIRE_AT_STACK, sizeof(raw->stack));
	memcpy(raw->blob, call->word + WIRE_AT_BLOB, sizeof(raw->blob));
	raw->out_valid = raw->blob_valid = true;
}

static void compare_sizes(const struct api_row *row, const struct folded *f,
                          const struct api_call *decoded)
{
	uint64_t bytes = row->op == OP_ALLOC ? fold_alloc_bytes(f)
	                 : copy_is_sized(f)  ? fold_bytes(f)
	                                     : 0;

	if (row->op != OP_FREE && bytes != decoded->bytes)
		fail_msg("%s: %llu bytes, decoded as %llu", row->name, (unsigned long long)bytes,
		         (unsigned long long)decoded->bytes);
	if (row->op != OP_COPY && FOLD_VALUE(f, FOLD_AT_ADDRESS) != decoded->address)
		fail_msg("%s: address", row->name);
}

static void compare_copies(const struct api_row *row, const struct folded *f,
                           const struct api_call *decoded)
{
	__u64 from, to, direction = copy_direction(f, &from, &to);

	if (direction != decoded->direction)
		fail_msg("%s: direction %llu, decoded as %u", row->name,
		         (unsigned long long)direction, decoded->direction);
	/* only the host's end is looked at, and an array is none */
	if (!copy_is_sized(f))
		return;
	if (direction == DIRECTION_H2D && from != decoded->source)
		fail_msg("%s: source", row->name);
	if (direction == DIRECTION_D2H && to != decoded->address)
		fail_msg("%s: destination", row->name);
}

static void compare_launches(const struct api_row *row, const struct folded *f,
                             const struct api_call *decoded)
{
	struct fold_launch_key key = { .handle = decoded->handle,
		                       .born_ns = f->born_ns,
		                       .tgid = f->tgid,
		                       .graph = row->op == OP_GRAPH_LAUNCH };

	memcpy(key.grid, decoded->grid, sizeof(key.grid));
	memcpy(key.block, decoded->block, sizeof(key.block));
	launched(f);
	if (row->op == OP_LAUNCH && launches_of(f) != (decoded->launches ? decoded->launches : 1))
		fail_msg("%s: another number of launches", row->name);
	if (!bpf_map_lookup_elem(&fold_launches, &key))
		fail_msg("%s: another handle, grid or block", row->name);
}

static void compare_row(const struct api_row *row)
{
	const struct api *api = api_find(row->name);
	struct wire_call call = { .head = { .tgid = 100 } };
	struct fold_plan plan;
	struct api_raw raw;
	struct api_call decoded;
	const struct folded f = { .call = &call, .plan = &plan, .born_ns = 900, .tgid = 100 };

	fold_plan(api, ABI_NATIVE, &plan);
	if (plan.op == FOLD_SEND)
		return;
	for (int i = 0; i < 200; i++) {
		fill_words(api, &raw, &call);
		api_decode(api, ABI_NATIVE, &raw, &decoded);
		if (row->op == OP_COPY || row->op == OP_SET || row->op == OP_ALLOC ||
		    row->op == OP_FREE)
			compare_sizes(row, &f, &decoded);
		if (row->op == OP_COPY)
			compare_copies(row, &f, &decoded);
		if (row->op == OP_LAUNCH || row->op == OP_GRAPH_LAUNCH)
			compare_launches(row, &f, &decoded);
		if (FOLD_VALUE(&f, FOLD_AT_STREAM) != decoded.stream)
			fail_msg("%s: stream", row->name);
	}
	native_forget();
	fresh(NULL);
}

static void test_every_row_is_folded_as_it_is_decoded(void **state_of_test)
{
	for (size_t i = 0; i < n_driver_rows; i++)
		compare_row(&driver_rows[i]);
	for (size_t i = 0; i < n_runtime_rows; i++)
		compare_row(&runtime_rows[i]);
}

static void test_logarithms(void **state_of_test)
{
	for (int i = 0; i < 64; i++) {
		assert_int_equal(i, fold_log(1ull << i));
		assert_int_equal(i, fold_log((1ull << i) | ((1ull << i) - 1)));
	}
	assert_int_equal(0, fold_log(0));
	assert_int_equal(0, size_class(1));
	assert_int_equal(12, size_class(4096));
	assert_int_equal(13, size_class(4097));
}

/* ---- memory -------------------------------------------------------------------------------- */

static void alloc(__u64 address, __u64 bytes)
{
	struct wire_call *call = begin("cuMemAlloc_v2");

	call->word[0] = address;
	call->word[WIRE_AT_REG + 1] = bytes;
	end(call);
}

static void free_at(__u64 address)
{
	struct wire_call *call = begin("cuMemFree_v2");

	call->word[WIRE_AT_REG] = address;
	enter();
	end(call);
}

static struct fold_totals *device_totals(void)
{
	struct fold_process_key key = { .born_ns = 900, .tgid = 100, .memory = MEMORY_DEVICE };

	return bpf_map_lookup_elem(&fold_totals, &key);
}

static struct fold_process *process_row(void)
{
	struct fold_process_key key = { .born_ns = 900, .tgid = 100 };

	return bpf_map_lookup_elem(&fold_processes, &key);
}

static void test_live_bytes_and_peak(void **state_of_test)
{
	alloc(0x1000, 100);
	alloc(0x2000, 50);
	free_at(0x1000);
	alloc(0x3000, 30);
	assert_int_equal(80, process_row()->live_bytes);
	assert_int_equal(150, process_row()->peak_bytes);
	assert_int_equal(2, native_count(&fold_live));
	free_at(0x9000);
	assert_int_equal(1, process_row()->unknown_frees);
	free_at(0);
	assert_int_equal(1, process_row()->unknown_frees);
}

static struct fold_allocation *live_at(__u64 address)
{
	struct fold_memory_key key = { .address = address, .born_ns = 900, .tgid = 100 };

	return bpf_map_lookup_elem(&fold_live, &key);
}

static void test_an_allocation_has_the_stack_of_its_call(void **state_of_test)
{
	native_thread.allocation_stack = 7;
	alloc(0x1000, 100);
	native_thread.allocation_stack = 0; /* was not walked */
	alloc(0x2000, 100);
	assert_int_equal(7, live_at(0x1000)->stack);
	assert_int_equal(0, live_at(0x2000)->stack);
}

/* ---- virtual memory management ------------------------------------------------------------- */

static void make_handle(__u64 handle, __u64 bytes)
{
	struct wire_call *call = begin("cuMemCreate");

	call->word[0] = handle;
	call->word[WIRE_AT_REG + 1] = bytes;
	end(call);
}

static void release(__u64 handle)
{
	struct wire_call *call = begin("cuMemRelease");

	call->word[WIRE_AT_REG] = handle;
	enter();
	end(call);
}

static void map(__u64 address, __u64 bytes, __u64 handle)
{
	struct wire_call *call = begin("cuMemMap");

	call->word[WIRE_AT_REG] = address;
	call->word[WIRE_AT_REG + 1] = bytes;
	call->word[WIRE_AT_REG + 3] = handle;
	end(call);
}

static void unmap(__u64 address, __u64 bytes)
{
	struct wire_call *call = begin("cuMemUnmap");

	call->word[WIRE_AT_REG] = address;
	call->word[WIRE_AT_REG + 1] = bytes;
	end(call);
}

static void retain(const char *function, __u64 handle)
{
	struct wire_call *call = begin(function);

	call->word[0] = handle;
	end(call);
}

static struct fold_totals *vmm_totals(void)
{
	struct fold_process_key key = { .born_ns = 900, .tgid = 100, .memory = MEMORY_VMM };

	return bpf_map_lookup_elem(&fold_totals, &key);
}

static void test_memory_lives_until_it_is_unmapped_and_released(void **state_of_test)
{
	make_handle(7, 100);
	map(0x1000, 100, 7);
	release(7);
	assert_int_equal(100, process_row()->handle_bytes);
	assert_int_equal(0, process_row()->unknown_frees);
	unmap(0x1000, 100);
	assert_int_equal(0, process_row()->handle_bytes);
	assert_int_equal(100, vmm_totals()->freed.bytes);
	make_handle(7, 50);
	map(0x1000, 50, 7);
	unmap(0x1000, 50);
	assert_int_equal(50, process_row()->handle_bytes);
	release(7);
	assert_int_equal(0, process_row()->handle_bytes);
	assert_int_equal(150, vmm_totals()->freed.bytes);
	assert_int_equal(0, native_count(&fold_live));
	assert_int_equal(0, state.lost_rows);
}

static void test_several_mappings_and_handles_of_memory(void **state_of_test)
{
	make_handle(7, 100);
	make_handle(8, 10);
	map(0x1000, 0x1000, 7);
	map(0x2000, 0x1000, 7);
	map(0x3000, 0x1000, 8);
	retain("cuMemRetainAllocationHandle", 8);
	release(7);
	release(8);
	unmap(0x1000, 0x3000);
	assert_int_equal(10, process_row()->handle_bytes);
	release(8);
	assert_int_equal(0, process_row()->handle_bytes);
	assert_int_equal(110, vmm_totals()->freed.bytes);
	assert_int_equal(0, native_count(&fold_live));
	release(8);
	assert_int_equal(1, process_row()->unknown_frees);
}

static void test_imported_memory_is_that_of_who_made_it(void **state_of_test)
{
	retain("cuMemImportFromShareableHandle", 7);
	map(0x1000, 100, 7);
	release(7);
	unmap(0x1000, 100);
	assert_int_equal(0, process_row()->handle_bytes);
	assert_int_equal(0, process_row()->unknown_frees);
	assert_int_equal(0, native_count(&fold_live));
}

/* ---- frees under way ----------------------------------------------------------------------- */

/* A free that another thread is in: its state is kept aside, to go on with. */
struct free_under_way {
	struct wire_call call;
	struct wire_freed freed;
};

static struct free_under_way begin_free(__u64 address)
{
	struct wire_call *call = begin("cuMemFree_v2");
	struct free_under_way under_way;

	call->word[WIRE_AT_REG] = address;
	enter();
	under_way = (struct free_under_way){ *call, native_thread.freed };
	memset(&native_thread.freed, 0, sizeof(native_thread.freed));
	return under_way;
}

static void end_free(const struct free_under_way *under_way, __s32 result)
{
	struct wire_call *call = begin("cuMemFree_v2");

	*call = under_way->call;
	call->result = result;
	native_thread.freed = under_way->freed;
	end(call);
}

static void test_a_free_that_returns_after_the_next_allocation(void **state_of_test)
{
	struct free_under_way under_way;

	alloc(0x1000, 100);
	under_way = begin_free(0x1000);
	alloc(0x1000, 30); /* by another thread */
	assert_int_equal(0, device_totals()->replaced.count);
	end_free(&under_way, 0);
	assert_int_equal(100, device_totals()->freed.bytes);
	assert_int_equal(30, process_row()->live_bytes);
	free_at(0x1000);
	assert_int_equal(130, device_totals()->freed.bytes);
	assert_int_equal(0, process_row()->live_bytes);
}

static void test_a_free_that_fails_frees_nothing(void **state_of_test)
{
	struct free_under_way under_way;

	alloc(0x1000, 100);
	under_way = begin_free(0x1000);
	assert_int_equal(0, native_count(&fold_live));
	end_free(&under_way, 700);
	assert_int_equal(1, native_count(&fold_live));
	assert_int_equal(0, device_totals()->freed.count);
	assert_int_equal(100, process_row()->live_bytes);
	free_at(0x1000);
	assert_int_equal(100, device_totals()->freed.bytes);
}

static void test_a_free_that_does_not_return_frees_nothing(void **state_of_test)
{
	struct wire_call *call;

	alloc(0x1000, 100);
	call = begin("cuMemFree_v2");
	call->word[WIRE_AT_REG] = 0x1000;
	enter();
	begin("cuMemAlloc_v2"); /* after a longjmp */
	enter();
	assert_int_equal(1, native_count(&fold_live));
	free_at(0x1000);
	assert_int_equal(1, device_totals()->freed.count);
	assert_int_equal(0, process_row()->unknown_frees);
}

/* However many addresses were given out meanwhile. */
static void test_an_old_allocation_is_found(void **state_of_test)
{
	alloc(0x1000, 100);
	for (int i = 0; i < 300; i++) {
		alloc(0x100000 + 0x1000 * i, 10);
		free_at(0x100000 + 0x1000 * i);
	}
	assert_int_equal(1, native_count(&fold_live));
	free_at(0x1000);
	assert_int_equal(0, native_count(&fold_live));
	assert_int_equal(0, process_row()->unknown_frees);
}

static void test_memory_that_goes_with_a_context(void **state_of_test)
{
	alloc(0x1000, 100);
	alloc(0x2000, 50);
	end(begin("cuCtxDestroy_v2"));
	assert_int_equal(0, process_row()->live_bytes);
	free_at(0x1000); /* it had not gone after all */
	assert_int_equal(100, device_totals()->freed.bytes);
	assert_int_equal(0, process_row()->live_bytes);
	alloc(0x2000, 10);
	assert_int_equal(50, device_totals()->context.bytes);
	assert_int_equal(0, device_totals()->replaced.count);
	assert_int_equal(10, process_row()->live_bytes);
}

static void test_no_room_is_counted(void **state_of_test)
{
	native_most = 1000;
	for (int i = 0; i < 1010; i++)
		alloc(0x1000 * (i + 1), 10);
	assert_int_equal(1010, device_totals()->allocated.count);
	assert_int_equal(10, device_totals()->untracked.count);
	assert_int_equal(10, state.lost_rows);
	assert_int_equal(10000, process_row()->live_bytes);
}

static void test_failures_allocate_nothing(void **state_of_test)
{
	struct fold_failure_key key = { .born_ns = 900, .tgid = 100, .result = 2 };
	struct wire_call *call = begin("cuMemAlloc_v2");
	struct fold_count *row;

	call->word[WIRE_AT_REG + 1] = 1 << 20;
	call->result = 2;
	end(call);
	row = bpf_map_lookup_elem(&fold_failures, &key);
	assert_non_null(row);
	assert_int_equal(1, row->count);
	assert_int_equal(1 << 20, row->bytes);
	assert_int_equal(0, native_count(&fold_live));
	assert_int_equal(1, process_row()->failed);
}

/* ---- pinned memory ------------------------------------------------------------------------- */

static void pin(__u64 address, __u64 bytes)
{
	struct wire_call *call = begin("cuMemHostRegister_v2");

	call->word[WIRE_AT_REG] = address;
	call->word[WIRE_AT_REG + 1] = bytes;
	end(call);
}

static void unpin(__u64 address)
{
	struct wire_call *call = begin("cuMemHostUnregister");

	call->word[WIRE_AT_REG] = address;
	end(call);
}

static bool is_pinned(__u64 address)
{
	const struct folded f = { .call = &native_thread.frame[0].call,
		                  .born_ns = 900,
		                  .tgid = 100 };

	return host_of(&f, address) == FOLD_HOST_PINNED;
}

/* Against a plain list of ranges, that come and go at random and never overlap. */
static void test_any_address_in_a_pinned_range(void **state_of_test)
{
	enum { RANGES = 40, SLOT = 1 << 16 };
	struct {
		__u64 begin, end;
	} range[RANGES] = { 0 };

	for (int round = 0; round < 4000; round++) {
		int i = (int)(random_word() % RANGES);
		__u64 slot = 0x7f0000000000ull + (__u64)i * SLOT, offset, address;

		if (range[i].end) {
			unpin(range[i].begin);
			range[i].begin = range[i].end = 0;
		} else {
			offset = random_word() % 3 ? 0 : random_word() % (SLOT / 2);
			range[i].begin = slot + offset;
			range[i].end = random_word() % 3
			                       ? slot + SLOT
			                       : range[i].begin + 1 + random_word() % (SLOT / 2);
			pin(range[i].begin, range[i].end - range[i].begin);
		}
		i = (int)(random_word() % RANGES);
		address = 0x7f0000000000ull + (__u64)i * SLOT + random_word() % SLOT;
		if (random_word() & 1 && range[i].end)
			address = random_word() & 1 ? range[i].begin : range[i].end - 1;
		assert_int_equal(address >= range[i].begin && address < range[i].end,
		                 is_pinned(address));
	}
}

static void test_pinned_memory_goes_with_its_context(void **state_of_test)
{
	pin(0x10000, 4096);
	assert_true(is_pinned(0x10fff));
	assert_false(is_pinned(0x11000));
	end(begin("cuCtxDestroy_v2"));
	assert_false(is_pinned(0x10000));
	pin(0x20000, 4096);
	assert_true(is_pinned(0x20000));
	assert_false(is_pinned(0x10000));
}

/* ---- captures ------------------------------------------------------------------------------ */

static void stream_call(const char *symbol, __u64 stream, __u64 event)
{
	struct wire_call *call = begin(symbol);
	bool event_first = !strcmp(symbol, "cuEventRecord");

	call->word[WIRE_AT_REG] = event_first ? event : stream;
	call->word[WIRE_AT_REG + 1] = event_first ? stream : event;
	end(call);
}

static bool captured_by(const char *symbol, __u32 tid, __u64 stream)
{
	struct wire_call *call = begin(symbol);
	struct fold_copies_key key = { .born_ns = 900,
		                       .tgid = 100,
		                       .direction = DIRECTION_H2D,
		                       .async = 1,
		                       .host = FOLD_HOST_UNKNOWN };
	struct fold_copies *row;
	__u64 before = 0;

	row = bpf_map_lookup_elem(&fold_copies, &key);
	if (row)
		before = row->captured;
	call->word[WIRE_AT_REG + 2] = 64;
	call->word[WIRE_AT_REG + 3] = stream;
	call->head.tid = tid;
	end(call);
	row = bpf_map_lookup_elem(&fold_copies, &key);
	return row->captured > before;
}

static bool captured(__u64 stream)
{
	return captured_by("cuMemcpyHtoDAsync_v2", native_thread.tgid, stream);
}

/* Stream 0 of a _ptsz call is the thread's own, which is known as stream 2, too. */
static void test_a_thread_s_own_stream_is_captured_for_it_alone(void **state_of_test)
{
	__u32 own = native_thread.tgid, other = own + 1;

	stream_call("cuStreamBeginCapture_v2_ptsz", 0, 0);
	assert_true(captured_by("cuMemcpyHtoDAsync_v2_ptsz", own, 0));
	assert_true(captured_by("cuMemcpyHtoDAsync_v2", own, 2));
	assert_false(captured_by("cuMemcpyHtoDAsync_v2", own, 0));
	assert_false(captured_by("cuMemcpyHtoDAsync_v2_ptsz", other, 0));
	stream_call("cuStreamEndCapture_ptsz", 0, 0);
	assert_false(captured_by("cuMemcpyHtoDAsync_v2_ptsz", own, 0));
}

static void alloc_async(__u64 address, __u64 bytes, __u64 stream)
{
	struct wire_call *call = begin("cuMemAllocAsync");

	call->word[0] = address;
	call->word[WIRE_AT_REG + 1] = bytes;
	call->word[WIRE_AT_REG + 2] = stream;
	end(call);
}

static void free_async(__u64 address, __u64 stream)
{
	struct wire_call *call = begin("cuMemFreeAsync");

	call->word[WIRE_AT_REG] = address;
	call->word[WIRE_AT_REG + 1] = stream;
	enter();
	end(call);
}

/* It exists when the graph runs, and not when it is recorded. */
static void test_memory_of_a_graph_is_no_allocation(void **state_of_test)
{
	stream_call("cuStreamBeginCapture_v2", 0x10, 0);
	alloc_async(0x1000, 100, 0x10);
	alloc_async(0x2000, 50, 0x20); /* on another stream: it runs */
	free_async(0x1000, 0x10);
	stream_call("cuStreamEndCapture", 0x10, 0);
	assert_int_equal(50, process_row()->live_bytes);
	assert_int_equal(50, process_row()->peak_bytes);
	free_async(0x1000, 0x20); /* what a launch left */
	free_async(0x2000, 0x20);
	assert_int_equal(0, process_row()->live_bytes);
	assert_int_equal(0, process_row()->unknown_frees);
}

static void test_a_capture_spreads_by_events(void **state_of_test)
{
	assert_false(captured(0x10));
	stream_call("cuStreamBeginCapture_v2", 0x10, 0);
	assert_true(captured(0x10));
	assert_false(captured(0x20));
	stream_call("cuEventRecord", 0x10, 0xe);
	stream_call("cuStreamWaitEvent", 0x20, 0xe);
	assert_true(captured(0x20));
	stream_call("cuStreamEndCapture", 0x10, 0);
	assert_false(captured(0x10));
	assert_false(captured(0x20));
	assert_int_equal(0, state.open_captures);
}

/* ---- shares -------------------------------------------------------------------------------- */

static void test_one_process_has_a_share_of_live_allocations(void **state_of_test)
{
	struct free_under_way under_way;

	settings.share[FOLD_SHARE_LIVE] = 3;
	for (__u64 i = 1; i <= 5; i++)
		alloc(i << 12, 100);
	assert_int_equal(3, native_count(&fold_live));
	assert_int_equal(2, device_totals()->untracked.count);
	assert_int_equal(2, state.lost_rows);
	native_thread.tgid = 200; /* another one has room */
	alloc(0x1000, 100);
	assert_int_equal(4, native_count(&fold_live));
	native_thread.tgid = 100;
	alloc(0x1000, 50); /* in the place of another */
	assert_int_equal(4, native_count(&fold_live));
	assert_int_equal(2, state.lost_rows);
	under_way = begin_free(0x1000);
	end_free(&under_way, 700);
	alloc(0x8000, 100); /* nothing was freed */
	assert_int_equal(3, state.lost_rows);
	free_at(0x1000);
	alloc(0x8000, 100);
	assert_int_equal(3, state.lost_rows);
	assert_int_equal(4, native_count(&fold_live));
}

/* Each process of a user's makes as many as it can. */
static void alloc_in_processes(__u32 user, unsigned processes)
{
	native_user = user;
	for (__u32 i = 0; i < processes; i++) {
		native_thread.tgid = user * 1000 + i;
		native_thread.user = user;
		for (__u64 at = 1; at <= 100; at++)
			alloc(at << 12, 100);
	}
}

/* However many processes have it: alone three quarters, and there is room for others. */
static void test_one_user_has_a_share_of_live_allocations(void **state_of_test)
{
	settings.share[FOLD_SHARE_ROOM] = 400;
	alloc_in_processes(7, 10);
	assert_int_equal(300, native_count(&fold_live));
	assert_int_equal(300, state.user_rows[7]);
	assert_int_equal(700, state.lost_rows);
	alloc_in_processes(8, 10);
	assert_int_equal(75, state.user_rows[8]);
	alloc_in_processes(9, 10);
	assert_in_range(state.user_rows[9], 15, 25);
	assert_int_equal(native_count(&fold_live), state.live_rows);
	alloc_in_processes(0, 1); /* root has what there is */
	assert_int_equal(100, state.user_rows[0]);
}

static void test_what_a_user_frees_is_room_for_him_again(void **state_of_test)
{
	struct free_under_way under_way;

	settings.share[FOLD_SHARE_ROOM] = 4;
	alloc_in_processes(7, 1);
	assert_int_equal(3, state.user_rows[7]);
	under_way = begin_free(0x1000);
	end_free(&under_way, 700); /* nothing was freed */
	assert_int_equal(3, state.user_rows[7]);
	native_thread.user = 8; /* it has become another's: the row stays whose it was */
	free_at(0x1000);
	assert_int_equal(2, state.user_rows[7]);
	assert_int_equal(0, state.user_rows[8]);
	assert_int_equal(2, state.live_rows);
	native_thread.user = 7;
	alloc(0x1000, 100);
	alloc(0x1000, 50); /* in the place of the one before */
	assert_int_equal(3, state.user_rows[7]);
	assert_int_equal(native_count(&fold_live), state.live_rows);
}

/* There is always a place for a process of the next user. */
static void test_one_user_has_a_share_of_processes(void **state_of_test)
{
	native_now_ns = 1000;
	state.born.all = FOLD_BORN_ROOM - 4; /* of others */
	native_user = 7;
	for (__u32 tgid = 1; tgid <= 3; tgid++)
		assert_int_equal(1000, process_born(tgid));
	assert_int_equal(0, process_born(4));
	assert_int_equal(1, state.lost[LOST_THREADS_FULL]);
	native_user = 8;
	assert_int_equal(1000, process_born(5));
	assert_int_equal(3, state.born.of[7]);
	process_over(2); /* whoever sees it */
	process_over(2);
	assert_int_equal(2, state.born.of[7]);
	assert_int_equal(1, state.born.of[8]);
	assert_int_equal(FOLD_BORN_ROOM - 1, state.born.all);
}

static void launch(__u64 handle, __u64 grid)
{
	struct wire_call *call = begin("cuLaunchKernel");

	for (size_t i = 0; i < WIRE_WORDS; i++)
		call->word[i] = 1;
	call->word[WIRE_AT_REG] = handle;
	call->word[WIRE_AT_REG + 1] = grid;
	end(call);
}

static void test_one_process_has_a_share_of_launches_and_fewer_with_shapes(void **state_of_test)
{
	settings.share[FOLD_SHARE_SHAPES] = 2;
	settings.share[FOLD_SHARE_LAUNCHES] = 4;
	for (__u64 grid = 1; grid <= 4; grid++)
		launch(0x100, grid); /* the last two are one row, without */
	assert_int_equal(3, native_count(&fold_launches));
	launch(0x200, 1);
	assert_int_equal(4, native_count(&fold_launches));
	assert_int_equal(0, state.lost_rows);
	launch(0x300, 1);
	assert_int_equal(1, state.lost_rows);
	launch(0x200, 9);
	assert_int_equal(1, state.lost_rows);
	native_thread.tgid = 200;
	launch(0x300, 1);
	assert_int_equal(5, native_count(&fold_launches));
	assert_int_equal(1, state.lost_rows);
}

static void fail_alloc(__s32 result)
{
	struct wire_call *call = begin("cuMemAlloc_v2");

	call->result = result;
	end(call);
}

static void test_one_process_has_a_share_of_failures(void **state_of_test)
{
	settings.share[FOLD_SHARE_FAILURES] = 2;
	for (__s32 result = 1; result <= 4; result++)
		fail_alloc(result);
	fail_alloc(1);
	assert_int_equal(2, native_count(&fold_failures));
	assert_int_equal(2, state.lost_rows);
	native_thread.tgid = 200;
	fail_alloc(3);
	assert_int_equal(3, native_count(&fold_failures));
}

static void test_one_process_has_a_share_of_pinned_memory(void **state_of_test)
{
	settings.share[FOLD_SHARE_PINNED] = 2;
	pin(0x10000, 4096);
	pin(0x20000, 4096);
	pin(0x30000, 4096);
	assert_int_equal(1, state.lost_rows);
	assert_false(is_pinned(0x30000));
	assert_true(is_pinned(0x10000));
	unpin(0x10000);
	pin(0x30000, 4096);
	assert_true(is_pinned(0x30000));
	end(begin("cuCtxDestroy_v2")); /* what it had pinned is not asked for any more */
	pin(0x40000, 4096);
	pin(0x50000, 4096);
	assert_true(is_pinned(0x50000));
	assert_int_equal(1, state.lost_rows);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, forget)
	const struct CMUnitTest tests[] = {
		TEST(test_every_row_is_folded_as_it_is_decoded),
		TEST(test_logarithms),
		TEST(test_live_bytes_and_peak),
		TEST(test_memory_lives_until_it_is_unmapped_and_released),
		TEST(test_several_mappings_and_handles_of_memory),
		TEST(test_imported_memory_is_that_of_who_made_it),
		TEST(test_an_allocation_has_the_stack_of_its_call),
		TEST(test_a_free_that_returns_after_the_next_allocation),
		TEST(test_a_free_that_fails_frees_nothing),
		TEST(test_a_free_that_does_not_return_frees_nothing),
		TEST(test_an_old_allocation_is_found),
		TEST(test_memory_that_goes_with_a_context),
		TEST(test_no_room_is_counted),
		TEST(test_failures_allocate_nothing),
		TEST(test_any_address_in_a_pinned_range),
		TEST(test_pinned_memory_goes_with_its_context),
		TEST(test_memory_of_a_graph_is_no_allocation),
		TEST(test_a_capture_spreads_by_events),
		TEST(test_a_thread_s_own_stream_is_captured_for_it_alone),
		TEST(test_one_process_has_a_share_of_live_allocations),
		TEST(test_one_user_has_a_share_of_live_allocations),
		TEST(test_what_a_user_frees_is_room_for_him_again),
		TEST(test_one_user_has_a_share_of_processes),
		TEST(test_one_process_has_a_share_of_launches_and_fewer_with_shapes),
		TEST(test_one_process_has_a_share_of_failures),
		TEST(test_one_process_has_a_share_of_pinned_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
