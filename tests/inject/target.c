// SPDX-License-Identifier: MIT
/*
 * target WHAT [THREADS]: programs to be attached to that check themselves. Writes "ready" when its
 * threads run; at SIGTERM it ends with 0, or earlier with a sentence and 1 when something is not as
 * it should be. WHAT is a row of `works`.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "slow_malloc.h"
#include "target.h"

static atomic_bool stop;
static bool alone; /* the main thread works, and nobody else */
static atomic_ullong rounds;
static atomic_int beginning; /* threads that are not at their work yet */

/* ---- registers around a system call ---------------------------------------------------------- */

#ifdef __x86_64__

struct registers {
	uint64_t number, arg[3], expected; /* of the call, and its result */
	uint64_t general[10];              /* rbx rbp r8 r9 r10 r12 r13 r14 r15, flags */
	uint8_t vector[16][32];
	uint64_t general_after[10], result;
	uint8_t vector_after[16][32];
};

void call_with_registers(struct registers *registers); /* registers.S */

_Static_assert(offsetof(struct registers, vector) == 120, "layout");
_Static_assert(offsetof(struct registers, general_after) == 632, "layout");
_Static_assert(offsetof(struct registers, vector_after) == 720, "layout");

#define CARRY     0x1u
#define DIRECTION 0x400u
#define FLAGS     (0x202u | CARRY | 0x80u | DIRECTION)

static void work_registers(void)
{
	static _Thread_local struct registers r;
	struct timespec t = { .tv_nsec = 2000000 };
	static _Thread_local unsigned turn;

	for (size_t i = 0; i < 9; i++)
		r.general[i] = 0x1122334455667788ull * (i + 1) + turn;
	r.general[9] = FLAGS;
	for (size_t i = 0; i < sizeof(r.vector); i++)
		((uint8_t *)r.vector)[i] = (uint8_t)(i * 7 + turn + 1);
	r.number = turn % 2 ? SYS_nanosleep : SYS_poll;
	r.arg[0] = turn % 2 ? (uint64_t)&t : 0;
	r.arg[1] = 0;
	r.arg[2] = 2;
	turn++;
	call_with_registers(&r);
	if (r.result != 0)
		wrong("the call returned %ld", (long)r.result);
	for (size_t i = 0; i < 10; i++)
		if (r.general[i] != r.general_after[i])
			wrong("register %zu was %llx and is %llx", i,
			      (unsigned long long)r.general[i],
			      (unsigned long long)r.general_after[i]);
	if (memcmp(r.vector, r.vector_after, sizeof(r.vector)) != 0)
		wrong("a vector register changed");
}

#else

static void work_registers(void)
{
	work_poll();
}

#endif

/* ---- no waits ----------------------------------------------------------------------------- */

static void work_compute(void)
{
	volatile double x = 1;

	for (int i = 0; i < 1000000; i++)
		x = x * 1.0000001 + 0.5;
}

/* Nothing but calls that the allocator makes. */
static void work_malloc(void)
{
	void *memory[64];

	for (int i = 0; i < 64; i++)
		memset(memory[i] = malloc(1000u << i % 12), 1, 100);
	for (int i = 0; i < 64; i++)
		free(memory[i]);
}

/* Much of the time within an allocator that sleeps (slow_malloc.c), and then not. */
static void work_slow_malloc(void)
{
	void *volatile memory = malloc(SLOW_BYTES);

	free(memory);
	work_poll();
}

void hold_allocator(long ms) __attribute__((weak)); /* slow_malloc.c */

static void work_held_allocator(void)
{
	if (!hold_allocator)
		wrong("without slow_malloc.so");
	hold_allocator(3000);
}

/* A wait of code that no file has. */
static void work_made_code(void)
{
#ifdef __x86_64__
	/* sub $8,%rsp; call *%rdi; add $8,%rsp; ret */
	static const uint8_t bytes[] = {
		0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3
	};
	static void (*code)(void (*function)(void));

	if (!code) {
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			wrong("no memory for code");
		memcpy(page, bytes, sizeof(bytes));
		memcpy(&code, &page, sizeof(page));
	}
	code(work_poll);
#endif
}

