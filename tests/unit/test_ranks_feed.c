// SPDX-License-Identifier: MIT
/* What RAS said waits for its turn, as far as there is room. */
#include "unit.h"

#include "capture/ranks_inside.h"

#define ROOM 65536

static void test_what_finds_no_room_is_counted(void **state)
{
	struct ranks_feed *feed = ranks_feed_new();
	const struct ranks_told told = { .pid = 1 };

	pthread_mutex_lock(&feed->lock);
	for (int i = 0; i < ROOM; i++)
		ranks_tell(feed, &told);
	pthread_mutex_unlock(&feed->lock);
	assert_int_equal(ranks_feed_refused(feed), 0);
	pthread_mutex_lock(&feed->lock);
	for (int i = 0; i < 3; i++)
		ranks_tell(feed, &told);
	pthread_mutex_unlock(&feed->lock);
	assert_int_equal(feed->n_told, ROOM);
	assert_int_equal(ranks_feed_refused(feed), 3);
	ranks_feed_free(feed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_finds_no_room_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
