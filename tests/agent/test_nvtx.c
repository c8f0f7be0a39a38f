// SPDX-License-Identifier: MIT
/* NVTX's functions as a program's NVTX has them replaced, and what the agent writes of them. */
#include <pthread.h>
#include <unistd.h>
#include <wchar.h>

#include "agent/lib/clock.h"
#include "agent/lib/nvtx.h"
#include "agent/lib/writer.h"
#include "host.h"

#define RING ((uint64_t)1 << 20)

struct nvtx_domain;
int InitializeInjectionNvtx2(nvtx_get_table get_table);

/* ---- a program's NVTX ---- */

static nvtx_function core[16], core2[16];
static nvtx_function *core_table[] = { NULL,      &core[1],  &core[2], &core[3], &core[4],
	                               &core[5],  &core[6],  &core[7], &core[8], &core[9],
	                               &core[10], &core[11], &core[12] };
static nvtx_function *core2_table[] = {
	NULL,      &core2[1], &core2[2],  &core2[3],  &core2[4],  &core2[5],  &core2[6], &core2[7],
	&core2[8], &core2[9], &core2[10], &core2[11], &core2[12], &core2[13], &core2[14]
};

static int get_functions(uint32_t module, nvtx_function ***table, unsigned *places)
{
	*table = module == NVTX_MODULE_CORE ? core_table : core2_table;
	*places =
		(unsigned)(module == NVTX_MODULE_CORE ? sizeof(core_table) / sizeof(*core_table)
	                                              : sizeof(core2_table) / sizeof(*core2_table));
	return module == NVTX_MODULE_CORE || module == NVTX_MODULE_CORE2;
}

