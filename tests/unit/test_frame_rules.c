// SPDX-License-Identifier: MIT
/* Rules of states: those that were met before are found without being made, and are the same. */
#include "unit.h"

#include <elf.h>

#include "base/array.h"
#include "unwind/frame_find.h"

static uint64_t seed = 88172645463325252ull;

static uint64_t below(uint64_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % limit;
}

/* At the bounds of what a key has bits for, and around zero. */
static int64_t some_offset(void)
{
	static const int64_t bounds[] = { 0,       0x8000,     -0x8000,   0x1000,   -0x1000,
		                          1 << 24, -(1 << 24), INT32_MAX, INT64_MIN };

	return (int64_t)((uint64_t)bounds[below(ARRAY_SIZE(bounds))] + below(5) * 8 - 16);
}

static struct cfi_place some_place(void)
{
	return (struct cfi_place){ (enum cfi_saved)below(CFI_OTHER + 1), some_offset() };
}

static struct cfi_state some_state(void)
{
	struct cfi_state state = { .cfa = (enum cfi_cfa)below(CFI_CFA_OTHER + 1),
		                   .cfa_register = below(10) ? below(40) : below(UINT64_MAX),
		                   .cfa_offset = some_offset(),
		                   .cfa_add = some_offset(),
		                   .fp = some_place(),
		                   .ra = some_place() };

	if (below(3)) { /* as compilers write them */
		state.cfa = CFI_CFA_REGISTER;
		state.cfa_register = 6 + below(2);
		state.ra = (struct cfi_place){ CFI_AT_CFA, -8 };
	}
	if (!below(5))
		state.sp = some_place();
	return state;
}

static void check_states(uint16_t elf)
{
	const struct cfi_machine *machine = cfi_machine_of(elf);
	struct frame_rules rules;
	int64_t work = INT64_MAX;

	frame_rules_begin(&rules);
	for (int i = 0; i < 200000; i++) {
		struct cfi_state state = some_state();
		struct wire_rule rule;
		bool is_followed = frame_rule_of(machine, &state, &rule);
		uint32_t number;

		assert_int_equal(frame_rules_of(&rules, machine, &state, &work, &number),
		                 is_followed);
		if (number == UNWIND_UNUSED)
			continue; /* no room for more rules */
		assert_in_range(number, 0, rules.count - 1);
		assert_memory_equal(&rules.rules[number], &rule, sizeof(rule));
	}
	assert_in_range(rules.count, 2, UNWIND_RULES_MAX);
	frame_rules_free(&rules);
}

static void test_rules_of_states_are_those_that_are_made_of_them(void **state)
{
	check_states(EM_X86_64);
	check_states(EM_AARCH64);
}

static void test_state_that_was_met_takes_no_work(void **state)
{
	const struct cfi_state met = { .cfa = CFI_CFA_REGISTER,
		                       .cfa_register = 7,
		                       .cfa_offset = 16,
		                       .ra = { CFI_AT_CFA, -8 } };
	const struct cfi_machine *machine = cfi_machine_of(EM_X86_64);
	struct frame_rules rules;
	uint32_t first, again;
	int64_t work = 1000;

	frame_rules_begin(&rules);
	assert_true(frame_rules_of(&rules, machine, &met, &work, &first));
	assert_int_equal(work, 999);
	assert_true(frame_rules_of(&rules, machine, &met, &work, &again));
	assert_int_equal(work, 999);
	assert_int_equal(first, again);
	frame_rules_free(&rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules_of_states_are_those_that_are_made_of_them),
		cmocka_unit_test(test_state_that_was_met_takes_no_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
