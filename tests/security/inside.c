// SPDX-License-Identifier: MIT
/*
 * A program that speaks for the agent that cuscope would have had in it, and lies. What it shares
 * with cuscope is what src/agent/wire.h says; our library is not loaded.
 *
 *   inside area KIND      says that its memory for code is at a place of that kind: see places[]
 *   inside areas          all kinds but the one that is honest, each by a process of its own
 *   inside hello KIND     says nonsense of its slots, and of areas of earlier sessions
 *   inside hellos         all kinds of that, each by a process of its own
 *   inside answers        answers what was not asked, twice, and with numbers that cannot be
 *   inside counts SECONDS  counts calls as it likes
 *   inside records N      writes records at random, N times 20,000, and moves the ring's head
 *   inside messages N     sends what is no message
 *   inside connects N     connects so often, by children as well
 *   inside flickers N     is ready, ends, and is ready again
 *   inside executes N     executes itself while something is asked of it
 *   inside user           gets another user while something is asked of it
 *   inside later          the same once it is diverted; waits until cuscope ends
 *   inside nodes N        N processes that tell of nodes of graphs as fast as it goes
 *   inside silent N       N processes that are ready, and answer nothing
 *   inside truncates      takes the shared memory away, as far as it can
 *   inside mixed SEED     some of all this at random
 *
 * Ends with 0 where nothing that is its own was changed, but for what it has offered.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/wire.h"
#include "bpf/wire.h"
#include "inside.h"

#define NOBODY    65534
#define WAIT_MS   2000
#define FIRST_MS  30000 /* until something is asked */
#define SILENT_MS 6000
#define THUNK     64
#define HELLOS    13 /* see lie_of_slots */
#define SLOTS     2048

struct session {
	int socket;
	struct agent_message hello;
	struct agent_shared *shared;
	char *ring;
	size_t bytes;
	int memfd;
};

static char **arguments;
static uint8_t *thunks;
static int bell = -1;

/* ---- the other side of the socket ------------------------------------------------------------ */

static int dial(void)
{
	const char *name = strchr(getenv(AGENT_ENV), ':') + 1;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path + 1, name, strlen(name));
	if (fd < 0 || connect(fd, (struct sockaddr *)&address,
	                      (socklen_t)(sizeof(sa_family_t) + 1 + strlen(name))) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* 1: one came; 0: none in that time; -1: the other side has closed. */
static int receive(int socket, struct agent_message *message, int *memfd, int wait_ms)
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
	struct pollfd fd = { .fd = socket, .events = POLLIN };
	struct cmsghdr *head;

	if (poll(&fd, 1, wait_ms) <= 0)
		return 0;
	if (recvmsg(socket, &packet, MSG_CMSG_CLOEXEC) <= 0)
		return -1;
	head = CMSG_FIRSTHDR(&packet);
	if (head && memfd)
		memcpy(memfd, CMSG_DATA(head), sizeof(*memfd));
	if (head && message->type == AGENT_HELLO && head->cmsg_len >= CMSG_LEN(2 * sizeof(int)))
		memcpy(&bell, CMSG_DATA(head) + sizeof(bell), sizeof(bell));
	else if (memfd)
		return 1;
	else if (head)
		close(*(int *)(void *)CMSG_DATA(head));
	return 1;
}

static bool begin(struct session *session)
{
	struct stat st;

	*session = (struct session){ .socket = dial(), .memfd = -1 };
	if (session->socket < 0 ||
	    receive(session->socket, &session->hello, &session->memfd, FIRST_MS) <= 0 ||
	    fstat(session->memfd, &st)) {
		close(session->socket);
		return false;
	}
	session->bytes = (size_t)st.st_size - AGENT_RING_AT;
	session->shared = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
	                       session->memfd, 0);
	if (session->shared == MAP_FAILED)
		fail("shared memory");
	session->ring = (char *)session->shared + AGENT_RING_AT;
	return true;
}

static void end(struct session *session)
{
	munmap(session->shared, AGENT_RING_AT + session->bytes);
	close(bell);
	bell = -1;
	close(session->memfd);
	close(session->socket);
}

static void say_something(void)
{
	char byte;

	recv(bell, &byte, sizeof(byte), MSG_DONTWAIT);
}

static void say_state(const struct session *session, uint32_t state)
{
	session->shared->abi = AGENT_ABI;
	session->shared->magic = AGENT_MAGIC;
	session->shared->state = state;
	say_something();
}

