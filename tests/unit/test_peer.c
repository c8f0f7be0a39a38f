// SPDX-License-Identifier: MIT
/* Whose the other end of a TCP connection is, as long as somebody has it. */
#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/peer.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int listen_on(int family, union address *at, socklen_t *bytes)
{
	int fd = socket(family, SOCK_STREAM, 0);

	*at = (union address){ 0 };
	if (family == AF_INET)
		at->v4 = (struct sockaddr_in){ .sin_family = AF_INET,
			                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	else
		at->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
			                        .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	*bytes = family == AF_INET ? sizeof(at->v4) : sizeof(at->v6);
	if (bind(fd, &at->any, *bytes))
		return -1; /* there is no IPv6 here */
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, &at->any, bytes), 0);
	return fd;
}

static void check(int family)
{
	union address at;
	socklen_t bytes;
	int listening = listen_on(family, &at, &bytes), diag = peer_open();
	int fd = socket(family, SOCK_STREAM, 0), other;
	uid_t user = 77;

	if (listening < 0)
		skip();
	assert_true(diag >= 0);
	assert_int_equal(connect(fd, &at.any, bytes), 0);
	assert_int_equal(peer_user(diag, fd, &user), -ENOENT); /* nobody has taken it yet */
	other = accept(listening, NULL, NULL);
	assert_int_equal(peer_user(diag, fd, &user), 0);
	assert_int_equal(user, geteuid());
	user = 77;
	assert_int_equal(peer_user(diag, other, &user), 0);
	assert_int_equal(user, geteuid());
	close(other);
	assert_int_equal(peer_user(diag, fd, &user), -ENOENT);
	close(fd);
	close(listening);
	close(diag);
}

static void test_whose_a_connection_is(void **state)
{
	check(AF_INET);
}

static void test_whose_a_connection_of_ipv6_is(void **state)
{
	check(AF_INET6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whose_a_connection_is),
		cmocka_unit_test(test_whose_a_connection_of_ipv6_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
