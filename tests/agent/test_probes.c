// SPDX-License-Identifier: MIT
/* What a thunk hands on and what it records: arguments and results of every kind, memory. */
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/wire_due.h"
#include "probes_scene.h"

/* ---- arguments and results ---- */

static long many(long a, int b, short c, char d, void *e, unsigned f, long g, int h, long i, long j,
                 long k)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * (long)e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j +
	       11 * k;
}

static void test_whole_numbers_in_registers_and_on_the_stack(void **state)
{
	__typeof__(&many) thunk = DIVERT(3, many, cookie_plain(WIRE_AT_BLOB, 5), 5);
	const struct agent_probed *call;

	assert_int_equal(thunk(1, 2, 3, 4, (void *)5, 6, 7, 8, 9, 10, 11),
	                 many(1, 2, 3, 4, (void *)5, 6, 7, 8, 9, 10, 11));
	call = last_call();
	assert_int_equal(call->head.lane, 3);
	assert_int_equal(call->head.flags, 0);
	assert_int_equal(call->tid, gettid());
	assert_int_equal(call->place % 8 & ~WIRE_MAY_RETURN, 0);
	assert_in_range((uint32_t)(uint64_t)__builtin_frame_address(0) - call->place, 8, 4096);
	assert_int_equal(call->result, 506);
	assert_true(call->begin && call->begin <= call->end);
	assert_int_equal(call->head.bytes, sizeof(*call) + WIRE_AT_BLOB * 8);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal((uint32_t)call->word[WIRE_AT_REG + i], i + 1);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal((uint32_t)call->word[WIRE_AT_STACK + i], i + 7);
}

static void test_a_generous_copy_of_an_unknown_functions_stack(void **state)
{
	__typeof__(&many) thunk =
		DIVERT(3, many, cookie_plain(WIRE_AT_BLOB, 6), AGENT_STACK_WORDS_UNKNOWN);

	for (long i = 0; i < 100; i++)
		assert_int_equal(thunk(i, 2, 3, 4, (void *)5, 6, 7, 8, 9, 10, i),
		                 many(i, 2, 3, 4, (void *)5, 6, 7, 8, 9, 10, i));
	assert_int_equal(calls_told(), 100);
}

struct words {
	long word[THUNK_STACK_MOST];
};

/* All of the struct lies on the stack. */
static long first_words(long n, double a, struct words words, double b)
{
	long sum = (long)(a + 10 * b);

	for (long i = 0; i < n; i++)
		sum += (i + 1) * words.word[i];
	return sum;
}

static void test_each_number_of_words_of_the_stack(void **state)
{
	struct words words;

	for (long i = 0; i < THUNK_STACK_MOST; i++)
		words.word[i] = 1000 + 77 * i * i;
	for (uint32_t n = 0; n <= THUNK_STACK_MOST; n++) {
		__typeof__(&first_words) thunk =
			DIVERT(6, first_words, cookie_plain(WIRE_AT_STACK, 0), n);

		assert_int_equal(thunk(n, 3, words, 4), first_words(n, 3, words, 4));
	}
}

static double floats(double a, float b, double c, double d, float e, double f, double g, double h,
                     double i, float j, int k)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k;
}

static float one_float(float a)
{
	return a * 2;
}

static long double long_double(long double a, int b)
{
	return a * b;
}