static void say_ready(const struct session *session)
{
	session->shared->probe_clock = AGENT_CLOCK_NS;
	session->shared->probe_thunks = (uint64_t)(uintptr_t)thunks;
	session->shared->probe_thunk_bytes = THUNK;
	__atomic_store_n(&session->shared->probe_slots, SLOTS, __ATOMIC_RELEASE);
	say_state(session, AGENT_RUNNING);
}

static void answer(const struct session *session, uint32_t number, int code, uint64_t area)
{
	session->shared->answer.code = code;
	session->shared->answer.area = area;
	__atomic_store_n(&session->shared->answer.number, number, __ATOMIC_RELEASE);
	say_something();
}

/* ---- what it does ---------------------------------------------------------------------------- */

/* Does as it is asked, with memory of that kind, until nothing is asked. Where that is. */
static uint64_t agree(struct session *session, const struct place *place, int wait_ms)
{
	struct agent_message message;
	uint64_t area = 0;
	int first_ms = FIRST_MS;

	for (; receive(session->socket, &message, NULL, first_ms) > 0; first_ms = wait_ms) {
		if (message.type == AGENT_PROBES_AREA && !area) {
			area = place->at(message.area.near, message.area.bytes);
			ranges_remember();
		}
		answer(session, message.area.number, 0, area);
	}
	return area;
}

/* Tells the truth of all but where its memory for code is. */
static void lie_of_area(const struct place *place)
{
	struct session session;
	uint64_t area;

	if (!place || !begin(&session))
		fail("no session");
	say_ready(&session);
	area = agree(&session, place, WAIT_MS);
	end(&session);
	if (!area)
		fail("it was not asked for an area");
	library_compare();
	ranges_compare(place->earnest ? area : 0);
}

static void lie_of_slots(uint64_t kind)
{
	struct agent_shared *shared;
	struct agent_message message;
	struct session session;

	if (!begin(&session))
		return;
	shared = session.shared;
	shared->probe_thunks = (uint64_t)(uintptr_t)thunks;
	shared->probe_thunk_bytes = THUNK;
	shared->probe_slots = SLOTS;
	switch (kind % HELLOS) {
	case 0:
		shared->probe_thunks = USERS_END - 8;
		break;
	case 1:
		shared->probe_thunks = ~0ull;
		break;
	case 2:
		shared->probe_slots = AGENT_SLOTS_MOST + 1;
		break;
	case 3:
		shared->probe_thunk_bytes = 0;
		break;
	case 4:
		shared->probe_thunk_bytes = ~0u;
		break;
	case 5:
		shared->probe_used = ~0u;
		break;
	case 6: /* all slots are taken: there is room for none */
		shared->probe_used = SLOTS;
		break;
	case 7:
		shared->probe_areas = ~0u;
		shared->probe_used = 1000;
		break;
	case 8: /* areas that lie over each other, and over all that is there */
		shared->probe_used = 1000;
		shared->probe_areas = AGENT_AREAS_MOST;
		for (int i = 0; i < AGENT_AREAS_MOST; i++)
			shared->probe_area[i] = (struct agent_area){
				.address = ((uint64_t)(uintptr_t)&memcpy & ~4095ul) +
				           4096ul * (any() % 64),
				.bytes = 4096u * (uint32_t)(1 + any() % 64),
				.first = (uint32_t)(any() % 500),
				.n = (uint32_t)(1 + any() % 500),
			};
		break;
	case 9:
		shared->magic = any();
		break;
	case 10:
		shared->probe_thunks = 0x1000;
		break;
	default:
		shared->probe_clock = ~0u;
	}
	say_state(&session, kind % HELLOS == 12 ? ~0u : AGENT_RUNNING);
	while (receive(session.socket, &message, NULL, WAIT_MS) > 0)
		answer(&session, message.area.number, -(int)(any() % 5000), any());
	end(&session);
}

static void lie_of_slot_kind(long kind)
{
	lie_of_slots((uint64_t)kind);
}

static void lie_of_place(long kind)
{
	lie_of_area(place_at((size_t)kind));
}

/* At once. Ends the program where one of them has met what may not be. */
static void in_children(void (*what)(long kind), long first, long end)
{
	int status, wrong = 0;

	for (long kind = first; kind < end; kind++)
		if (fork() == 0) {
			what(kind);
			_exit(0);
		}
	while (wait(&status) > 0)
		wrong |= status;
	if (wrong)
		_exit(6);
}

static void answer_anything(void)
{
	struct agent_message message;
	struct session session;

	if (!begin(&session))
		return;
	for (uint32_t number = 0; number < 100; number++)
		answer(&session, number, 0, any());
	say_ready(&session);
	for (int i = 0; i < 200; i++) {
		int rc = receive(session.socket, &message, NULL, 10);

		if (rc < 0)
			break;
		answer(&session, (uint32_t)(rc ? message.area.number + any() % 3 : any()),
		       i % 3 ? 0 : (int)any(), any() & ~4095ul);
	}
	end(&session);
}

