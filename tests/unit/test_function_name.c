// SPDX-License-Identifier: MIT
/* Names of functions on stacks: C, C++, Rust. */
#include "unit.h"

#include "base/text.h"
#include "probe/plain_name.h"

static void expect(const char *linked, const char *shown)
{
	char *name = function_name_demangle(linked);

	assert_string_equal(name, shown);
	free(name);
}

static void test_names_of_cplusplus_are_demangled(void **state)
{
	expect("_ZN5leaky5Model10grow_cacheEm", "leaky::Model::grow_cache(unsigned long)");
}

static void test_names_of_c_stay_as_they_are(void **state)
{
	expect("main", "main");
	expect("Resize", "Resize"); /* begins as Rust's new names do */
	expect("i", "i");
}

static void test_old_names_of_rust_lose_their_hash(void **state)
{
	expect("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar"
	       "17h930b740aa94f1d3aE",
	       "<Test + 'static as foo::Bar<Test>>::bar");
	expect("_ZN4leak5Model10grow_cache17h0123456789abcdefE", "leak::Model::grow_cache");
}

static void test_new_names_of_rust_are_demangled(void **state)
{
	expect("_RNvMs_NtCs1234_4leak5modelNtB4_5Model10grow_cache",
	       "<leak::model::Model>::grow_cache");
}

static void test_parts_of_a_function_have_its_name(void **state)
{
	expect("pin.constprop.0.isra.0", "pin");
	expect("_ZN5leaky5Model10grow_cacheEm.cold", "leaky::Model::grow_cache(unsigned long)");
	expect(".cold", ".cold");
	expect("a.b", "a.b");
}

/* Each back reference doubles what comes before it: 60 bytes would become gigabytes. */
static void test_name_that_would_be_huge_is_cut(void **state)
{
	char linked[512] = "_RINvC1a1bTxxE";
	char *name;

	/* tuples of two references to the tuple before */
	strcpy(linked, "_RINvC1a1b");
	for (int i = 0; i < 24; i++)
		strcat(linked, i ? "T" : "TxxE");
	name = function_name_demangle(linked);
	assert_true(strlen(name) <= TEXT_NAME_MAX);
	free(name);
	/* C++: vector<vector<...>> by back references, as the kernels' names are tested */
	strcpy(linked, "_Z1fSt4pairIiiE");
	for (int i = 0; i < 20; i++)
		sprintf(linked + strlen(linked), "S_IS%d_S%d_E", i, i);
	name = function_name_demangle(linked);
	assert_true(strlen(name) <= TEXT_NAME_MAX);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_cplusplus_are_demangled),
		cmocka_unit_test(test_names_of_c_stay_as_they_are),
		cmocka_unit_test(test_old_names_of_rust_lose_their_hash),
		cmocka_unit_test(test_new_names_of_rust_are_demangled),
		cmocka_unit_test(test_parts_of_a_function_have_its_name),
		cmocka_unit_test(test_name_that_would_be_huge_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
