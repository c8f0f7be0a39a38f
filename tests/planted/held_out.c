// SPDX-License-Identifier: MIT
/* What users meet and no rule of `cuscope why` was written against: HELD_OUT of kinds.py. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "planted.h"

#define MIB ((size_t)1 << 20)

static void *shared_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	fail_if(memory == MAP_FAILED, "mmap");
	return memory;
}

static int file_of_own(void)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/planted-held-out-%d", folder, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	fail_if(fd < 0, path);
	unlink(path);
	return fd;
}

/* ---- locks ------------------------------------------------------------------------------------
 */

/* A thread of metrics writes them to a disk while it has the lock that each step takes. */
static pthread_mutex_t metrics_lock = PTHREAD_MUTEX_INITIALIZER;
static int metrics_file = -1;
static long n_metrics;

static PLANT void sync_metrics_file(void)
{
	static char block[1 << 20];

	for (int i = 0; i < 8; i++) {
		fail_if(pwrite(metrics_file, block, sizeof(block), 0) < 0, "pwrite");
		fail_if(fsync(metrics_file) < 0, "fsync");
	}
}

static void *run_metrics(void *data)
{
	for (;;) {
		pthread_mutex_lock(&metrics_lock);
		if (with_problem)
			sync_metrics_file();
		pthread_mutex_unlock(&metrics_lock);
		nap_ms(.3);
	}
	return data;
}

static void prepare_metrics(void)
{
	metrics_file = file_of_own();
	thread_begin(run_metrics);
}

static PLANT void add_metric(void)
{
	pthread_mutex_lock(&metrics_lock);
	n_metrics++;
	pthread_mutex_unlock(&metrics_lock);
}

static void step_metrics_lock(void)
{
	train_step();
	add_metric();
}

/* Four threads and the trainer take turns at one table. */
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static long turn_next, turn_served;

static void turn_take(void)
{
	pthread_mutex_lock(&turn_lock);
	long mine = turn_next++;
	while (turn_served != mine)
		pthread_cond_wait(&turn_changed, &turn_lock);
	pthread_mutex_unlock(&turn_lock);
}

static void turn_pass(void)
{
	pthread_mutex_lock(&turn_lock);
	turn_served++;
	pthread_cond_broadcast(&turn_changed);
	pthread_mutex_unlock(&turn_lock);
}

static PLANT void update_shared_table(void)
{
	compute(2.5);
}

static void *run_updates(void *data)
{
	for (;;) {
		turn_take();
		update_shared_table();
		turn_pass();
		if (!with_problem)
			nap_ms(5);
	}
	return data;
}

static void prepare_convoy(void)
{
	for (int i = 0; i < 4; i++)
		thread_begin(run_updates);
}

static PLANT void read_shared_table(void)
{
	turn_take();
	turn_pass();
}

static void step_convoy(void)
{
	train_step();
	read_shared_table();
}

/* ---- other processes --------------------------------------------------------------------------
 */

/* The trainer spins on a number in shared memory until another process has counted it up. */
static volatile long *flags;

static PLANT void render_scene(void)
{
	compute(PROBLEM_MS);
}

static void prepare_flag(void)
{
	flags = shared_memory(4096);
	if (child_begin() == 0) {
		for (;;) {
			while (flags[1] >= flags[0])
				nap_ms(.1);
			render_scene();
			flags[1]++;
		}
	}
}

static PLANT void spin_on_shared_flag(void)
{
	flags[0]++;
	while (flags[1] < flags[0])
		;
}

static void step_flag_process(void)
{
	train_step();
	spin_on_shared_flag();
}

/* Eight processes of an environment, of which one is late at each barrier. */
static pthread_barrier_t *barrier;

static PLANT void step_slow_environment(void)
{
	nap(PROBLEM_MS);
}

static PLANT void step_environment(void)
{
	compute_anyway(.05);
}

