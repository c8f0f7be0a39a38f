// SPDX-License-Identifier: MIT
/* The step waits for another thread or process, which is the problem: it computes, or sleeps. */
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "planted.h"

/* ---- a thread, by a condition -----------------------------------------------------------------
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long asked, answered;

static PLANT void transform_in_thread(void)
{
	compute(PROBLEM_MS);
}

static PLANT void fetch_in_thread(void)
{
	nap(PROBLEM_MS);
}

static void serve_condition(void (*work)(void))
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (asked == answered)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		work();
		pthread_mutex_lock(&lock);
		answered++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
}

static void *run_transform(void *data)
{
	serve_condition(transform_in_thread);
	return data;
}

static void *run_fetch(void *data)
{
	serve_condition(fetch_in_thread);
	return data;
}

static void prepare_thread(void)
{
	thread_begin(run_transform);
}

static void prepare_fetch(void)
{
	thread_begin(run_fetch);
}

static PLANT void wait_for_batch(void)
{
	pthread_mutex_lock(&lock);
	asked++;
	pthread_cond_broadcast(&changed);
	while (answered < asked)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void step_thread(void)
{
	train_step();
	wait_for_batch();
}

/* ---- a thread, by an eventfd, by a barrier and by a flag ---------------------------------------
 */

static int ask_fd = -1, answer_fd = -1;

static PLANT void decode_in_pool(void)
{
	compute(PROBLEM_MS);
}

static void *run_pool(void *data)
{
	uint64_t n = 1;

	while (read(ask_fd, &n, sizeof(n)) == sizeof(n)) {
		decode_in_pool();
		if (write(answer_fd, &n, sizeof(n)) < 0)
			break;
	}
	return data;
}

static void prepare_eventfd(void)
{
	ask_fd = eventfd(0, EFD_CLOEXEC);
	answer_fd = eventfd(0, EFD_CLOEXEC);
	thread_begin(run_pool);
}

static PLANT void poll_pool(void)
{
	struct pollfd wanted = { answer_fd, POLLIN, 0 };
	uint64_t n = 1;

	fail_if(write(ask_fd, &n, sizeof(n)) < 0, "write");
	fail_if(poll(&wanted, 1, -1) < 0, "poll");
	fail_if(read(answer_fd, &n, sizeof(n)) < 0, "read");
}

static void step_eventfd(void)
{
	train_step();
	poll_pool();
}

static pthread_barrier_t barrier;

static PLANT void slow_share(void)
{
	compute(PROBLEM_MS);
}

static void *run_share(void *data)
{
	for (;;) {
		slow_share();
		pthread_barrier_wait(&barrier);
	}
	return data;
}

static void prepare_barrier(void)
{
	pthread_barrier_init(&barrier, NULL, 2);
	thread_begin(run_share);
}

static PLANT void meet_threads(void)
{
	pthread_barrier_wait(&barrier);
}

static void step_barrier(void)
{
	train_step();
	meet_threads();
}

static long flag;

static PLANT void spin_for_flag(void)
{
	long before = __atomic_load_n(&flag, __ATOMIC_ACQUIRE);

	while (with_problem && __atomic_load_n(&flag, __ATOMIC_ACQUIRE) == before)
		compute_rounds(10);
}

static PLANT void poll_with_naps(void)
{
	long before = __atomic_load_n(&flag, __ATOMIC_ACQUIRE);

	while (with_problem && __atomic_load_n(&flag, __ATOMIC_ACQUIRE) == before)
		nap_ms(1);
}

static void *run_flag(void *data)
{
	for (;;) {
		nap_ms(PROBLEM_MS);
		__atomic_fetch_add(&flag, 1, __ATOMIC_RELEASE);
	}
	return data;
}

static void prepare_flag(void)
{
	thread_begin(run_flag);
}

static void step_spin(void)
{
	train_step();
	spin_for_flag();
}

static void step_poll(void)
{
	train_step();
	poll_with_naps();
}

/* ---- a lock that another thread has ------------------------------------------------------------
 */

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static PLANT void rebuild_index(void)
{
	compute(PROBLEM_MS);
}

static PLANT void flush_table(void)
{
	nap(PROBLEM_MS);
}

/* Pauses long enough that the other gets the lock. */
static void hold_table(void (*work)(void))
{
	for (;;) {
		pthread_mutex_lock(&table_lock);
		work();
		pthread_mutex_unlock(&table_lock);
		nap_ms(.3);
	}
}

static void *run_rebuild(void *data)
{
	hold_table(rebuild_index);
	return data;
}

static void *run_flush(void *data)
{
	hold_table(flush_table);
	return data;
}

static void prepare_lock(void)
{
	thread_begin(run_rebuild);
}

static void prepare_lock_sleep(void)
{
	thread_begin(run_flush);
}

