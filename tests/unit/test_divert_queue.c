// SPDX-License-Identifier: MIT
/* Orders to cuscope-divert while it does not read: in order, in bounds, and none to put back lost.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "divert/divert_queue.h"

static struct divert_queue queue;
static int pair[2];

static int begin(void **state)
{
	queue = (struct divert_queue){ 0 };
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int end(void **state)
{
	queue_free(&queue);
	close(pair[0]);
	if (pair[1] >= 0)
		close(pair[1]);
	return 0;
}

static int order_of(uint64_t owner, enum divert_kind kind, pid_t pid, pid_t child, uint64_t number)
{
	const struct divert_order order = {
		.kind = kind, .pid = pid, .child = child, .number = number, .owner = owner
	};

	return queue_order(&queue, pair[0], &order, -1);
}

static int order(enum divert_kind kind, pid_t pid, pid_t child, uint64_t number)
{
	return order_of(QUOTA_ROOT, kind, pid, child, number);
}

/* Numbers from 1 on, until no more goes into the socket. */
static uint64_t fill_socket(void)
{
	uint64_t n = 0;

	while (!queue.first)
		assert_int_equal(order(DIVERT_TAKE_BACK, 1, 0, ++n), 0);
	return n;
}

static bool receive(struct divert_order *received)
{
	return recv(pair[1], received, sizeof(*received), MSG_DONTWAIT) == sizeof(*received);
}

static void test_what_waits_is_sent_in_order(void **state)
{
	uint64_t n = fill_socket(), last = 0;
	struct divert_order received;

	for (int i = 0; i < 100; i++)
		assert_int_equal(order(DIVERT_TAKE_BACK, 1, 0, ++n), 0);
	while (receive(&received)) {
		assert_int_equal(received.number, ++last);
		assert_int_equal(queue_send(&queue, pair[0]), 0);
	}
	assert_int_equal(last, n);
	assert_null(queue.first);
}

static void test_orders_to_divert_are_bounded(void **state)
{
	int all = 0, one = 0;

	fill_socket();
	while (order(DIVERT_PUT, 7, 0, 0) == 0)
		one++;
	assert_int_equal(one, QUEUE_PUTS_OF_ONE);
	for (pid_t pid = 100; pid < 1000; pid++)
		all += order(DIVERT_PUT, pid, 0, 0) == 0;
	assert_int_equal(all, QUEUE_PUTS - QUEUE_PUTS_OF_ONE);
	assert_int_equal(order(DIVERT_TAKE_BACK, 7, 0, 0), 0);
}

static void test_children_are_bounded_and_do_not_take_the_room_of_others(void **state)
{
	int of_one = 0, all = 0;

	fill_socket();
	for (pid_t child = 1000; child < 100000; child++)
		of_one += order(DIVERT_FORKED, 7, child, 0) == 0;
	assert_int_equal(of_one, QUEUE_OTHERS_OF_ONE);
	assert_int_equal(order(DIVERT_FORKED, 8, 9, 0), 0);
	for (pid_t pid = 1000; pid < 100000; pid++)
		all += order(DIVERT_FORKED, pid, 9, 0) == 0;
	assert_int_equal(all, QUEUE_OTHERS - QUEUE_OTHERS_OF_ONE - 1);
	assert_int_equal(order(DIVERT_PUT, 7, 0, 0), 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(order(DIVERT_TAKE_BACK, i, 0, 0), 0);
}

static void test_many_processes_of_one_user_leave_room_for_others(void **state)
{
	int puts = 0, others = 0;

	fill_socket();
	for (pid_t pid = 1000; pid < 3000; pid++) {
		puts += order_of(1000, DIVERT_PUT, pid, 0, 0) == 0;
		others += order_of(1000, DIVERT_FORKED, pid, 9, 0) == 0;
		assert_int_equal(order_of(1000, DIVERT_TAKE_BACK, pid, 0, 0), 0);
	}
	assert_int_equal(puts, QUEUE_PUTS_OF_USER);
	assert_int_equal(others, QUEUE_OTHERS_OF_USER);
	assert_int_equal(order_of(1001, DIVERT_PUT, 7, 0, 0), 0);
	assert_int_equal(order_of(1001, DIVERT_FORKED, 7, 9, 0), 0);
	queue_keep_children(&queue); /* gives back what the rest had */
	assert_int_equal(queue.puts.taken, 0);
	assert_int_equal(queue.others.taken, QUEUE_OTHERS_OF_USER + 1);
}

static void test_what_is_gone_is_not_sent(void **state)
{
	struct divert_order received;
	int n = 0;

	fill_socket();
	order(DIVERT_PUT, 7, 0, 0);
	order(DIVERT_TAKE_BACK, 7, 0, 0);
	order(DIVERT_FORKED, 6, 7, 0);
	order(DIVERT_FORKED, 7, 8, 0);
	queue_forget(&queue, 7);
	assert_int_equal(order(DIVERT_GONE, 7, 0, 0), 0);
	while (receive(&received)) {
		queue_send(&queue, pair[0]);
		if (received.pid == 1)
			continue;
		assert_int_equal(received.pid, 7);
		assert_int_equal(received.kind, n++ ? DIVERT_GONE : DIVERT_FORKED);
	}
	assert_int_equal(n, 2);
	assert_int_equal(queue.puts.taken, 0);
}

/* Its caller closes its own at once. */
static void test_descriptors_are_kept_until_they_are_sent(void **state)
{
	const struct divert_order put = { .kind = DIVERT_PUT, .pid = 7 };
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC), kept;

	fill_socket();
	assert_int_equal(queue_order(&queue, pair[0], &put, file), 0);
	close(file);
	kept = queue.first->next->fd;
	assert_true(fcntl(kept, F_GETFD) >= 0);
	queue_keep_children(&queue);
	assert_true(fcntl(kept, F_GETFD) < 0);
	assert_null(queue.first);
}

static void test_nobody_there_is_told(void **state)
{
	fill_socket();
	close(pair[1]);
	pair[1] = -1;
	assert_int_equal(order(DIVERT_PUT, 7, 0, 0), -ECHILD);
	assert_int_equal(queue_send(&queue, pair[0]), -ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_waits_is_sent_in_order, begin, end),
		cmocka_unit_test_setup_teardown(test_orders_to_divert_are_bounded, begin, end),
		cmocka_unit_test_setup_teardown(
			test_children_are_bounded_and_do_not_take_the_room_of_others, begin, end),
		cmocka_unit_test_setup_teardown(
			test_many_processes_of_one_user_leave_room_for_others, begin, end),
		cmocka_unit_test_setup_teardown(test_what_is_gone_is_not_sent, begin, end),
		cmocka_unit_test_setup_teardown(test_descriptors_are_kept_until_they_are_sent,
		                                begin, end),
		cmocka_unit_test_setup_teardown(test_nobody_there_is_told, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
