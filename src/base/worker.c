// SPDX-License-Identifier: MIT
#include "base/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/at_end.h"
#include "base/clock.h"
#include "base/rights.h"

#define LOOK_MS     50 /* at whether to stop */
#define SAFE_FD     16 /* above the numbers that a program has its descriptors by */
#define FILES_MAX   65536
#define DESCRIPTORS 64 /* of a command */

/* ---- messages ------------------------------------------------------------------------------ */

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static int send_message(int socket, const void *message, size_t bytes, int fd, int flags)
{
	union control control = { 0 };
	struct iovec data = { (void *)message, bytes };
	struct msghdr head = { .msg_iov = &data, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		head.msg_control = &control;
		head.msg_controllen = sizeof(control);
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	do
		n = sendmsg(socket, &head, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int worker_send(int socket, const void *message, size_t bytes, int fd)
{
	return send_message(socket, message, bytes, fd, 0);
}

int worker_send_now(int socket, const void *message, size_t bytes, int fd)
{
	int rc = send_message(socket, message, bytes, fd, MSG_DONTWAIT);

	return rc == -ENOBUFS || rc == -ENOMEM || rc == -ETOOMANYREFS ? -EAGAIN : rc;
}

/* Room for one descriptor, not for two: the kernel closes what else comes. */
ssize_t worker_receive(int socket, void *message, size_t bytes, int *fd)
{
	union control control = { 0 };
	struct iovec data = { message, bytes };
	struct msghdr head = { .msg_iov = &data,
		               .msg_iovlen = 1,
		               .msg_control = fd ? &control : NULL,
		               .msg_controllen = fd ? CMSG_LEN(sizeof(int)) : 0 };
	struct cmsghdr *first;
	ssize_t n;

	do
		n = recvmsg(socket, &head, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (!fd)
		return n < 0 ? -errno : n;
	*fd = -1;
	first = n > 0 ? CMSG_FIRSTHDR(&head) : NULL;
	if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS &&
	    first->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(first), sizeof(*fd));
	return n < 0 ? -errno : n;
}

int worker_wait(int fd, unsigned ms, const bool *stop)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	uint64_t until = clock_now_ms() + ms;

	while (!stop || !__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		if (poll(&one, 1, ms < LOOK_MS ? (int)ms : LOOK_MS) > 0)
			return 0;
		if (clock_now_ms() >= until)
			return -ETIMEDOUT;
	}
	return -ECANCELED;
}

/* ---- a copy of this process ------------------------------------------------------------------ */

static int first_ended(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return 0; /* another thread, which waits for all children, was faster */
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EAGAIN;
}

/* A worker that gives up its rights ends with who is its parent by then. */
static void wait_for_end_of(pid_t parent)
{
	while (getppid() == parent)
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
}

int worker_fork(bool own_session, void (*run)(void *data, int socket), void *data, int *socket)
{
	int pair[2], rc;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	child = fork();
	if (child == 0) {
		pid_t between = getpid();

		close(pair[0]);
		if (own_session)
			setsid();
		child = fork();
		if (child == 0) {
			wait_for_end_of(between);
			run(data, pair[1]);
		}
		_exit(child < 0 ? 1 : 0);
	}
	rc = child < 0 ? -errno : first_ended(child);
	close(pair[1]);
	if (rc)
		close(pair[0]);
	else
		*socket = pair[0];
	return rc;
}

static void close_between(unsigned first, unsigned last)
{
	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	for (unsigned fd = first; fd <= last && fd < FILES_MAX; fd++) /* before Linux 5.9 */
		close((int)fd);
}

void worker_close_all_but(int fd, int other)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int kept[] = { fd < other ? fd : other, fd < other ? other : fd };
	unsigned first = 3;

	for (int i = 0; i < 3; i++)
		if (null >= 0 && i != fd && i != other)
			dup2(null, i);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		if (kept[i] < 3)
			continue;
		close_between(first, (unsigned)kept[i] - 1);
		first = (unsigned)kept[i] + 1;
	}
	close_between(first, ~0u);
}

void worker_end_after(unsigned ms)
{
	const struct itimerval limit = {
		.it_value = { .tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000 }
	};
	sigset_t end;

	signal(SIGALRM, SIG_DFL);
	setitimer(ITIMER_REAL, &limit, NULL);
	sigemptyset(&end);
	sigaddset(&end, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &end, NULL);
}

/* Half of the way, and who is made by one that went it the rest. */
void worker_goes_first(void)
{
	AT_END(at_end_close) int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char now[16] = "";
	const char *score;

	if (fd < 0 || read(fd, now, sizeof(now) - 1) < 0)
		return;
	score = atoi(now) < 500 ? "500" : "1000";
	if (pwrite(fd, score, strlen(score), 0) < 0)
		errno = 0; /* then memory runs out for whom the kernel likes */
}

/* ---- another program ------------------------------------------------------------------------- */

static void set_signals(posix_spawnattr_t *attributes, bool deaf)
{
	sigset_t all, none;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(attributes, deaf ? &all : &none);
	posix_spawnattr_setsigdefault(attributes, &all);
	posix_spawnattr_setflags(attributes, deaf ? POSIX_SPAWN_SETSIGMASK
	                                          : POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
	                                                     POSIX_SPAWN_SETSID);
}

