// SPDX-License-Identifier: MIT
#include "agent/lib/wake.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/lib/own_fd.h"

static struct end {
	int fd;
	struct own_fd is; /* there before the number is */
} waits = { .fd = -1 }, wakes = { .fd = -1 };

static void set(struct end *end, int fd)
{
	end->is = own_fd_of(fd);
	__atomic_store_n(&end->fd, fd, __ATOMIC_RELEASE);
}

static int fd_of(const struct end *end)
{
	int fd = __atomic_load_n(&end->fd, __ATOMIC_ACQUIRE);

	return own_fd_is(fd, end->is) ? fd : -1;
}

static void close_end(struct end *end)
{
	int fd = __atomic_exchange_n(&end->fd, -1, __ATOMIC_ACQ_REL);

	own_fd_close(&fd, end->is);
}

bool wake_open(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return false;
	set(&waits, own_fd_move(pair[0]));
	set(&wakes, own_fd_move(pair[1]));
	return true;
}

void wake_close(void)
{
	close_end(&waits);
	close_end(&wakes);
}

/*
 * By write alone: it is done by a thread of the program's, whose filter of system calls may be
 * against send. Where the other end is closed a socket of this kind makes no SIGPIPE.
 */
void wake_up(void)
{
	int fd = fd_of(&wakes), error = errno;

	if (fd >= 0 && write(fd, "", 1) < 0) {
	}
	errno = error;
}

/* One whose other end is closed reads as nothing, at once and for ever. */
int wake_fd(void)
{
	return fd_of(&wakes) >= 0 ? fd_of(&waits) : -1;
}

void wake_done(void)
{
	int fd = fd_of(&waits);
	char byte;

	while (fd >= 0 && read(fd, &byte, 1) > 0)
		;
}
