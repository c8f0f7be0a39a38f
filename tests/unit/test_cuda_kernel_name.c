// SPDX-License-Identifier: MIT
/* Names of kernels: what nvcc 13 makes of them, and what is none. */
#include "unit.h"

#include "base/array.h"
#include "base/text.h"
#include "cuda/kernel_name.h"

static void assert_demangles(const char *mangled, const char *expected)
{
	char *name = kernel_name_demangle(mangled);

	assert_string_equal(name, expected);
	free(name);
}

static void test_mangled_names_are_read(void **state)
{
	assert_demangles("_Z9vectorAddPKfS0_Pfi",
	                 "vectorAdd(float const*, float const*, float*, int)");
	assert_demangles("_Z4tmplIfEvPT_i", "void tmpl<float>(float*, int)");
	assert_demangles("_ZN2ns6insideEPi", "ns::inside(int*)");
	assert_demangles("_ZN36_GLOBAL__N__4d73a2d1_4_a_cu_a98933e84anonEPi",
	                 "(anonymous namespace)::anon(int*)");
}

static void test_plain_names_stay(void **state)
{
	assert_demangles("vectorAdd", "vectorAdd");
	assert_demangles("triton_poi_fused_add_0", "triton_poi_fused_add_0");
	assert_demangles("i", "i"); /* also the mangled type int */
	assert_demangles("void foo<int>(int)", "void foo<int>(int)");
	assert_demangles("", "");
}

static void test_host_stubs_stand_for_their_kernels(void **state)
{
	const char *expected = "vectorAdd(float const*, float const*, float*, int)";

	assert_demangles("__device_stub__Z9vectorAddPKfS0_Pfi", expected);
	assert_demangles("_Z35__device_stub__Z9vectorAddPKfS0_PfiPKfS0_Pfi", expected);
	assert_demangles("_ZL35__device_stub__Z9vectorAddPKfS0_PfiPKfS0_Pfi", expected);
	assert_demangles("_ZL29__device_stub__Z4tmplIfEvPT_iPfi", "void tmpl<float>(float*, int)");
	assert_demangles("_Z30__device_stub__ZN2ns6insideEPiPi", "ns::inside(int*)");
	assert_demangles("_Z27__wrapper__device_stub_tmplIfEvRPT_Ri",
	                 "void tmpl<float>(float*&, int&)");
	assert_demangles("_ZN2nsL26__wrapper__device_stub_tinIdEEvRT_",
	                 "void ns::tin<double>(double&)");
	assert_demangles("__device_stub_plain", "plain");
}

static void test_broken_names_stay(void **state)
{
	static const char *const broken[] = {
		"_Z",
		"_ZN",
		"_Z9vec",
		"_Z99999999999999999999999x",
		"_ZL35__device_stub_",
		"_ZNSt",
		"_Z1\xff\xfe",
		"__device_stub_",
		"_ZNNNNNNNNNNNNNNNNNN",
	};

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++)
		assert_demangles(broken[i], broken[i]);
}

/* Of a stub whose length is wrong, what can be read. */
static void test_a_stub_that_is_broken_inside_shows_the_inside(void **state)
{
	assert_demangles("_ZL33__device_stub__Z9vectorAddPKfS0_PfiPKfS0_Pfi",
	                 "_Z9vectorAddPKfS0_P");
}

/* "_ZN7cutlass13device_kernelI" and so on for `len` characters. */
static char *long_name(size_t len)
{
	static const char head[] = "_ZN7cutlass13device_kernelI";
	char *name = malloc(len + 1);
	size_t at = strlen(head);

	assert_non_null(name);
	memcpy(name, head, at);
	for (; at + 6 <= len; at += 6)
		memcpy(name + at, "Li123E", 6);
	name[at] = '\0';
	return name;
}

static void test_names_too_long_for_the_demangler_lose_their_arguments(void **state)
{
	char *name = long_name(2000);

	assert_demangles(name, "cutlass::device_kernel<...>");
	free(name);
}

/* foo<A, A>, foo<that, that>, and so on: 2 to the power of `steps` letters. */
static void test_names_that_explode_are_cut(void **state)
{
	static const char head[] = "f(A, foo<A, A>, foo<foo<A, A>, foo<A, A> >, ";
	char name[512] = "_Z1f1A3fooIS_S_E", *read;

	for (int step = 1; step < 20; step++) {
		char last = (char)(step < 10 ? '0' + step : 'A' + step - 10);
		size_t at = strlen(name);

		snprintf(name + at, sizeof(name) - at, "S0_IS%c_S%c_E", last, last);
		read = kernel_name_demangle(name);
		assert_true(step < 3 || !strncmp(read, head, strlen(head)));
		assert_true(strlen(read) <= TEXT_NAME_MAX);
		if (strlen(read) > TEXT_NAME_MAX - 10) /* 16 KiB after nine steps */
			assert_string_equal(read + strlen(read) - 3, "...");
		assert_true(step < 9 || strlen(read) > TEXT_NAME_MAX - 10);
		free(read);
	}
}