static void prepare_eight(void)
{
	pthread_barrierattr_t attributes;

	barrier = shared_memory(4096);
	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(barrier, &attributes, 9);
	for (int i = 0; i < 8; i++) {
		if (child_begin() != 0)
			continue;
		for (;;) {
			step_environment();
			if (i == 5)
				step_slow_environment();
			pthread_barrier_wait(barrier);
		}
	}
}

static PLANT void gather_environments(void)
{
	pthread_barrier_wait(barrier);
}

static void step_eight(void)
{
	train_step();
	gather_environments();
}

/* A server collects requests until it has a full batch or a time has passed; there are never as
 * many, since each of its three clients waits for its answer. */
#define CLIENTS   3
#define WINDOW_MS 10
static int requests[2], replies[CLIENTS][2];

static PLANT void send_requests(int client)
{
	char byte = (char)client;

	for (;;) {
		fail_if(write(requests[1], &byte, 1) != 1, "write");
		fail_if(read(replies[client][0], &byte, 1) != 1, "read");
	}
}

static void prepare_window(void)
{
	fail_if(pipe(requests), "pipe");
	for (int i = 0; i < CLIENTS; i++)
		fail_if(pipe(replies[i]), "pipe");
	for (int i = 0; i < CLIENTS; i++) {
		if (child_begin() == 0)
			send_requests(i);
	}
}

static PLANT int collect_batch(char *batch, int full)
{
	double end = sample_seconds() + WINDOW_MS / 1000.;
	int n = 0;

	while (n < full) {
		struct pollfd wanted = { requests[0], POLLIN, 0 };
		int left_ms = (int)((end - sample_seconds()) * 1000);
		if (left_ms <= 0 && n > 0)
			break;
		if (poll(&wanted, 1, left_ms > 0 ? left_ms : -1) > 0)
			n += (int)read(requests[0], batch + n, 1);
	}
	return n;
}

static void serve_batch(void)
{
	char batch[8];
	int n = collect_batch(batch, with_problem ? 8 : CLIENTS);

	train_step();
	DRIVER(cuStreamSynchronize, stream);
	for (int i = 0; i < n; i++)
		fail_if(write(replies[(int)batch[i]][1], &batch[i], 1) != 1, "write");
}

static void step_window(void)
{
	serve_batch();
}

/* A name is asked for in each step, of a server that takes its time to answer. */
static int resolver = -1;

static PLANT void answer_query(int fd)
{
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	char query[64];
	ssize_t n = recvfrom(fd, query, sizeof(query), 0, (struct sockaddr *)&from, &length);

	nap(PROBLEM_MS);
	sendto(fd, query, (size_t)n, 0, (struct sockaddr *)&from, length);
}

static void prepare_resolver(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fail_if(bind(fd, (struct sockaddr *)&address, sizeof(address)), "bind");
	getsockname(fd, (struct sockaddr *)&address, &length);
	if (child_begin() == 0) {
		for (;;)
			answer_query(fd);
	}
	resolver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	fail_if(connect(resolver, (struct sockaddr *)&address, length), "connect");
}

static PLANT void resolve_store_name(void)
{
	char query[] = "store.example.";

	fail_if(send(resolver, query, sizeof(query), 0) < 0, "send");
	fail_if(recv(resolver, query, sizeof(query), 0) < 0, "recv");
}

static void step_resolve(void)
{
	train_step();
	resolve_store_name();
}

/* ---- CPUs and memory --------------------------------------------------------------------------
 */

static bool write_to(const char *folder_name, const char *name, const char *words)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder_name, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool done = write(fd, words, strlen(words)) == (ssize_t)strlen(words);
	close(fd);
	return done;
}

/* A process of its own takes the group away when the program has ended. */
static void remove_with_program(const char *group)
{
	pid_t program = getpid();

	if (fork() != 0)
		return;
	for (int fd = 0; fd < 64; fd++)
		close(fd);
	while (getppid() == program)
		nap_ms(20);
	for (int i = 0; i < 100 && rmdir(group) != 0; i++)
		nap_ms(20);
	_exit(0);
}