/* Times as it is asked for, of now or of any time. */
static uint64_t a_time(const struct session *session)
{
	struct timespec now;

	if (any() % 16 == 0)
		return any();
	if (session->hello.probes & AGENT_PROBES_TICKS)
		return __builtin_ia32_rdtsc() - any() % 1000000;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - any() % 1000000;
}

static void put_record(struct session *session)
{
	uint64_t begin = a_time(session), head = session->shared->head & AGENT_HEAD_MASK;
	struct agent_probed record = {
		.head = { .type = (uint8_t)(any() % 4096 ? AGENT_PROBED
		                                         : 1 + any() % (AGENT_RECORD_TYPES - 1)),
		          .flags = (uint8_t)(any() % 4 ? 0 : any()),
		          .lane = (uint16_t)(any() % 8 ? any() % 500 : any()) },
		.begin = begin,
		.end = any() % 8 ? begin + any() % 1000 : any(),
		.tid = (uint32_t)(any() % 8 ? (uint64_t)getpid() : any()),
		.result = (int)(any() % 8 ? 0 : any()),
		.depth = (uint32_t)(any() % 8 ? any() % 4 : any()),
	};
	uint32_t bytes = 40 + 8 * (uint32_t)(any() % 64 ? any() % 12 : any() % 500);
	size_t at = head % session->bytes;

	if (at + 8192 > session->bytes || head - session->shared->tail + 8192 > session->bytes) {
		usleep(1000);
		return;
	}
	if (any() % 50000 == 0)
		bytes = (uint32_t)any();
	memcpy(session->ring + at + 4, (char *)&record + 4, sizeof(record) - 4);
	__atomic_store_n((uint32_t *)(void *)(session->ring + at), bytes, __ATOMIC_RELEASE);
	session->shared->head = head + bytes % 5000;
	if (any() % 50000 == 0)
		session->shared->head += any() % 3 ? any() % 100000 : any();
}

static bool is_over(const struct session *session)
{
	struct pollfd fd = { .fd = session->socket, .events = POLLIN };

	return poll(&fd, 1, 0) > 0 && fd.revents & POLLHUP;
}

/* It is diverted as an honest one would be, and tells of calls that nobody made. */
static void write_records(long times)
{
	for (long i = 0; i < times; i++) {
		struct session session;

		if (!begin(&session))
			return;
		say_ready(&session);
		agree(&session, place_find("honest"), 300);
		for (int k = 0; k < 20000 && (k % 64 || !is_over(&session)); k++)
			put_record(&session);
		end(&session);
	}
}

/* A call of it that could have been made. */
static void put_call(struct session *session, const struct agent_slot *slot)
{
	uint32_t bytes = (uint32_t)sizeof(struct agent_probed) + 8 * cookie_words(slot->cookie);
	uint64_t head = session->shared->head & AGENT_HEAD_MASK;
	struct agent_probed *record = (void *)(session->ring + head % session->bytes);

	if (head % session->bytes + bytes > session->bytes) { /* nothing, up to its end */
		bytes = (uint32_t)(session->bytes - head % session->bytes);
		slot = NULL;
	}
	if (head - session->shared->tail + bytes > session->bytes)
		return;
	memset((char *)record + 4, 0, bytes - 4);
	record->head.type = slot ? AGENT_PROBED : AGENT_PAD;
	if (slot) {
		record->head.lane = (uint16_t)slot->slot;
		record->begin = record->end = a_time(session);
		record->tid = (uint32_t)getpid();
	}
	__atomic_store_n(&record->head.bytes, bytes, __ATOMIC_RELEASE);
	session->shared->head = head + bytes;
}

static void put_counts(const struct session *session, uint32_t n)
{
	uint64_t *counts = (uint64_t *)(void *)((char *)session->shared + AGENT_COUNTS_AT);

	session->shared->probe_shares = (uint32_t)(any() % 8 ? any() % 80 : any());
	for (int i = 0; i < 64; i++) {
		uint64_t *count =
			&counts[any() % AGENT_COUNT_SHARES * AGENT_SLOTS_MOST + any() % n];

		switch (any() % 64) {
		case 0:
			*count = any();
			break;
		case 1:
			*count = 0;
			break;
		default:
			*count += any() % 100;
		}
	}
}