static void test_random_text_does_no_harm(void **state)
{
	static const char alphabet[] = "_ZNLISEKPRTFfivjx0123456789device_stub__.$ ";
	char text[64];

	srandom(1);
	for (int round = 0; round < 100000; round++) {
		size_t len = (size_t)random() % (sizeof(text) - 3) + 2;

		for (size_t i = 0; i < len; i++)
			text[i] = alphabet[(size_t)random() % (sizeof(alphabet) - 1)];
		memcpy(text, "_Z", 2);
		text[len] = '\0';
		free(kernel_name_demangle(text));
	}
}

static void test_what_looks_like_a_kernel_is_plausible(void **state)
{
	assert_true(kernel_name_plausible("vectorAdd"));
	assert_true(kernel_name_plausible("_Z9vectorAddPKfS0_Pfi"));
	assert_true(kernel_name_plausible("triton_poi_fused_0d1d2d"));
	assert_true(kernel_name_plausible("void foo<int>(int*, float const&)"));
	assert_true(kernel_name_plausible("(anonymous namespace)::anon(int*)"));
	assert_true(kernel_name_plausible("foo$bar.1"));
}

static void test_other_text_is_not(void **state)
{
	assert_false(kernel_name_plausible(""));
	assert_false(kernel_name_plausible("two words"));
	assert_false(kernel_name_plausible(" foo(int)"));
	assert_false(kernel_name_plausible("9lives"));
	assert_false(kernel_name_plausible("a\tb"));
	assert_false(kernel_name_plausible("\x7f"
	                                   "ELF"));
	assert_false(kernel_name_plausible("na\xc3\xafve"));
	assert_false(kernel_name_plausible("/usr/lib/libcuda.so"));
	assert_false(kernel_name_plausible("a=b"));
}

static void assert_base(const char *name, const char *expected)
{
	char base[128];
	size_t len;
	const char *first = kernel_name_base(name, &len);

	snprintf(base, sizeof(base), "%.*s", (int)len, first);
	assert_string_equal(base, expected);
}

static void test_base_names_have_no_types_scopes_or_arguments(void **state)
{
	assert_base("vectorAdd(float const*, int)", "vectorAdd");
	assert_base("vectorAdd", "vectorAdd");
	assert_base("void tmpl<float>(float*, int)", "tmpl");
	assert_base("void at::native::reduce<512, at::Op<int>>(at::Y<2>)", "reduce");
	assert_base("std::enable_if<((4)>(2)), int>::type ns::f<((4)>(2)), int>(int)", "f");
	assert_base("Pair<int, int> f<int>(int)", "f");
	assert_base("(anonymous namespace)::anon(int*)", "anon");
	assert_base("void f(int) [clone .constprop.0]", "f");
	assert_base("f<int>(int)::inner<float>(int)", "inner");
	assert_base("void run<f(int)::{lambda(int)#1}>(int)", "run");
	assert_base("f(int)::{lambda(int)#1}::operator()(int) const", "operator()");
	assert_base("a::operator<<(int)", "operator<<");
	assert_base("app+0x1234", "app+0x1234");
	assert_base("0x55d0", "0x55d0");
}

static void test_base_names_of_broken_ones_are_not_empty(void **state)
{
	assert_base("", "");
	assert_base("<<<<", "<<<<");
	assert_base("f<int", "f");
	assert_base("(((", "(((");
	assert_base("a::", "a::");
	assert_base(") > f", "f");
}

static void assert_qualified(const char *name, const char *expected)
{
	char *qualified = kernel_name_qualified(name);

	assert_string_equal(qualified, expected);
	free(qualified);
}

static void test_qualified_names_have_scopes_and_nothing_else(void **state)
{
	assert_qualified("at::_ops::add__Tensor::call(at::Tensor&, c10::Scalar const&)",
	                 "at::_ops::add__Tensor::call");
	assert_qualified("vectorAdd", "vectorAdd");
	assert_qualified("void ns::tmpl<float, ((4)>(2))>(float*, int)", "ns::tmpl");
	assert_qualified("std::vector<int, std::allocator<int> >::push_back(int const&)",
	                 "std::vector::push_back");
	assert_qualified("(anonymous namespace)::anon(int*) const", "(anonymous namespace)::anon");
	assert_qualified("decltype ((x)+(1)) f<int>(int)", "f");
	assert_qualified("a::operator bool() const", "a::operator bool");
	assert_qualified("f(int)::{lambda(int)#1}::operator()(int) const",
	                 "f(int)::{lambda(int)#1}::operator()");
	assert_qualified("take(void (*)(int))", "take");
	assert_qualified("", "");
	assert_qualified("<<<<", "");
	assert_qualified("f<int", "f");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mangled_names_are_read),
		cmocka_unit_test(test_plain_names_stay),
		cmocka_unit_test(test_host_stubs_stand_for_their_kernels),
		cmocka_unit_test(test_broken_names_stay),
		cmocka_unit_test(test_a_stub_that_is_broken_inside_shows_the_inside),
		cmocka_unit_test(test_names_too_long_for_the_demangler_lose_their_arguments),
		cmocka_unit_test(test_names_that_explode_are_cut),
		cmocka_unit_test(test_random_text_does_no_harm),
		cmocka_unit_test(test_base_names_have_no_types_scopes_or_arguments),
		cmocka_unit_test(test_base_names_of_broken_ones_are_not_empty),
		cmocka_unit_test(test_qualified_names_have_scopes_and_nothing_else),
		cmocka_unit_test(test_what_looks_like_a_kernel_is_plausible),
		cmocka_unit_test(test_other_text_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
