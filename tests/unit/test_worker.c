// SPDX-License-Identifier: MIT
/* Processes that are asked: how they begin, what they have, what is said to them, and their end. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rights.h"
#include "base/worker.h"

#define CHILD "test-worker"

/* What a worker says of itself. */
struct told {
	pid_t pid, parent, session;
	unsigned descriptors; /* a bit for each, of the first 32 */
	char environment;     /* whether it has any */
};

static unsigned descriptors(void)
{
	unsigned bits = 0;

	for (int fd = 0; fd < 32; fd++)
		bits |= (unsigned)(fcntl(fd, F_GETFD) >= 0) << fd;
	return bits;
}

static void tell(void *data, int socket)
{
	struct told told = { getpid(), getppid(), getsid(0), descriptors(), environ && *environ };

	worker_send(socket, &told, sizeof(told), -1);
	while (worker_receive(socket, &told, sizeof(told), NULL) > 0)
		;
	_exit(7);
}

static void close_and_tell(void *data, int socket)
{
	worker_close_all_but(socket, *(int *)data);
	tell(NULL, socket);
}

static struct told hear(int socket)
{
	struct told told = { 0 };

	assert_int_equal(worker_wait(socket, 5000, NULL), 0);
	assert_int_equal(worker_receive(socket, &told, sizeof(told), NULL), sizeof(told));
	return told;
}

/* As who asks a stranger's service does: at once, before anything else. */
static void close_and_stay(void *data, int socket)
{
	int rc = rights_close();

	nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
	worker_send(socket, &rc, sizeof(rc), -1);
	_exit(0);
}

/* ---- messages ------------------------------------------------------------------------------ */

static int pair[2];

