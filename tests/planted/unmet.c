// SPDX-License-Identifier: MIT
/* Ways to wait that no kind before had, and what else users bring: UNSEEN of kinds.py. */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "planted.h"

#define MIB ((size_t)1 << 20)

/* A file of a program's own that nobody else sees. */
static int file_open(const char *name, char path[4200])
{
	int fd;

	snprintf(path, 4200, "%s/planted-unmet-%s-%d", folder, name, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	fail_if(fd < 0, path);
	return fd;
}

/* ---- disks -------------------------------------------------------------------------------------
 */

/* The optimizer's state is on a disk, and is read for each step by the kernel's asynchronous calls:
 * all at once, but when it is needed. */
#define OFFLOADED (64 * MIB)
#define PART      MIB
#define PARTS     12
static int offloaded;
static char *parts;
static aio_context_t reads;

static void prepare_offload(void)
{
	char path[4200];

	fail_if(posix_memalign((void **)&parts, 4096, PARTS * PART) != 0, "memory");
	memset(parts, 1, PARTS * PART);
	offloaded = file_open("offloaded", path);
	for (size_t at = 0; at < OFFLOADED; at += PART)
		fail_if(pwrite(offloaded, parts, PART, (off_t)at) < 0, "pwrite");
	fail_if(fsync(offloaded) < 0, "fsync");
	close(offloaded);
	offloaded = open(path, O_RDWR | O_CLOEXEC | O_DIRECT);
	unlink(path);
	fail_if(offloaded < 0, "open");
	fail_if(syscall(SYS_io_setup, PARTS, &reads) < 0, "io_setup");
}

static PLANT void swap_in_optimizer(void)
{
	struct iocb asked[PARTS], *each[PARTS];
	struct io_event done[PARTS];
	static size_t at;

	if (!with_problem)
		return;
	for (int i = 0; i < PARTS; i++) {
		asked[i] = (struct iocb){ .aio_lio_opcode = IOCB_CMD_PREAD,
			                  .aio_fildes = (uint32_t)offloaded,
			                  .aio_buf = (uintptr_t)parts + (size_t)i * PART,
			                  .aio_nbytes = PART,
			                  .aio_offset = (int64_t)at };
		each[i] = &asked[i];
		at = (at + 5 * PART) % OFFLOADED;
	}
	fail_if(syscall(SYS_io_submit, reads, PARTS, each) != PARTS, "io_submit");
	fail_if(syscall(SYS_io_getevents, reads, PARTS, PARTS, done, NULL) < 0, "io_getevents");
}

static void step_aio_offload(void)
{
	train_step();
	swap_in_optimizer();
}

/* ---- other processes, and unusual ways to be told of them --------------------------------------
 */

/* A worker adds a shard to a file when it is asked, and the trainer watches that file. */
static int shard_file, shard_watch, shard_asked[2];

static PLANT void write_shard(void)
{
	char shard[4096] = { 0 };

	compute(PROBLEM_MS);
	fail_if(pwrite(shard_file, shard, sizeof(shard), 0) < 0, "pwrite");
}

static void run_shards(void)
{
	char asked;

	while (read(shard_asked[0], &asked, 1) == 1)
		write_shard();
}

static void prepare_inotify(void)
{
	char path[4200];

	shard_file = file_open("shards", path);
	shard_watch = inotify_init1(IN_CLOEXEC);
	fail_if(shard_watch < 0 || inotify_add_watch(shard_watch, path, IN_MODIFY) < 0, "inotify");
	unlink(path);
	fail_if(pipe(shard_asked) < 0, "pipe");
	if (child_begin() == 0) {
		run_shards();
		_exit(0);
	}
}

static PLANT void wait_for_shard(void)
{
	char events[4096];

	fail_if(read(shard_watch, events, sizeof(events)) < 0, "read");
}

static void step_inotify(void)
{
	fail_if(write(shard_asked[1], "", 1) < 0, "write");
	train_step();
	wait_for_shard();
}

/* Trainer and worker send each other signals. */
static pid_t sampler;
static sigset_t told;

static PLANT void finish_sample(void)
{
	compute(PROBLEM_MS);
}

static void tell(pid_t pid)
{
	fail_if(syscall(SYS_tgkill, pid, pid, SIGUSR1) < 0, "tgkill");
}

static void prepare_signal_wait(void)
{
	pid_t trainer = getpid();
	int signal;

	sigemptyset(&told);
	sigaddset(&told, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &told, NULL);
	sampler = child_begin();
	if (sampler)
		return;
	for (;;) {
		sigwait(&told, &signal);
		finish_sample();
		tell(trainer);
	}
}

static PLANT void wait_for_sampler(void)
{
	fail_if(sigwaitinfo(&told, NULL) < 0, "sigwaitinfo");
}

static void step_signal_wait(void)
{
	tell(sampler);
	train_step();
	wait_for_sampler();
}

/* Each token is asked for by a message of its own. */
#define TOKENS 400
static int vocabulary[2];

static PLANT void answer_token(void)
{
	char token[16];

	fail_if(recv(vocabulary[1], token, sizeof(token), 0) <= 0, "recv");
	fail_if(send(vocabulary[1], token, sizeof(token), 0) < 0, "send");
}

static void prepare_chatter(void)
{
	fail_if(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, vocabulary) < 0, "socketpair");
	if (child_begin() == 0) {
		for (;;)
			answer_token();
	}
}

