// SPDX-License-Identifier: MIT
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MOST_MS 5000

uint64_t host_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void host_sleep(unsigned ms)
{
	const struct timespec time = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&time, NULL);
}

/* ---- life ---------------------------------------------------------------------------------- */

struct host *host_new(uint64_t ring_bytes)
{
	struct host *host = calloc(1, sizeof(*host));
	int pair[2];
	char *memory;

	assert_non_null(host);
	host->bytes = ring_bytes;
	host->abi = AGENT_ABI;
	host->memfd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(host->memfd >= 0);
	assert_int_equal(ftruncate(host->memfd, (off_t)(AGENT_RING_AT + ring_bytes)), 0);
	assert_int_equal(fcntl(host->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	memory = mmap(NULL, AGENT_RING_AT + 2 * ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
	              host->memfd, 0);
	assert_true(memory != MAP_FAILED);
	assert_true(mmap(memory + AGENT_RING_AT + ring_bytes, ring_bytes, PROT_READ | PROT_WRITE,
	                 MAP_SHARED | MAP_FIXED, host->memfd, AGENT_RING_AT) != MAP_FAILED);
	host->shared = (struct agent_shared *)memory;
	host->records = memory + AGENT_RING_AT;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	host->socket = pair[0];
	host->theirs = pair[1];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, host->bell), 0);
	assert_int_equal(send(host->bell[0], "", 1, 0), 1);
	return host;
}

void host_free(struct host *host)
{
	host_forget(host);
	for (size_t i = 0; i < HOST_NAMES; i++)
		free(host->names[i]);
	for (size_t i = 0; i < HOST_SHAPES; i++)
		free(host->shapes[i]);
	munmap(host->shared, AGENT_RING_AT + 2 * host->bytes);
	close(host->memfd);
	close(host->bell[0]);
	close(host->bell[1]);
	if (host->socket >= 0)
		close(host->socket);
	free(host);
}

int host_listen(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char value[128];
	size_t length;

	length = (size_t)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
	                          "cuscope-test-%d-%llu", getpid(), (unsigned long long)host_now());
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
	                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)),
	                 0);
	assert_int_equal(listen(fd, 8), 0);
	snprintf(value, sizeof(value), "%d:%s", AGENT_ABI, address.sun_path + 1);
	setenv(AGENT_ENV, value, 1);
	return fd;
}

void host_accept(struct host *host, int listening)
{
	close(host->socket);
	close(host->theirs);
	host->theirs = -1;
	host->socket = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	assert_true(host->socket >= 0);
}

/* ---- messages ------------------------------------------------------------------------------ */

