// SPDX-License-Identifier: MIT
/* Which processes have other code than a file's: children, which have one mapped and write to it.
 */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/process.h"
#include "probe/helper.h"
#include "probe/patched.h"

#define PAGE  4096
#define PAGES 40 /* more than are read at a time */
#define ENTRY (20 * PAGE + 64)

static char path[] = "/tmp/test_patched.XXXXXX";
static int fd;

/* push %rbp; mov %rsp,%rbp; ... in each line of the file, so no two bytes of one are alike */
static int make(void **state)
{
	uint8_t page[PAGE];

	fd = mkstemp(path);
	for (int i = 0; i < PAGE; i++)
		page[i] = (uint8_t)(0x55 + i % 64);
	for (int i = 0; i < PAGES; i++)
		if (write(fd, page, PAGE) != PAGE)
			return -1;
	return fd < 0;
}

static int drop(void **state)
{
	close(fd);
	return unlink(path);
}

struct change {
	uint64_t at;
	uint8_t bytes[16];
	size_t n;
};

static void change_code(const struct change *change)
{
	uint8_t *code = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (change)
		memcpy(code + change->at, change->bytes, change->n);
	mprotect(code, PAGES * PAGE, PROT_READ | PROT_EXEC);
}

/* A process that has mapped the file and changed its copy. */
static pid_t start(const struct change *change)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		change_code(change);
		if (write(ready[1], "r", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int ready_fd;

static void *be_ready(void *data)
{
	struct timespec tick = { .tv_nsec = 1000000 };
	struct process_stat stat;

	while (!process_stat_read(getpid(), getpid(), &stat) || stat.state != 'Z')
		nanosleep(&tick, NULL);
	if (write(ready_fd, "r", 1) == 1)
		pause();
	_exit(0);
}

/* The same, whose first thread has ended meanwhile. */
static pid_t start_without_first_thread(const struct change *change)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		pthread_t thread;

		change_code(change);
		ready_fd = ready[1];
		pthread_create(&thread, NULL, be_ready, NULL);
		syscall(SYS_exit, 0); /* this thread alone; pthread_exit would look for libgcc_s */
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static pid_t not_wanted;

static bool wants(void *data, pid_t pid)
{
	return pid != not_wanted;
}

/* Who is found to have changed a function whose probe is `probe` bytes behind its entry. */
static pid_t who(uint32_t probe)
{
	struct patch_point points[] = {
		{ .entry = ENTRY - 32, .probe = 0, .bytes = 4 },
		{ .entry = ENTRY, .probe = probe, .bytes = probe + 2 },
		{ .entry = ENTRY + 32, .probe = 0, .bytes = 4 },
	};

	patched_find(fd, points, ARRAY_SIZE(points), wants, NULL, 0);
	assert_int_equal(points[0].pid, 0);
	assert_int_equal(points[2].pid, 0);
	return points[1].pid;
}

static void finds(const struct change *change, uint32_t probe, bool found)
{
	pid_t pid = start(change), seen = who(probe);

	end(pid);
	assert_int_equal(seen, found ? pid : 0);
}

static void test_a_file_that_nobody_changed(void **state)
{
	assert_int_equal(who(0), 0);
	finds(NULL, 0, false);
}

static void test_a_jump_at_the_entry(void **state)
{
	const struct change jump = { ENTRY, { 0xff, 0x25 }, 14 };

	finds(&jump, 0, true);
	finds(&jump, 4, true); /* over the probe */
}

static void test_a_jump_of_five_bytes(void **state)
{
	const struct change jump = { ENTRY, { 0xe9, 1, 2, 3, 4 }, 5 };

	finds(&jump, 0, true);
	finds(&jump, 4, true);
	finds(&jump, 5, false); /* it ends where the probe is */
	finds(&jump, 10, false);
}

static void test_a_jump_of_five_bytes_and_nops(void **state)
{
	const struct change jump = { ENTRY, { 0xe9, 1, 2, 3, 4, 0x90, 0x90 }, 7 };

	finds(&jump, 5, true);
	finds(&jump, 6, true);
	finds(&jump, 7, false);
	finds(&jump, 10, false);
}

static void test_a_jump_and_what_is_no_nop(void **state)
{
	const struct change jump = { ENTRY, { 0xe9, 1, 2, 3, 4, 0x90, 0x91 }, 7 };

	finds(&jump, 10, true);
}

static void test_a_jump_behind_an_instruction(void **state)
{
	const struct change jump = { ENTRY + 4, { 0xe9, 1, 2, 3, 4 }, 5 };

	finds(&jump, 0, false);
	finds(&jump, 4, true);
	finds(&jump, 9, false);
}

static void test_what_lies_behind_the_probe(void **state)
{
	const struct change jump = { ENTRY + 6, { 0xe9, 1, 2, 3, 4 }, 5 };

	finds(&jump, 4, false);
	finds(&jump, 5, true);
}

static void test_a_breakpoint_is_no_other_code(void **state)
{
	const struct change trap = { ENTRY, { 0xcc }, 1 };
	const struct change both = { ENTRY, { 0xcc, 0x25 }, 2 };

	finds(&trap, 0, false);
	finds(&both, 0, true);
}

/* Whether calls of a process are found not to come to a probe so far behind the entry. */
static bool goes_by(const struct change *change, uint32_t probe)
{
	struct patch_point points[] = {
		{ .entry = ENTRY, .probe = probe, .bytes = probe + 2 },
		{ .entry = ENTRY + 32, .probe = 10, .bytes = 12 },
	};
	pid_t pid = start(change), other = start(NULL);

	patched_jumps(fd, points, ARRAY_SIZE(points), other);
	assert_int_equal(points[0].pid, 0);
	patched_jumps(fd, points, ARRAY_SIZE(points), pid);
	end(pid);
	end(other);
	assert_int_equal(points[1].pid, 0);
	assert_true(!points[0].pid || points[0].pid == pid);
	return points[0].pid;
}

static void test_a_jump_before_a_probe_is_found_in_its_process(void **state)
{
	const struct change jump = { ENTRY, { 0xe9, 1, 2, 3, 4 }, 5 };
	const struct change later = { ENTRY + 4, { 0xe9, 1, 2, 3, 4 }, 5 };
	const struct change other = { ENTRY, { 0xff, 0x25 }, 14 };
	const struct change trap = { ENTRY, { 0xcc }, 1 };

	assert_true(goes_by(&jump, 5));
	assert_true(goes_by(&later, 10));
	assert_false(goes_by(&jump, 4)); /* over the probe: it is in no process */
	assert_false(goes_by(&later, 4));
	assert_false(goes_by(&other, 20));
	assert_false(goes_by(&trap, 10));
	assert_false(goes_by(NULL, 10));
}

#ifndef MADV_GUARD_INSTALL /* Linux 6.13; in mappings of files, and told in pagemap: 6.15 */
#define MADV_GUARD_INSTALL 102
#endif

static pid_t start_guarded(uint64_t page)
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		char *code = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!madvise(code + page, PAGE, MADV_GUARD_INSTALL) && write(ready[1], "r", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		byte = 0;
	close(ready[0]);
	if (byte)
		return pid;
	end(pid);
	return 0;
}

static void test_a_guard_page_is_found_and_is_no_jump(void **state)
{
	struct patch_point points[] = {
		{ .entry = ENTRY, .probe = 10, .bytes = 12 },
		{ .entry = ENTRY + PAGE, .bytes = 4 },
		{ .entry = ENTRY - ENTRY % PAGE - 4, .probe = 2, .bytes = 8 }, /* partly there */
	};
	pid_t pid = start_guarded(ENTRY - ENTRY % PAGE);

	if (!pid)
		SKIP("no guard pages in mappings of files (Linux 6.15)");
	patched_find(fd, points, ARRAY_SIZE(points), NULL, NULL, 0);
	assert_int_equal(points[0].pid, pid);
	assert_int_equal(points[0].kind, PATCH_GUARD);
	assert_int_equal(points[1].pid, 0);
	assert_int_equal(points[2].pid, pid);
	patched_jumps(fd, points, ARRAY_SIZE(points), pid);
	end(pid);
	assert_int_equal(points[0].pid, 0);
}

static void test_another_page_of_the_file(void **state)
{
	const struct change far = { ENTRY + PAGE, { 0xff, 0x25 }, 14 };

	finds(&far, 0, false);
}

static void test_one_of_several_processes(void **state)
{
	const struct change jump = { ENTRY, { 0xff, 0x25 }, 14 };
	pid_t before = start(NULL), with = start(&jump), after = start(NULL), seen = who(0);

	end(before);
	end(with);
	end(after);
	assert_int_equal(seen, with);
}

static void test_a_process_whose_first_thread_has_ended(void **state)
{
	const struct change jump = { ENTRY, { 0xff, 0x25 }, 14 };
	pid_t pid = start_without_first_thread(&jump), seen = who(0);

	end(pid);
	assert_int_equal(seen, pid);
}

static void test_a_process_that_is_of_no_interest(void **state)
{
	const struct change jump = { ENTRY, { 0xff, 0x25 }, 14 };
	pid_t first = start(&jump), second = start(&jump), seen;

	not_wanted = who(0);
	seen = who(0);
	end(first);
	end(second);
	assert_true(not_wanted == first || not_wanted == second);
	assert_int_equal(seen, first + second - not_wanted);
	not_wanted = 0;
}

static void test_the_same_code_of_another_file(void **state)
{
	const struct change jump = { ENTRY, { 0xff, 0x25 }, 14 };
	char other[] = "/tmp/test_patched.XXXXXX";
	int first = fd;
	pid_t pid;

	fd = mkstemp(other);
	assert_int_equal(ftruncate(fd, PAGES * PAGE), 0);
	pid = start(&jump);
	close(fd);
	fd = first;
	assert_int_equal(who(0), 0);
	end(pid);
	unlink(other);
}

#define HOLES (1ull << 42) /* bytes: a thousand million pages */

/* Files with holes are of any size, and so are mappings of them. */
static void test_a_file_of_terabytes(void **state)
{
	struct patch_point points[] = {
		{ .entry = HOLES - 2 * PAGE,
		  .bytes = 4 }, /* neither in order, nor near each other */
		{ .entry = HOLES / 2, .bytes = 4 },
		{ .entry = 0, .bytes = 4 },
	};
	char other[] = "/tmp/test_patched.XXXXXX";
	int large = mkstemp(other), ready[2];
	struct timespec begin, end_at;
	char byte;
	pid_t pid;

	assert_int_equal(ftruncate(large, HOLES), 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		uint8_t *code = mmap(NULL, HOLES, PROT_READ | PROT_WRITE,
		                     MAP_PRIVATE | MAP_NORESERVE, large, 0);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (code == MAP_FAILED)
			_exit(1);
		code[HOLES - 2 * PAGE] = 0xe8;
		mprotect(code, HOLES, PROT_READ | PROT_EXEC);
		if (write(ready[1], "r", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	patched_find(large, points, ARRAY_SIZE(points), NULL, NULL, 0);
	clock_gettime(CLOCK_MONOTONIC, &end_at);
	end(pid);
	close(large);
	unlink(other);
	assert_int_equal(points[0].pid, pid);
	assert_int_equal(points[1].pid, 0);
	assert_int_equal(points[2].pid, 0);
	assert_true(end_at.tv_sec - begin.tv_sec < 3);
}

/* One of that user that has the file mapped so often. */
static pid_t start_often(uid_t uid, int times)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (setresuid(uid, uid, uid))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < times; i++)
			mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (write(ready[1], "r", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/* The last that makes them too many is who is told of, wherever a point is. */
static void test_one_user_has_the_file_mapped_a_thousand_times(void **state)
{
	struct patch_point points[] = { { .entry = ENTRY, .bytes = 4 },
		                        { .entry = 64, .bytes = 4 },
		                        { .entry = 128 } }; /* not asked for */
	struct err err = { 0 };
	pid_t first, other, second, seen;

	if (geteuid())
		SKIP("it needs root, to be two users");
	assert_int_equal(helper_begin(&err), 0);
	first = start_often(4711, 600);
	other = start_often(4712, 600);
	patched_find(fd, points, ARRAY_SIZE(points), NULL, NULL, 0);
	assert_int_equal(points[0].pid, 0);
	second = start_often(4711, 600);
	patched_find(fd, points, ARRAY_SIZE(points), NULL, NULL, 0);
	seen = points[0].pid;
	assert_true(seen == first || seen == second);
	assert_int_equal(points[0].kind, PATCH_CROWD);
	assert_int_equal(points[1].pid, seen);
	assert_int_equal(points[2].pid, 0);
	end(first);
	end(second);
	second = start_often(4711, 2000);
	patched_find(fd, points, ARRAY_SIZE(points), NULL, NULL, 0);
	assert_int_equal(points[0].pid, second);
	patched_jumps(fd, points, ARRAY_SIZE(points), second);
	assert_int_equal(points[0].pid, 0);
	end(other);
	end(second);
	helper_end();
}

#define MANY  700              /* points, */
#define APART (4096ull * PAGE) /* each of which is asked for by itself */
#define WASTE 12               /* processes that have all of that mapped */

/* One that has changed two of these points. */
static pid_t start_large(int large, uid_t uid, size_t first, size_t second)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		uint8_t *code = mmap(NULL, MANY * APART, PROT_READ | PROT_WRITE,
		                     MAP_PRIVATE | MAP_NORESERVE, large, 0);

		if (code == MAP_FAILED || setresuid(uid, uid, uid))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		code[first * APART] = code[second * APART] = 0xe8;
		mprotect(code, MANY * APART, PROT_READ | PROT_EXEC);
		if (write(ready[1], "r", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/* What each process has in any case is looked at, and of another user's all. */
static void test_processes_of_one_user_are_not_asked_without_end(void **state)
{
	struct patch_point points[MANY] = { 0 };
	char other[] = "/tmp/test_patched.XXXXXX";
	pid_t waster[WASTE], honest;
	struct err err = { 0 };
	int large = mkstemp(other);
	size_t found = 0;

	if (geteuid())
		SKIP("it needs root, to be two users");
	assert_int_equal(helper_begin(&err), 0);
	assert_int_equal(ftruncate(large, MANY * APART), 0);
	for (size_t i = 0; i < MANY; i++)
		points[i] = (struct patch_point){ .entry = i * APART, .bytes = 4 };
	for (size_t i = 0; i < WASTE; i++)
		waster[i] = start_large(large, 4711, i, 100 + i);
	honest = start_large(large, 4712, WASTE, 100 + WASTE);
	patched_find(large, points, MANY, NULL, NULL, 0);
	for (size_t i = 0; i < WASTE; i++) {
		end(waster[i]);
		assert_int_equal(points[i].pid, waster[i]);
		found += points[100 + i].pid == waster[i];
	}
	end(honest);
	helper_end();
	close(large);
	unlink(other);
	assert_int_equal(points[WASTE].pid, honest);
	assert_int_equal(points[100 + WASTE].pid, honest);
	assert_in_range(found, 4, WASTE - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_that_nobody_changed),
		cmocka_unit_test(test_a_jump_at_the_entry),
		cmocka_unit_test(test_a_jump_of_five_bytes),
		cmocka_unit_test(test_a_jump_of_five_bytes_and_nops),
		cmocka_unit_test(test_a_jump_and_what_is_no_nop),
		cmocka_unit_test(test_a_jump_behind_an_instruction),
		cmocka_unit_test(test_what_lies_behind_the_probe),
		cmocka_unit_test(test_a_breakpoint_is_no_other_code),
		cmocka_unit_test(test_a_jump_before_a_probe_is_found_in_its_process),
		cmocka_unit_test(test_a_guard_page_is_found_and_is_no_jump),
		cmocka_unit_test(test_another_page_of_the_file),
		cmocka_unit_test(test_one_of_several_processes),
		cmocka_unit_test(test_a_process_whose_first_thread_has_ended),
		cmocka_unit_test(test_a_process_that_is_of_no_interest),
		cmocka_unit_test(test_the_same_code_of_another_file),
		cmocka_unit_test(test_a_file_of_terabytes),
		cmocka_unit_test(test_one_user_has_the_file_mapped_a_thousand_times),
		cmocka_unit_test(test_processes_of_one_user_are_not_asked_without_end),
	};

	return cmocka_run_group_tests_name("patched", tests, make, drop);
}