/* The allocator, and now and then something else. */
static void work_busy(void)
{
	work_malloc();
	if (syscall(SYS_getppid) <= 0)
		wrong("getppid");
}

/* ---- signals ------------------------------------------------------------------------------ */

static atomic_ullong signals_sent, signals_taken;

static void take_signal(int sig)
{
	atomic_fetch_add(&signals_taken, 1);
}

/* 10,000 signals a second to the waiting thread; each must be taken by the handler. */
static void *send_signals(void *argument)
{
	pthread_t *to = argument;
	union sigval value = { 0 };

	while (!atomic_load(&stop)) {
		struct timespec t = { .tv_nsec = 100000 };

		if (pthread_sigqueue(*to, SIGRTMIN, value) == 0)
			atomic_fetch_add(&signals_sent, 1);
		nanosleep(&t, NULL);
	}
	return NULL;
}

static void work_signals(void)
{
	static pthread_t self, sender;
	static bool begun;

	if (!begun) {
		begun = true;
		self = pthread_self();
		pthread_create(&sender, NULL, send_signals, &self);
	}
	if (poll(NULL, 0, 50) < 0 && errno != EINTR)
		wrong("poll: %s", strerror(errno));
	if (atomic_load(&stop)) {
		pthread_join(sender, NULL);
		if (atomic_load(&signals_sent) != atomic_load(&signals_taken))
			wrong("%llu signals were sent and %llu taken", atomic_load(&signals_sent),
			      atomic_load(&signals_taken));
	}
}

/* Waits without an end for a signal, whose handler must end the wait: see "linger". */
static void work_epoll_signal(void)
{
	struct epoll_event event;
	int r = epoll_wait(epoll_fd, &event, 1, -1);

	if (r != -1 || errno != EINTR)
		wrong("epoll_wait: %d %s", r, strerror(errno));
	if (!atomic_load(&signals_taken) && !atomic_load(&stop))
		wrong("EINTR without a signal");
	printf("interrupted\n");
	fflush(stdout);
}

/* ---- exec --------------------------------------------------------------------------------- */

static char **the_argv;

static void work_exec(void)
{
	struct timespec t = { .tv_nsec = 5000000 };

	nanosleep(&t, NULL);
	execv("/proc/self/exe", the_argv);
	wrong("exec: %s", strerror(errno));
}

/* The main thread ends, the others go on; its place in /proc stays, without descriptors. */
static void *sleep_main(void *argument)
{
	for (;;)
		work_poll();
	return argument;
}

static void work_leaderless(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_main, NULL))
		wrong("pthread_create");
	pthread_exit(NULL);
}

/* One thread holds the loader's lock for as long as the library's constructor takes. */
static void *load_main(void *argument)
{
	if (!dlopen(getenv("TARGET_LOADS"), RTLD_NOW))
		wrong("%s", dlerror());
	printf("loaded\n");
	fflush(stdout);
	return argument;
}

static void work_loader(void)
{
	static pthread_t thread;

	if (!thread && pthread_create(&thread, NULL, load_main, NULL))
		wrong("pthread_create");
	if (poll(NULL, 0, 100) != 0) /* whose thread may be kept waiting for the lock */
		wrong("poll: %s", strerror(errno));
}

/* Programs of musl have their loader mapped under this name. */
static void work_musl(void)
{
	static void *memory;

	if (!memory) {
		int fd = open(getenv("TARGET_LOADS"), O_RDONLY | O_CLOEXEC);

		memory = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (memory == MAP_FAILED)
			wrong("mmap: %s", strerror(errno));
	}
	work_poll();
}

/* A filter of seccomp that answers memfd_create as TARGET_FILTER says, and allows the rest. */
static void work_seccomp(void)
{
	static bool filtered;
	const char *how = getenv("TARGET_FILTER");
	uint32_t answer = strcmp(how, "kill") == 0    ? SECCOMP_RET_KILL_PROCESS
	                  : strcmp(how, "error") == 0 ? SECCOMP_RET_ERRNO | EPERM
	                                              : SECCOMP_RET_ALLOW;
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(insns) / sizeof(*insns), insns };

	if (!filtered && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	                  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)))
		wrong("seccomp: %s", strerror(errno));
	filtered = true;
	work_poll();
}

