// SPDX-License-Identifier: MIT
/* More of what users meet and no rule of `cuscope why` was written against: UNSEEN of kinds.py. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "planted.h"

#define MIB ((size_t)1 << 20)

static PLANT void train_long(void)
{
	keep_two_steps(stream);
	for (int i = 0; i < 5; i++)
		launch(gemm, 2500, stream);
	mark_step(stream);
}

/* ---- memory of the driver ----------------------------------------------------------------------
 */

/* A batch that lies in the program's own memory is locked for its copy, and let go. */
static char *batch;
static CUdeviceptr on_gpu, other_on_gpu;

static void prepare_batch_of_own(void)
{
	batch = malloc(8 * MIB);
	memset(batch, 1, 8 * MIB);
	DRIVER(cuMemAlloc_v2, &on_gpu, 8 * MIB);
}

static PLANT void register_batch(void)
{
	if (!with_problem)
		return;
	DRIVER(cuMemHostRegister_v2, batch, 8 * MIB, 0);
	DRIVER(cuMemHostUnregister, batch);
}

static void step_host_register(void)
{
	train_step();
	register_batch();
}

/* Memory of a pool, which is given back to the system after each step. */
static CUmemoryPool pool;

static void prepare_pool_of_memory(void)
{
	DRIVER(cuDeviceGetDefaultMemPool, &pool, 0);
}

static PLANT void trim_pool(void)
{
	if (with_problem)
		DRIVER(cuMemPoolTrimTo, pool, 0);
}

static void step_pool_trim(void)
{
	CUdeviceptr scratch;

	DRIVER(cuMemAllocAsync, &scratch, MIB, stream);
	train_step();
	DRIVER(cuMemFreeAsync, scratch, stream);
	trim_pool();
}

/* The weights are copied on the GPU before each step, though nobody changes them. */
#define WEIGHT_BYTES (256 * MIB)

static void prepare_weights(void)
{
	DRIVER(cuMemAlloc_v2, &on_gpu, WEIGHT_BYTES);
	DRIVER(cuMemAlloc_v2, &other_on_gpu, WEIGHT_BYTES);
}

static PLANT void clone_weights(void)
{
	for (int i = 0; with_problem && i < 2; i++)
		DRIVER(cuMemcpyDtoDAsync_v2, other_on_gpu, on_gpu, WEIGHT_BYTES, stream);
}

static void step_clone(void)
{
	clone_weights();
	train_step();
}

/* ---- more threads than CPUs --------------------------------------------------------------------
 */

/* A team of eight that shares each loop, and whose members spin until all are done. */
#define TEAM 8
static atomic_long team_turn, team_done;

static PLANT void scale_share(void)
{
	compute(.4);
}

static PLANT void wait_for_team(atomic_long *count, long until)
{
	while (atomic_load(count) < until)
		;
}

static void *run_team(void *data)
{
	for (long turn = 1;; turn++) {
		wait_for_team(&team_turn, turn);
		scale_share();
		atomic_fetch_add(&team_done, 1);
	}
	return data;
}

static void prepare_team(void)
{
	for (int i = 1; with_problem && i < TEAM; i++)
		thread_begin(run_team);
}

static PLANT void scale_in_team(void)
{
	long turn;

	if (!with_problem)
		return;
	turn = atomic_fetch_add(&team_turn, 1) + 1;
	scale_share();
	wait_for_team(&team_done, turn * (TEAM - 1));
}

static void step_team(void)
{
	train_step();
	scale_in_team();
}

/* All of three hundred threads are woken for each step, of which one has something to do. */
#define HERD 300
static pthread_mutex_t herd_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t herd_woken = PTHREAD_COND_INITIALIZER, herd_done = PTHREAD_COND_INITIALIZER;
static long herd_turn, herd_served;