static ssize_t send_with(struct host *host, const struct agent_message *message, const int *fds,
                         size_t n_fds)
{
	union {
		char bytes[CMSG_SPACE(3 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { (void *)message, sizeof(*message) };
	struct msghdr packet = { .msg_iov = &part,
		                 .msg_iovlen = 1,
		                 .msg_control = control.bytes,
		                 .msg_controllen = CMSG_SPACE(n_fds * sizeof(int)) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&packet);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	memcpy(CMSG_DATA(head), fds, n_fds * sizeof(int));
	return sendmsg(host->socket, &packet, MSG_NOSIGNAL);
}

void host_hello(struct host *host, uint32_t kinds)
{
	const char *path = getenv("TEST_LIBCUPTI");
	int cupti = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct agent_message hello = { .type = AGENT_HELLO,
		                       .abi = host->abi,
		                       .kinds = kinds,
		                       .cupti = cupti >= 0,
		                       .flush_ms = 20,
		                       .probes = host->probes };
	int fds[3] = { host->memfd, host->bell[1], cupti };

	assert_int_equal(send_with(host, &hello, fds, cupti >= 0 ? 3 : 2), sizeof(hello));
	if (cupti >= 0)
		close(cupti);
}

void host_tell(struct host *host, uint32_t type)
{
	struct agent_message message = { .type = type, .abi = AGENT_ABI };

	assert_int_equal(send(host->socket, &message, sizeof(message), MSG_NOSIGNAL),
	                 sizeof(message));
}

bool host_bell_rang(struct host *host)
{
	char byte;

	if (recv(host->bell[1], &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1)
		return false;
	return send(host->bell[0], "", 1, MSG_NOSIGNAL) == 1;
}

int host_ask(struct host *host, struct agent_message message, int fd)
{
	const struct agent_answer *answer = &host->shared->answer;
	ssize_t sent;

	message.abi = AGENT_ABI;
	message.area.number = ++host->asked;
	if (fd >= 0)
		sent = send_with(host, &message, &fd, 1);
	else
		sent = send(host->socket, &message, sizeof(message), MSG_NOSIGNAL);
	assert_int_equal(sent, sizeof(message));
	for (int i = 0; i < WAIT_MOST_MS; i++) {
		if (__atomic_load_n(&answer->number, __ATOMIC_ACQUIRE) == host->asked)
			return answer->code;
		host_sleep(1);
	}
	return -ETIMEDOUT;
}

uint32_t host_wait(struct host *host, uint32_t wanted)
{
	uint32_t state = 0;

	for (int i = 0; i < WAIT_MOST_MS; i++) {
		state = __atomic_load_n(&host->shared->state, __ATOMIC_ACQUIRE);
		if (host->shared->magic == AGENT_MAGIC &&
		    (state == wanted || state == AGENT_FAILED))
			return state;
		host_sleep(1);
	}
	return state;
}

/* ---- records ------------------------------------------------------------------------------- */

static void define(struct host *host, const struct agent_head *record)
{
	const struct agent_name *name = (const void *)record;
	const struct agent_shape *shape = (const void *)record;

	if (record->type == AGENT_NAME) {
		assert_in_range(name->number, 1, HOST_NAMES - 1);
		free(host->names[name->number]);
		host->names[name->number] = strdup(name->text);
		host->names_said++;
	} else if (record->type == AGENT_SHAPE) {
		assert_in_range(shape->number, 1, HOST_SHAPES - 1);
		assert_non_null(host->names[shape->name]);
		free(host->shapes[shape->number]);
		host->shapes[shape->number] = malloc(sizeof(*shape));
		memcpy(host->shapes[shape->number], shape, sizeof(*shape));
		host->shapes_said++;
	} else {
		assert_in_range(record->lane, 1, HOST_LANES - 1);
		memcpy(&host->lanes[record->lane], record, sizeof(struct agent_lane));
	}
}

static void keep(struct host *host, const struct agent_head *record)
{
	struct agent_head *copy = malloc(record->bytes);

	memcpy(copy, record, record->bytes);
	if (!(host->n_kept & (host->n_kept - 1)))
		host->kept = realloc(host->kept,
		                     (host->n_kept ? 2 * host->n_kept : 1) * sizeof(*host->kept));
	host->kept[host->n_kept++] = copy;
}

size_t host_read(struct host *host)
{
	uint64_t tail = host->shared->tail, end = tail + host->bytes;
	size_t n = 0;

	/* No more than was there when it began: threads that go on writing never let it come to an
	 * end. */
	for (; tail < end; n++) {
		char *at = host->records + (tail & (host->bytes - 1));
		uint32_t bytes = __atomic_load_n((uint32_t *)at, __ATOMIC_ACQUIRE);
		struct agent_head *record = (struct agent_head *)at;

		if (!bytes)
			return n;
		assert_true(bytes % 8 == 0 && bytes <= AGENT_RECORD_MAX);
		assert_in_range(record->type, AGENT_PAD, AGENT_RECORD_TYPES - 1);
		if (record->type == AGENT_PAD)
			n--;
		else if (record->type <= AGENT_LANE)
			define(host, record);
		else
			keep(host, record);
		memset(at, 0, bytes);
		tail += bytes;
		__atomic_store_n(&host->shared->tail, tail, __ATOMIC_RELEASE);
	}
	return n;
}

void host_forget(struct host *host)
{
	for (size_t i = 0; i < host->n_kept; i++)
		free(host->kept[i]);
	free(host->kept);
	host->kept = NULL;
	host->n_kept = 0;
}

size_t host_count(const struct host *host, uint8_t type)
{
	size_t n = 0;

	for (size_t i = 0; i < host->n_kept; i++)
		n += host->kept[i]->type == type;
	return n;
}

const void *host_get(const struct host *host, uint8_t type, size_t which)
{
	for (size_t i = 0; i < host->n_kept; i++) {
		if (host->kept[i]->type == type && !which--)
			return host->kept[i];
	}
	fail_msg("no record %zu of type %u", which, type);
	return NULL;
}

const struct agent_call *host_call(const struct host *host, uint32_t correlation)
{
	for (size_t i = 0; i < host->n_kept; i++) {
		const struct agent_call *call = (const void *)host->kept[i];

		if (call->head.type == AGENT_CALL && call->correlation == correlation)
			return call;
	}
	return NULL;
}

const char *host_kernel_name(const struct host *host, const struct agent_kernel *kernel)
{
	assert_non_null(host->shapes[kernel->shape]);
	return host->names[host->shapes[kernel->shape]->name];
}

/* ---- this process -------------------------------------------------------------------------- */

static size_t count_entries(const char *path)
{
	DIR *directory = opendir(path);
	size_t n = 0;

	assert_non_null(directory);
	while (readdir(directory))
		n++;
	closedir(directory);
	return n;
}

size_t count_fds(void)
{
	return count_entries("/proc/self/fd");
}

size_t count_threads(void)
{
	return count_entries("/proc/self/task");
}

size_t count_mappings(const char *named)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[4096];
	size_t n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, named) != NULL;
	fclose(file);
	return n;
}
