// SPDX-License-Identifier: MIT
/* The other side of helper.h: the process that makes helpers, and what they do. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "probe/helper.h"
#include "probe/helper_inside.h"
#include "probe/mounts.h"

#define HELPERS_MAX 64   /* that were made and have not ended */
#define CLOSERS_MAX 64   /* the same */
#define CLOSING_MAX 4096 /* for whom all of these are too slow; what comes then stays open */

/* ---- what helpers do ----------------------------------------------------------------------- */

/*
 * Where its first thread has ended a process shows no memory, and by its other threads it is found.
 * 0: the process has ended, or is the kernel's.
 */
static pid_t other_thread(pid_t pid)
{
	pid_t tid = process_living_thread(pid);

	return tid == pid ? 0 : tid;
}

typedef int64_t helper_read_fn(pid_t tid, const struct helper_request *request, char *to);

static int64_t by_any_thread(helper_read_fn *read, const struct helper_request *request, char *to)
{
	int64_t n = read(request->pid, request, to);
	pid_t tid = n == -ESRCH ? other_thread(request->pid) : 0;

	return tid ? read(tid, request, to) : n;
}

static int64_t read_memory(pid_t tid, const struct helper_request *request, char *to)
{
	struct iovec local = { to, request->bytes };
	struct iovec remote = { (void *)(uintptr_t)request->address, request->bytes };
	ssize_t n = process_vm_readv(tid, &local, 1, &remote, 1, 0);

	return n < 0 ? -errno : n;
}

/* Of /proc/PID/pagemap, which has a word for each page. */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_OF_FILE (1ull << 61) /* or shared */
#define PAGEMAP_GUARDED (1ull << 58)

static enum helper_page kind_of_page(uint64_t word)
{
	if (word & PAGEMAP_GUARDED)
		return HELPER_PAGE_GUARDED;
	return word & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED) && !(word & PAGEMAP_OF_FILE)
	               ? HELPER_PAGE_OWN
	               : HELPER_PAGE_ALIKE;
}

static int64_t read_private_pages(pid_t tid, const struct helper_request *request, char *to)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), part[512], done = 0;
	char path[64];
	int64_t rc = 0;
	AT_END(at_end_close) int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/pagemap", request->pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (done < request->bytes && rc >= 0) {
		uint64_t wanted = request->bytes - done, n;
		ssize_t got = pread(fd, part, (wanted < 512 ? wanted : 512) * 8,
		                    (off_t)((request->address / page + done) * 8));

		rc = got < 0 ? -errno : got < 8 ? -ESRCH : 0;
		n = rc ? 0 : (uint64_t)got / 8;
		for (uint64_t i = 0; i < n; i++)
			to[done + i] = (char)kind_of_page(part[i]);
		done += n;
	}
	return rc < 0 ? rc : (int64_t)done;
}

