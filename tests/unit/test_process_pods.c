// SPDX-License-Identifier: MIT
/* Names of pods and containers out of what the kubelet answers. */
#include "unit.h"

#include <errno.h>

#include "base/clock.h"
#include "node/process_curl.h"
#include "node/process_kubelet.h"

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define INIT  "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UID   "0a1b2c3d-1111-2222-3333-444455556666"
#define HASH  "00112233445566778899aabbccddeeff"
#define OTHER "99999999-1111-2222-3333-444455556666"

static const char answer[] =
	"{\"kind\":\"PodList\",\"items\":["
	"{\"metadata\":{\"name\":\"trainer-0\",\"namespace\":\"team-a\",\"uid\":\"" UID "\"},"
	"\"status\":{\"containerStatuses\":[{\"name\":\"main\",\"containerID\":\"containerd://" ID
	"\"},{\"name\":\"waits\"}],"
	"\"initContainerStatuses\":[{\"name\":\"prepare\",\"containerID\":\"containerd://" INIT
	"\"}]}},"
	"{\"metadata\":{\"name\":\"etcd\",\"namespace\":\"kube-system\",\"uid\":\"x\","
	"\"annotations\":{\"kubernetes.io/config.hash\":\"" HASH
	"\",\"kubernetes.io/config.source\":\"file\"}},\"status\":{}},"
	"{\"metadata\":{\"name\":\"Not A Name\",\"namespace\":\"n\",\"uid\":\"" OTHER "\"}},"
	"{}]}";

static struct process_pods *pods;

static int begin(void **state)
{
	pods = process_pods_new();
	return 0;
}

static int end(void **state)
{
	process_pods_free(pods);
	return 0;
}

static void take(const char *json)
{
	struct process_pods *newer = process_pods_new();

	assert_int_equal(process_pods_read(newer, json, strlen(json)), 0);
	process_pods_renew(pods, newer);
	process_pods_free(newer);
}

static bool name(const char *uid, const char *id, struct process_identity *who)
{
	memset(who, 0, sizeof(*who));
	strcpy(who->pod_uid, uid);
	strcpy(who->container_id, id);
	strcpy(who->pod, "a-lie");
	strcpy(who->namespace, "another");
	who->pod_by = IDENTITY_OWN_WORD;
	who->pod_uid_by = uid[0] ? IDENTITY_CGROUP : IDENTITY_UNKNOWN;
	who->container_by = id[0] ? IDENTITY_CGROUP : IDENTITY_UNKNOWN;
	return process_pods_name(pods, who);
}

/* A pod's annotations are its owner's, but for its source. */
#define ANNOTATED(hash, source)                                                                    \
	"{\"items\":[{\"metadata\":{\"name\":\"liar\",\"namespace\":\"team-b\",\"uid\":\"" OTHER   \
	"\",\"annotations\":{\"kubernetes.io/config.hash\":\"" hash                                \
	"\",\"kubernetes.io/config.source\":\"" source                                             \
	"\"}}},{\"metadata\":{\"name\":\"trainer-0\",\"namespace\":\"team-a\",\"uid\":\"" UID      \
	"\"}}]}"

static void test_no_pod_takes_another_ones_place_by_its_annotations(void **state)
{
	struct process_identity who;

	take(ANNOTATED(UID, "api"));
	assert_true(name(UID, "", &who));
	assert_string_equal(who.pod, "trainer-0");
	take(ANNOTATED(UID, "file")); /* nor is that the form of a hash */
	assert_true(name(UID, "", &who));
	assert_string_equal(who.pod, "trainer-0");
	take(ANNOTATED(HASH, "api"));
	assert_false(name(HASH, "", &who));
	take(ANNOTATED(HASH, "http"));
	assert_true(name(HASH, "", &who));
	assert_string_equal(who.pod, "liar");
}

static void test_pods_and_containers_have_their_names(void **state)
{
	struct process_identity who;

	take(answer);
	assert_true(name(UID, ID, &who));
	assert_string_equal(who.pod, "trainer-0");
	assert_string_equal(who.namespace, "team-a");
	assert_string_equal(who.container_name, "main");
	assert_int_equal(who.pod_by, IDENTITY_KUBELET);
	assert_true(name(UID, INIT, &who));
	assert_string_equal(who.container_name, "prepare");
	assert_true(name(HASH, "", &who)); /* a pod that the kubelet has from a file */
	assert_string_equal(who.pod, "etcd");
}

static void test_a_containers_own_word_is_dropped(void **state)
{
	struct process_identity who;

	take(answer);
	assert_false(name(OTHER, ID, &who)); /* in no answer: its name was none */
	assert_string_equal(who.pod, "");
	assert_string_equal(who.namespace, "");
	assert_int_equal(who.pod_by, IDENTITY_UNKNOWN);
	assert_true(name("", "", &who));
	assert_string_equal(who.pod, "");
}

/* A user can name a cgroup of his own like a pod. */
static void test_a_cgroup_that_a_user_made_has_no_pod(void **state)
{
	struct process_identity who;

	take(answer);
	memset(&who, 0, sizeof(who));
	strcpy(who.pod_uid, UID);
	strcpy(who.container_id, ID);
	who.pod_uid_by = who.container_by = IDENTITY_OWN_WORD;
	assert_true(process_pods_name(pods, &who));
	assert_string_equal(who.pod, "");
	assert_string_equal(who.container_name, "");
}