static const void *get_table(uint32_t table)
{
	static const struct nvtx_callbacks callbacks = { sizeof(callbacks), get_functions };

	return table == NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

#define PUSH      ((int (*)(const char *))core[NVTX_CORE_RangePushA])
#define PUSH_WIDE ((int (*)(const wchar_t *))core[NVTX_CORE_RangePushW])
#define PUSH_EX   ((int (*)(const struct nvtx_attributes *))core[NVTX_CORE_RangePushEx])
#define POP       ((int (*)(void))core[NVTX_CORE_RangePop])
#define START     ((uint64_t(*)(const char *))core[NVTX_CORE_RangeStartA])
#define END       ((void (*)(uint64_t))core[NVTX_CORE_RangeEnd])
#define MARK      ((void (*)(const char *))core[NVTX_CORE_MarkA])
#define CREATE    ((struct nvtx_domain * (*)(const char *)) core2[NVTX_CORE2_DomainCreateA])
#define REGISTER                                                                                   \
	((void *(*)(struct nvtx_domain *, const char *))core2[NVTX_CORE2_DomainRegisterStringA])
#define DOMAIN_PUSH                                                                                \
	((int (*)(struct nvtx_domain *,                                                            \
	          const struct nvtx_attributes *))core2[NVTX_CORE2_DomainRangePushEx])
#define DOMAIN_POP ((int (*)(struct nvtx_domain *))core2[NVTX_CORE2_DomainRangePop])

static struct nvtx_attributes message(int32_t type, const void *text)
{
	return (struct nvtx_attributes){ .version = 3,
		                         .bytes = sizeof(struct nvtx_attributes),
		                         .message_type = type,
		                         .message = text };
}

/* ---- a ring ---- */

static struct host *host;

static int load(void **state)
{
	return InitializeInjectionNvtx2(get_table) == 1 ? 0 : -1;
}

static void run(void)
{
	host->shared->active_since_ns = clock_now();
	writer_measure(AGENT_WANT_NVTX);
}

static int open_ring(void **state)
{
	host = host_new(RING);
	assert_int_equal(writer_open(host->memfd), 0);
	run();
	return 0;
}

static int close_ring(void **state)
{
	assert_int_equal(writer_close(), 0);
	host_free(host);
	return 0;
}

static const struct agent_nvtx *range(size_t which)
{
	host_read(host);
	return host_get(host, AGENT_NVTX, which);
}

/* ---- tests ---- */

static void test_a_range_has_a_name_times_and_a_depth(void **state)
{
	const struct agent_nvtx *inner, *outer;
	uint64_t begin = clock_now();

	assert_int_equal(PUSH("outer"), 0);
	assert_int_equal(PUSH("inner"), 1);
	assert_int_equal(POP(), 1);
	assert_int_equal(POP(), 0);
	inner = range(0);
	outer = range(1);
	assert_string_equal(inner->text, "inner");
	assert_string_equal(outer->text, "outer");
	assert_int_equal(inner->depth, 1);
	assert_int_equal(outer->depth, 0);
	assert_int_equal(outer->head.flags, AGENT_NVTX_PUSHPOP);
	assert_int_equal(outer->tid, gettid());
	assert_true(begin <= outer->begin_ns && outer->begin_ns <= inner->begin_ns &&
	            inner->end_ns <= outer->end_ns);
}

static void test_messages_come_in_every_form(void **state)
{
	struct nvtx_attributes ascii = message(NVTX_ASCII, "ascii");
	struct nvtx_attributes wide = message(NVTX_UNICODE, L"w\u00efde \u20ac \U0001f600");
	static struct nvtx_attributes registered; /* strings are for good */
	struct nvtx_attributes small = message(NVTX_ASCII, "not read");

	registered = message(NVTX_REGISTERED, REGISTER(NULL, "registered"));
	small.bytes = 16; /* of a version that has no message there */
	PUSH_EX(&ascii);
	POP();
	PUSH_EX(&wide);
	POP();
	PUSH_EX(&registered);
	POP();
	PUSH_EX(&small);
	POP();
	PUSH_EX(NULL);
	POP();
	PUSH_WIDE(L"plain");
	POP();
	assert_string_equal(range(0)->text, "ascii");
	assert_string_equal(range(1)->text, "w\u00efde \u20ac \U0001f600");
	assert_string_equal(range(2)->text, "registered");
	assert_string_equal(range(3)->text, "");
	assert_string_equal(range(4)->text, "");
	assert_string_equal(range(5)->text, "plain");
}

static void test_categories_and_colours_are_kept(void **state)
{
	struct nvtx_attributes both = message(NVTX_ASCII, "both"),
			       other = message(NVTX_ASCII, "none");

	both.category = 7;
	both.color_type = NVTX_ARGB;
	both.color = 0xff00ff80;
	other.color_type = 0; /* its colour means nothing */
	other.color = 1;
	PUSH_EX(&both);
	PUSH_EX(&other);
	POP();
	POP();
	PUSH("plain");
	POP();
	assert_int_equal(range(0)->category, 0);
	assert_int_equal(range(0)->color, 0);
	assert_int_equal(range(1)->category, 7);
	assert_int_equal(range(1)->color, 0xff00ff80);
	assert_int_equal(range(2)->color, 0);
}

static void test_domains_have_names_and_lie_across_each_other(void **state)
{
	struct nvtx_domain *domain = CREATE("trainer");
	struct nvtx_attributes text = message(NVTX_ASCII, "in the domain");
	const struct agent_nvtx *first;

	assert_ptr_equal(CREATE("trainer"), domain);
	DOMAIN_PUSH(domain, &text);
	PUSH("in none");
	DOMAIN_POP(domain);
	POP();
	first = range(0);
	assert_string_equal(first->text, "in the domain");
	assert_string_equal(host->names[first->domain], "trainer");
	assert_string_equal(range(1)->text, "in none");
	assert_int_equal(range(1)->domain, 0);
	assert_int_equal(host->names_said, 1);
}

static void *end_it(void *data)
{
	END(*(uint64_t *)data);
	return NULL;
}

static void test_a_started_range_may_end_on_another_thread(void **state)
{
	uint64_t id = START("across"), other = START("never ended");
	pthread_t thread;

	assert_int_not_equal(id, other);
	pthread_create(&thread, NULL, end_it, &id);
	pthread_join(thread, NULL);
	END(id); /* again: nothing */
	END(12345);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_NVTX), 1);
	assert_string_equal(range(0)->text, "across");
	assert_int_equal(range(0)->head.flags, AGENT_NVTX_STARTEND);
}

static void test_a_mark_is_a_moment(void **state)
{
	MARK("here");
	assert_string_equal(range(0)->text, "here");
	assert_int_equal(range(0)->head.flags, AGENT_NVTX_MARK);
	assert_int_equal(range(0)->begin_ns, range(0)->end_ns);
}

static void test_a_range_that_was_begun_before_is_not_told(void **state)
{
	writer_measure(0);
	assert_int_equal(PUSH("before"), NVTX_NOT_TRACKED);
	run();
	assert_int_equal(POP(), NVTX_NOT_TRACKED);
	PUSH("open when it pauses");
	writer_measure(0);
	host_sleep(1);
	run();
	POP();
	host_read(host);
	assert_int_equal(host_count(host, AGENT_NVTX), 0);
}

