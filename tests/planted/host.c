// SPDX-License-Identifier: MIT
/* The host's own thread is the problem: sleeps, computing, disks, memory, no CPU, calls. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "planted.h"

/* ---- sleeping and computing -------------------------------------------------------------------
 */

static PLANT void pause_between_steps(void)
{
	nap(PROBLEM_MS);
}

static void step_sleep(void)
{
	train_step();
	pause_between_steps();
}

static PLANT void prepare_batch(void)
{
	compute(PROBLEM_MS);
}

static void step_prep(void)
{
	train_step();
	prepare_batch();
}

#define BATCH_BYTES ((size_t)24 << 20)
static char *batch_from, *batch_to;

static void prepare_copy(void)
{
	batch_from = malloc(BATCH_BYTES);
	batch_to = malloc(BATCH_BYTES);
	memset(batch_from, 1, BATCH_BYTES);
	memset(batch_to, 1, BATCH_BYTES);
}

static PLANT void collate_batch(void)
{
	for (size_t i = 0; with_problem && i < BATCH_BYTES; i += 4)
		batch_to[i] = batch_from[BATCH_BYTES - 1 - i];
}

static void step_collate(void)
{
	train_step();
	collate_batch();
}

/* Every eighth step takes long. */
static PLANT void refill_buffer(void)
{
	compute(60);
}

static void step_uneven(void)
{
	static long n;

	train_step();
	if (n++ % 8 == 0)
		refill_buffer();
}

/* Both, the first is the larger. */
static PLANT void pause_long(void)
{
	nap(12);
}

static PLANT void prepare_short(void)
{
	compute(5);
}

static void step_two_sleep_prep(void)
{
	train_step();
	pause_long();
	prepare_short();
}

/* ---- disks and files --------------------------------------------------------------------------
 */

#define FILE_BYTES  ((size_t)32 << 20)
#define READ_BYTES  ((size_t)256 << 10)
#define READS       48
#define STATE_BYTES ((size_t)1 << 20)
#define SAVES       12

static int file = -1;
static char *page_buffer;

static void file_make(const char *name, int flags)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/planted-%s-%d", folder, name, getpid());
	fail_if(posix_memalign((void **)&page_buffer, 4096, STATE_BYTES) != 0, "memory");
	memset(page_buffer, 1, STATE_BYTES);
	file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	fail_if(file < 0, path);
	for (size_t at = 0; at < FILE_BYTES; at += STATE_BYTES)
		fail_if(write(file, page_buffer, STATE_BYTES) < 0, "write");
	fail_if(fsync(file) < 0, "fsync");
	if (flags) {
		close(file);
		file = open(path, O_RDWR | O_CLOEXEC | flags);
	}
	unlink(path);
	fail_if(file < 0, "open");
}

static void prepare_disk(void)
{
	file_make("reads", O_DIRECT);
}

static PLANT void read_samples(void)
{
	static size_t at;

	for (int i = 0; with_problem && i < READS; i++) {
		fail_if(pread(file, page_buffer, READ_BYTES, (off_t)at) < 0, "pread");
		at = (at + READ_BYTES * 5) % (FILE_BYTES - READ_BYTES);
		at -= at % 4096;
	}
}

static void step_disk_reads(void)
{
	train_step();
	read_samples();
}

static void prepare_fsync(void)
{
	file_make("state", 0);
}

static PLANT void save_state(void)
{
	for (int i = 0; with_problem && i < SAVES; i++) {
		fail_if(pwrite(file, page_buffer, STATE_BYTES, (off_t)(STATE_BYTES * (size_t)i)) <
		                0,
		        "pwrite");
		fail_if(fsync(file) < 0, "fsync");
	}
}

static void step_fsync(void)
{
	train_step();
	save_state();
}

static PLANT void write_checkpoint(void)
{
	for (size_t at = 0; with_problem && at < FILE_BYTES; at += STATE_BYTES) {
		fail_if(pwrite(file, page_buffer, STATE_BYTES, (off_t)at) < 0, "pwrite");
		fail_if(fdatasync(file) < 0, "fdatasync");
	}
}

static void step_checkpoint(void)
{
	static long n;

	train_step();
	if (++n % 50 == 0)
		write_checkpoint();
}

static void step_two_disk_prep(void)
{
	train_step();
	prepare_batch();
	read_samples();
}

/* ---- memory -----------------------------------------------------------------------------------
 */

#define TOUCHED_BYTES ((size_t)16 << 20)
#define FAULTS        64
static char *touched;

static void prepare_anonymous(void)
{
	touched = mmap(NULL, TOUCHED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	               0);
	fail_if(touched == MAP_FAILED, "mmap");
	madvise(touched, TOUCHED_BYTES, MADV_NOHUGEPAGE);
}