static PLANT void wait_for_turn(long mine)
{
	pthread_mutex_lock(&herd_lock);
	while (herd_turn % HERD != mine || herd_served == herd_turn)
		pthread_cond_wait(&herd_woken, &herd_lock);
	herd_served = herd_turn;
	pthread_cond_signal(&herd_done);
	pthread_mutex_unlock(&herd_lock);
}

static void *run_herd(void *data)
{
	for (;;)
		wait_for_turn((long)(intptr_t)data);
	return data;
}

static void prepare_herd(void)
{
	pthread_t thread;

	for (long i = 0; i < HERD; i++)
		fail_if(pthread_create(&thread, NULL, run_herd, (void *)(intptr_t)i),
		        "pthread_create");
}

static PLANT void wake_everyone(void)
{
	if (!with_problem)
		return;
	pthread_mutex_lock(&herd_lock);
	herd_turn++;
	pthread_cond_broadcast(&herd_woken);
	while (herd_served != herd_turn)
		pthread_cond_wait(&herd_done, &herd_lock);
	pthread_mutex_unlock(&herd_lock);
}

static void step_herd(void)
{
	train_step();
	wake_everyone();
}

/* The worker was started with nice, beside something that has all CPUs. */
static int batches[2];

static PLANT void decode_in_background(void)
{
	compute_anyway(.3);
}

static void prepare_low_worker(void)
{
	fail_if(pipe(batches) < 0, "pipe");
	for (int i = 0; with_problem && i < 2; i++)
		if (child_begin() == 0)
			for (;;)
				compute_anyway(1);
	if (child_begin() == 0) {
		if (with_problem)
			setpriority(PRIO_PROCESS, 0, 19);
		fcntl(batches[1], F_SETPIPE_SZ, 4096);
		for (;;) {
			char block[4096] = { 0 };

			decode_in_background();
			fail_if(write(batches[1], block, sizeof(block)) < 0, "write");
		}
	}
}

static PLANT void take_batch(void)
{
	char block[4096];

	for (size_t n = 0; n < sizeof(block);) {
		ssize_t got = read(batches[0], block + n, sizeof(block) - n);

		fail_if(got <= 0, "read");
		n += (size_t)got;
	}
}

static void step_low_worker(void)
{
	take_batch();
	train_step();
}

/* ---- the system --------------------------------------------------------------------------------
 */

/* A data set of a file for each sample, all in memory. */
#define SAMPLES 300
static char samples[4096];

static void prepare_small_files(void)
{
	char path[4200];

	snprintf(samples, sizeof(samples), "/dev/shm/planted-files-%d", getpid());
	fail_if(mkdir(samples, 0700) < 0, samples);
	for (int i = 0; i < SAMPLES; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%d", samples, i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		fail_if(fd < 0 || write(fd, samples, 1000) < 0, path);
		close(fd);
	}
	if (fork() == 0) { /* takes them away when the program has ended */
		pid_t parent = getppid();

		while (getppid() == parent)
			nap_ms(50);
		for (int i = 0; i < SAMPLES; i++) {
			snprintf(path, sizeof(path), "%s/%d", samples, i);
			unlink(path);
		}
		rmdir(samples);
		_exit(0);
	}
}

static PLANT void read_small_files(void)
{
	char path[4200], text[1000];
	struct stat status;

	for (int i = 0; with_problem && i < 4 * SAMPLES; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%d", samples, i % SAMPLES);
		fail_if(stat(path, &status) < 0, path);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		fail_if(fd < 0 || read(fd, text, sizeof(text)) < 0, path);
		close(fd);
	}
}

static void step_small_files(void)
{
	train_step();
	read_small_files();
}

/* A child that has all memory of the program's as it is now, to write it out: each step copies the
 * tables of its pages, and then each page that is written to. */
#define STATE_BYTES (512 * MIB)
static char *state;

