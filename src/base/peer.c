// SPDX-License-Identifier: MIT
#include "base/peer.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

int peer_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	return fd < 0 ? -errno : fd;
}

static void address_put(const union address *address, __be32 to[4], __be16 *port)
{
	bool is_v4 = address->any.sa_family == AF_INET;

	*port = is_v4 ? address->v4.sin_port : address->v6.sin6_port;
	if (is_v4)
		to[0] = address->v4.sin_addr.s_addr;
	else
		memcpy(to, &address->v6.sin6_addr, sizeof(address->v6.sin6_addr));
}

/* Whose the socket is that a segment from one to the other would come to. */
static int user_of(int diag, const union address *from, const union address *to, uid_t *user)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} ask = {
		.head = { .nlmsg_len = sizeof(ask),
		          .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		          .nlmsg_flags = NLM_F_REQUEST },
		.body = { .sdiag_family = (uint8_t)to->any.sa_family,
		          .sdiag_protocol = IPPROTO_TCP,
		          .idiag_states = ~0u,
		          .id = { .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
	};
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} got;
	const struct inet_diag_msg *told = NLMSG_DATA(&got.head);
	ssize_t n;

	address_put(to, ask.body.id.idiag_src, &ask.body.id.idiag_sport);
	address_put(from, ask.body.id.idiag_dst, &ask.body.id.idiag_dport);
	if (send(diag, &ask, sizeof(ask), 0) != (ssize_t)sizeof(ask))
		return -errno;
	n = recv(diag, &got, sizeof(got), MSG_DONTWAIT); /* it was answered while it was sent */
	if (n < 0)
		return -errno;
	if ((size_t)n < NLMSG_LENGTH(sizeof(*told)) || got.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    !told->idiag_inode)
		return -ENOENT;
	*user = told->idiag_uid;
	return 0;
}

int peer_user(int diag, int fd, uid_t *user)
{
	union address own = { 0 }, peer = { 0 };
	socklen_t size = sizeof(own), peer_size = sizeof(peer);

	if (getsockname(fd, &own.any, &size) || getpeername(fd, &peer.any, &peer_size))
		return -errno;
	if (peer.any.sa_family != AF_INET && peer.any.sa_family != AF_INET6)
		return -ENOTSUP;
	return user_of(diag, &own, &peer, user);
}

int peer_listener(int diag, uint16_t port, uid_t *user)
{
	const union address from = { .v4 = { .sin_family = AF_INET } },
			    to = { .v4 = { .sin_family = AF_INET,
		                           .sin_port = htons(port),
		                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };

	return user_of(diag, &from, &to, user);
}
