// SPDX-License-Identifier: MIT
/* Which of the node agent's connections end where there are too many. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/clients.h"

#define MOST        16
#define MOST_OF_ONE 12

static struct client *add(struct clients *clients, const char *address, int *fd)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	int pair[2];

	assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	*fd = pair[1];
	return clients_add(clients, pair[0], (const struct sockaddr *)&from, 1);
}

static bool is_open(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0;
}

static void test_who_has_most_gives_way(void **state)
{
	struct clients *clients = clients_new(MOST, MOST_OF_ONE);
	int of_one, of_two[8 * MOST];

	add(clients, "198.51.100.1", &of_one);
	for (int i = 0; i < 8 * MOST; i++)
		add(clients, i % 2 ? "198.51.100.2" : "198.51.100.3", &of_two[i]);
	assert_true(is_open(of_one));
	assert_false(is_open(of_two[0]));
	assert_true(is_open(of_two[8 * MOST - 1]));
	assert_int_equal(clients_ended(clients), 1 + 8 * MOST - MOST);
	clients_free(clients);
}

static void test_of_many_the_oldest_gives_way(void **state)
{
	struct clients *clients = clients_new(MOST, MOST_OF_ONE);
	int fds[2 * MOST];
	char address[32];

	for (int i = 0; i < 2 * MOST; i++) {
		snprintf(address, sizeof(address), "198.51.100.%d", i + 1);
		add(clients, address, &fds[i]);
	}
	for (int i = 0; i < 2 * MOST; i++)
		assert_int_equal(is_open(fds[i]), i >= MOST);
	clients_free(clients);
}

/* Whatever address of this machine its sockets have. */
static void test_connections_within_the_machine_are_a_users(void **state)
{
	struct clients *clients = clients_new(MOST, MOST_OF_ONE);
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in said = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fds[MOST + 1];
	socklen_t bytes = sizeof(at);
	char address[32];

	assert_int_equal(bind(listener, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, MOST), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
	for (int i = 0; i <= MOST; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(fds[i], (const struct sockaddr *)&at, sizeof(at)), 0);
		snprintf(address, sizeof(address), "198.51.100.%d", i + 1);
		assert_int_equal(inet_pton(AF_INET, address, &said.sin_addr), 1);
		clients_add(clients, accept(listener, NULL, NULL), (const struct sockaddr *)&said,
		            1);
	}
	assert_int_equal(clients_ended(clients), MOST + 1 - MOST_OF_ONE);
	clients_free(clients);
}

/* Where nobody knows any more whose they were, they are one's: else each is from an address of its
 * own. What is said from elsewhere is as many. */
static void test_connections_that_are_over_are_of_one(void **state)
{
	for (int here = 0; here < 2; here++) {
		struct clients *clients = clients_new(MOST, MOST_OF_ONE);
		struct sockaddr_in from = { .sin_family = AF_INET };

		for (int i = 0; i < MOST; i++) {
			from.sin_addr.s_addr = htonl((here ? 127u << 24 : 198u << 24 | 51 << 16) +
			                             2 + (uint32_t)i);
			clients_add(clients, socket(AF_INET, SOCK_STREAM, 0),
			            (const struct sockaddr *)&from, 1);
		}
		assert_int_equal(clients_ended(clients), here ? MOST - MOST_OF_ONE : 0);
		clients_free(clients);
	}
}

/* Not who was there before. */
static void test_who_has_too_many_loses_his_oldest(void **state)
{
	struct clients *clients = clients_new(MOST, MOST_OF_ONE);
	int of_another, fds[MOST_OF_ONE + 1];

	add(clients, "198.51.100.1", &of_another);
	for (int i = 0; i <= MOST_OF_ONE; i++)
		add(clients, "198.51.100.2", &fds[i]);
	assert_true(is_open(of_another));
	assert_false(is_open(fds[0]));
	assert_true(is_open(fds[1]));
	assert_true(is_open(fds[MOST_OF_ONE]));
	clients_free(clients);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_has_most_gives_way),
		cmocka_unit_test(test_of_many_the_oldest_gives_way),
		cmocka_unit_test(test_connections_within_the_machine_are_a_users),
		cmocka_unit_test(test_connections_that_are_over_are_of_one),
		cmocka_unit_test(test_who_has_too_many_loses_his_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