/* As a container with --cpus 0.3. */
static void prepare_quota(void)
{
	static const char *const roots[] = { "/sys/fs/cgroup/cpu", "/sys/fs/cgroup" };
	char group[128];

	for (size_t i = 0; with_problem && i < 2; i++) {
		snprintf(group, sizeof(group), "%s/planted-%d", roots[i], getpid());
		if (mkdir(group, 0755) != 0)
			continue;
		remove_with_program(group);
		if ((write_to(group, "cpu.cfs_quota_us", "30000") ||
		     write_to(group, "cpu.max", "30000 100000")) &&
		    write_to(group, "cgroup.procs", "0"))
			return;
		sample_fail("%s gives no quota", group);
	}
}

static PLANT void encode_prompts(void)
{
	compute_anyway(2);
}

static void step_quota(void)
{
	train_step();
	encode_prompts();
}

/* Rows of a table that is larger than any cache, one by one. */
#define TABLE_BYTES (256 * MIB)
static char *table, *rows;

static void prepare_table(void)
{
	table = malloc(TABLE_BYTES);
	rows = malloc(8 * MIB);
	memset(table, 1, TABLE_BYTES);
	memset(rows, 1, 8 * MIB);
}

static PLANT void gather_rows(void)
{
	static size_t at;

	for (size_t n = 0; with_problem && n < 8 * MIB / 64; n++) {
		memcpy(rows + n * 64, table + at, 64);
		at = (at + 64 * 1000003) % TABLE_BYTES;
	}
}

static void step_gather(void)
{
	train_step();
	gather_rows();
}

/* Each character of a log is a system call. */
static FILE *trace_file;

static void prepare_trace(void)
{
	trace_file = fopen("/dev/null", "w");
	fail_if(!trace_file, "/dev/null");
	setvbuf(trace_file, NULL, _IONBF, 0);
}

static PLANT void write_unbuffered(void)
{
	for (int i = 0; with_problem && i < 8000; i++)
		fputc('x', trace_file);
}

static void step_unbuffered(void)
{
	train_step();
	write_unbuffered();
}

/* ---- the GPU's use ----------------------------------------------------------------------------
 */

static CUdeviceptr model, device_rows;
static CUevent logged, evaluated;
static CUstream side;
static char *weights, *logits;
#define MODEL_BYTES (24 * MIB)
static size_t swapped = MODEL_BYTES;
#define TENSORS 200
#define TENSOR  ((size_t)48 << 10)

static void prepare_models(void)
{
	DRIVER(cuMemAlloc_v2, &model, MODEL_BYTES);
	DRIVER(cuMemAlloc_v2, &device_rows, TENSORS * TENSOR);
	DRIVER(cuEventCreate, &logged, CU_EVENT_DISABLE_TIMING);
	DRIVER(cuEventCreate, &evaluated, CU_EVENT_DISABLE_TIMING);
	DRIVER(cuStreamCreate, &side, CU_STREAM_NON_BLOCKING);
	weights = malloc(MODEL_BYTES);
	logits = malloc(MODEL_BYTES);
	memset(weights, 1, MODEL_BYTES);
	memset(logits, 1, MODEL_BYTES);
}

/* Each request is of another model than the last one, and there is room for one. */
static PLANT void swap_model(void)
{
	if (!with_problem)
		return;
	DRIVER(cuMemcpyDtoHAsync_v2, logits, model, swapped, stream);
	DRIVER(cuStreamSynchronize, stream);
	DRIVER(cuMemcpyHtoDAsync_v2, model, weights, swapped, stream);
}

static PLANT void run_model(void)
{
	for (int i = 0; i < 10; i++)
		launch(gemm, 100, stream);
}

static void step_swap(void)
{
	keep_two_steps(stream);
	swap_model();
	run_model();
	mark_step(stream);
}

/* Small tensors one by one, from memory that is not pinned. */
static PLANT void upload_tensors(void)
{
	for (size_t i = 0; with_problem && i < TENSORS; i++)
		DRIVER(cuMemcpyHtoDAsync_v2, device_rows + i * TENSOR, weights + i * TENSOR, TENSOR,
		       stream);
}