/* Makes children that live a while, as loaders of data do, beside a thread that waits. */
static void *wait_main(void *argument)
{
	while (!atomic_load(&stop))
		work_poll();
	return argument;
}

static void work_fork(void)
{
	static pthread_t thread;
	struct timespec t = { .tv_nsec = 300000000 };

	if (!thread && pthread_create(&thread, NULL, wait_main, NULL))
		wrong("pthread_create");
	if (fork() == 0) {
		nanosleep(&t, NULL);
		_exit(0);
	}
	t.tv_nsec = 200000;
	nanosleep(&t, NULL);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	if (atomic_load(&stop))
		pthread_join(thread, NULL);
}

static void work_exit(void)
{
	struct timespec t = { .tv_nsec = 20000000 };

	nanosleep(&t, NULL);
	_exit(0);
}

/*
 * Puts the file TARGET_SWAP, of a tmpfs, in place of every memfd that is made in it, as soon as it
 * is there: who then writes to it writes to the file.
 */
static void *swap_main(void *argument)
{
	int file = open(getenv("TARGET_SWAP"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	char path[64], link[64];

	if (file < 0 || fcntl(file, F_DUPFD_CLOEXEC, 100) < 0)
		wrong("TARGET_SWAP: %s", strerror(errno));
	while (!atomic_load(&stop)) {
		for (int fd = 3; fd < 10; fd++) {
			ssize_t n;

			snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
			n = readlink(path, link, sizeof(link) - 1);
			if (n > 7 && strncmp(link, "/memfd:", 7) == 0)
				dup2(file, fd);
		}
	}
	return argument;
}

static void work_swap(void)
{
	static pthread_t thread;

	if (!thread && pthread_create(&thread, NULL, swap_main, NULL))
		wrong("pthread_create");
	work_poll();
}

/* ---- a thread that sends descriptors ---- */

static void send_descriptor(int socket, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr first;
	} control = { .first = { .cmsg_level = SOL_SOCKET,
		                 .cmsg_type = SCM_RIGHTS,
		                 .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec part = { .iov_base = "", .iov_len = 1 };
	struct msghdr message = { .msg_iov = &part,
		                  .msg_iovlen = 1,
		                  .msg_control = control.bytes,
		                  .msg_controllen = sizeof(control.bytes) };

	memcpy(CMSG_DATA(&control.first), &fd, sizeof(fd));
	sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Copies of the two pairs that a borrowed thread makes, in order; false: not all were there. */
static bool copy_pairs(int copies[4])
{
	int n = 0;

	for (int fd = 3; fd < 12 && n < 4; fd++) {
		int type = 0;
		socklen_t size = sizeof(type);

		if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_SEQPACKET)
			copies[n++] = fcntl(fd, F_DUPFD_CLOEXEC, 100);
	}
	if (n == 4 && copies[0] > 0 && copies[1] > 0 && copies[2] > 0 && copies[3] > 0)
		return true;
	while (n > 0)
		close(copies[--n]);
	return false;
}

/*
 * An end of a pipe goes to whoever hears the thread's report, and is nowhere else then: as long as
 * that has it, so long does the pipe go on.
 */
static void *sends_main(void *argument)
{
	int copies[4], ends[2], off = 0;
	char byte;

	while (!copy_pairs(copies))
		if (atomic_load(&stop))
			return argument;
	usleep(100000); /* cuscope has asked the sockets for what it wants */
	setsockopt(copies[2], SOL_SOCKET, SO_TIMESTAMPNS, &off, sizeof(off));
	if (pipe2(ends, O_CLOEXEC))
		wrong("pipe2: %s", strerror(errno));
	send_descriptor(copies[3], ends[1]);
	close(ends[1]);
	printf("%s\n", poll(&(struct pollfd){ .fd = ends[0], .events = POLLIN }, 1, 200) == 1 &&
	                               read(ends[0], &byte, 1) == 0
	                       ? "dropped"
	                       : "kept");
	fflush(stdout);
	return argument;
}

static void work_sends(void)
{
	static pthread_t thread;

	if (!thread && pthread_create(&thread, NULL, sends_main, NULL))
		wrong("pthread_create");
	work_poll();
}

/* ---- threads ------------------------------------------------------------------------------ */

static const struct work {
	const char *name;
	void (*work)(void);
	void (*begin)(void); /* what it opens; before the target is ready */
} works[] = {
	{ "poll", work_poll, NULL },
	{ "ppoll", work_ppoll, NULL },
	{ "select", work_select, NULL },
	{ "nanosleep", work_nanosleep, NULL },
	{ "sleep-until", work_sleep_until, NULL },
	{ "epoll", work_epoll, begin_epoll },
	{ "read", work_read, begin_read },
	{ "condition", work_condition, NULL },
	{ "registers", work_registers, NULL },
	{ "compute", work_compute, NULL },
	{ "malloc", work_malloc, NULL },
	{ "busy", work_busy, NULL },
	{ "slow-malloc", work_slow_malloc, NULL },
	{ "held-allocator", work_held_allocator, NULL },
	{ "made-code", work_made_code, NULL },
	{ "signals", work_signals, NULL },
	{ "epoll-signal", work_epoll_signal, begin_epoll },
	{ "exec", work_exec, NULL },
	{ "exit", work_exit, NULL },
	{ "leaderless", work_leaderless, NULL },
	{ "loader", work_loader, NULL },
	{ "fork", work_fork, NULL },
	{ "musl", work_musl, NULL },
	{ "seccomp", work_seccomp, NULL },
	{ "swap", work_swap, NULL },
	{ "sends", work_sends, NULL },
};

/* SIGTERM is blocked everywhere, and ends no wait. */
static bool is_to_stop(void)
{
	sigset_t set;

	if (alone && sigpending(&set) == 0 && sigismember(&set, SIGTERM))
		atomic_store(&stop, true);
	return atomic_load(&stop);
}

/* After the last thread, with nothing left that only happens once. */
static void one_is_ready(void)
{
	if (atomic_fetch_sub(&beginning, 1) != 1)
		return;
	printf("ready\n");
	fflush(stdout);
}

static void *thread_main(void *argument)
{
	const struct work *work = argument;
	bool last = false;
	void *volatile memory = malloc(200000);

	/* the allocator makes room for a thread at its first use: it is not to be taken for
	 * a leak */
	free(memory);
	if (work->begin)
		work->begin();
	one_is_ready();
	while (!last) {
		last = is_to_stop();
		work->work();
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static const struct work *find_work(const char *name)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++)
		if (strcmp(works[i].name, name) == 0)
			return &works[i];
	fprintf(stderr, "there is no work '%s'\n", name);
	exit(2);
}

static void set_signals(void)
{
	struct sigaction action = { .sa_handler = take_signal };
	sigset_t set;

	sigaction(SIGRTMIN, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* THREADS 0: the work is the main thread's; else the main thread sits in pthread_join. */
int main(int argc, char **argv)
{
	const struct work *work = find_work(argc > 1 ? argv[1] : "");
	int n = argc > 2 ? atoi(argv[2]) : 0;
	pthread_t threads[256];
	pthread_attr_t attr;
	sigset_t set;

	the_argv = argv;
	set_signals();
	beginning = n ? n : 1;
	if (n == 0) {
		alone = true;
		thread_main((void *)work);
		return 0;
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
	for (int i = 0; i < n && i < 256; i++)
		if (pthread_create(&threads[i], &attr, thread_main, (void *)work))
			wrong("pthread_create: %s", strerror(errno));
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwaitinfo(&set, NULL);
	atomic_store(&stop, true);
	for (int i = 0; i < n && i < 256; i++)
		pthread_join(threads[i], NULL);
	printf("%llu rounds\n", atomic_load(&rounds));
	return 0;
}