static void test_floats_in_registers_and_on_the_stack(void **state)
{
	__typeof__(&floats) thunk = DIVERT(1, floats, cookie_plain(WIRE_AT_STACK, 0), 2);
	__typeof__(&one_float) single = DIVERT(2, one_float, cookie_plain(WIRE_AT_STACK, 0), 0);
	__typeof__(&long_double) wide = DIVERT(3, long_double, cookie_plain(WIRE_AT_STACK, 0), 2);

	assert_true(thunk(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) ==
	            floats(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
	assert_true(single(1.5f) == 3);
	assert_true(wide(1.25L, 3) == 3.75L);
	assert_int_equal(calls_told(), 3);
}

struct two_longs {
	long a, b;
};
struct two_doubles {
	double a, b;
};
struct mixed {
	double a;
	long b;
};
struct large {
	long a[5];
};

static struct two_longs longs(struct two_longs by, long more)
{
	return (struct two_longs){ by.b + more, by.a };
}

static struct two_doubles doubles(struct two_doubles by, double more)
{
	return (struct two_doubles){ by.b + more, by.a };
}

static struct mixed mix(struct mixed by, int more)
{
	return (struct mixed){ by.a + more, by.b - more };
}

static struct large larger(int first, struct large by)
{
	by.a[0] += first;
	by.a[4] -= first;
	return by;
}

static void test_structs_by_value(void **state)
{
	__typeof__(&longs) a = DIVERT(1, longs, cookie_plain(WIRE_AT_STACK, 0), 0);
	__typeof__(&doubles) b = DIVERT(2, doubles, cookie_plain(WIRE_AT_STACK, 0), 0);
	__typeof__(&mix) c = DIVERT(3, mix, cookie_plain(WIRE_AT_STACK, 0), 0);
	__typeof__(&larger) d = DIVERT(4, larger, cookie_plain(WIRE_AT_BLOB, 5), 5);
	struct two_longs two = a((struct two_longs){ 1l << 40, 2 }, 3);
	struct two_doubles twice = b((struct two_doubles){ 1, 2 }, 3);
	struct mixed mixed = c((struct mixed){ 1, 1l << 50 }, 3);
	struct large large = d(7, (struct large){ { 1, 2, 3, 4, 5 } });

	assert_true(two.a == 5 && two.b == 1l << 40);
	assert_true(twice.a == 5 && twice.b == 1);
	assert_true(mixed.a == 4 && mixed.b == (1l << 50) - 3);
	assert_true(large.a[0] == 8 && large.a[1] == 2 && large.a[4] == -2);
	assert_int_equal(last_call()->word[WIRE_AT_STACK + 4], 5);
}

static int print(char *to, size_t size, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(to, size, format, list);
	va_end(list);
	return n;
}

static void test_varargs(void **state)
{
	__typeof__(&print) thunk =
		DIVERT(1, print, cookie_plain(WIRE_AT_STACK, 0), AGENT_STACK_WORDS_UNKNOWN);
	char text[128];

	thunk(text, sizeof(text), "%d %g %s %g %d %d %d %g", 1, 2.5, "three", 4.5, 5, 6, 7, 8.5);
	assert_string_equal(text, "1 2.5 three 4.5 5 6 7 8.5");
	probes_turn(1, PROBE_PASSES_ON);
	thunk(text, sizeof(text), "%g", 2.5);
	assert_string_equal(text, "2.5");
}

__attribute__((noinline)) static int off_alignment(int a)
{
	return (int)((uintptr_t)__builtin_frame_address(0) % 16);
}

static void test_the_stack_stays_aligned(void **state)
{
	for (uint32_t words = 0; words < 8; words++) {
		__typeof__(&off_alignment) thunk =
			DIVERT(1, off_alignment, cookie_plain(WIRE_AT_STACK, 0), words);

		assert_int_equal(thunk(1), 0);
	}
}

/* Of a page behind which there is none. */
static char *end_of_memory(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	munmap(pages + 4096, 4096);
	return pages + 4096;
}

static int sets_errno(int value, void *out)
{
	errno = value;
	return value;
}

static void test_errno_is_the_programs(void **state)
{
	uint64_t cookie = COOKIE_SET(cookie_plain(WIRE_AT_STACK, 0), out0, 1);
	__typeof__(&sets_errno) thunk = DIVERT(1, sets_errno, cookie | cookie_with_out0_wide(1), 0);
	char *end = end_of_memory();

	errno = 5;
	thunk(77, NULL);
	assert_int_equal(errno, 77);
	errno = 5;
	thunk(0, end - 4); /* an out value that cannot be read */
	assert_int_equal(errno, 0);
	assert_true(last_call()->head.flags & WIRE_UNREADABLE);
	munmap(end - 4096, 4096);
}

static void test_a_slot_that_passes_on_tells_nothing(void **state)
{
	__typeof__(&many) thunk = DIVERT(1, many, cookie_plain(WIRE_AT_BLOB, 5), 5);

	probes_turn(1, PROBE_PASSES_ON);
	assert_int_equal(thunk(1, 2, 3, 4, (void *)5, 6, 7, 8, 9, 10, 11), 506);
	assert_int_equal(calls_told(), 0);
	probes_turn(1, PROBE_ENTRY);
	assert_int_equal(thunk(1, 2, 3, 4, (void *)5, 6, 7, 8, 9, 10, 11), 506);
	assert_int_equal(last_call()->head.flags, WIRE_NO_RETURN);
	assert_int_equal(last_call()->word[WIRE_AT_STACK + 4], 11);
	probes_close();
	probes_turn(1, PROBE_CALL);
	assert_int_equal(thunk(1, 2, 3, 4, (void *)5, 6, 7, 8, 9, 10, 11), 506);
	assert_int_equal(calls_told(), 1);
}

/* ---- memory ---- */

static int makes(uint64_t *made, uint32_t *small, int fails)
{
	*made = 0x1234567890;
	*small = 0xabcd;
	return fails;
}

static int makes_nothing(void *made, int result)
{
	return result;
}

/* It may have written less than is read, and what it did not write may not be there. */
static void test_out_values_that_are_not_there(void **state)
{
	uint64_t cookie = COOKIE_SET(cookie_plain(WIRE_AT_STACK, 0), out0, 0);
	__typeof__(&makes_nothing) thunk =
		DIVERT(1, makes_nothing, cookie | cookie_with_out0_wide(1), 0);
	char *end = end_of_memory();

	memset(end - 8, 1, 8);
	thunk(end - 8, 0);
	assert_int_equal(last_call()->word[0], 0x0101010101010101);
	assert_int_equal(last_call()->head.flags, 0);
	for (int left = 1; left < 8; left++) {
		thunk(end - left, 0);
		assert_int_equal(last_call()->head.flags, WIRE_UNREADABLE);
	}
	thunk((void *)(1ull << 47), 0);
	assert_int_equal(last_call()->head.flags, WIRE_UNREADABLE);
	thunk((void *)~7ull, 0);
	assert_int_equal(last_call()->head.flags, WIRE_UNREADABLE);
	thunk((void *)8, 1); /* it failed */
	assert_int_equal(last_call()->head.flags, 0);
	munmap(end - 4096, 4096);
}

static void test_out_values_on_the_stack_and_elsewhere(void **state)
{
	uint64_t cookie = COOKIE_SET(COOKIE_SET(cookie_plain(WIRE_AT_STACK, 0), out0, 0), out1, 1);
	__typeof__(&makes) thunk = DIVERT(1, makes, cookie | cookie_with_out0_wide(1), 0);
	static uint64_t far;
	uint32_t near;

	lost_now(AGENT_PROBE_UNREADABLE);
	thunk(&far, &near, 0);
	assert_int_equal(last_call()->word[0], 0x1234567890);
	assert_int_equal(last_call()->word[1], 0xabcd);
	assert_int_equal(last_call()->head.flags, 0);
	thunk(&far, &near, 1); /* failed: nothing was made */
	assert_int_equal(last_call()->word[0], 0);
	assert_int_equal(lost_now(AGENT_PROBE_UNREADABLE), 0);
}

static int takes(const void *what)
{
	return 0;
}

static void test_a_struct_is_read_whole_or_not(void **state)
{
	uint64_t cookie = COOKIE_SET(cookie_plain(WIRE_WORDS, 0), blob, 0) |
	                  cookie_with_blob_words(WIRE_BLOB);
	__typeof__(&takes) thunk = DIVERT(1, takes, cookie, 0);
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t config[WIRE_BLOB], none[WIRE_BLOB] = { 0 };

	for (size_t i = 0; i < WIRE_BLOB; i++)
		config[i] = i * 3;
	munmap(pages + 4096, 4096);
	lost_now(AGENT_PROBE_UNREADABLE);
	thunk(config);
	assert_memory_equal(last_call()->word + WIRE_AT_BLOB, config, sizeof(config));
	memcpy(pages, config, sizeof(config));
	thunk(pages);
	assert_memory_equal(last_call()->word + WIRE_AT_BLOB, config, sizeof(config));
	assert_int_equal(last_call()->head.flags, 0);
	thunk(pages + 4096 - 8);
	assert_int_equal(last_call()->head.flags, WIRE_UNREADABLE);
	thunk((void *)~7ull); /* to the end of memory, and beyond */
	assert_int_equal(last_call()->head.flags, WIRE_UNREADABLE);
	assert_memory_equal(last_call()->word + WIRE_AT_BLOB, none, sizeof(none));
	thunk(NULL);
	assert_int_equal(lost_now(AGENT_PROBE_UNREADABLE), 3);
	munmap(pages, 4096);
}

static const struct agent_probe_name *last_name(void)
{
	size_t n;

	host_read(host);
	n = host_count(host, AGENT_PROBE_NAME);
	assert_true(n > 0);
	return host_get(host, AGENT_PROBE_NAME, n - 1);
}

static void test_texts(void **state)
{
	uint64_t cookie = COOKIE_SET(cookie_plain(WIRE_AT_STACK, 0), string, 0);
	__typeof__(&takes) thunk = DIVERT(5, takes, cookie, 0);
	char *pages = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(pages + 8192, 4096);
	lost_now(AGENT_PROBE_TEXT);
	thunk("a name");
	assert_string_equal(last_name()->text, "a name");
	assert_int_equal(last_name()->source, NAME_OF_ARGUMENT);
	assert_int_equal(last_name()->tid, gettid());
	assert_true(last_name()->begin && last_name()->begin <= last_call()->begin);
	memset(pages, 'x', 8191);
	thunk(pages + 4000); /* ends with the last byte of the page before none */
	assert_int_equal(strlen(last_name()->text), WIRE_STRING_MAX - 1);
	assert_int_equal(last_name()->head.flags, WIRE_TRUNCATED);
	thunk(pages + 8000);
	assert_int_equal(strlen(last_name()->text), 191);
	pages[8191] = 'x'; /* has no end, then */
	thunk(pages + 8000);
	assert_string_equal(last_name()->text, "");
	assert_int_equal(last_name()->from, (uint64_t)pages + 8000);
	assert_int_equal(lost_now(AGENT_PROBE_TEXT), 1);
	munmap(pages, 8192);
}

static int launches(void *handle)
{
	return 0;
}

static void test_a_kernels_name_is_told_once(void **state)
{
	uint64_t launch = COOKIE_SET(cookie_plain(WIRE_AT_STACK, 0), kernel, 0);
	__typeof__(&launches) thunk = DIVERT(5, launches, launch, 0);
	__typeof__(&takes) unload = DIVERT(
		6, takes, cookie_plain(WIRE_AT_STACK, 0) | cookie_with_forgets_kernels(1), 0);
	const struct {
		uint64_t other;
		const char *name;
	} kernel = { 0, "_Z4axpyv" };

	thunk((void *)&kernel);
	assert_int_equal(host_count(host, AGENT_PROBE_NAME), 0);
	host->shared->name_offset = 8;
	thunk((void *)&kernel);
	thunk((void *)&kernel);
	assert_string_equal(last_name()->text, "_Z4axpyv");
	assert_int_equal(last_name()->key, (uint64_t)&kernel);
	assert_int_equal(last_name()->source, NAME_OF_HANDLE);
	assert_int_equal(host_count(host, AGENT_PROBE_NAME), 1);
	thunk((void *)64); /* no handle */
	assert_int_equal(host_count(host, AGENT_PROBE_NAME), 1);
	unload(NULL);
	thunk((void *)&kernel);
	last_name();
	assert_int_equal(host_count(host, AGENT_PROBE_NAME), 2);
	probes_close();
	probes_open(&ring, &(struct probes_options){ .may_read = true });
	probes_turn(5, PROBE_CALL);
	thunk((void *)&kernel); /* another session knows no names */
	last_name();
	assert_int_equal(host_count(host, AGENT_PROBE_NAME), 3);
}

static void test_begin_and_end_apart(void **state)
{
	const struct agent_probed *begun;
	__typeof__(&takes) thunk;

	probes_close();
	probes_open(&ring, &(struct probes_options){ .begins = true });
	thunk = DIVERT(5, takes, cookie_plain(WIRE_AT_STACK, 0), 0);
	thunk(NULL);
	assert_int_equal(last_call()->head.flags, WIRE_BEGUN);
	begun = host_get(host, AGENT_PROBE_BEGUN, 0);
	assert_int_equal(begun->head.flags, 0);
	assert_int_equal(begun->begin, last_call()->begin);
	assert_in_range(begun->begin, host_now() - 1000000000, host_now()); /* the vDSO's clock */
}

static void test_without_the_system_call_what_was_written_is_read(void **state)
{
	uint64_t cookie = COOKIE_SET(cookie_plain(WIRE_AT_STACK, 0), out0, 0);
	static uint64_t far;
	uint32_t small;
	__typeof__(&makes) thunk;
	__typeof__(&takes) takes_it;

	probes_close();
	probes_open(&ring, &(struct probes_options){ .may_read = false });
	thunk = DIVERT(1, makes, cookie, 0);
	thunk(&far, &small, 0);
	assert_int_equal(last_call()->head.flags, 0);
	assert_int_equal(last_call()->word[0], 0x34567890);
	cookie = COOKIE_SET(cookie_plain(WIRE_WORDS, 0), blob, 0) | cookie_with_blob_words(1);
	takes_it = DIVERT(2, takes, cookie, 0);
	takes_it(&far); /* what goes in, the function may not have touched */
	assert_int_equal(last_call()->head.flags, WIRE_UNREADABLE);
}

/* ---- rooms that a longjmp left ---- */

static struct ring_claim one = { .number = 1 }, two = { .number = 2 };

static struct ring_claim *claim_by(uint64_t number)
{
	return number == 1 ? &one : number == 2 ? &two : NULL;
}

/* Two rooms in a row: whose is the first? */
static void test_a_room_that_was_got_is_known_to_be(void **state)
{
	const struct agent_head pad[8] = { { .bytes = 64, .type = AGENT_PAD } };
	char *room;

	probes_close();
	ring.claim = claim_by;
	ring_claim_reset(&one);
	ring_claim_reset(&two);
	assert_non_null(ring_room(&ring, 64, &one)); /* left here */
	room = ring_room(&ring, 64, &two);
	ring_fill(room, pad);
	ring_written(room, 64, &two);
	assert_true(ring_settle(&ring, &one));
	assert_int_equal(host_read(host), 0);
	assert_int_equal(host->shared->tail, 128); /* the reader got by */
	assert_false(ring_settle(&ring, &one));
}

static void test_a_room_that_another_got_is_left_alone(void **state)
{
	char *room;

	probes_close();
	ring.claim = claim_by;
	ring_claim_reset(&one);
	ring_claim_reset(&two);
	room = ring_room(&ring, 64, &two);
	one.end = 64; /* asked for the same, and left before it got it */
	one.bytes = 64;
	assert_false(ring_settle(&ring, &one));
	assert_int_equal(*(uint32_t *)room, 0);
	ring_written(room, 64, &two);
	one.end = 128; /* nobody got that one */
	assert_false(ring_settle(&ring, &one));
}

static void test_a_room_that_was_written_or_read_is_left_alone(void **state)
{
	const struct agent_head pad[8] = { { .bytes = 64, .type = AGENT_PAD } };
	char *room;

	probes_close();
	ring.claim = claim_by;
	ring_claim_reset(&one);
	ring_claim_reset(&two);
	room = ring_room(&ring, 64, &one);
	ring_fill(room, pad);
	ring_written(room, 64, NULL); /* and left before it noted that */
	assert_int_equal(one.end, 64);
	assert_false(ring_settle(&ring, &one));
	one.end = 64;
	host_read(host);
	assert_false(ring_settle(&ring, &one));
	assert_int_equal(*(uint32_t *)room, 0);
}

/* ---- stacks ---- */

static int (*within)(int);

static int calls_within(int depth)
{
	return depth ? within(depth - 1) : 0;
}

static uint32_t walked_as(const struct agent_probed *call)
{
	return call->head.flags & WIRE_WALKED ? call->depth : 0;
}

static void test_stacks_of_outer_calls_are_asked_for(void **state)
{
	uint64_t cookie =
		cookie_plain(WIRE_AT_STACK, 0) | cookie_with_stack_kind(STACK_OF_ALLOCATION);

	within = DIVERT(1, calls_within, cookie, 0);
	assert_int_equal(within(0), 0);
	assert_int_equal(last_call()->head.flags, 0); /* it has no entry: nobody wants them */
	probes_set(1, &(struct probe_plan){ calls_within, cookie, 0, .entry = 0x1000 });
	probes_turn(1, PROBE_CALL);
	host_forget(host);
	assert_int_equal(within(1), 0);
	assert_int_equal(calls_told(), 2); /* the inner one comes first */
	assert_int_equal(walked_as(host_get(host, AGENT_PROBED, 0)), 0);
	assert_int_equal(((const struct agent_probed *)host_get(host, AGENT_PROBED, 0))->depth, 1);
	assert_int_equal(walked_as(host_get(host, AGENT_PROBED, 1)), 1);
	within(0);
	assert_int_equal(walked_as(last_call()), 2);
}

static void test_stacks_have_a_rate_and_what_is_beyond_is_counted(void **state)
{
	uint64_t cookie =
		cookie_plain(WIRE_AT_STACK, 0) | cookie_with_stack_kind(STACK_OF_ALLOCATION);
	uint64_t walked = 0;

	within = DIVERT(1, calls_within, cookie, 0);
	probes_set(1, &(struct probe_plan){ calls_within, cookie, 0, .entry = 0x1000 });
	probes_turn(1, PROBE_CALL);
	lost_now(AGENT_PROBE_TOO_FAST);
	for (int i = 0; i < 15000; i++) {
		within(0);
		if (i % 1000 == 999 || i == 14999) {
			for (size_t n = calls_told(); n-- > 0;)
				walked += walked_as(host_get(host, AGENT_PROBED, n)) != 0;
			host_forget(host);
		}
	}
	assert_int_equal(walked + lost_now(AGENT_PROBE_TOO_FAST), 15000);
	assert_true(walked >= 10000);
}

/* `ns`: gets how long that took added, which is more where others have the CPU. */
static uint64_t launches_walked(uint64_t *ns, uint64_t *paid, uint64_t *refused)
{
	const struct wire_due due = { .call_ns = ring.shared->walk_ns };
	uint64_t begin = host_now(), walked = 0;

	while (host_now() < begin + 100000000) {
		for (int i = 0; i < 100; i++)
			within(0);
		for (size_t i = 0, n = calls_told(); i < n; i++) {
			const struct agent_probed *call = host_get(host, AGENT_PROBED, i);

			if (!walked_as(call))
				continue;
			walked++;
			*refused += !due_asked(&due, (__u64 *)paid, STACK_OF_LAUNCH, call->begin);
		}
		host_forget(host);
	}
	*ns += host_now() - begin;
	return walked;
}

/* The programs judge once more, by a clock of their own, a moment later; who asks for what is
 * refused has a call without its stack. */
static void test_what_is_asked_for_is_what_the_programs_walk(void **state)
{
	uint64_t cookie = cookie_plain(WIRE_AT_STACK, 0) | cookie_with_stack_kind(STACK_OF_LAUNCH);
	uint64_t ns = 0, paid = 0, walked = 0, refused = 0;

	assert_int_equal(probes_close(), 0);
	ring.shared->walk_ns = 1000000;
	assert_int_equal(probes_open(&ring, &(struct probes_options){ .clock = AGENT_CLOCK_NS,
	                                                              .may_read = true }),
	                 0);
	within = DIVERT(1, calls_within, cookie, 0);
	probes_set(1, &(struct probe_plan){ calls_within, cookie, 0, .entry = 0x1000 });
	probes_turn(1, PROBE_CALL);
	for (int i = 0; i < 4; i++) { /* with what is saved up meanwhile */
		walked += launches_walked(&ns, &paid, &refused);
		host_sleep(100);
	}
	ring.shared->walk_ns = 0;
	assert_int_equal(refused, 0);
	assert_in_range(walked, 200, 64 * 4 + ns / 1000000 + 4);
}

static void test_stacks_of_one_in_many(void **state)
{
	uint64_t cookie = cookie_plain(WIRE_AT_STACK, 0) | cookie_with_stack_kind(STACK_OF_LAUNCH);
	unsigned walked = 0;

	assert_int_equal(probes_close(), 0);
	ring.shared->walk_one_in = 10;
	assert_int_equal(probes_open(&ring, &(struct probes_options){ .clock = AGENT_CLOCK_TICKS,
	                                                              .may_read = true }),
	                 0);
	lost_now(AGENT_PROBE_TOO_FAST);
	within = DIVERT(1, calls_within, cookie, 0);
	probes_set(1, &(struct probe_plan){ calls_within, cookie, 0, .entry = 0x1000 });
	probes_turn(1, PROBE_CALL);
	for (int i = 0; i < 1000; i++)
		within(0);
	for (size_t n = calls_told(); n-- > 0;)
		walked += walked_as(host_get(host, AGENT_PROBED, n)) != 0;
	assert_in_range(walked, 40, 200);
	assert_int_equal(lost_now(AGENT_PROBE_TOO_FAST), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_probes, close_probes)
	const struct CMUnitTest tests[] = {
		TEST(test_whole_numbers_in_registers_and_on_the_stack),
		TEST(test_a_generous_copy_of_an_unknown_functions_stack),
		TEST(test_each_number_of_words_of_the_stack),
		TEST(test_floats_in_registers_and_on_the_stack),
		TEST(test_structs_by_value),
		TEST(test_varargs),
		TEST(test_the_stack_stays_aligned),
		TEST(test_errno_is_the_programs),
		TEST(test_a_slot_that_passes_on_tells_nothing),
		TEST(test_out_values_on_the_stack_and_elsewhere),
		TEST(test_out_values_that_are_not_there),
		TEST(test_a_struct_is_read_whole_or_not),
		TEST(test_texts),
		TEST(test_a_kernels_name_is_told_once),
		TEST(test_begin_and_end_apart),
		TEST(test_without_the_system_call_what_was_written_is_read),
		TEST(test_a_room_that_was_got_is_known_to_be),
		TEST(test_a_room_that_another_got_is_left_alone),
		TEST(test_a_room_that_was_written_or_read_is_left_alone),
		TEST(test_stacks_of_outer_calls_are_asked_for),
		TEST(test_stacks_have_a_rate_and_what_is_beyond_is_counted),
		TEST(test_what_is_asked_for_is_what_the_programs_walk),
		TEST(test_stacks_of_one_in_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
