// SPDX-License-Identifier: MIT
#include "stack/lines/reader.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "probe/helper_inside.h"

#define LOOK_MS    50  /* at whether we are to stop */
#define LEAVING_MS 200 /* one that waits for a file's server does not end by SIGKILL */

/* ---- beginning and end --------------------------------------------------------------------- */

/* Nothing of cuscope's is handed on: its descriptors close, and the environment is empty. */
static int spawn(int socket, pid_t *pid)
{
	char name[] = READER_NAME, *argv[] = { name, NULL }, *environment[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t signals;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, socket, READER_SOCKET);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
	                                              POSIX_SPAWN_SETSID);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attributes, &signals);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	rc = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

static int fork_and_run(int socket, int other, void (*run)(int socket), pid_t *pid)
{
	*pid = fork();
	if (*pid == 0) {
		close(other);
		run(socket);
		_exit(0);
	}
	return *pid < 0 ? -errno : 0;
}

int reader_start(struct reader *reader, void (*run)(int socket))
{
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	rc = run ? fork_and_run(pair[1], pair[0], run, &reader->pid) : spawn(pair[1], &reader->pid);
	close(pair[1]);
	if (rc) {
		close(pair[0]);
		reader->pid = 0;
		return rc;
	}
	reader->pidfd = (int)syscall(SYS_pidfd_open, reader->pid, 0);
	reader->socket = pair[0];
	reader->message = xmalloc(LINES_ANSWER_BYTES);
	return 0;
}

/* By its pidfd: another thread that waits for all children may have been told of its end. */
static void kill_reader(const struct reader *reader)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	if (reader->pidfd < 0)
		return;
	syscall(SYS_pidfd_send_signal, reader->pidfd, SIGKILL, NULL, 0);
	for (int ms = 0; ms < LEAVING_MS; ms += 2) {
		if (waitid(P_PIDFD, (id_t)reader->pidfd, NULL, WEXITED | WNOHANG) < 0 &&
		    errno == ECHILD)
			return;
		nanosleep(&pause, NULL);
	}
}

void reader_end(struct reader *reader)
{
	if (!reader->pid)
		return;
	kill_reader(reader);
	if (reader->pidfd >= 0)
		close(reader->pidfd);
	close(reader->socket);
	free(reader->message);
	buf_free(&reader->texts);
	*reader = (struct reader){ 0 };
}

/* ---- asking -------------------------------------------------------------------------------- */

int reader_send(struct reader *reader, enum lines_what what, uint32_t crc, int fd)
{
	const struct lines_request request = { .what = what, .crc = crc };

	return worker_send(reader->socket, &request, sizeof(request), fd);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* 0: there is something to be read. */
static int wait_for(const struct reader *reader, unsigned ms, const bool *stop)
{
	struct pollfd one = { .fd = reader->socket, .events = POLLIN };
	uint64_t until = now_ms() + ms;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		if (poll(&one, 1, LOOK_MS) > 0)
			return 0;
		if (now_ms() > until)
			return -ETIMEDOUT;
	}
	return -ECANCELED;
}

/* Without room for descriptors: the kernel drops those that a process that was taken over sends. */
static ssize_t receive(const struct reader *reader)
{
	ssize_t bytes;

	do
		bytes = recv(reader->socket, reader->message, LINES_ANSWER_BYTES, 0);
	while (bytes < 0 && errno == EINTR);
	return bytes;
}

int reader_ask(struct reader *reader, enum lines_what what, uint64_t offset, unsigned ms,
               const bool *stop, struct lines_answer *answer)
{
	const struct lines_request request = { .what = what, .offset = offset };
	int rc = worker_send(reader->socket, &request, sizeof(request), -1);
	ssize_t bytes;

	if (rc)
		return -EPIPE;
	rc = wait_for(reader, ms, stop);
	if (rc)
		return rc;
	bytes = receive(reader);
	if (bytes <= 0)
		return -EPIPE;
	return lines_answer_read(reader->message, (size_t)bytes, answer, &reader->texts) ? 0
	                                                                                 : -EBADMSG;
}