static PLANT void fill_fresh_memory(void)
{
	if (!with_problem)
		return;
	madvise(touched, TOUCHED_BYTES, MADV_DONTNEED);
	for (size_t at = 0; at < TOUCHED_BYTES; at += 4096)
		touched[at] = 1;
}

static void step_faults(void)
{
	train_step();
	fill_fresh_memory();
}

static void prepare_mapped(void)
{
	file_make("mapped", 0);
	touched = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, file, 0);
	fail_if(touched == MAP_FAILED, "mmap");
	madvise(touched, FILE_BYTES, MADV_RANDOM);
}

/* The pages are put out of memory first, as where the data is larger than memory. */
static PLANT void look_up_embedding(void)
{
	static size_t at;

	if (!with_problem)
		return;
	madvise(touched, FILE_BYTES, MADV_DONTNEED);
	posix_fadvise(file, 0, (off_t)FILE_BYTES, POSIX_FADV_DONTNEED);
	for (int i = 0; i < FAULTS; i++) {
		sink += touched[at];
		at = (at + 4096 * 101) % FILE_BYTES;
	}
}

static void step_mapped(void)
{
	train_step();
	look_up_embedding();
}

/* ---- no CPU -----------------------------------------------------------------------------------
 */

static void pin_to_one_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	fail_if(sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static PLANT void hog_cpu(void)
{
	for (;;)
		compute_anyway(1);
}

static void prepare_rivals(void)
{
	for (int i = 0; with_problem && i < 2; i++) {
		if (child_begin() == 0) {
			pin_to_one_cpu();
			hog_cpu();
		}
	}
	pin_to_one_cpu();
}

static PLANT void tokenize(void)
{
	compute_anyway(2);
}

static void step_rivals(void)
{
	train_step();
	tokenize();
}

/* ---- processes and pipes ----------------------------------------------------------------------
 */

static PLANT void convert_in_child(void)
{
	compute(PROBLEM_MS);
}

static PLANT void run_converter(void)
{
	pid_t child;

	if (!with_problem)
		return;
	child = child_begin();
	if (child == 0) {
		convert_in_child();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void step_child(void)
{
	train_step();
	run_converter();
}

static int log_pipe[2];

static PLANT void read_log_slowly(void)
{
	char bytes[4096];

	while (read(log_pipe[0], bytes, sizeof(bytes)) > 0)
		nap(PROBLEM_MS);
}

static void prepare_log(void)
{
	fail_if(pipe(log_pipe), "pipe");
	fcntl(log_pipe[1], F_SETPIPE_SZ, 4096);
	if (child_begin() == 0) {
		close(log_pipe[1]);
		read_log_slowly();
		_exit(0);
	}
	close(log_pipe[0]);
}

static PLANT void log_step(void)
{
	static char line[4096];

	memset(line, 'x', sizeof(line));
	fail_if(write(log_pipe[1], line, sizeof(line)) < 0, "write");
}

static void step_log(void)
{
	train_step();
	log_step();
}

/* A file that another process has locked most of the time. */
static int lock_file(void)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/planted-lock-%d", folder, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	fail_if(fd < 0, path);
	return fd;
}

static PLANT void hold_file_lock(int fd)
{
	flock(fd, LOCK_EX);
	nap(PROBLEM_MS);
	flock(fd, LOCK_UN);
}

static void prepare_file_lock(void)
{
	char path[4096];

	file = lock_file();
	snprintf(path, sizeof(path), "%s/planted-lock-%d", folder, getpid());
	if (child_begin() == 0) {
		int own = open(path, O_RDWR | O_CLOEXEC);
		unlink(path);
		for (;;) {
			hold_file_lock(own);
			nap_ms(.5);
		}
	}
}

static PLANT void take_file_lock(void)
{
	flock(file, LOCK_EX);
	flock(file, LOCK_UN);
}

static void step_file_lock(void)
{
	train_step();
	take_file_lock();
}

/* Nothing for the GPU to do. */
static PLANT void wait_for_requests(void)
{
	nap_ms(100);
}

const struct kind host_kinds[] = {
	{ "idle", NULL, wait_for_requests },
	{ "sleep", NULL, step_sleep },
	{ "prep", NULL, step_prep },
	{ "collate", prepare_copy, step_collate },
	{ "uneven", NULL, step_uneven },
	{ "disk_reads", prepare_disk, step_disk_reads },
	{ "fsync", prepare_fsync, step_fsync },
	{ "checkpoint", prepare_fsync, step_checkpoint },
	{ "faults", prepare_anonymous, step_faults },
	{ "mapped", prepare_mapped, step_mapped },
	{ "rivals", prepare_rivals, step_rivals },
	{ "child", NULL, step_child },
	{ "log", prepare_log, step_log },
	{ "file_lock", prepare_file_lock, step_file_lock },
	{ "two_sleep_prep", NULL, step_two_sleep_prep },
	{ "two_disk_prep", prepare_disk, step_two_disk_prep },
	{ NULL, NULL, NULL },
};