static PLANT void ask_vocabulary(void)
{
	char token[16] = { 0 };

	for (int i = 0; i < (with_problem ? TOKENS : 1); i++) {
		fail_if(send(vocabulary[0], token, sizeof(token), 0) < 0, "send");
		fail_if(recv(vocabulary[0], token, sizeof(token), 0) <= 0, "recv");
	}
}

static void step_unix_chatter(void)
{
	train_step();
	ask_vocabulary();
}

/* Queries go through queues of messages. */
static mqd_t queries, answers;

static mqd_t queue_open(const char *name)
{
	char path[64];
	struct mq_attr attributes = { .mq_maxmsg = 2, .mq_msgsize = 64 };
	mqd_t queue;

	snprintf(path, sizeof(path), "/planted-%s-%d", name, getpid());
	queue = mq_open(path, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
	fail_if(queue < 0, path);
	mq_unlink(path);
	return queue;
}

static PLANT void answer_query_slowly(void)
{
	char query[64];

	fail_if(mq_receive(queries, query, sizeof(query), NULL) < 0, "mq_receive");
	nap(PROBLEM_MS);
	fail_if(mq_send(answers, query, sizeof(query), 0) < 0, "mq_send");
}

static void prepare_messages(void)
{
	queries = queue_open("queries");
	answers = queue_open("answers");
	if (child_begin() == 0) {
		for (;;)
			answer_query_slowly();
	}
}

static PLANT void wait_for_answer(void)
{
	char query[64] = { 0 };

	fail_if(mq_send(queries, query, sizeof(query), 0) < 0, "mq_send");
	fail_if(mq_receive(answers, query, sizeof(query), NULL) < 0, "mq_receive");
}

static void step_messages(void)
{
	train_step();
	wait_for_answer();
}

/* A permit that nobody gives is waited for until the time is over. */
static int permits;

static void prepare_permit(void)
{
	permits = semget(IPC_PRIVATE, 1, 0600);
	fail_if(permits < 0, "semget");
	if (fork() == 0) { /* takes it away when the program has ended */
		pid_t parent = getppid();

		while (getppid() == parent)
			nap_ms(50);
		semctl(permits, 0, IPC_RMID);
		_exit(0);
	}
}

static PLANT void wait_for_permit(void)
{
	struct sembuf take = { .sem_op = -1 };
	struct timespec limit = { .tv_nsec = PROBLEM_MS * 1000000 };

	if (with_problem)
		semtimedop(permits, &take, 1, &limit);
}

static void step_permit(void)
{
	train_step();
	wait_for_permit();
}

/* ---- priorities --------------------------------------------------------------------------------
 */

/* A thread of low priority has the lock that the trainer needs, and waits in it for a moment now
 * and then, after which others have all CPUs. */
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

static PLANT void rewrite_cache(void)
{
	pthread_mutex_lock(&cache_lock);
	for (int i = 0; i < 3; i++) {
		compute_anyway(.1);
		nap_ms(.05);
	}
	pthread_mutex_unlock(&cache_lock);
}

static void *run_cache(void *data)
{
	fail_if(setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 15) < 0, "setpriority");
	for (;;) {
		rewrite_cache();
		nap_ms(1);
	}
	return data;
}