/* Tells of calls so often that they are to be counted, and then counts as it likes. */
static void lie_of_counts(long seconds)
{
	static struct agent_slot slots[AGENT_SLOTS_MOST];
	struct agent_message message;
	struct session session;
	uint64_t area = 0;
	uint32_t n = 0;
	int memfd = -1;

	if (!begin(&session))
		fail("no session");
	say_ready(&session);
	while (receive(session.socket, &message, &memfd, n ? 300 : FIRST_MS) > 0) {
		if (message.type == AGENT_PROBES_AREA)
			area = place_find("honest")->at(message.area.near, message.area.bytes);
		else if (message.type == AGENT_PROBES_SET && memfd >= 0)
			n = (uint32_t)(pread(memfd, slots, sizeof(slots), 0) /
			               (ssize_t)sizeof(*slots));
		answer(&session, message.area.number, 0, area);
	}
	for (long i = 0; n && i < seconds * 500 && !is_over(&session); i++) {
		for (uint32_t k = 0; k < 400; k++)
			put_call(&session, &slots[any() % n]);
		put_counts(&session, n);
		while (receive(session.socket, &message, NULL, 0) > 0)
			answer(&session, message.area.number, any() % 8 ? 0 : -(int)(any() % 4000),
			       area);
		usleep(2000);
	}
	end(&session);
}

