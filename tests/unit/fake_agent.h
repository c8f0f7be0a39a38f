/* SPDX-License-Identifier: MIT */
/*
 * The other side of src/agent/wire.h, in the same thread: an agent that writes what it is told to,
 * and injection that gives it its socket. What cuscope reads is what a test wrote, byte by byte.
 */
#ifndef CUSCOPE_TESTS_FAKE_AGENT_H
#define CUSCOPE_TESTS_FAKE_AGENT_H

#include <errno.h>
#include <stddef.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/inject.h"
#include "agent/wire.h"
#include "unit.h"

#ifndef SO_PASSRIGHTS /* Linux 6.16 */
#define SO_PASSRIGHTS 83
#endif

struct fake_agent {
	int socket;
	int memfd, bell, cupti; /* as they came with hello; -1 */
	struct agent_message hello;
	struct agent_shared *shared;
	char *ring;
	size_t bytes; /* of the ring */
};

/* ---- memory ---------------------------------------------------------------------------------- */

static inline void fake_agent_map(struct fake_agent *agent)
{
	struct stat st;
	char *memory;

	assert_int_equal(fstat(agent->memfd, &st), 0);
	agent->bytes = (size_t)st.st_size - AGENT_RING_AT;
	memory = mmap(NULL, AGENT_RING_AT + 2 * agent->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
	              agent->memfd, 0);
	assert_true(memory != MAP_FAILED);
	assert_true(mmap(memory + AGENT_RING_AT + agent->bytes, agent->bytes,
	                 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, agent->memfd,
	                 AGENT_RING_AT) != MAP_FAILED);
	agent->shared = (struct agent_shared *)memory;
	agent->ring = memory + AGENT_RING_AT;
}

static inline void fake_agent_unmap(struct fake_agent *agent)
{
	if (agent->shared)
		munmap(agent->shared, AGENT_RING_AT + 2 * agent->bytes);
	agent->shared = NULL;
}

/* Room for a record, or NULL where the ring is full. Its first word is still to be written. */
static inline void *fake_agent_reserve(struct fake_agent *agent, size_t bytes)
{
	struct agent_shared *shared = agent->shared;
	char *at = agent->ring + (shared->head & (agent->bytes - 1));

	if (shared->head - shared->tail + bytes > agent->bytes)
		return NULL;
	shared->head += bytes;
	return at;
}

static inline bool fake_agent_write(struct fake_agent *agent, const void *record, size_t bytes)
{
	uint32_t first = (uint32_t)bytes;
	char *at = fake_agent_reserve(agent, bytes);

	if (!at)
		return false;
	memcpy(at + sizeof(first), (const char *)record + sizeof(first), bytes - sizeof(first));
	memcpy(at, &first, sizeof(first));
	return true;
}

static inline struct agent_kernel a_kernel(uint32_t correlation)
{
	return (struct agent_kernel){
		.head = { .bytes = sizeof(struct agent_kernel), .type = AGENT_KERNEL, .lane = 1 },
		.begin_ns = 1000,
		.duration_ns = 10,
		.correlation = correlation,
		.shape = 1,
	};
}

static inline bool fake_agent_kernel(struct fake_agent *agent, uint32_t correlation)
{
	struct agent_kernel kernel = a_kernel(correlation);

	return fake_agent_write(agent, &kernel, sizeof(kernel));
}

/* ---- messages -------------------------------------------------------------------------------- */

static inline int fake_agent_connect(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(address.sun_path + 1, name, strlen(name));
	if (connect(fd, (struct sockaddr *)&address,
	            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) == 0)
		return fd;
	close(fd);
	return -1;
}

