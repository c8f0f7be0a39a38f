// SPDX-License-Identifier: MIT
#include "identity/ras.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/peer.h"
#include "base/rights.h"
#include "base/vec.h"
#include "base/worker.h"

#define CHILD_BYTES (32u << 20) /* of address space: it has its memory before */
#define SAID_FIRST  "CLIENT PROTOCOL 2\n"
#define SAID        "TIMEOUT 2\nSET FORMAT json\nVERBOSE STATUS\n"

/* The last message of a child: how it went. The others are struct ras_rank. */
struct ras_end {
	int32_t error; /* a negative errno */
	uint32_t user, cut;
	uint64_t asked_ns, answered_ns; /* the answer's first byte came then */
};

struct ras_question {
	int namespace;
	uint16_t port;
	uint32_t user; /* whose it has to be, or on the usual port root's */
};

/* ---- in a process without rights ------------------------------------------------------------- */

static void child_end(int socket, const struct ras_end *end) __attribute__((noreturn));

static void child_end(int socket, const struct ras_end *end)
{
	worker_send(socket, end, sizeof(*end), -1);
	_exit(0);
}

static int connect_to(uint16_t port)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
		                        .sin_port = htons(port),
		                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	return connect(fd, (const struct sockaddr *)&at, sizeof(at)) ? -errno : fd;
}

#define ADDRESSES_MAX 256 /* of a network; where there are more, which are its own is not known */

/* IPv4 addresses of the network that is asked. */
struct addresses {
	struct in_addr of[ADDRESSES_MAX];
	size_t n;
	bool known;
};

static void addresses_read(int fd, struct addresses *addresses)
{
	struct ifreq all[ADDRESSES_MAX + 1];
	struct ifconf conf = { .ifc_len = sizeof(all), .ifc_req = all };

	if (ioctl(fd, SIOCGIFCONF, &conf) || conf.ifc_len > (int)(ADDRESSES_MAX * sizeof(all[0])))
		return;
	addresses->known = true;
	for (size_t i = 0; i < (size_t)conf.ifc_len / sizeof(all[0]); i++)
		addresses->of[addresses->n++] =
			((const struct sockaddr_in *)&all[i].ifr_addr)->sin_addr;
}

/* A name, and an address of another kind, may be of this network. */
static bool is_elsewhere(const struct addresses *addresses, const char *host)
{
	struct in_addr address;

	if (!addresses->known || inet_pton(AF_INET, host, &address) != 1 ||
	    ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET)
		return false;
	for (size_t i = 0; i < addresses->n; i++)
		if (addresses->of[i].s_addr == address.s_addr)
			return false;
	return true;
}

struct sending {
	const struct addresses *addresses;
	int socket;
	size_t n;
};

static void send_rank(void *data, const struct ras_rank *rank)
{
	struct sending *sending = data;
	struct ras_rank sent = *rank;

	sent.elsewhere = is_elsewhere(sending->addresses, rank->host);
	if (sending->n++ < RAS_RANKS_MAX)
		worker_send(sending->socket, &sent, sizeof(sent), -1);
}

/* That somebody is there: until then, nobody need have taken the connection. */
static int greet(int fd)
{
	char first;

	if (send(fd, SAID_FIRST, sizeof(SAID_FIRST) - 1, MSG_NOSIGNAL) !=
	    (ssize_t)sizeof(SAID_FIRST) - 1)
		return -EPIPE;
	return recv(fd, &first, 1, MSG_PEEK) == 1 ? 0 : -EPROTO;
}

/* Three lines come before it has asked all ranks. */
static bool is_answered(const char *text, size_t bytes)
{
	size_t lines = 0;

	for (size_t i = 0; i + 1 < bytes && lines < 3; i++)
		lines += text[i] == '\n';
	return lines == 3;
}

static ssize_t read_all(int fd, char *text, uint64_t *answered_ns)
{
	size_t bytes = 0;
	ssize_t n;

	while (bytes < RAS_BYTES_MAX && (n = read(fd, text + bytes, RAS_BYTES_MAX - bytes)) != 0) {
		if (n < 0)
			return -errno;
		bytes += (size_t)n;
		if (!*answered_ns && is_answered(text, bytes))
			*answered_ns = clock_now_ns();
	}
	return (ssize_t)bytes;
}

static void ask_without_rights(int fd, int socket, struct ras_end *end) __attribute__((noreturn));

static void ask_without_rights(int fd, int socket, struct ras_end *end)
{
	struct addresses addresses = { .n = 0 };
	struct sending sending = { .addresses = &addresses, .socket = socket };
	char *text = malloc(RAS_BYTES_MAX);
	ssize_t bytes;

	addresses_read(fd, &addresses);
	end->error = text ? rights_give_up(CHILD_BYTES) : -ENOMEM;
	if (!end->error && write(fd, SAID, sizeof(SAID) - 1) != sizeof(SAID) - 1)
		end->error = -EPIPE;
	if (end->error)
		child_end(socket, end);
	bytes = read_all(fd, text, &end->answered_ns);
	if (bytes < 0) {
		end->error = (int32_t)bytes;
		child_end(socket, end);
	}
	ras_read(text, (size_t)bytes, send_rank, &sending);
	end->cut = bytes == RAS_BYTES_MAX || sending.n > RAS_RANKS_MAX;
	if (!sending.n && !end->cut && !memmem(text, (size_t)bytes, "nccl_version", 12))
		end->error = -EPROTO;
	child_end(socket, end);
}