static void test_too_deep_ranges_do_not_mix_up_the_others(void **state)
{
	for (int i = 0; i < 200; i++)
		assert_int_equal(PUSH("deep"), i);
	for (int i = 200; i-- > 0;)
		assert_int_equal(POP(), i);
	assert_int_equal(POP(), NVTX_NOT_TRACKED);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_NVTX), 64);
	assert_int_equal(range(63)->depth, 0);
	assert_int_equal(host->shared->lost_ranges, 200 - 64);
}

/* Of those that end: ranges that never do are told by nobody. */
static void test_ranges_that_go_on_beside_too_many_others_are_counted(void **state)
{
	uint64_t ids[600], before = host->shared->lost_ranges;

	for (int i = 0; i < 600; i++)
		ids[i] = START("beside others");
	assert_int_equal(host->shared->lost_ranges, before);
	for (int i = 0; i < 600; i++)
		END(ids[i]);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_NVTX), 512);
	assert_int_equal(host->shared->lost_ranges, before + 600 - 512);
}

static void test_a_long_name_is_cut(void **state)
{
	char name[1000];

	memset(name, 'n', sizeof(name));
	name[999] = '\0';
	MARK(name);
	assert_int_equal(strlen(range(0)->text), AGENT_NVTX_TEXT - 1);
}

static void *push_and_pop(void *data)
{
	for (int i = 0; i < 1000; i++) {
		PUSH(data);
		PUSH("inner");
		POP();
		POP();
	}
	return NULL;
}

static void test_threads_have_ranges_of_their_own(void **state)
{
	static char *const names[] = { "one", "two", "three" };
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, push_and_pop, names[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_NVTX), 6000);
	assert_int_equal(host->shared->lost_ring, 0);
}

static pthread_key_t at_end;

/* As a library does that has ranges in what it does at a thread's end; after the agent's part. */
static void range_at_end(void *rounds)
{
	if ((uintptr_t)rounds > 1)
		pthread_setspecific(at_end, (void *)((uintptr_t)rounds - 1));
	PUSH("late");
	POP();
}

static void *end_with_ranges(void *data)
{
	pthread_setspecific(at_end, (void *)3);
	PUSH("at work");
	POP();
	return NULL;
}

static void test_ranges_may_come_at_a_threads_end(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_key_create(&at_end, range_at_end), 0);
	assert_int_equal(pthread_create(&thread, NULL, end_with_ranges, NULL), 0);
	pthread_join(thread, NULL);
	pthread_key_delete(at_end);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_NVTX), 4);
}

#define WITH_RING(test) cmocka_unit_test_setup_teardown(test, open_ring, close_ring)

static void test_domains_that_find_no_room_share_a_name(void **state)
{
	struct nvtx_attributes text = message(NVTX_ASCII, "in the last");
	struct nvtx_domain *first = CREATE("number 0"), *last = NULL;
	char name[32];

	for (int i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "number %d", i);
		last = CREATE(name);
	}
	assert_ptr_equal(CREATE("number 0"), first);
	assert_ptr_not_equal(last, first);
	assert_ptr_equal(CREATE("another one"), last);
	DOMAIN_PUSH(last, &text);
	PUSH("in none");
	DOMAIN_POP(last);
	POP();
	assert_string_equal(range(0)->text, "in the last");
	assert_string_equal(host->names[range(0)->domain], "other domains");
	assert_int_equal(range(1)->domain, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RING(test_a_range_has_a_name_times_and_a_depth),
		WITH_RING(test_messages_come_in_every_form),
		WITH_RING(test_categories_and_colours_are_kept),
		WITH_RING(test_domains_have_names_and_lie_across_each_other),
		WITH_RING(test_a_started_range_may_end_on_another_thread),
		WITH_RING(test_a_mark_is_a_moment),
		WITH_RING(test_a_range_that_was_begun_before_is_not_told),
		WITH_RING(test_too_deep_ranges_do_not_mix_up_the_others),
		WITH_RING(test_ranges_that_go_on_beside_too_many_others_are_counted),
		WITH_RING(test_a_long_name_is_cut),
		WITH_RING(test_threads_have_ranges_of_their_own),
		WITH_RING(test_ranges_may_come_at_a_threads_end),
		WITH_RING(test_domains_that_find_no_room_share_a_name), /* the last: they stay */
	};

	return cmocka_run_group_tests_name("agent: nvtx", tests, load, NULL);
}