/* The next message's type, 0: none, -1: the socket was closed. Descriptors go to fds. */
static inline int fake_agent_receive(int socket, struct agent_message *message, int fds[3])
{
	union {
		char bytes[CMSG_SPACE(3 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = { message, sizeof(*message) };
	struct msghdr packet = { .msg_iov = &part,
		                 .msg_iovlen = 1,
		                 .msg_control = control.bytes,
		                 .msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(socket, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&packet) : NULL;

	if (got < 0)
		return errno == EAGAIN ? 0 : -1;
	if (got == 0)
		return -1;
	assert_int_equal(got, sizeof(*message));
	if (head && fds)
		memcpy(fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
	return (int)message->type;
}

/* An order from cuscope: its type, 0: none, -1: cuscope closed. */
static inline int fake_agent_order(struct fake_agent *agent)
{
	struct agent_message message;

	return fake_agent_receive(agent->socket, &message, NULL);
}

/* Takes hello and its memory; false where cuscope closed instead. */
static inline bool fake_agent_begin(struct fake_agent *agent, int socket)
{
	int fds[3] = { -1, -1, -1 };

	*agent = (struct fake_agent){ .socket = socket, .memfd = -1, .bell = -1, .cupti = -1 };
	if (fake_agent_receive(socket, &agent->hello, fds) != AGENT_HELLO)
		return false;
	agent->memfd = fds[0];
	agent->bell = fds[1];
	agent->cupti = fds[2];
	fake_agent_map(agent);
	return true;
}

static inline void fake_agent_say(struct fake_agent *agent, enum agent_state state)
{
	char byte;

	agent->shared->abi = AGENT_ABI;
	agent->shared->magic = AGENT_MAGIC;
	agent->shared->state = state;
	if (agent->bell >= 0)
		recv(agent->bell, &byte, sizeof(byte), MSG_DONTWAIT);
}

/* What no agent does. */
static inline ssize_t fake_agent_send_descriptor(struct fake_agent *agent, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = { 0 };
	struct iovec part = { "", 1 };
	struct msghdr packet = { .msg_iov = &part,
		                 .msg_iovlen = 1,
		                 .msg_control = control.bytes,
		                 .msg_controllen = sizeof(control) };

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	return sendmsg(agent->socket, &packet, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static inline void fake_agent_die(struct fake_agent *agent)
{
	fake_agent_unmap(agent);
	if (agent->socket >= 0)
		close(agent->socket);
	if (agent->memfd >= 0)
		close(agent->memfd);
	if (agent->bell >= 0)
		close(agent->bell);
	if (agent->cupti >= 0)
		close(agent->cupti);
	agent->socket = agent->memfd = agent->bell = agent->cupti = -1;
}

/* ---- injection ------------------------------------------------------------------------------- */

struct inject {
	int event, ours;
};

static struct {
	int begun, open;
	pid_t pid;
	int target;         /* the target's end of the last one */
	const char *refuse; /* begin fails with this sentence */
	const char *fail;   /* the outcome is this sentence */
	bool pending;       /* it takes time */
	struct inject *last;
} injection;

int inject_begin(const struct inject_options *options, struct inject **inject, struct err *err)
{
	int pair[2];

	if (injection.refuse)
		return err_set(err, EAGAIN, "%s", injection.refuse);
	assert_true(options->bytes > 0);
	assert_string_equal(options->function, AGENT_ENTER);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	*inject = calloc(1, sizeof(**inject));
	(*inject)->ours = pair[0];
	(*inject)->event = eventfd(injection.pending ? 0 : 1, EFD_CLOEXEC);
	injection.target = pair[1];
	injection.pid = options->pid;
	injection.last = *inject;
	injection.begun++;
	injection.open++;
	return 0;
}

int inject_fd(const struct inject *inject)
{
	return inject->event;
}

int inject_result(struct inject *inject, struct inject_result *result, struct err *err)
{
	if (injection.fail)
		return err_set(err, EPERM, "%s", injection.fail);
	result->socket = inject->ours;
	result->stopped_ns = 7;
	inject->ours = -1;
	return 0;
}

void inject_free(struct inject *inject)
{
	if (!inject)
		return;
	if (inject->ours >= 0)
		close(inject->ours);
	close(inject->event);
	free(inject);
	injection.open--;
}

#endif