static int judge_user(const struct ras_question *question, uint32_t user)
{
	return user == question->user || (!user && question->port == RAS_PORT) ? 0 : -EPERM;
}

/* Where it is ours already, no right is needed: a service has the least that it works with. */
static int enter_network(int network)
{
	struct stat own, its;

	if (!stat("/proc/self/ns/net", &own) && !fstat(network, &its) && own.st_dev == its.st_dev &&
	    own.st_ino == its.st_ino)
		return 0;
	return setns(network, CLONE_NEWNET) ? -errno : 0;
}

/*
 * A process names the port: what it leads to may be a service of somebody else, to whom a
 * connection of root's would mean something. So it is known whose it is before there is one, and
 * that is nobody's.
 */
static int begin_to_ask(const struct ras_question *question, int *fd, struct ras_end *end)
{
	int diag = peer_open(), rc = diag < 0 ? diag : rights_become(RIGHTS_NOBODY, RIGHTS_NOBODY);

	rc = rc ? rc : rights_close();
	rc = rc ? rc : peer_listener(diag, question->port, &end->user);
	if (rc == -ENOENT)
		rc = -ECONNREFUSED;
	rc = rc ? rc : judge_user(question, end->user);
	*fd = rc ? rc : connect_to(question->port);
	rc = *fd < 0 ? *fd : 0;
	end->asked_ns = clock_now_ns();
	rc = rc ? rc : greet(*fd);
	rc = rc ? rc : peer_user(diag, *fd, &end->user); /* it may have changed hands */
	if (diag >= 0)
		close(diag);
	return rc ? rc : judge_user(question, end->user);
}

static void child_run(void *data, int socket)
{
	const struct ras_question *question = data;
	struct ras_end end = { 0 };
	int fd = -1;

	worker_close_all_but(socket, question->namespace);
	worker_end_after(RAS_ANSWER_MS);
	signal(SIGPIPE, SIG_IGN);
	end.error = enter_network(question->namespace);
	close(question->namespace);
	if (!end.error)
		end.error = begin_to_ask(question, &fd, &end);
	if (end.error)
		child_end(socket, &end);
	ask_without_rights(fd, socket, &end);
}

/* ---- who asks -------------------------------------------------------------------------------- */

static int take_answer(int socket, const bool *stop, struct ras_answer *answer, struct ras_end *end)
{
	union {
		struct ras_rank rank;
		struct ras_end end;
	} message;
	uint64_t until_ns = clock_now_ns() + (RAS_ANSWER_MS + 500) * 1000000ull;

	for (;;) {
		uint64_t now_ns = clock_now_ns();
		unsigned ms = now_ns < until_ns ? (unsigned)((until_ns - now_ns) / 1000000) : 0;
		ssize_t n;
		int rc = worker_wait(socket, ms, stop);

		if (rc)
			return rc;
		n = worker_receive(socket, &message, sizeof(message), NULL);
		if (n == (ssize_t)sizeof(message.end)) {
			*end = message.end;
			return end->error;
		}
		if (n != (ssize_t)sizeof(message.rank) && n)
			return n < 0 ? (int)n : -EPROTO;
		if (!n) /* it has ended: by its alarm, or else */
			return clock_now_ns() + 1000000000 > until_ns ? -ETIMEDOUT : -EIO;
		if (answer->n >= RAS_RANKS_MAX)
			return -EPROTO;
		message.rank.host[sizeof(message.rank.host) - 1] = '\0';
		answer->ranks = vec_room(answer->ranks, answer->n, sizeof(*answer->ranks));
		answer->ranks[answer->n++] = message.rank;
	}
}

static const char *why_not(int rc)
{
	return rc == -EPERM       ? "another user listens there"
	       : rc == -EPROTO    ? "what answers is not NCCL's RAS, or older than NCCL 2.28.7"
	       : rc == -ETIMEDOUT ? "it does not answer in time"
	       : rc == -ENOENT    ? "whose it is cannot be known"
	                          : strerror(-rc);
}

int ras_ask(int network, uint16_t port, uid_t user, const bool *stop, struct ras_answer *answer,
            struct err *err)
{
	struct ras_question question = { .namespace = network, .port = port, .user = user };
	struct ras_end end = { 0 };
	int socket, rc;

	*answer = (struct ras_answer){ 0 };
	rc = worker_fork(true, child_run, &question, &socket);
	if (!rc) {
		rc = take_answer(socket, stop, answer, &end);
		close(socket);
	}
	answer->asked_ns = end.asked_ns;
	answer->answered_ns = end.answered_ns ? end.answered_ns : clock_now_ns();
	answer->user = end.user;
	answer->cut = end.cut;
	if (!rc)
		return 0;
	ras_answer_free(answer);
	return err_set(err, -rc, "NCCL's RAS: %s", why_not(rc));
}

void ras_answer_free(struct ras_answer *answer)
{
	free(answer->ranks);
	answer->ranks = NULL;
	answer->n = 0;
}