static int open_pair(void **state)
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int close_pair(void **state)
{
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static void test_a_message_comes_with_its_descriptor(void **state)
{
	int fd = -1, other = -1;
	char text[8] = "";

	assert_int_equal(worker_send(pair[0], "one", 4, STDERR_FILENO), 0);
	assert_int_equal(worker_send(pair[0], "two", 4, -1), 0);
	assert_int_equal(worker_receive(pair[1], text, sizeof(text), &fd), 4);
	assert_string_equal(text, "one");
	assert_true(fd > STDERR_FILENO && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	assert_int_equal(worker_receive(pair[1], text, sizeof(text), &other), 4);
	assert_int_equal(other, -1);
	close(fd);
	close(pair[0]);
	pair[0] = -1;
	assert_int_equal(worker_receive(pair[1], text, sizeof(text), &fd), 0);
}

/* Of a worker that was taken over. */
static void send_two(void)
{
	int fds[] = { STDERR_FILENO, STDOUT_FILENO };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(fds))];
	} control = { .head = { CMSG_LEN(sizeof(fds)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec data = { "x", 1 };
	struct msghdr head = { .msg_iov = &data,
		               .msg_iovlen = 1,
		               .msg_control = &control,
		               .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
	assert_int_equal(sendmsg(pair[0], &head, 0), 1);
}

static void test_no_more_descriptors_come_than_there_is_room_for(void **state)
{
	unsigned before = descriptors();
	int fd = -1;
	char x;

	send_two();
	assert_int_equal(worker_receive(pair[1], &x, 1, NULL), 1);
	assert_int_equal(descriptors(), before);
	send_two();
	assert_int_equal(worker_receive(pair[1], &x, 1, &fd), 1);
	close(fd);
	assert_int_equal(descriptors(), before);
}

static void test_what_has_no_room_now_is_said(void **state)
{
	static char page[4096];
	int rc, n = 0;

	while (!(rc = worker_send_now(pair[0], page, sizeof(page), -1)))
		n++;
	assert_int_equal(rc, -EAGAIN);
	assert_true(n > 0);
	close(pair[1]);
	pair[1] = -1;
	rc = worker_send_now(pair[0], page, 1, -1);
	assert_true(rc < 0 && rc != -EAGAIN);
}

static void test_nobody_waits_for_longer_than_was_said(void **state)
{
	bool stop = true;
	struct timespec begin, end;

	assert_int_equal(worker_wait(pair[0], 60000, &stop), -ECANCELED);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_int_equal(worker_wait(pair[0], 20, NULL), -ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - begin.tv_sec < 10);
	assert_int_equal(worker_send(pair[1], "x", 1, -1), 0);
	assert_int_equal(worker_wait(pair[0], 20, NULL), 0);
}

/* ---- beginnings and ends --------------------------------------------------------------------- */

static void test_a_copy_is_nobodys_child_and_has_its_session(void **state)
{
	struct told told;
	int socket;

	assert_int_equal(worker_fork(true, tell, NULL, &socket), 0);
	told = hear(socket);
	assert_int_not_equal(told.session, getsid(0));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	close(socket);
	assert_int_equal(worker_fork(false, tell, NULL, &socket), 0);
	assert_int_equal(hear(socket).session, getsid(0));
	close(socket);
}

static void test_a_copy_keeps_what_it_is_to_keep(void **state)
{
	int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 20), others[8], socket;
	unsigned bits;

	for (int i = 0; i < 8; i++)
		others[i] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(worker_fork(true, close_and_tell, &kept, &socket), 0);
	bits = hear(socket).descriptors;
	assert_int_equal(bits & 7, 7);
	assert_true(bits & 1u << kept);
	assert_int_equal(__builtin_popcount(bits), 5); /* and its socket */
	close(socket);
	close(kept);
	for (int i = 0; i < 8; i++)
		close(others[i]);
}

static void test_a_program_has_its_socket_and_what_it_was_given(void **state)
{
	char *argv[] = { CHILD, NULL }, *environment[] = { NULL };
	struct worker_program program = { .argv = argv, .environment = environment, .with = -1 };
	struct worker worker;
	struct told told;
	siginfo_t info;

	assert_int_equal(worker_start(&worker, &program), 0);
	told = hear(worker.socket);
	assert_int_equal(told.pid, worker.pid);
	assert_int_equal(told.session, worker.pid);
	assert_int_equal(told.descriptors, 0xf);
	assert_false(told.environment);
	assert_false(worker_ended(&worker, 0, &info));
	shutdown(worker.socket, SHUT_RDWR);
	assert_true(worker_ended(&worker, 5000, &info));
	assert_int_equal(info.si_code, CLD_EXITED);
	assert_int_equal(info.si_status, 7);
	assert_int_equal(worker.pid, 0);
	program.with = STDERR_FILENO;
	program.deaf = true;
	assert_int_equal(worker_start(&worker, &program), 0);
	told = hear(worker.socket);
	assert_int_equal(told.descriptors, 0x1f);
	assert_int_equal(told.session, getsid(0));
	assert_true(worker_kill(&worker, 5000, &info));
	assert_int_equal(info.si_status, SIGKILL);
	program.path = "/nowhere";
	assert_int_equal(worker_start(&worker, &program), -ENOENT);
	assert_int_equal(worker.pid, 0);
}

static void test_a_command_has_no_rights(void **state)
{
	char *argv[] = { "sh", "-c", "id -u; ulimit -t; ls /proc/self/fd | wc -l; cat; exit 3",
		         NULL };
	char *environment[] = { "PATH=/usr/bin:/bin", NULL };
	struct worker_command command = { .argv = argv,
		                          .environment = environment,
		                          .fds = { -1, -1, -1, -1 },
		                          .cpu_s = 17,
		                          .user = RIGHTS_NOBODY,
		                          .group = RIGHTS_NOBODY };
	struct worker worker;
	char text[64] = "", expected[64];
	siginfo_t info;
	int out[2];

	command.program = open("/bin/sh", O_PATH | O_CLOEXEC);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	command.fds[1] = out[1];
	assert_int_equal(worker_run(&worker, &command), 0);
	close(out[1]);
	assert_true(worker_ended(&worker, 10000, &info));
	assert_int_equal(info.si_status, 3);
	assert_true(read(out[0], text, sizeof(text) - 1) > 0);
	snprintf(expected, sizeof(expected), "%u\n17\n5\n", geteuid() ? geteuid() : RIGHTS_NOBODY);
	assert_string_equal(text, expected);
	close(out[0]);
	close(command.program);
}

static void test_one_that_does_not_end_is_killed(void **state)
{
	char *argv[] = { "sleep", "1000", NULL }, *environment[] = { NULL };
	struct worker_command command = {
		.argv = argv, .environment = environment, .fds = { -1, -1, -1, -1 }, .cpu_s = 1
	};
	struct worker worker;
	siginfo_t info;

	command.program = open("/bin/sleep", O_PATH | O_CLOEXEC);
	assert_int_equal(worker_run(&worker, &command), 0);
	assert_int_equal(worker_wait(worker.pidfd, 20, NULL), -ETIMEDOUT);
	assert_true(worker_kill(&worker, 5000, &info));
	assert_int_equal(info.si_code, CLD_KILLED);
	assert_true(worker_kill(&worker, 0, NULL)); /* nobody has ended */
	close(command.program);
}

/* It ends with its parent, which is never who was there for a moment to make it nobody's child. */
static void test_a_copy_that_gives_up_its_rights_at_once_stays(void **state)
{
	for (int i = 0; i < 50; i++) {
		int socket, rc = -1;

		assert_int_equal(worker_fork(false, close_and_stay, NULL, &socket), 0);
		assert_int_equal(worker_wait(socket, 5000, NULL), 0);
		assert_int_equal(worker_receive(socket, &rc, sizeof(rc), NULL), sizeof(rc));
		assert_int_equal(rc, 0);
		close(socket);
	}
}

static void wait_for_good(void *data, int socket)
{
	char byte;

	worker_end_after(100);
	for (;;)
		if (read(*(int *)data, &byte, 1) < 0)
			_exit(1);
}

/* Made by a thread that hears no signals, as those beside the main loop. */
static void test_a_copy_ends_after_its_time(void **state)
{
	int never[2], socket;
	sigset_t all, before;
	char byte;

	assert_int_equal(pipe(never), 0);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	assert_int_equal(worker_fork(true, wait_for_good, never, &socket), 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(worker_wait(socket, 5000, NULL), 0);
	assert_int_equal(worker_receive(socket, &byte, 1, NULL), 0);
	close(socket);
	close(never[0]);
	close(never[1]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_message_comes_with_its_descriptor, open_pair,
		                                close_pair),
		cmocka_unit_test_setup_teardown(
			test_no_more_descriptors_come_than_there_is_room_for, open_pair,
			close_pair),
		cmocka_unit_test_setup_teardown(test_what_has_no_room_now_is_said, open_pair,
		                                close_pair),
		cmocka_unit_test_setup_teardown(test_nobody_waits_for_longer_than_was_said,
		                                open_pair, close_pair),
		cmocka_unit_test(test_a_copy_is_nobodys_child_and_has_its_session),
		cmocka_unit_test(test_a_copy_that_gives_up_its_rights_at_once_stays),
		cmocka_unit_test(test_a_copy_keeps_what_it_is_to_keep),
		cmocka_unit_test(test_a_copy_ends_after_its_time),
		cmocka_unit_test(test_a_program_has_its_socket_and_what_it_was_given),
		cmocka_unit_test(test_a_command_has_no_rights),
		cmocka_unit_test(test_one_that_does_not_end_is_killed),
	};

	if (!strcmp(argv[0], CHILD))
		tell(NULL, WORKER_SOCKET);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
