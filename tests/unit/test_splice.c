// SPDX-License-Identifier: MIT
/* Frames of Python put between native ones: by anchors, by names, and where neither tells. */
#include "unit.h"

#include "unwind/unwinder.h"

static struct wire_entry in[STACK_ENTRIES_MAX], out[STACK_ENTRIES_MAX];
static size_t n_in, n_out;
static uint64_t sp; /* where the innermost frame begins */
static bool loosely;

static void begin(void)
{
	memset(in, 0, sizeof(in));
	memset(out, 0, sizeof(out));
	n_in = 0;
	sp = 1;
}

static void add(enum wire_entry_kind kind, uint64_t a, uint64_t b)
{
	assert_true(n_in < STACK_ENTRIES_MAX);
	in[n_in++] = (struct wire_entry){ a, (uint64_t)kind << ENTRY_KIND_AT | b };
}

static void kernel(uint64_t address)
{
	add(ENTRY_KERNEL, address, 0);
}

static void native(uint64_t address, uint64_t cfa)
{
	add(ENTRY_NATIVE, address, cfa);
}

static void python(uint64_t code)
{
	add(ENTRY_PYTHON, code, 7ull << ENTRY_LINE_AT | 4);
}

static void anchor(uint64_t address)
{
	add(ENTRY_ANCHOR, address, 0);
}

/* Evaluators are the functions in the 0xe00s. */
static bool is_evaluator(void *data, const struct wire_entry *entry)
{
	(*(int *)data)++;
	return entry->a >> 8 == 0xe;
}

/* What came out, one character an entry: of native code the letter of its address, of Python the
 * same in upper case, of the kernel '#'. */
static const char *spliced(bool by_name)
{
	static char text[STACK_ENTRIES_MAX + 1];
	int asked = 0;

	n_out = stack_splice(in, n_in, sp, out, by_name ? is_evaluator : NULL, &asked, &loosely);
	assert_true(n_out <= STACK_ENTRIES_MAX);
	for (size_t i = 0; i < n_out; i++) {
		enum wire_entry_kind kind = entry_kind(&out[i]);

		text[i] = kind == ENTRY_KERNEL   ? '#'
		          : kind == ENTRY_NATIVE ? (out[i].a >> 8 == 0xe ? 'e' : (char)out[i].a)
		                                 : (char)(out[i].a - 'a' + 'A');
		assert_int_not_equal(kind, ENTRY_ANCHOR);
	}
	text[n_out] = '\0';
	return text;
}

#define EVALUATOR 0xe00

/* ---- by anchors ------------------------------------------------------------------------------ */

static void test_frames_stand_where_their_anchor_is(void **state)
{
	begin();
	native('l', 100 | ENTRY_EXACT); /* which is no part of the address */
	native(EVALUATOR, 200);         /* 100 to 199 */
	native('m', 300);
	python('f');
	python('g');
	anchor(150);
	assert_string_equal(spliced(false), "lFGm");
	assert_false(loosely);
}

static void test_an_anchor_at_the_edge_of_a_frame(void **state)
{
	for (uint64_t at = 99; at <= 200; at++) {
		if (at > 100 && at < 199)
			continue;
		begin();
		native('l', 100);
		native(EVALUATOR, 200);
		native('m', 300);
		python('f');
		anchor(at);
		assert_string_equal(spliced(false), at == 99 ? "Fem" : at == 200 ? "leF" : "lFm");
	}
}

static void test_evaluators_in_each_other(void **state)
{
	begin();
	native('l', 100);
	native(EVALUATOR, 200);
	native('c', 300);
	native(EVALUATOR, 400);
	native(EVALUATOR, 500);
	native('m', 600);
	python('f');
	anchor(120);
	python('g');
	python('h');
	anchor(310);
	python('i');
	anchor(499);
	assert_string_equal(spliced(false), "lFcGHIm");
	assert_false(loosely);
}

static void test_an_invocation_without_frames_keeps_its_native_one(void **state)
{
	begin();
	native('l', 100);
	native(EVALUATOR, 200);
	native('c', 300);
	native(EVALUATOR, 400);
	anchor(150); /* 3.12: it has just begun, or is about to return */
	python('g');
	anchor(350);
	assert_string_equal(spliced(false), "lecG");
	assert_false(loosely);
}

static void test_kernel_frames_stay_inside_of_all(void **state)
{
	begin();
	kernel(1);
	kernel(2);
	native('l', 100);
	native(EVALUATOR, 200);
	python('f');
	anchor(150);
	assert_string_equal(spliced(false), "##lF");
	begin();
	kernel(1);
	assert_string_equal(spliced(false), "#");
}

static void test_natives_alone_and_nothing_at_all(void **state)
{
	begin();
	native('l', 100);
	native('m', 0); /* the outermost: its CFA is not known */
	assert_string_equal(spliced(true), "lm");
	assert_false(loosely);
	begin();
	assert_string_equal(spliced(true), "");
	assert_false(loosely);
}

/* ---- without them ---------------------------------------------------------------------------- */

static void test_without_anchors_each_invocation_takes_the_next_evaluator(void **state)
{
	begin();
	native('l', 100);
	native(EVALUATOR, 200);
	native('c', 300);
	native(EVALUATOR, 400);
	native('m', 500);
	python('f');
	anchor(0);
	python('g');
	anchor(0);
	assert_string_equal(spliced(true), "lFcGm");
	assert_false(loosely);
}

static void test_an_anchor_outside_of_all_frames_is_as_none(void **state)
{
	begin();
	native('l', 100);
	native(EVALUATOR, 200);
	native('m', 300);
	python('f');
	anchor(5000); /* 3.12: the last one is in the thread's state */
	assert_string_equal(spliced(true), "lFm");
	assert_false(loosely);
}