static void step_small_copies(void)
{
	train_step();
	upload_tensors();
}

/* The trainer's stream waits for a stream in which a function of the host writes a histogram. */
static PLANT void write_histogram(void *data)
{
	nap(6);
}

static PLANT void log_histogram(void)
{
	DRIVER(cuLaunchHostFunc, side, write_histogram, NULL);
	DRIVER(cuEventRecord, logged, side);
	DRIVER(cuStreamWaitEvent, stream, logged, 0);
}

static void step_histogram(void)
{
	train_step();
	log_histogram();
}

/* One request at a time, though many wait. */
static PLANT void infer_one(void)
{
	float score;

	for (int i = 0; i < 12; i++) {
		launch(add, 6, stream);
		compute_anyway(.008);
	}
	DRIVER(cuMemcpyDtoHAsync_v2, &score, model, sizeof(score), stream);
	DRIVER(cuStreamSynchronize, stream);
	sink += (double)score;
}

static void step_batch_of_one(void)
{
	if (with_problem) {
		for (int i = 0; i < 16; i++)
			infer_one();
	} else {
		infer_one();
	}
}

/* Each fourth batch has a length that was not compiled for. */
static PLANT void compile_for_shape(void)
{
	CUmodule module;

	DRIVER(cuModuleLoadData, &module, sample_ptx);
	DRIVER(cuModuleUnload, module);
}

static void step_shapes(void)
{
	static long n;

	if (with_problem && n++ % 4 == 0)
		compile_for_shape();
	train_step();
}

/* All of it is evaluated in each step, on a CPU. */
static PLANT void count_right_answers(void)
{
	compute(6);
}

static PLANT void evaluate(void)
{
	if (!with_problem)
		return;
	launch(gemm, 100, stream);
	DRIVER(cuMemcpyDtoHAsync_v2, logits, model, MIB, stream);
	DRIVER(cuStreamSynchronize, stream);
	count_right_answers();
}

static void step_evaluate(void)
{
	train_step();
	evaluate();
}

/* A thread pins memory for each batch. */
static pthread_mutex_t batch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t batch_changed = PTHREAD_COND_INITIALIZER;
static void *batch_ready;

static PLANT void *pin_batch(void)
{
	static void *once;
	void *memory;

	if (!with_problem && once)
		return once;
	DRIVER(cuMemHostAlloc, &memory, 8 * MIB, 0);
	return once = memory;
}

static void *run_pinning(void *data)
{
	DRIVER(cuCtxSetCurrent, context);
	for (;;) {
		void *memory = pin_batch();
		pthread_mutex_lock(&batch_lock);
		while (batch_ready)
			pthread_cond_wait(&batch_changed, &batch_lock);
		batch_ready = memory;
		pthread_cond_broadcast(&batch_changed);
		pthread_mutex_unlock(&batch_lock);
	}
	return data;
}

static void prepare_pinning(void)
{
	thread_begin(run_pinning);
}

static PLANT void take_batch(void)
{
	void *memory;

	pthread_mutex_lock(&batch_lock);
	while (!batch_ready)
		pthread_cond_wait(&batch_changed, &batch_lock);
	memory = batch_ready;
	batch_ready = NULL;
	pthread_cond_broadcast(&batch_changed);
	pthread_mutex_unlock(&batch_lock);
	if (with_problem)
		DRIVER(cuMemFreeHost, memory);
}

static void step_pinning(void)
{
	train_step();
	take_batch();
}

/* ---- two at once ------------------------------------------------------------------------------
 */

static void prepare_window_and_models(void)
{
	swapped = 8 * MIB;
	prepare_models();
	prepare_window();
}

static void step_two_window_swap(void)
{
	char batch[8];
	int n = collect_batch(batch, with_problem ? 8 : CLIENTS);

	step_swap();
	DRIVER(cuStreamSynchronize, stream);
	for (int i = 0; i < n; i++)
		fail_if(write(replies[(int)batch[i]][1], &batch[i], 1) != 1, "write");
}

static PLANT void score_environments(void)
{
	compute(4);
}

