// SPDX-License-Identifier: MIT
/*
 * Sends descriptors that are slow to close: TCP sockets with unsent data and SO_LINGER. Whoever
 * closes the last of such a socket sleeps for a minute.
 *
 *   strangers SECONDS NAME     to the socket of that name, which /proc/net/unix shows
 *   strangers SECONDS agent    as a program that CUDA brings an agent to: to AGENT_ENV's socket
 *   strangers SECONDS entered  as one that is entered: by all sockets that it suddenly has
 *
 * Prints "ready", and in the end how many were sent, and how many refused.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LINGER_S 60
#define MOST     100
#define FDS      8192 /* the agent's have high numbers */

static unsigned long sent, refused;
static double seconds;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static bool goes_on(void)
{
	static struct timespec begin;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!begin.tv_sec)
		begin = now;
	return (double)(now.tv_sec - begin.tv_sec) < seconds;
}

static void rest(long ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static int listener = -1;
static struct sockaddr_in home = { .sin_family = AF_INET };

static void listen_for_slow_ones(void)
{
	socklen_t bytes = sizeof(home);
	int few = 4096;

	home.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few));
	if (bind(listener, (struct sockaddr *)&home, sizeof(home)) || listen(listener, 4096) ||
	    getsockname(listener, (struct sockaddr *)&home, &bytes))
		fail("listen");
}

/* The other end is never read. */
static int make_slow(void)
{
	const struct linger linger = { 1, LINGER_S };
	static char data[65536];
	int fd = socket(AF_INET, SOCK_STREAM, 0), some = 131072;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &some, sizeof(some)) ||
	    connect(fd, (struct sockaddr *)&home, sizeof(home)) ||
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)))
		fail("a slow socket");
	while (send(fd, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	return fd;
}

static bool send_slow(int socket, int slow)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = { 0 };
	char message[24] = ""; /* as long as those of agents */
	struct iovec part = { message, sizeof(message) };
	struct msghdr packet = { .msg_iov = &part,
		                 .msg_iovlen = 1,
		                 .msg_control = control.bytes,
		                 .msg_controllen = sizeof(control) };

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &slow, sizeof(slow));
	return sendmsg(socket, &packet, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void *send_one(void *socket)
{
	int slow = make_slow();
	bool went = send_slow((int)(intptr_t)socket, slow);

	__atomic_fetch_add(went ? &sent : &refused, 1, __ATOMIC_RELAXED);
	close(slow);
	return NULL;
}

/* By a thread of its own, which sleeps where it is the last to have the slow one. */
static void give(int socket)
{
	pthread_t thread;

	if (sent + refused >= MOST)
		return;
	if (pthread_create(&thread, NULL, send_one, (void *)(intptr_t)socket))
		fail("a thread");
	pthread_detach(thread);
	rest(2);
}

/* ---- who connects ---------------------------------------------------------------------------- */

static bool visit(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool there;

	memcpy(address.sun_path + 1, name, strlen(name));
	there = connect(fd, (struct sockaddr *)&address,
	                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) ==
	        0;
	for (int i = 0; there && i < 3; i++)
		give(fd);
	close(fd);
	return there;
}

/* Until it is no more. */
static void connect_to(const char *name)
{
	while (goes_on() && visit(name))
		rest(20);
}

static void connect_as_agent(void)
{
	const char *address = getenv("CUSCOPE_AGENT");

	if (!address)
		fail("the socket of agents");
	connect_to(strchr(address, ':') + 1);
}

/* ---- who is entered -------------------------------------------------------------------------- */

static bool is_packet(int fd)
{
	int domain = 0, type = 0;
	socklen_t size = sizeof(int);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_SEQPACKET;
}

static void *give_to_all(void *data)
{
	while (goes_on()) {
		for (int fd = 3; fd < FDS; fd++)
			if (is_packet(fd)) {
				give(fd);
				rest(20);
			}
	}
	return data;
}

/* cuscope enters programs that make calls of CUDA, by a thread that waits. */
static void be_entered(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = cuda ? (int (*)(unsigned))dlsym(cuda, "cuInit") : NULL;
	pthread_t thread;

	if (!init || init(0))
		fail("libcuda");
	pthread_create(&thread, NULL, give_to_all, NULL);
	while (goes_on()) {
		init(0);
		rest(10);
	}
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	seconds = strtod(argv[1], NULL);
	goes_on();
	listen_for_slow_ones();
	puts("ready");
	fflush(stdout);
	if (!strcmp(argv[2], "entered"))
		be_entered();
	else if (!strcmp(argv[2], "agent"))
		connect_as_agent();
	else
		connect_to(argv[2]);
	printf("%lu sent, %lu refused\n", sent, refused);
	return 0;
}
