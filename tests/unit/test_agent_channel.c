// SPDX-License-Identifier: MIT
/* Who it is that connected. */
#include "unit.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent_channel.h"

static int connect_to(int fd, const char *name)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	memcpy(to.sun_path + 1, name, strlen(name));
	return connect(fd, (struct sockaddr *)&to,
	               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)));
}

static void test_who_connected_is_told(void **state)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), listener, accepted;
	char name[CHANNEL_NAME];
	struct err err;
	pid_t pid = -1;

	listener = channel_listen(name, &err);
	assert_true(listener >= 0);
	assert_int_equal(channel_accept(listener, &pid), -EAGAIN);
	assert_int_equal(connect_to(fd, name), 0);
	accepted = channel_accept(listener, &pid);
	assert_true(accepted >= 0);
	assert_int_equal(pid, getpid());
	close(accepted);
	close(listener);
	close(fd);
}

/* The socket lives on in another process; the number may be another's by now. */
static void test_one_that_has_ended_is_nobody(void **state)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), listener, accepted;
	char name[CHANNEL_NAME];
	struct err err;
	pid_t child, pid = -1;

	listener = channel_listen(name, &err);
	assert_true(listener >= 0);
	child = fork();
	if (child == 0)
		_exit(connect_to(fd, name) != 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	accepted = channel_accept(listener, &pid);
	assert_true(accepted >= 0);
	assert_int_equal(pid, 0);
	close(accepted);
	close(listener);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_connected_is_told),
		cmocka_unit_test(test_one_that_has_ended_is_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
