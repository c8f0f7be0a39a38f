// SPDX-License-Identifier: MIT
#include "agent/agent_channel.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/sockios.h>

#define BACKLOG  128
#define FDS_MOST 3
#define TAKEN    256 /* bytes: less than the kernel counts of one that is there */

#ifndef SO_PEERPIDFD /* Linux 6.5 */
#define SO_PEERPIDFD 77
#endif
#ifndef SO_PASSRIGHTS /* Linux 6.16 */
#define SO_PASSRIGHTS 83
#endif

int channel_listen(char name[CHANNEL_NAME], struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	uint64_t random[2] = { 0 };
	socklen_t length;
	int fd, rc, none = 0;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_set(err, EIO, "cannot get random bytes for the name of a socket");
	snprintf(name, CHANNEL_NAME, "cuscope-%016lx%016lx", random[0], random[1]);
	memcpy(address.sun_path + 1, name, strlen(name)); /* a NUL first: abstract */
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >=
	    0) /* who connects has it from here; where the kernel has it not, nothing breaks */
		setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	rc = err_set(err, errno, "cannot make a socket for GPU times to come by: %s",
	             strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Then its number can be another's, which did not connect. Before Linux 6.5 that is not told. */
static bool peer_has_ended(int fd)
{
	socklen_t length = sizeof(int);
	struct pollfd peer = { .events = POLLIN };
	bool ended;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &peer.fd, &length) < 0)
		return errno != ENOPROTOOPT && errno != EMFILE;
	ended = poll(&peer, 1, 0) > 0;
	close(peer.fd);
	return ended;
}

int channel_accept(int listener, pid_t *pid)
{
	struct ucred peer = { 0 };
	socklen_t length = sizeof(peer);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer_has_ended(fd))
		peer.pid = 0;
	*pid = peer.pid;
	return fd;
}

int channel_send(int socket, const struct agent_message *message, const int *fds, int n_fds)
{
	union {
		char bytes[CMSG_SPACE(FDS_MOST * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { .iov_base = (void *)message, .iov_len = sizeof(*message) };
	struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };

	if (n_fds) {
		struct cmsghdr *head;

		packet.msg_control = control.bytes;
		packet.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
		head = CMSG_FIRSTHDR(&packet);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
		memcpy(CMSG_DATA(head), fds, (size_t)n_fds * sizeof(int));
	}
	return sendmsg(socket, &packet, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

bool channel_is_over(int socket)
{
	struct pollfd end = { .fd = socket, .events = POLLRDHUP };

	return poll(&end, 1, 0) > 0;
}

int channel_bell(int pair[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -errno;
	shutdown(pair[0], SHUT_RD);
	channel_hear_bell(pair[0]);
	return 0;
}

void channel_hear_bell(int bell)
{
	int there = 0;

	if (!ioctl(bell, SIOCOUTQ, &there) && there >= TAKEN)
		return;
	if (send(bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		/* the agent is gone, which its socket tells */
	}
}