/* A file of /proc gives a page at a time. */
static int64_t read_on(int fd, char *to)
{
	size_t have = 0;

	while (have < HELPER_BYTES) {
		ssize_t n = read(fd, to + have, HELPER_BYTES - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (int64_t)have;
}

static int64_t read_maps_of(const char *path, char *to, int *fd)
{
	int64_t n;

	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	n = read_on(*fd, to);
	if (n < HELPER_BYTES) {
		close(*fd);
		*fd = -1;
	}
	return n;
}

static int64_t read_maps(const struct helper_request *request, char *to, int *fd)
{
	char path[64];
	int64_t n;
	pid_t tid;

	snprintf(path, sizeof(path), "/proc/%d/maps", request->pid);
	n = read_maps_of(path, to, fd);
	tid = n ? 0 : other_thread(request->pid);
	if (!tid)
		return n;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", request->pid, tid);
	return read_maps_of(path, to, fd);
}

/* What is not the device is closed before there is an answer: so who is waited for is to blame. */
static int copy_device(const struct helper_request *request)
{
	int pidfd = (int)syscall(SYS_pidfd_open, request->pid, 0), fd;
	struct stat st;

	if (pidfd < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)request->address, 0);
	fd = fd < 0 ? -errno : fd;
	close(pidfd);
	if (fd < 0 || (!fstat(fd, &st) && S_ISCHR(st.st_mode) && st.st_rdev == request->bytes))
		return fd;
	close(fd);
	return -EPROTOTYPE;
}

/* The kernel waits meanwhile for an exec of the other's to be over, which may hang. */
static int64_t same_file(const struct helper_request *request, int fd)
{
	long r = syscall(SYS_kcmp, request->pid, getpid(), KCMP_FILE, request->address, fd);

	return r < 0 ? -errno : !r;
}

static int open_namespace(const struct helper_request *request)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%.32s", request->pid, request->path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* ---- how long it waited -------------------------------------------------------------------- */

static int queue_fd = -1; /* /proc/self/schedstat, where the kernel has it */

struct helper_process_moment {
	uint64_t ns;
	uint64_t busy_ns; /* it ran until then, or waited for a processor */
	uint64_t ran_ns;
	long switches; /* because it waited for something else */
};

/* For a processor: the second number. */
static uint64_t queued_ns(void)
{
	char text[128] = "", *at = text;

	if (queue_fd < 0 || pread(queue_fd, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	strtoull(at, &at, 10); /* that it ran */
	return strtoull(at, &at, 10);
}

static uint64_t ran_ns(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

static struct helper_process_moment now(void)
{
	struct timespec clock;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	clock_gettime(CLOCK_MONOTONIC, &clock);
	return (struct helper_process_moment){
		.ns = (uint64_t)clock.tv_sec * 1000000000 + (uint64_t)clock.tv_nsec,
		.busy_ns = ran_ns(&usage) + queued_ns(),
		.ran_ns = ran_ns(&usage),
		.switches = usage.ru_nvcsw,
	};
}

/* Most requests wait for nothing, and cost no more than this. */
static uint64_t waited_since(const struct helper_process_moment *before)
{
	struct rusage usage;
	struct helper_process_moment after;
	int64_t waited;

	getrusage(RUSAGE_SELF, &usage);
	if (usage.ru_nvcsw == before->switches)
		return 0;
	after = now();
	waited = (int64_t)(after.ns - before->ns) - (int64_t)(after.busy_ns - before->busy_ns);
	return waited > 0 ? (uint64_t)waited : 0; /* the clocks are not read at once */
}

static uint64_t ran_since(const struct helper_process_moment *before)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return ran_ns(&usage) - before->ran_ns;
}

/*
 * Opened for the one read: what helpers have open they would have to close, which may hang too.
 * Only the read itself is root's: opening waits for whoever has a lease on the file.
 */
static int64_t read_file(int path_fd, const struct helper_request *request,
                         struct helper_answer *answer)
{
	struct helper_process_moment before = { 0 };
	char self[64];
	ssize_t n;
	AT_END(at_end_close) int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (request->is_roots)
		before = now();
	do
		n = pread(fd, answer->data, request->bytes, (off_t)request->address);
	while (n < 0 && errno == EINTR);
	n = n < 0 ? -errno : n;
	if (request->is_roots)
		answer->waited_ns = waited_since(&before);
	return n;
}

static int64_t read_in_root(const struct helper_request *request, char *to)
{
	const struct root_file_rights rights = { (uid_t)request->address,
		                                 (gid_t)(request->address >> 32) };
	char path[64];
	AT_END(at_end_close) int root;

	snprintf(path, sizeof(path), "/proc/%d/root", request->pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	return root_file_read(request->pid, root, request->path, &rights, to, request->bytes);
}

/* And nothing else. */
static bool gives_descriptor(enum helper_op op)
{
	return op == HELPER_COPY || op == HELPER_NAMESPACE || op == HELPER_OPEN_MAPPING ||
	       op == HELPER_OPEN_IN_ROOT;
}

void helper_do(const struct helper_request *request, int fd, bool aside,
               struct helper_answer *answer, int *fd_out)
{
	struct mapping mapping = request->mapping;
	bool is_path = false;

	*fd_out = -1;
	mapping.path = request->path;
	switch ((enum helper_op)request->op) {
	case HELPER_MEMORY:
		answer->result = by_any_thread(read_memory, request, answer->data);
		break;
	case HELPER_PRIVATE_PAGES:
		answer->result = by_any_thread(read_private_pages, request, answer->data);
		break;
	case HELPER_CODE_OF:
		answer->result = by_any_thread(helper_code_by, request, answer->data);
		if (answer->result == -ESRCH) /* a thread of the kernel's */
			answer->result = 0;
		break;
	case HELPER_MAPS:
		answer->result = read_maps(request, answer->data, fd_out);
		break;
	case HELPER_MAPS_ON:
		answer->result = read_on(fd, answer->data);
		break;
	case HELPER_COPY:
		*fd_out = copy_device(request);
		break;
	case HELPER_SAME:
		answer->result = same_file(request, fd);
		break;
	case HELPER_LOOK:
		answer->result = process_look_here(request->pid, request->address, request->path,
		                                   answer->data, request->bytes);
		break;
	case HELPER_NAMESPACE:
		*fd_out = open_namespace(request);
		break;
	case HELPER_PREAD:
		answer->result = read_file(fd, request, answer);
		break;
	case HELPER_READ_IN_ROOT:
		answer->result = read_in_root(request, answer->data);
		break;
	case HELPER_OPEN_MAPPING:
		*fd_out = mapping_open_here(request->pid, &mapping, aside ? &is_path : NULL,
		                            &answer->by_map);
		break;
	case HELPER_OPEN_IN_ROOT:
		*fd_out = path_open_here(request->pid, request->path, aside ? &is_path : NULL);
		break;
	}
	if (gives_descriptor(request->op))
		answer->result = *fd_out < 0 ? *fd_out : 0;
	answer->is_path = is_path;
	answer->is_roots = is_path && file_is_on_roots_file_system(request->pid, *fd_out);
}

static size_t answer_bytes(const struct helper_request *request, const struct helper_answer *answer)
{
	bool data = request->op != HELPER_SAME && !gives_descriptor(request->op);

	return offsetof(struct helper_answer, data) +
	       (data && answer->result > 0 ? (size_t)answer->result : 0);
}

__attribute__((noreturn)) static void serve(int socket)
{
	static struct helper_request request;
	static struct helper_answer answer;
	struct helper_process_moment before;
	uint64_t waited;
	int32_t pid = getpid();
	int fd, out;

	queue_fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	if (worker_send(socket, &pid, sizeof(pid), -1))
		_exit(1);
	while (worker_receive(socket, &request, sizeof(request), &fd) > 0) {
		request.path[sizeof(request.path) - 1] = '\0';
		if (request.bytes > HELPER_BYTES && request.op != HELPER_COPY)
			request.bytes = HELPER_BYTES;
		before = now();
		answer.waited_ns = 0; /* for root's files */
		helper_do(&request, fd, true, &answer, &out);
		waited = waited_since(&before);
		answer.waited_ns = waited > answer.waited_ns ? waited - answer.waited_ns : 0;
		answer.ran_ns = ran_since(&before);
		if (worker_send(socket, &answer, answer_bytes(&request, &answer), out))
			break;
		if (out >= 0)
			close(out);
		if (fd >= 0)
			close(fd);
	}
	_exit(0);
}

/* ---- the process that makes them ----------------------------------------------------------- */

/* They end when cuscope does, and not before: what a terminal or systemd sends to all is its. */
static void leave_signals_to_cuscope(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void forget_ended(pid_t *children, int most)
{
	for (int i = 0; i < most; i++)
		if (children[i] && waitpid(children[i], NULL, WNOHANG) == children[i])
			children[i] = 0;
}

static void make_helper(pid_t *helpers, enum helper_does what, int socket)
{
	int slot = 0;
	pid_t maker = getpid(), pid;

	while (slot < HELPERS_MAX && helpers[slot])
		slot++;
	if (slot == HELPERS_MAX)
		return; /* cuscope sees its socket close */
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != maker)
			_exit(1);
		worker_close_all_but(socket, -1); /* nothing lives as long as what hangs */
		if (what == HELPER_MAKE_NAMES)
			names_main(socket);
		serve(socket);
	}
	helpers[slot] = pid > 0 ? pid : 0;
}

/* Only its own children: none is waited for in between, so no pid is another's by now. */
static void end_helper(const pid_t *helpers, pid_t pid)
{
	for (int i = 0; i < HELPERS_MAX; i++)
		if (pid > 0 && helpers[i] == pid)
			kill(pid, SIGKILL);
}

/* What is to be closed by others. */
struct closing {
	pid_t closers[CLOSERS_MAX];
	int fds[CLOSING_MAX];
	size_t n;
};

/*
 * By its end a process closes what it has open, and no linger of a socket is waited for there. It
 * ends when it is the last to have that. Where there can be no process now, the next one takes all.
 */
static void close_elsewhere(struct closing *closing, int control)
{
	pid_t *closer = closing->closers;
	int go[2];
	char none;

	while (closer < closing->closers + CLOSERS_MAX && *closer)
		closer++;
	if (!closing->n || closer == closing->closers + CLOSERS_MAX || pipe2(go, O_CLOEXEC))
		return;
	*closer = fork();
	if (*closer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(control); /* cuscope is to see the end of the other */
		close(go[1]);
		_exit(read(go[0], &none, 1) < 0);
	}
	while (*closer > 0 && closing->n)
		close(closing->fds[--closing->n]);
	if (*closer < 0)
		*closer = 0;
	close(go[0]);
	close(go[1]);
}

void helper_process_main(void *data, int control)
{
	static struct closing closing;
	pid_t helpers[HELPERS_MAX] = { 0 };
	struct helper_order order;
	int fd, taken = -1;

	prctl(PR_SET_NAME, "cuscope-read");
	leave_signals_to_cuscope();
	worker_close_all_but(control, -1);
	while (worker_receive(control, &order, sizeof(order), &fd) == sizeof(order)) {
		forget_ended(helpers, HELPERS_MAX);
		forget_ended(closing.closers, CLOSERS_MAX);
		if (order.does == HELPER_KILL) {
			end_helper(helpers, order.pid);
		} else if (order.does == HELPER_TAKE) {
			taken = fd;
		} else if (order.does == HELPER_DROP && taken >= 0) {
			if (closing.n < CLOSING_MAX)
				closing.fds[closing.n++] = taken;
			taken = -1;
		} else if (fd >= 0) {
			make_helper(helpers, order.does, fd);
			close(fd);
		}
		close_elsewhere(&closing, control);
	}
	_exit(0); /* and they with it */
}
