// SPDX-License-Identifier: MIT
/* Which hosts a request to loopback may name. */
#include "support.h"

#include "node/address.h"

static void test_loopback_is_named_in_each_way(void **state)
{
	static const char *const hosts[] = {
		"127.0.0.1",  "127.0.0.1:9407", "127.1.2.3:1",
		"localhost",  "LocalHost:9407", "[::1]",
		"[::1]:9407", "localhost:",     "[0:0:0:0:0:0:0:1]:9407"
	};

	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
		assert_true(http_host_is_loopback(hosts[i]));
	assert_true(http_host_is_loopback(NULL));
}

static void test_another_name_is_none(void **state)
{
	static const char *const hosts[] = {
		"",
		"evil.example",
		"evil.example:9407",
		"127.0.0.1.evil.example",
		"localhost.evil.example",
		"10.0.0.1",
		"128.0.0.1",
		"[::2]",
		"[::1",
		"::1",
		"[::1]x",
		"localhost:80x",
		"127.0.0.1:80:80",
		":9407",
		"[]",
		"[127.0.0.1]",
		"user@127.0.0.1",
		"127.1",
		"0x7f.0.0.1",
		"2130706433",
		"localhost ",
		"[0000000000000000000000000000000000000000000000000000000000000000000:1]",
	};

	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
		assert_false(http_host_is_loopback(hosts[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loopback_is_named_in_each_way),
		cmocka_unit_test(test_another_name_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