static void step_two_eight_score(void)
{
	train_step();
	gather_environments();
	score_environments();
}

/* ---- nothing is wrong -------------------------------------------------------------------------
 */

static PLANT void train_long(void)
{
	keep_two_steps(stream);
	for (int i = 0; i < 6; i++)
		launch(gemm, 1500, stream);
	mark_step(stream);
}

/* A log is written to the disk by a thread for which nobody waits. */
static int log_pipe[2];

static PLANT void write_log_behind(void)
{
	char line[64];

	while (read(log_pipe[0], line, sizeof(line)) > 0) {
		fail_if(pwrite(metrics_file, line, sizeof(line), 0) < 0, "pwrite");
		fail_if(fsync(metrics_file) < 0, "fsync");
	}
}

static void *run_log(void *data)
{
	write_log_behind();
	return data;
}

static void prepare_log_behind(void)
{
	metrics_file = file_of_own();
	fail_if(pipe2(log_pipe, O_NONBLOCK), "pipe");
	fcntl(log_pipe[0], F_SETFL, 0);
	thread_begin(run_log);
}

static void step_log_behind(void)
{
	static const char line[64] = "step";

	train_long();
	/* A full pipe loses a line. */
	if (write(log_pipe[1], line, sizeof(line)) < 0)
		sink += 1;
}

/* A loader with six batches ahead is late now and then, and is not waited for. */
static long n_ahead;

static PLANT void load_unevenly(void)
{
	static long n;

	nap_ms(n++ % 12 == 0 ? 25 : 3);
}

static void *run_uneven(void *data)
{
	for (;;) {
		load_unevenly();
		pthread_mutex_lock(&batch_lock);
		while (n_ahead >= 6)
			pthread_cond_wait(&batch_changed, &batch_lock);
		n_ahead++;
		pthread_cond_broadcast(&batch_changed);
		pthread_mutex_unlock(&batch_lock);
	}
	return data;
}

static void prepare_uneven(void)
{
	thread_begin(run_uneven);
}

static void step_uneven_loader(void)
{
	pthread_mutex_lock(&batch_lock);
	while (n_ahead == 0)
		pthread_cond_wait(&batch_changed, &batch_lock);
	n_ahead--;
	pthread_cond_broadcast(&batch_changed);
	pthread_mutex_unlock(&batch_lock);
	train_long();
}

/* Its value is read of the step before the last, when that is done anyway. */
static void step_late_value(void)
{
	static char *value;

	if (!value)
		DRIVER(cuMemHostAlloc, (void **)&value, 4096, 0);
	train_long();
	DRIVER(cuMemcpyDtoHAsync_v2, value, model, 4, stream);
	sink += (double)*value;
}

const struct kind held_out_kinds[] = {
	{ "metrics_lock", prepare_metrics, step_metrics_lock },
	{ "convoy", prepare_convoy, step_convoy },
	{ "flag_process", prepare_flag, step_flag_process },
	{ "eight", prepare_eight, step_eight },
	{ "window", prepare_window, step_window },
	{ "resolve", prepare_resolver, step_resolve },
	{ "quota", prepare_quota, step_quota },
	{ "gather", prepare_table, step_gather },
	{ "unbuffered", prepare_trace, step_unbuffered },
	{ "swap", prepare_models, step_swap },
	{ "small_copies", prepare_models, step_small_copies },
	{ "histogram", prepare_models, step_histogram },
	{ "batch_of_one", prepare_models, step_batch_of_one },
	{ "shapes", NULL, step_shapes },
	{ "evaluate", prepare_models, step_evaluate },
	{ "pinning", prepare_pinning, step_pinning },
	{ "two_window_swap", prepare_window_and_models, step_two_window_swap },
	{ "two_eight_score", prepare_eight, step_two_eight_score },
	{ "busy_log_behind", prepare_log_behind, step_log_behind },
	{ "busy_uneven_loader", prepare_uneven, step_uneven_loader },
	{ "busy_late_value", prepare_models, step_late_value },
	{ NULL, NULL, NULL },
};