static void send_nonsense(long n)
{
	static char bytes[4096];
	struct session session;

	if (!begin(&session))
		return;
	for (long i = 0; i < n; i++) {
		for (size_t k = 0; k < 64; k += 8)
			memcpy(bytes + k, &(uint64_t){ any() }, 8);
		if (send(session.socket, bytes, 1 + any() % (i % 2 ? 24 : sizeof(bytes)),
		         MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
		    errno != EAGAIN) {
			end(&session);
			if (!begin(&session))
				return;
		}
	}
	end(&session);
}

static void connect_often(long n)
{
	for (long i = 0; i < n; i++) {
		int fd = dial();

		if (i % 8 == 0 && fork() == 0) {
			dial();
			_exit(0);
		}
		if (i % 3)
			close(fd);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

static void flicker(long n)
{
	struct session session;

	for (long i = 0; i < n && begin(&session); i++) {
		say_ready(&session);
		usleep((unsigned)(any() % 20000));
		for (int k = 0; k < 20; k++)
			say_state(&session, (uint32_t)(any() % (AGENT_STATES + 1)));
		end(&session);
	}
}

static void execute(long n)
{
	struct agent_message message;
	struct session session;
	char left[32];

	if (n <= 0)
		return;
	if (begin(&session)) {
		say_ready(&session);
		for (uint64_t i = 0; i <= any() % 3; i++)
			if (receive(session.socket, &message, NULL, WAIT_MS) > 0)
				answer(&session, message.area.number, 0,
				       message.type == AGENT_PROBES_AREA
				               ? place_find("honest")->at(message.area.near,
				                                          message.area.bytes)
				               : 0);
	}
	snprintf(left, sizeof(left), "%ld", n - 1);
	execl("/proc/self/exe", arguments[0], "executes", left, (char *)NULL);
	fail("exec");
}

static void change_user(void)
{
	struct agent_message message;
	struct session session;
	uint64_t area = 0;

	if (!begin(&session))
		fail("no session");
	say_ready(&session);
	while (receive(session.socket, &message, NULL, WAIT_MS) > 0) {
		if (message.type == AGENT_PROBES_AREA)
			area = place_find("honest")->at(message.area.near, message.area.bytes);
		else if (setresuid(1234, 1234, 1234))
			fail("setresuid");
		answer(&session, message.area.number, 0, area);
	}
	end(&session);
}

static void change_user_later(void)
{
	struct agent_message message;
	struct session session;

	if (!begin(&session))
		fail("no session");
	say_ready(&session);
	agree(&session, place_find("honest"), 1000);
	if (setresuid(1234, 1234, 1234))
		fail("setresuid");
	while (receive(session.socket, &message, NULL, FIRST_MS) > 0)
		;
	_exit(0); /* its library stays as it is */
}

/* Nodes of graphs that nobody made, as fast as the ring takes them. */
static void tell_nodes(long kind)
{
	struct session session;
	time_t until = time(NULL) + 8;

	(void)kind;
	if (!begin(&session))
		return;
	say_ready(&session);
	for (uint64_t number = 1; time(NULL) < until && !is_over(&session);) {
		uint64_t head = session.shared->head & AGENT_HEAD_MASK;
		uint32_t bytes = sizeof(struct agent_node);

		while (head - session.shared->tail + 4096 <= session.bytes &&
		       (head % session.bytes) + bytes <= session.bytes) {
			struct agent_node *node = (void *)(session.ring + head % session.bytes);

			*node = (struct agent_node){ .head = { .bytes = bytes, .type = AGENT_NODE },
				                     .node = number,
				                     .original = number - 1 };
			number++;
			head += bytes;
		}
		if (session.bytes - head % session.bytes < bytes && head % session.bytes) {
			struct agent_head *pad = (void *)(session.ring + head % session.bytes);

			*pad = (struct agent_head){ .bytes = (uint32_t)(session.bytes -
				                                        head % session.bytes),
				                    .type = AGENT_PAD };
			head += pad->bytes;
		}
		__atomic_store_n(&session.shared->head, head, __ATOMIC_RELEASE);
		usleep(1000);
	}
	end(&session);
}

/* Until cuscope has given it up, or for a while. */
static void say_nothing(long kind)
{
	struct session session;
	struct pollfd end_of;

	(void)kind;
	if (!begin(&session))
		return;
	say_ready(&session);
	end_of = (struct pollfd){ .fd = session.socket, .events = POLLRDHUP };
	poll(&end_of, 1, SILENT_MS);
	end(&session);
}

static void truncate_memory(void)
{
	struct session session;

	if (!begin(&session))
		return;
	say_ready(&session);
	for (int i = 0; i < 100; i++) {
		if (ftruncate(session.memfd, (off_t)(any() % 100000)) == 0)
			fprintf(stderr, "inside: the memory can be made smaller\n");
		if (fallocate(session.memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		              1 << 20))
			break;
		usleep(1000);
	}
	end(&session);
}

static void do_some(long n)
{
	switch (n % 7) {
	case 0:
		lie_of_slots(any());
		break;
	case 1:
		answer_anything();
		break;
	case 2:
		write_records(3);
		break;
	case 3:
		send_nonsense(1000);
		break;
	case 4:
		connect_often(100);
		break;
	case 5:
		flicker(10);
		break;
	default:
		truncate_memory();
	}
}

/* ---- a program that uses CUDA ---------------------------------------------------------------- */

static void use_cuda(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
	int (*version)(int *) = driver ? (int (*)(int *))dlsym(driver, "cuDriverGetVersion") : NULL;
	int value;

	if (!init || !version || init(0) || version(&value))
		fail("no CUDA");
}

static void act(const char *what, const char *argument)
{
	long n = atol(argument);

	if (!strcmp(what, "area")) {
		lie_of_area(place_find(argument));
	} else if (!strcmp(what, "areas")) {
		in_children(lie_of_place, 1, (long)places_count());
	} else if (!strcmp(what, "hello")) {
		lie_of_slots((uint64_t)n);
	} else if (!strcmp(what, "hellos")) {
		in_children(lie_of_slot_kind, 0, HELLOS);
	} else if (!strcmp(what, "answers")) {
		answer_anything();
	} else if (!strcmp(what, "records")) {
		write_records(n);
	} else if (!strcmp(what, "counts")) {
		lie_of_counts(n);
	} else if (!strcmp(what, "messages")) {
		send_nonsense(n);
	} else if (!strcmp(what, "connects")) {
		connect_often(n);
	} else if (!strcmp(what, "flickers")) {
		flicker(n);
	} else if (!strcmp(what, "executes")) {
		execute(n);
	} else if (!strcmp(what, "user")) {
		change_user();
	} else if (!strcmp(what, "later")) {
		change_user_later();
	} else if (!strcmp(what, "nodes")) {
		in_children(tell_nodes, 0, n);
	} else if (!strcmp(what, "silent")) {
		in_children(say_nothing, 0, n);
	} else if (!strcmp(what, "truncates")) {
		truncate_memory();
	} else {
		for (seed = (uint64_t)n | 1, n = 0; n < 12; n++)
			do_some((long)(any() % 1000));
	}
}

int main(int argc, char **argv)
{
	arguments = argv;
	signal(SIGPIPE, SIG_IGN);
	unsetenv("CUDA_INJECTION64_PATH"); /* our library is to stay away */
	if (argc < 2 || !getenv(AGENT_ENV))
		fail("usage: see above");
	seed = (uint64_t)getpid() * 2654435761u;
	if (strcmp(argv[1], "user") != 0 && strcmp(argv[1], "later") != 0 && getuid() == 0 &&
	    setresuid(NOBODY, NOBODY, NOBODY))
		fail("setresuid");
	thunks = mmap(NULL, SLOTS * THUNK, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	              0);
	use_cuda();
	act(argv[1], argc > 2 ? argv[2] : "0");
	library_compare();
	return 0;
}