static void prepare_inversion(void)
{
	for (int i = 0; with_problem && i < 2; i++) {
		if (child_begin() == 0) {
			for (;;)
				compute_anyway(1);
		}
	}
	thread_begin(run_cache);
}

static PLANT void look_up_cached(void)
{
	pthread_mutex_lock(&cache_lock);
	pthread_mutex_unlock(&cache_lock);
}

static void step_inversion(void)
{
	train_step();
	look_up_cached();
}

/* ---- two at once -------------------------------------------------------------------------------
 */

/* How much memory is left is asked before each step, and samples are sorted by their length. */
#define LENGTHS 50000
static unsigned lengths[LENGTHS];

static PLANT void check_memory(void)
{
	size_t unused, all;

	if (with_problem)
		DRIVER(cuMemGetInfo_v2, &unused, &all);
}

static PLANT int compare_lengths(const void *one, const void *other)
{
	unsigned a = *(const unsigned *)one, b = *(const unsigned *)other;

	return (a > b) - (a < b);
}

static PLANT void order_by_length(void)
{
	unsigned length = 7;

	if (!with_problem)
		return;
	for (int i = 0; i < LENGTHS; i++)
		lengths[i] = length = length * 1103515245 + 12345;
	qsort(lengths, LENGTHS, sizeof(lengths[0]), compare_lengths);
}

static void step_two_memory_sort(void)
{
	check_memory();
	train_step();
	order_by_length();
}

/* ---- nothing is wrong --------------------------------------------------------------------------
 */

/* A reader, a decoder and the trainer, each ahead of the next. */
static int read_batches[2], decoded[2];

static PLANT void pass_batch(int from, int to, double ms)
{
	char sample[4096] = { 0 };

	if (from >= 0)
		fail_if(recv(from, sample, sizeof(sample), MSG_WAITALL) <= 0, "recv");
	compute_anyway(ms);
	fail_if(send(to, sample, sizeof(sample), 0) < 0, "send");
}

static void *run_decoder(void *data)
{
	for (;;)
		pass_batch(read_batches[0], decoded[1], 1);
	return data;
}

static void prepare_pipeline(void)
{
	fail_if(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, read_batches) < 0, "socketpair");
	fail_if(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, decoded) < 0, "socketpair");
	if (child_begin() == 0) {
		for (;;)
			pass_batch(-1, read_batches[1], .5);
	}
	thread_begin(run_decoder);
}

static void step_busy_pipeline(void)
{
	char sample[4096];

	fail_if(recv(decoded[0], sample, sizeof(sample), 0) <= 0, "recv");
	keep_two_steps(stream);
	for (int i = 0; i < 5; i++)
		launch(gemm, 2500, stream);
	mark_step(stream);
}

const struct kind unmet_kinds[] = {
	{ "aio_offload", prepare_offload, step_aio_offload },
	{ "inotify", prepare_inotify, step_inotify },
	{ "signal_wait", prepare_signal_wait, step_signal_wait },
	{ "unix_chatter", prepare_chatter, step_unix_chatter },
	{ "messages", prepare_messages, step_messages },
	{ "permit", prepare_permit, step_permit },
	{ "inversion", prepare_inversion, step_inversion },
	{ "two_memory_sort", NULL, step_two_memory_sort },
	{ "busy_pipeline", prepare_pipeline, step_busy_pipeline },
	{ NULL, NULL, NULL },
};