static void prepare_fork_snapshot(void)
{
	state = mmap(NULL, STATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fail_if(state == MAP_FAILED, "mmap");
	madvise(state, STATE_BYTES, MADV_NOHUGEPAGE);
	memset(state, 1, STATE_BYTES);
}

static PLANT void snapshot_by_fork(void)
{
	pid_t child;

	if (!with_problem)
		return;
	child = fork();
	fail_if(child < 0, "fork");
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
}

static void step_fork_snapshot(void)
{
	train_step();
	snapshot_by_fork();
}

/* Each step asks whether it is to stop, and gives who may say so some time to do it. */
static int control[2];

static void prepare_control(void)
{
	fail_if(socketpair(AF_UNIX, SOCK_STREAM, 0, control) < 0, "socketpair");
}

static PLANT void check_for_stop(void)
{
	struct pollfd asked = { .fd = control[0], .events = POLLIN };

	fail_if(poll(&asked, 1, with_problem ? PROBLEM_MS : 0) < 0, "poll");
}

static void step_control_poll(void)
{
	train_step();
	check_for_stop();
}

/* A step at each tick of a clock. */
static int ticks = -1;

static void open_ticks(long ms)
{
	struct itimerspec each = { { 0, ms * 1000000 }, { 0, ms * 1000000 } };

	ticks = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	fail_if(ticks < 0 || timerfd_settime(ticks, 0, &each, NULL) < 0, "timerfd");
}

static PLANT void wait_for_tick(void)
{
	uint64_t n;

	fail_if(read(ticks, &n, sizeof(n)) < 0, "read");
}

static void prepare_ticks(void)
{
	open_ticks(PROBLEM_MS + 1);
}

static void step_timer_tick(void)
{
	train_step();
	if (with_problem)
		wait_for_tick();
}

/* ---- two at once -------------------------------------------------------------------------------
 */

static PLANT void ask_and_wait(void)
{
	struct pollfd asked = { .fd = control[0], .events = POLLIN };

	fail_if(poll(&asked, 1, with_problem ? 14 : 0) < 0, "poll");
}

static void prepare_control_and_files(void)
{
	prepare_control();
	prepare_small_files();
}

static void step_two_poll_files(void)
{
	train_step();
	ask_and_wait();
	read_small_files();
}

/* ---- nothing is wrong --------------------------------------------------------------------------
 */

/* Another thread writes what the trainer left in memory. */
static void *run_checkpoints(void *data)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/planted-unseen-%d", folder, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	fail_if(fd < 0, path);
	unlink(path);
	for (;;) {
		fail_if(pwrite(fd, batch, 8 * MIB, 0) < 0 || fsync(fd) < 0, "write");
		nap_ms(200);
	}
	return data;
}

static void prepare_checkpoint_behind(void)
{
	prepare_batch_of_own();
	thread_begin(run_checkpoints);
}

/* One that beats by a clock, and asks how much memory there is. */
static void *run_beats(void *data)
{
	size_t unused, all;

	DRIVER(cuCtxSetCurrent, context);
	for (;;) {
		wait_for_tick();
		DRIVER(cuMemGetInfo_v2, &unused, &all);
	}
	return data;
}

static void prepare_beats(void)
{
	open_ticks(20);
	thread_begin(run_beats);
}

const struct kind unseen_kinds[] = {
	{ "host_register", prepare_batch_of_own, step_host_register },
	{ "pool_trim", prepare_pool_of_memory, step_pool_trim },
	{ "clone", prepare_weights, step_clone },
	{ "team", prepare_team, step_team },
	{ "herd", prepare_herd, step_herd },
	{ "low_worker", prepare_low_worker, step_low_worker },
	{ "small_files", prepare_small_files, step_small_files },
	{ "fork_snapshot", prepare_fork_snapshot, step_fork_snapshot },
	{ "control_poll", prepare_control, step_control_poll },
	{ "timer_tick", prepare_ticks, step_timer_tick },
	{ "two_poll_files", prepare_control_and_files, step_two_poll_files },
	{ "busy_checkpoint_behind", prepare_checkpoint_behind, train_long },
	{ "busy_beats", prepare_beats, train_long },
	{ NULL, NULL, NULL },
};
