// SPDX-License-Identifier: MIT
#include "node/recorder_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/recorder_process.h"

#define PATIENCE_NS 5000000000ull /* for one that takes its probes away */
#define SAFE_FD     16            /* above the numbers that it has them by */

static void no_signals(posix_spawnattr_t *attributes)
{
	sigset_t signals;

	posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
	                                             POSIX_SPAWN_SETSID);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(attributes, &signals);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(attributes, &signals);
}

/* cuscope's own file; of the descriptors it has the standard ones and these two. */
static int spawn(int socket, int spool, pid_t *pid)
{
	char name[] = RECORDER_NAME, *argv[] = { name, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, socket, RECORDER_SOCKET);
	posix_spawn_file_actions_adddup2(&actions, spool, RECORDER_SPOOL);
	posix_spawn_file_actions_addclosefrom_np(&actions, RECORDER_SPOOL + 1);
	posix_spawnattr_init(&attributes);
	no_signals(&attributes);
	rc = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

static int spawn_with(int socket, int spool, pid_t *pid)
{
	int its_socket = fcntl(socket, F_DUPFD_CLOEXEC, SAFE_FD);
	int its_spool = fcntl(spool, F_DUPFD_CLOEXEC, SAFE_FD);
	int rc = its_socket < 0 || its_spool < 0 ? -errno : spawn(its_socket, its_spool, pid);

	if (its_socket >= 0)
		close(its_socket);
	if (its_spool >= 0)
		close(its_spool);
	return rc;
}

int recorder_child_start(struct recorder_child *child, const struct recorder_settings *settings,
                         int spool, struct err *err)
{
	struct recorder_message setup = { .kind = RECORDER_SETUP, .setup = *settings };
	int pair[2], rc;

	*child = (struct recorder_child){ .pidfd = -1, .socket = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_set(err, errno, "starting the recorder: %s", strerror(errno));
	rc = spawn_with(pair[1], spool, &child->pid);
	close(pair[1]);
	if (rc) {
		close(pair[0]);
		child->pid = 0;
		return err_set(err, rc, "starting the recorder: %s", strerror(-rc));
	}
	child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	child->socket = pair[0];
	recorder_send(child->socket, &setup);
	return 0;
}

void recorder_child_stop(struct recorder_child *child, uint64_t now_ns)
{
	if (!child->pid || child->socket < 0)
		return;
	close(child->socket);
	child->socket = -1;
	child->ready = false;
	child->end_by_ns = now_ns + PATIENCE_NS;
}

static void forget(struct recorder_child *child)
{
	if (child->socket >= 0)
		close(child->socket);
	if (child->pidfd >= 0)
		close(child->pidfd);
	*child = (struct recorder_child){ .pidfd = -1, .socket = -1 };
}

/* By its pidfd: another thread that waits for all children may have been told of its end. */
static bool is_gone(const struct recorder_child *child)
{
	siginfo_t info = { 0 };

	if (child->pidfd < 0)
		return waitpid(child->pid, NULL, WNOHANG) != 0;
	if (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | WNOHANG) < 0)
		return errno == ECHILD;
	return info.si_pid != 0;
}

bool recorder_child_ended(struct recorder_child *child, uint64_t now_ns)
{
	if (!child->pid)
		return true;
	if (is_gone(child)) {
		forget(child);
		return true;
	}
	if (child->end_by_ns && now_ns >= child->end_by_ns && child->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
	return false;
}