/* Only the C library's own way to start a process is quick where much is mapped. */
static int spawn(const struct worker_program *program, int socket, int with, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int rc;

	posix_spawn_file_actions_init(&actions);
	for (int i = 0; i < 3 && program->silent; i++)
		posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, socket, WORKER_SOCKET);
	if (with >= 0)
		posix_spawn_file_actions_adddup2(&actions, with, WORKER_SOCKET + 1);
	if (!program->path) /* by a path in /proc/self/fd a descriptor is still to be used */
		posix_spawn_file_actions_addclosefrom_np(&actions, with < 0 ? WORKER_SOCKET + 1
		                                                            : WORKER_SOCKET + 2);
	posix_spawnattr_init(&attributes);
	set_signals(&attributes, program->deaf);
	rc = posix_spawn(pid, program->path ? program->path : "/proc/self/exe", &actions,
	                 &attributes, program->argv, program->environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

static int spawn_with(const struct worker_program *program, int socket, pid_t *pid)
{
	int its_socket = fcntl(socket, F_DUPFD_CLOEXEC, SAFE_FD);
	int its_other = program->with < 0 ? -1 : fcntl(program->with, F_DUPFD_CLOEXEC, SAFE_FD);
	int rc = its_socket < 0 || (program->with >= 0 && its_other < 0)
	                 ? -errno
	                 : spawn(program, its_socket, its_other, pid);

	if (its_socket >= 0)
		close(its_socket);
	if (its_other >= 0)
		close(its_other);
	return rc;
}

/* By a pidfd from now on: once another thread was told of its end, its number is anybody's. */
static int take(struct worker *worker, pid_t pid, int socket)
{
	*worker = (struct worker){ .pid = pid, .pidfd = -1, .socket = socket };
	worker->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return worker->pidfd < 0 ? -errno : 0;
}

int worker_start(struct worker *worker, const struct worker_program *program)
{
	int pair[2], rc;
	pid_t pid = 0;

	*worker = (struct worker){ .pidfd = -1, .socket = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	rc = spawn_with(program, pair[1], &pid);
	close(pair[1]);
	if (!rc) {
		rc = take(worker, pid, pair[0]);
		if (!rc)
			return 0;
		kill(pid, SIGKILL); /* ours until it is waited for */
		waitpid(pid, NULL, 0);
	}
	close(pair[0]);
	*worker = (struct worker){ .pidfd = -1, .socket = -1 };
	return rc;
}

/* ---- a program of the system's -----------------------------------------------------------------
 */

/* The descriptor of the program, or -1. */
static int take_descriptors(const struct worker_command *command)
{
	int program = fcntl(command->program, F_DUPFD_CLOEXEC, SAFE_FD),
	    n = ARRAY_SIZE(command->fds);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), high[ARRAY_SIZE(command->fds)];

	for (int i = 0; i < n; i++)
		high[i] = fcntl(command->fds[i] < 0 ? null : command->fds[i], F_DUPFD_CLOEXEC,
		                SAFE_FD);
	for (int i = 0; i < n; i++)
		if (program < 0 || high[i] < 0 || dup2(high[i], i) < 0)
			return -1;
	close_between((unsigned)n, (unsigned)program - 1);
	close_between((unsigned)program + 1, ~0u);
	return program;
}

static int give_up_rights(const struct worker_command *command)
{
	int rc = rights_limit(RLIMIT_CPU, command->cpu_s);

	rc = rc ? rc : rights_limit(RLIMIT_FSIZE, command->file_bytes);
	rc = rc ? rc : rights_limit(RLIMIT_CORE, 0);
	rc = rc ? rc : rights_limit(RLIMIT_NOFILE, DESCRIPTORS);
	if (!rc)
		rc = command->user ? rights_become(command->user, command->group)
		                   : rights_become_unseen();
	return rc ? rc : rights_close();
}

__attribute__((noreturn)) static void run_command(const struct worker_command *command)
{
	int program = take_descriptors(command);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	umask(077);
	setsid();
	if (command->nice)
		setpriority(PRIO_PROCESS, 0, command->nice);
	if (program >= 0 && !chdir("/") && !give_up_rights(command))
		syscall(SYS_execveat, program, "", command->argv, command->environment,
		        AT_EMPTY_PATH);
	_exit(126);
}

int worker_run(struct worker *worker, const struct worker_command *command)
{
	pid_t pid = fork();

	if (pid == 0)
		run_command(command);
	*worker = (struct worker){ .pidfd = -1, .socket = -1 };
	return pid < 0 ? -errno : take(worker, pid, -1);
}

/* ---- end ----------------------------------------------------------------------------------- */

bool worker_ended(struct worker *worker, unsigned ms, siginfo_t *info)
{
	struct pollfd end = { .fd = worker->pidfd, .events = POLLIN };
	siginfo_t none;

	info = info ? info : &none;
	info->si_pid = 0;
	if (worker->pidfd >= 0) {
		if (poll(&end, 1, (int)ms) <= 0)
			return false;
		waitid((idtype_t)P_PIDFD, (id_t)worker->pidfd, info, WEXITED | WNOHANG);
		close(worker->pidfd);
	}
	if (worker->socket >= 0)
		close(worker->socket);
	*worker = (struct worker){ .pidfd = -1, .socket = -1 };
	return true;
}

bool worker_kill(struct worker *worker, unsigned ms, siginfo_t *info)
{
	if (worker->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, worker->pidfd, SIGKILL, NULL, 0);
	if (worker->socket >= 0)
		close(worker->socket);
	worker->socket = -1;
	return worker_ended(worker, ms, info);
}