static void test_pods_that_are_gone_are_kept_for_a_while(void **state)
{
	struct process_identity who;

	take(answer);
	for (int i = 0; i < PROCESS_PODS_KEPT; i++) {
		take("{\"items\":[]}");
		assert_true(name(UID, ID, &who));
	}
	take("{\"items\":[]}");
	assert_false(name(UID, ID, &who));
	assert_int_equal(process_pods_count(pods), 0);
}

static void test_answers_that_are_none(void **state)
{
	static const char *const wrong[] = { "", "{", "null]", "{\"items\":[{\"metadata\":}]}",
		                             "<html>" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(process_pods_read(pods, wrong[i], strlen(wrong[i])), -EBADMSG);
	take("{}");
	take("{\"items\":5}");
	take("{\"items\":[{\"metadata\":5},{\"metadata\":{\"name\":{},\"uid\":[]}}]}");
	assert_int_equal(process_pods_count(pods), 0);
}

static void test_pods_are_bounded(void **state)
{
	size_t most = 4 * PROCESS_PODS_MAX, len = 0;
	char *json = malloc(most * 128);

	len += (size_t)sprintf(json, "{\"items\":[");
	for (size_t i = 0; i < most; i++)
		len += (size_t)sprintf(
			json + len,
			"%s{\"metadata\":{\"name\":\"p%zu\",\"namespace\":\"n\",\"uid\":\"u%zu\"}}",
			i ? "," : "", i, i);
	sprintf(json + len, "]}");
	take(json);
	assert_int_equal(process_pods_count(pods), PROCESS_PODS_MAX);
	free(json);
}

/* 16 MiB of small pods and containers, which took a minute of a processor and 320 MiB of memory
 * when SQLite read them: now a part of a second. The agent could not end as long. */
static void test_whoever_answers_takes_no_time(void **state)
{
	static const char *const begins[] = { "{\"items\":[",
		                              "{\"items\":[{\"status\":{\"containerStatuses\":[" };
	static const char *const ends[] = { "{}]}", "{}]}}]}" };
	char *json = malloc(PROCESS_CURL_MOST + 64);

	for (size_t i = 0; i < 2; i++) {
		uint64_t began = clock_of_ns(CLOCK_THREAD_CPUTIME_ID);
		char *at = stpcpy(json, begins[i]);

		while (at < json + PROCESS_CURL_MOST - 64)
			at = stpcpy(at, "{},");
		strcpy(at, ends[i]);
		take(json);
		assert_in_range(clock_of_ns(CLOCK_THREAD_CPUTIME_ID) - began, 0, 4000000000ull);
	}
	free(json);
}

/* Brackets in brackets take no stack. */
static void test_whoever_answers_takes_no_stack(void **state)
{
	char *json = malloc(PROCESS_CURL_MOST);

	strcpy(json, "{\"items\":");
	memset(json + 9, '[', PROCESS_CURL_MOST - 9);
	assert_int_equal(process_pods_read(pods, json, PROCESS_CURL_MOST), -EBADMSG);
	free(json);
}

/* Its text may end anywhere, and what is behind it is nobody's. */
static void test_answers_that_are_cut(void **state)
{
	for (size_t bytes = 0; bytes < sizeof(answer) - 1; bytes++) {
		char *json = malloc(bytes + 1); /* a place of its own: a sanitizer sees its end */

		memcpy(json, answer, bytes);
		assert_int_equal(process_pods_read(pods, json, bytes), -EBADMSG);
		free(json);
	}
}

static void test_texts_with_escapes_are_none(void **state)
{
	struct process_identity who;

	take("{\"items\":[{\"metadata\":{\"name\":\"a\\u0062\",\"namespace\":\"n\",\"uid\":\"" OTHER
	     "\"}},{\"metadata\":{\"x\\\"y\":\"\\\\\",\"name\":\"b\",\"namespace\":\"n\",\"uid\":"
	     "\"" UID "\"}}]}");
	assert_false(name(OTHER, "", &who));
	assert_true(name(UID, "", &who));
	assert_string_equal(who.pod, "b");
}

/* They stand between quotes in what curl is told. */
static void test_addresses_and_tokens(void **state)
{
	assert_true(process_curl_is_url("https://node-7.local:10250/pods"));
	assert_true(process_curl_is_url("https://[::1]:10250/pods"));
	assert_false(process_curl_is_url("http://127.0.0.1:10255/pods"));
	assert_false(process_curl_is_url("https://"));
	assert_false(process_curl_is_url("https://a\"\noutput = \"/etc/passwd"));
	assert_false(process_curl_is_url("https://a b"));
	assert_true(process_curl_is_token("eyJhbGciOi.J9_-x+/="));
	assert_false(process_curl_is_token(""));
	assert_false(process_curl_is_token("a\"b"));
	assert_false(process_curl_is_token("a\nurl = b"));
	assert_false(process_curl_is_token("a\\b"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_pods_and_containers_have_their_names),
		TEST(test_no_pod_takes_another_ones_place_by_its_annotations),
		TEST(test_a_containers_own_word_is_dropped),
		TEST(test_a_cgroup_that_a_user_made_has_no_pod),
		TEST(test_pods_that_are_gone_are_kept_for_a_while),
		TEST(test_answers_that_are_none),
		TEST(test_pods_are_bounded),
		TEST(test_whoever_answers_takes_no_time),
		TEST(test_whoever_answers_takes_no_stack),
		TEST(test_answers_that_are_cut),
		TEST(test_texts_with_escapes_are_none),
		TEST(test_addresses_and_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