static void test_frames_without_any_place_stand_outside_of_all(void **state)
{
	begin();
	native('l', 100);
	native(EVALUATOR, 200); /* the walk of native frames was cut here */
	python('f');
	anchor(150);
	python('g');
	python('h');
	anchor(250);
	python('i');
	anchor(350);
	assert_string_equal(spliced(false), "lFGHI");
	assert_true(loosely);
}

static void test_frames_that_no_anchor_ends(void **state)
{
	begin();
	native('l', 100);
	native(EVALUATOR, 200);
	native('m', 300);
	python('f');
	python('g'); /* the walk of Python's frames was cut */
	assert_string_equal(spliced(true), "lFGm");
	assert_false(loosely);
	assert_string_equal(spliced(false), "lemFG");
	assert_true(loosely);
}

static void test_python_without_any_native_frame(void **state)
{
	begin();
	kernel(1);
	python('f');
	anchor(150);
	python('g');
	assert_string_equal(spliced(true), "#FG");
	assert_true(loosely);
}

/* An anchor inside of one that was used: it has no frame outside of that, so a name has to do. */
static void test_anchors_in_the_wrong_order(void **state)
{
	begin();
	native(EVALUATOR, 100);
	native(EVALUATOR, 200);
	native(EVALUATOR, 300);
	python('f');
	anchor(150);
	python('g');
	anchor(50);
	assert_string_equal(spliced(true), "eFG");
	assert_false(loosely);
	assert_string_equal(spliced(false), "eFeG");
	assert_true(loosely);
}

/* ---- signals --------------------------------------------------------------------------------- */

/* 's' is the frame of a signal: what it has for a CFA is where the interrupted frame begins. */
static void test_a_handler_on_a_stack_above_the_other(void **state)
{
	begin();
	sp = 9900;
	native('h', 10000);
	native('s', 100);
	native(EVALUATOR, 200);
	native('m', 300);
	python('f');
	anchor(150);
	assert_string_equal(spliced(false), "hsFm");
	assert_false(loosely);
}

static void test_a_handler_on_a_stack_below_the_other(void **state)
{
	begin();
	sp = 100;
	native('h', 200);
	native(EVALUATOR, 300);
	native('s', 9000);
	native('c', 9100);
	native(EVALUATOR, 9200);
	native('m', 9300);
	python('f');
	anchor(250);
	python('g');
	anchor(9150);
	assert_string_equal(spliced(false), "hFscGm");
	assert_false(loosely);
}

/* Where a frame begins is not known behind one whose CFA is not: only its name can tell. */
static void test_a_frame_that_begins_nowhere_holds_nothing(void **state)
{
	begin();
	native('l', 0);
	native('c', 10000);
	native(EVALUATOR, 10100);
	python('f');
	anchor(150);
	assert_string_equal(spliced(true), "lcF");
	assert_string_equal(spliced(false), "lceF");
	assert_true(loosely);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void test_as_many_as_fit(void **state)
{
	begin();
	for (size_t i = 0; i < STACK_ENTRIES_MAX / 2; i++)
		native('n', 100 * (i + 1));
	while (n_in < STACK_ENTRIES_MAX)
		python('p');
	spliced(true);
	assert_int_equal(n_out, STACK_ENTRIES_MAX);
	assert_true(loosely);
}

static void test_every_place_an_invocation_of_its_own(void **state)
{
	begin();
	for (size_t i = 0; i < STACK_ENTRIES_MAX / 4; i++)
		native(EVALUATOR, 100 * (i + 1));
	for (size_t i = 0; n_in + 1 < STACK_ENTRIES_MAX; i++) {
		python('p');
		anchor(100 * i + 50);
	}
	spliced(false);
	assert_int_equal(n_out, (STACK_ENTRIES_MAX - STACK_ENTRIES_MAX / 4) / 2);
}

/* What no walk sends: the kinds in any order. Nothing is invented, and nothing is lost. */
static void test_entries_in_any_order(void **state)
{
	uint64_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		size_t frames = 0;

		begin();
		for (int i = round % 20; i > 0; i--) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			add((seed >> 33) & 3, 'a' + (seed >> 40) % 20, (seed >> 45) % 400);
		}
		spliced(round & 1);
		for (size_t i = 0; i < n_in; i++)
			frames += entry_kind(&in[i]) != ENTRY_ANCHOR;
		assert_true(n_out <= frames);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_stand_where_their_anchor_is),
		cmocka_unit_test(test_an_anchor_at_the_edge_of_a_frame),
		cmocka_unit_test(test_evaluators_in_each_other),
		cmocka_unit_test(test_an_invocation_without_frames_keeps_its_native_one),
		cmocka_unit_test(test_kernel_frames_stay_inside_of_all),
		cmocka_unit_test(test_natives_alone_and_nothing_at_all),
		cmocka_unit_test(test_without_anchors_each_invocation_takes_the_next_evaluator),
		cmocka_unit_test(test_an_anchor_outside_of_all_frames_is_as_none),
		cmocka_unit_test(test_frames_without_any_place_stand_outside_of_all),
		cmocka_unit_test(test_frames_that_no_anchor_ends),
		cmocka_unit_test(test_python_without_any_native_frame),
		cmocka_unit_test(test_anchors_in_the_wrong_order),
		cmocka_unit_test(test_a_handler_on_a_stack_above_the_other),
		cmocka_unit_test(test_a_handler_on_a_stack_below_the_other),
		cmocka_unit_test(test_a_frame_that_begins_nowhere_holds_nothing),
		cmocka_unit_test(test_as_many_as_fit),
		cmocka_unit_test(test_every_place_an_invocation_of_its_own),
		cmocka_unit_test(test_entries_in_any_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