static PLANT void look_up_table(void)
{
	pthread_mutex_lock(&table_lock);
	compute_anyway(.05);
	pthread_mutex_unlock(&table_lock);
}

static void step_lock(void)
{
	train_step();
	look_up_table();
}

/* ---- a process, by pipe, socket pair and TCP ---------------------------------------------------
 */

static int own_in, own_out, child_in, child_out;

static PLANT void transform_in_worker(void)
{
	compute(PROBLEM_MS);
}

static PLANT void fetch_in_worker(void)
{
	nap(PROBLEM_MS);
}

static void serve_bytes(void (*work)(void))
{
	char byte;

	while (read(child_in, &byte, 1) == 1) {
		work();
		if (write(child_out, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static void serve_in_child(void (*work)(void))
{
	if (child_begin() == 0)
		serve_bytes(work);
}

static void make_pipes(void)
{
	int there[2], back[2];

	fail_if(pipe(there) || pipe(back), "pipe");
	own_out = there[1];
	child_in = there[0];
	own_in = back[0];
	child_out = back[1];
}

static void prepare_pipe(void)
{
	make_pipes();
	serve_in_child(transform_in_worker);
}

static void prepare_pipe_sleep(void)
{
	make_pipes();
	serve_in_child(fetch_in_worker);
}

static void prepare_socketpair(void)
{
	int pair[2];

	fail_if(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0, "socketpair");
	own_in = own_out = pair[0];
	child_in = child_out = pair[1];
	serve_in_child(transform_in_worker);
}

static void prepare_tcp(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	fail_if(bind(listener, (struct sockaddr *)&at, size) < 0 || listen(listener, 1) < 0,
	        "bind");
	fail_if(getsockname(listener, (struct sockaddr *)&at, &size) < 0, "getsockname");
	if (child_begin() == 0) {
		child_in = child_out = accept(listener, NULL, NULL);
		setsockopt(child_in, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
		serve_bytes(transform_in_worker);
	}
	own_in = own_out = socket(AF_INET, SOCK_STREAM, 0);
	fail_if(connect(own_in, (struct sockaddr *)&at, size) < 0, "connect");
	setsockopt(own_in, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static PLANT void read_from_worker(void)
{
	char byte = 1;

	fail_if(write(own_out, &byte, 1) != 1 || read(own_in, &byte, 1) != 1, "the worker");
}

static void step_worker(void)
{
	train_step();
	read_from_worker();
}

/* A thread that waits for the process in its turn. */
static void *run_relay(void *data)
{
	serve_condition(read_from_worker);
	return data;
}

static void prepare_relay(void)
{
	prepare_pipe();
	thread_begin(run_relay);
}

static PLANT void check_results(void)
{
	compute(4);
}

static void step_two_worker_prep(void)
{
	train_step();
	read_from_worker();
	check_results();
}

/* ---- a process, by a futex in shared memory ----------------------------------------------------
 */

static int *shared; /* [0] counts requests, [1] answers */

static void futex_wait(int *word, int value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void futex_count(int *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void prepare_futex(void)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fail_if(shared == MAP_FAILED, "mmap");
	if (child_begin() != 0)
		return;
	for (int n = 0;; n++) {
		futex_wait(&shared[0], n);
		transform_in_worker();
		futex_count(&shared[1]);
	}
}

static PLANT void take_from_ring(void)
{
	int before = __atomic_load_n(&shared[1], __ATOMIC_ACQUIRE);

	futex_count(&shared[0]);
	futex_wait(&shared[1], before);
}

static void step_futex(void)
{
	train_step();
	take_from_ring();
}

/* ---- a thousand threads that have nothing to do ------------------------------------------------
 */

static void *run_idle(void *data)
{
	for (;;)
		nap_ms(1000);
	return data;
}

static void prepare_crowd(void)
{
	for (int i = 0; i < 1000; i++)
		thread_begin(run_idle);
	prepare_thread();
}

const struct kind worker_kinds[] = {
	{ "crowd", prepare_crowd, step_thread },
	{ "thread", prepare_thread, step_thread },
	{ "thread_sleep", prepare_fetch, step_thread },
	{ "eventfd", prepare_eventfd, step_eventfd },
	{ "barrier", prepare_barrier, step_barrier },
	{ "spin", prepare_flag, step_spin },
	{ "poll", prepare_flag, step_poll },
	{ "lock", prepare_lock, step_lock },
	{ "lock_sleep", prepare_lock_sleep, step_lock },
	{ "pipe", prepare_pipe, step_worker },
	{ "pipe_sleep", prepare_pipe_sleep, step_worker },
	{ "socketpair", prepare_socketpair, step_worker },
	{ "tcp", prepare_tcp, step_worker },
	{ "relay", prepare_relay, step_thread },
	{ "futex", prepare_futex, step_futex },
	{ "two_worker_prep", prepare_pipe, step_two_worker_prep },
	{ NULL, NULL, NULL },
};
