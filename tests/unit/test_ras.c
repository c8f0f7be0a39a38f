// SPDX-License-Identifier: MIT
/* The text of RAS' answers, and of which network an address is. */
#include "unit.h"

#include "../../src/identity/ras.c"

static struct ras_rank ranks[16];
static size_t n;

static void take(void *data, const struct ras_rank *rank)
{
	if (n < 16)
		ranks[n] = *rank;
	n++;
}

static size_t reads(const char *text)
{
	n = 0;
	memset(ranks, 0, sizeof(ranks));
	return ras_read(text, strlen(text), take, NULL);
}

static const char answer[] =
	"SERVER PROTOCOL 2\nOK\nOK\n{\n  \"nccl_version\": \"2.28.9\",\n  \"communicators_count\": "
	"2,\n"
	"  \"communicators\": [\n    {\n      \"hash\": \"0x87cd2ae5bd9fc42a\",\n"
	"      \"secondary_hash\": \"0xc7f9a9e4dcd8a8b5:0x73bb0c1\",\n      \"size\": 3,\n"
	"      \"ranks_count\": 2,\n      \"missing_ranks_count\": 1,\n      \"ranks\": [\n"
	"        {\n          \"rank\": 0,\n          \"host\": \"10.0.0.7\",\n          \"pid\": "
	"411,\n"
	"          \"cuda_dev\": 0,\n          \"nvml_dev\": 4,\n          \"status\": {\n"
	"            \"init_state\": 0,\n            \"async_error\": 0,\n            "
	"\"abort_flag\": "
	"false\n          },\n          \"collective_counts\": {\n            \"Broadcast\": 12,\n"
	"            \"Reduce\": 0,\n            \"AllGather\": 3,\n            \"ReduceScatter\": "
	"4,\n"
	"            \"AllReduce\": 1323\n          }\n        },\n"
	"        {\n          \"rank\": 1,\n          \"host\": \"10.0.0.7\",\n          \"pid\": "
	"412,\n"
	"          \"cuda_dev\": 1,\n          \"nvml_dev\": 5,\n          \"status\": {\n"
	"            \"async_error\": 6,\n            \"abort_flag\": true\n          },\n"
	"          \"collective_counts\": {\n            \"AllReduce\": 1322\n          }\n        "
	"}\n"
	"      ],\n      \"missing_ranks\": [\n        {\n          \"rank\": 2,\n          "
	"\"host\": "
	"\"10.0.0.8\",\n          \"pid\": 99,\n          \"cuda_dev\": 0,\n          "
	"\"nvml_dev\": 0\n"
	/* NCCL leaves out a comma here */
	"          \"status\": {\n            \"unresponsive\": true,\n            "
	"\"considered_dead\": "
	"false\n          }\n        }\n      ]\n    },\n    {\n      \"hash\": \"0x1\",\n      "
	"\"size\": "
	"1,\n      \"ranks\": [\n        { \"rank\": 0, \"pid\": 411 }\n      ],\n"
	"      \"missing_ranks\": [\n\n      ]\n    }\n  ],\n  \"ras\": {\n"
	"    \"collection_time_sec\": 0.001,\n    \"timeouts_count\": 0\n  }\n}\n";

static void test_an_answer_has_ranks_of_communicators(void **state)
{
	assert_int_equal(reads(answer), 4);
	assert_true(ranks[0].hash == 0x87cd2ae5bd9fc42a);
	assert_true(ranks[0].host_hash == 0xc7f9a9e4dcd8a8b5);
	assert_int_equal(ranks[0].pid_hash, 0x73bb0c1);
	assert_int_equal(ranks[0].size, 3);
	assert_int_equal(ranks[0].pid, 411);
	assert_int_equal(ranks[0].nvml_device, 4);
	assert_string_equal(ranks[0].host, "10.0.0.7");
	assert_int_equal(ranks[0].counts[RAS_ALL_REDUCE], 1323);
	assert_int_equal(ranks[0].counts[RAS_BROADCAST], 12);
	assert_int_equal(ranks[0].counts[RAS_REDUCE_SCATTER], 4);
	assert_false(ranks[0].missing || ranks[0].failed);
	assert_int_equal(ranks[1].rank, 1);
	assert_true(ranks[1].failed);
	assert_int_equal(ranks[1].counts[RAS_ALL_REDUCE], 1322);
	assert_int_equal(ranks[1].counts[RAS_BROADCAST], 0);
	assert_true(ranks[2].missing);
	assert_string_equal(ranks[2].host, "10.0.0.8");
	assert_int_equal(ranks[2].counts[RAS_ALL_REDUCE], 0);
	assert_int_equal(ranks[3].hash, 1);
	assert_int_equal(ranks[3].size, 1);
	assert_false(ranks[3].missing);
}

/* Whatever it is cut to, and wherever it is broken: what was read has ends, and no more is there.
 */
static void test_an_answer_may_be_anything(void **state)
{
	char *text = strdup(answer);

	for (size_t bytes = 0; bytes <= strlen(answer); bytes++) {
		char *cut = memcpy(malloc(bytes + 1), answer, bytes);

		n = 0;
		assert_true(ras_read(cut, bytes, take, NULL) <= 4);
		free(cut);
	}
	for (size_t i = 0; i < strlen(answer); i++) {
		text[i] = '"';
		reads(text);
		text[i] = '\0';
		reads(text);
		text[i] = answer[i];
	}
	free(text);
}

static void test_long_words_are_cut(void **state)
{
	char text[8192], name[2049];

	memset(name, 'h', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text),
	         "{\"rank\": 99999999999999999999, \"host\": \"%s\", \"pid\": %s}", name, name);
	assert_int_equal(reads(text), 1);
	assert_int_equal(strlen(ranks[0].host), sizeof(ranks[0].host) - 1);
	assert_int_equal(ranks[0].pid, 0);
}

static void test_what_is_no_answer_has_no_ranks(void **state)
{
	assert_int_equal(reads(""), 0);
	assert_int_equal(reads("HTTP/1.1 400 Bad Request\r\n\r\n"), 0);
	assert_int_equal(reads("\"rank\" \"rank\": [1, 2, \"rank"), 0);
}

static void test_an_address_of_no_interface_is_elsewhere(void **state)
{
	struct addresses addresses = { .n = 1 };

	inet_pton(AF_INET, "10.0.0.7", &addresses.of[0]);
	assert_false(is_elsewhere(&addresses, "10.0.0.8")); /* they are not known */
	addresses.known = true;
	assert_true(is_elsewhere(&addresses, "10.0.0.8"));
	assert_false(is_elsewhere(&addresses, "10.0.0.7"));
	assert_false(is_elsewhere(&addresses, "127.0.1.1"));
	assert_false(is_elsewhere(&addresses, "node2"));
	assert_false(is_elsewhere(&addresses, "fd00::7"));
	assert_false(is_elsewhere(&addresses, ""));
}

static void test_addresses_of_a_network_are_known(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct addresses addresses = { .n = 0 };
	bool loopback = false;

	addresses_read(fd, &addresses);
	close(fd);
	assert_true(addresses.known);
	for (size_t i = 0; i < addresses.n; i++)
		loopback |= addresses.of[i].s_addr == htonl(INADDR_LOOPBACK);
	assert_true(loopback);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_has_ranks_of_communicators),
		cmocka_unit_test(test_an_answer_may_be_anything),
		cmocka_unit_test(test_long_words_are_cut),
		cmocka_unit_test(test_what_is_no_answer_has_no_ranks),
		cmocka_unit_test(test_an_address_of_no_interface_is_elsewhere),
		cmocka_unit_test(test_addresses_of_a_network_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
