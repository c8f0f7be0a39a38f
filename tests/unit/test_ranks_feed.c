// SPDX-License-Identifier: MIT
/* What RAS said waits for its turn, as far as there is room. */
#include "unit.h"

#include <unistd.h>

#include "base/xalloc.h"
#include "capture/ranks_inside.h"
#include "probe/person.h"

#define ROOM 65536

static void fill(struct ranks_feed *feed, uint64_t person, int n)
{
	const struct ranks_told told = { .pid = 1, .person = person };

	pthread_mutex_lock(&feed->lock);
	for (int i = 0; i < n; i++)
		ranks_tell(feed, &told);
	pthread_mutex_unlock(&feed->lock);
}

static const char *left_of(struct ranks_feed *feed)
{
	static struct buf left;

	left.len = 0;
	ranks_feed_left(feed, &left);
	return left.len ? left.data : "";
}

static void test_what_finds_no_room_is_counted(void **state)
{
	struct ranks_feed *feed = ranks_feed_new();

	fill(feed, PERSON_ROOT, ROOM);
	assert_string_equal(left_of(feed), "");
	fill(feed, PERSON_ROOT, 3);
	assert_int_equal(feed->n_told, ROOM);
	assert_string_equal(left_of(feed), "3 rows of what it said");
	ranks_feed_free(feed);
}

static void test_what_one_user_is_told_takes_no_room_of_anothers(void **state)
{
	struct ranks_feed *feed = ranks_feed_new();

	fill(feed, 1002, ROOM);
	assert_int_equal(feed->n_told, ROOM / 4);
	fill(feed, 1001, 10);
	assert_int_equal(feed->n_told, ROOM / 4 + 10);
	ranks_feed_free(feed);
}

/* Without a thread that looks by itself: there is no process to ask about. */
static struct known_rank *process_make(struct ranks_feed *feed, uint64_t person)
{
	struct ras_rank *ranks = xcalloc(64, sizeof(*ranks));

	for (uint64_t i = 0; i < 64; i++)
		ranks[i].hash = 0x5eed0000 + i;
	feed->processes = xcalloc(1, sizeof(*feed->processes));
	feed->n_processes = 1;
	feed->processes[0] = (struct known_rank){
		.pid = (uint32_t)getpid(), .person = person, .ranks = ranks, .n_ranks = 64
	};
	return feed->processes;
}

static struct known_handle *handle_make(struct ranks_feed *feed, void *at)
{
	const struct handle_key key = { (uint64_t)at, (uint32_t)getpid(), 0 };
	struct known_handle *handle = MAP_ADD(feed->handles, key, &key);

	return handle;
}

#define STRUCT_BYTES (2u << 20)

static void test_looks_for_communicators_are_paid_by_their_user(void **state)
{
	struct ranks_feed *feed = ranks_feed_new();
	char *memory = xcalloc(1, STRUCT_BYTES);
	struct known_handle *handle;

	pthread_mutex_lock(&feed->lock);
	process_make(feed, 1002);
	look_time_charge(LOOK_AT_THREADS, 1002, ACCOUNT_MOST_NS);
	assert_false(look_time_is_over(LOOK_AT_THREADS, 1002));
	handle = handle_make(feed, memory);
	ranks_find_handles(feed);
	assert_int_equal(handle->tries, 1);
	assert_true(look_time_is_over(LOOK_AT_THREADS, 1002));
	ranks_find_handles(feed); /* it is not tried, and the next not either */
	assert_int_equal(handle->tries, 1);
	pthread_mutex_unlock(&feed->lock);
	assert_string_equal(left_of(feed), "1 looks for communicators in memory");

	pthread_mutex_lock(&feed->lock);
	feed->processes[0].person = 1001; /* another's are looked for */
	ranks_find_handles(feed);
	assert_int_equal(handle->tries, 2);
	pthread_mutex_unlock(&feed->lock);
	ranks_feed_free(feed);
	free(memory);
}

/* Words that could be a rank's, but for the last. */
static void test_a_look_finds_the_struct_in_whatever_memory(void **state)
{
	struct ranks_feed *feed = ranks_feed_new();
	char *memory = xcalloc(1, STRUCT_BYTES);
	struct {
		uint64_t hash;
		int32_t rank, size, device, nvml_device;
	} words = { .hash = 0x5eed0003, .nvml_device = 7 };
	struct known_handle *handle;

	for (size_t i = 0; i + sizeof(words) <= STRUCT_BYTES; i += sizeof(words))
		memcpy(memory + i, &words, sizeof(words));
	pthread_mutex_lock(&feed->lock);
	process_make(feed, 1003);
	handle = handle_make(feed, memory);
	ranks_find_handles(feed);
	assert_false(handle->found);
	words.nvml_device = 0;
	memcpy(memory + STRUCT_BYTES / 2, &words, sizeof(words));
	ranks_find_handles(feed);
	assert_true(handle->found);
	assert_int_equal(feed->told[0].rank.hash, 0x5eed0003);
	pthread_mutex_unlock(&feed->lock);
	ranks_feed_free(feed);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_finds_no_room_is_counted),
		cmocka_unit_test(test_what_one_user_is_told_takes_no_room_of_anothers),
		cmocka_unit_test(test_looks_for_communicators_are_paid_by_their_user),
		cmocka_unit_test(test_a_look_finds_the_struct_in_whatever_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
