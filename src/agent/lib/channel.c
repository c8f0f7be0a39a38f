// SPDX-License-Identifier: MIT
#include "agent/lib/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/lib/clock.h"

/* ---- wake ---------------------------------------------------------------------------------- */

static struct wake_end {
	int fd;
	struct own_fd is; /* there before the number is */
} wake_waits = { .fd = -1 }, wakes = { .fd = -1 };
static uint32_t writing; /* threads that are about to write to `wakes` */

static void wake_set(struct wake_end *end, int fd)
{
	end->is = own_fd_of(fd);
	__atomic_store_n(&end->fd, fd, __ATOMIC_RELEASE);
}

static int fd_of(const struct wake_end *end)
{
	int fd = __atomic_load_n(&end->fd, __ATOMIC_SEQ_CST);

	return own_fd_is(fd, end->is) ? fd : -1;
}

static void close_end(struct wake_end *end)
{
	int fd = __atomic_exchange_n(&end->fd, -1, __ATOMIC_ACQ_REL);

	own_fd_close(&fd, end->is);
}

bool wake_open(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return false;
	wake_set(&wake_waits, own_fd_move(pair[0]));
	wake_set(&wakes, own_fd_move(pair[1]));
	return true;
}

#define WRITES_PAUSE_MS 1
#define WRITES_PAUSES   1000 /* then it stays open: a thread was stopped, or ended, in its write */

/* Once no thread writes: the number could be another file's by then. */
void wake_close(void)
{
	int fd = __atomic_exchange_n(&wakes.fd, -1, __ATOMIC_SEQ_CST);

	close_end(&wake_waits);
	for (int i = 0; i < WRITES_PAUSES && __atomic_load_n(&writing, __ATOMIC_SEQ_CST); i++)
		clock_pause_ms(WRITES_PAUSE_MS);
	if (!__atomic_load_n(&writing, __ATOMIC_SEQ_CST))
		own_fd_close(&fd, wakes.is);
}

/*
 * By write alone: it is done by a thread of the program's, whose filter of system calls may be
 * against send; and by none at which a thread could be cancelled, which would count for good. Where
 * the other end is closed a socket of this kind makes no SIGPIPE.
 */
void wake_up(void)
{
	int fd, error = errno;

	__atomic_add_fetch(&writing, 1, __ATOMIC_SEQ_CST);
	fd = fd_of(&wakes);
	if (fd >= 0 && syscall(SYS_write, fd, "", 1) < 0) {
	}
	__atomic_sub_fetch(&writing, 1, __ATOMIC_SEQ_CST);
	errno = error;
}

void wake_forked(void)
{
	writing = 0;
}

/* One whose other end is closed reads as nothing, at once and for ever. */
int wake_fd(void)
{
	return fd_of(&wakes) >= 0 ? fd_of(&wake_waits) : -1;
}

void wake_done(void)
{
	int fd = fd_of(&wake_waits);
	char byte;

	while (fd >= 0 && read(fd, &byte, 1) > 0)
		;
}

/* ---- own fd -------------------------------------------------------------------------------- */

#define HIGH 4096 /* each number below takes the kernel some 8 bytes */

int own_fd_move(int fd)
{
	struct rlimit most;
	int high = HIGH, moved;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &most))
		return fd;
	if (most.rlim_cur < 2 * HIGH)
		high = (int)most.rlim_cur * 3 / 4;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, high);
	if (moved < 0)
		return fd;
	close(fd);
	return moved;
}

void own_fd_room(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return;
	close(own_fd_move(pair[0]));
	close(pair[1]);
}

/* Not by glibc: its fstat has another name since 2.33. */
struct own_fd own_fd_of(int fd)
{
	struct stat st;

	if (fd < 0 || syscall(SYS_fstat, fd, &st))
		return (struct own_fd){ 0 };
	return (struct own_fd){ st.st_dev, st.st_ino };
}

bool own_fd_is(int fd, struct own_fd own)
{
	const struct own_fd now = own_fd_of(fd);

	return now.inode && now.inode == own.inode && now.device == own.device;
}

void own_fd_close(int *fd, struct own_fd own)
{
	if (own_fd_is(*fd, own))
		close(*fd);
	*fd = -1;
}

/* ---- channel ------------------------------------------------------------------------------- */

#define CONNECT_MOST_S 2 /* where more wait for cuscope than its socket holds */

/*
 * The variable that has the name lives on in a program's children after cuscope has ended. Then
 * anybody on the machine can take the name, and could send a libcupti of his own.
 */
static bool is_trusted(int socket)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t length = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

static int connect_to(int socket, const struct sockaddr_un *to, size_t length)
{
	const struct timeval most = { .tv_sec = CONNECT_MOST_S };

	if (setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0 ||
	    connect(socket, (const struct sockaddr *)to,
	            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) < 0)
		return -errno;
	return is_trusted(socket) ? 0 : -EACCES;
}

int channel_connect(const char *address, struct own_fd *is)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	unsigned abi = 0;
	size_t length;
	int fd, code;

	for (; *address >= '0' && *address <= '9' && abi < 100000; address++)
		abi = abi * 10 + (unsigned)(*address - '0');
	if (abi != AGENT_ABI || *address++ != ':')
		return -EPROTO;
	length = strlen(address);
	if (!length || length >= sizeof(to.sun_path))
		return -EINVAL;
	memcpy(to.sun_path + 1, address, length); /* a NUL first: abstract */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	*is = own_fd_of(fd);
	code = connect_to(fd, &to, length);
	if (!own_fd_is(fd, *is))
		return -EBADF; /* the program has closed it meanwhile */
	if (!code)
		return fd;
	close(fd);
	return code;
}

static void take_fds(struct msghdr *packet, int fds[CHANNEL_FDS])
{
	struct cmsghdr *part = CMSG_FIRSTHDR(packet);
	int n = 0;

	for (; part; part = CMSG_NXTHDR(packet, part)) {
		size_t bytes = part->cmsg_len - CMSG_LEN(0);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < bytes / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
			if (n < CHANNEL_FDS)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
}

/* A signal to the program does not end it. */
static bool wait_for_message(int socket, int timeout_ms)
{
	struct pollfd ready = { .fd = socket, .events = POLLIN };
	uint64_t now = clock_now(), until = now + (uint64_t)timeout_ms * 1000000;
	int n;

	do {
		n = poll(&ready, 1, (int)((until - now) / 1000000));
		now = clock_now();
	} while (n < 0 && errno == EINTR && now < until);
	return n > 0;
}

int channel_receive(int socket, struct own_fd is, int timeout_ms, struct agent_message *message,
                    int fds[CHANNEL_FDS])
{
	union {
		char bytes[CMSG_SPACE(CHANNEL_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = { .iov_base = message, .iov_len = sizeof(*message) };
	struct msghdr packet = { .msg_iov = &part,
		                 .msg_iovlen = 1,
		                 .msg_control = control.bytes,
		                 .msg_controllen = sizeof(control.bytes) };
	ssize_t got;

	for (int i = 0; i < CHANNEL_FDS; i++)
		fds[i] = -1;
	if (timeout_ms && !wait_for_message(socket, timeout_ms))
		return 0;
	if (!own_fd_is(socket, is)) /* what came is the program's */
		return -EPIPE;
	got = recvmsg(socket, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	take_fds(&packet, fds);
	return got == sizeof(*message) ? 1 : got ? -EPROTO : -EPIPE;
}

void channel_ring(int bell)
{
	char byte;

	/* None: it was rung already, and cuscope has yet to look. */
	if (recv(bell, &byte, sizeof(byte), MSG_DONTWAIT) < 0) {
	}
}
