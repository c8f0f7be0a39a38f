// SPDX-License-Identifier: MIT
/* What the programs are told of processes: when they are looked at, exec, end, and their limits. */
#include "unit.h"

#include <semaphore.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/array.h"
#include "fake_maps.h"
#include "mapped_files.h"
#include "probe/account.h"
#include "unwind/code_look.h"
#include "unwind/unwinder.h"

#define PATIENCE_NS 20000000000ull

static struct unwinder *unwinder;
static struct unwinder_figures figures;
static uint64_t person; /* whose all processes are; 0: root's */

/* Who looks at this process waits for `go` meanwhile. */
static pid_t held;
static sem_t arrived, go;

uint64_t __wrap_person_of_process(pid_t pid);

uint64_t __wrap_person_of_process(pid_t pid)
{
	return person;
}

static pid_t last; /* that was looked at, and had news */

static void looked(void *data, pid_t pid)
{
	last = pid;
	if (pid != held)
		return;
	held = 0;
	sem_post(&arrived);
	sem_wait(&go);
}

static void begin(void)
{
	const struct unwinder_maps maps = { FAKE_CODE, FAKE_PYTHON, FAKE_FILES, FAKE_RULES };
	const struct unwinder_told told = { .looked = looked };

	sem_init(&arrived, 0, 0);
	sem_init(&go, 0, 0);
	assert_int_equal(unwinder_new(&maps, &told, &unwinder, NULL), 0);
}

static void end(void)
{
	unwinder_free(unwinder);
	assert_int_equal(fake_processes(), 0);
	assert_int_equal(fake_tables(), 0);
	sem_destroy(&arrived);
	sem_destroy(&go);
}

static void wait_for_the_thread(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	assert_int_equal(sem_timedwait(&arrived, &until), 0);
}

static void wait_for_it(void)
{
	assert_true(unwinder_wait(unwinder, PATIENCE_NS));
}

static const struct wire_code *look_at(pid_t pid)
{
	assert_true(unwinder_look(unwinder, pid, PATIENCE_NS));
	return fake_code_of((uint32_t)pid);
}

static struct unwinder_figures figures_now(void)
{
	unwinder_figures(unwinder, &figures);
	return figures;
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* where the test fails */
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The mapping that an address is in; NULL: none. */
static const struct wire_mapping *mapping_at(const struct wire_code *code, const void *address)
{
	uint64_t at = (uintptr_t)address;

	for (uint32_t i = 0; i < code->count; i++)
		if (at >= code->begin[i] && at < code->mapping[i].end)
			return &code->mapping[i];
	return NULL;
}

/* ---- looks ----------------------------------------------------------------------------------- */

static void test_a_process_is_told_of_as_it_is_mapped(void **state)
{
	const struct wire_code *code;

	begin();
	unwinder_see(unwinder, getpid());
	wait_for_it();
	code = fake_code_of((uint32_t)getpid());
	assert_non_null(code);
	assert_true(code->count > 1 && code->count < 100);
	for (uint32_t i = 1; i < code->count; i++)
		assert_true(code->begin[i] >= code->mapping[i - 1].end);
	for (uint32_t i = code->count; i < UNWIND_MAPPINGS_MAX; i++)
		assert_int_equal(code->begin[i], UNWIND_NOWHERE);
	assert_true(mapping_at(code, (void *)looked)->file > UNWIND_FILE_BARE);
	assert_int_equal(code->generation, 1);
	end();
}

/* Of a process that does nothing: a sanitizer maps more in this one. */
static void test_looks_without_news_change_nothing(void **state)
{
	pid_t pid;

	begin();
	pid = start();
	for (int i = 0; i < 5; i++)
		assert_int_equal(look_at(pid)->generation, 1);
	stop(pid);
	end();
}

/* Looks without news are further and further apart; who is in a hurry has one at once. */
static void test_a_look_that_somebody_waits_for_comes_at_once(void **state)
{
	pid_t pid;

	begin();
	pid = start();
	for (int i = 0; i < 7; i++)
		look_at(pid);
	unwinder_see(unwinder, pid);
	assert_false(unwinder_wait(unwinder, 200000000));
	unwinder_hurry(unwinder, pid);
	assert_true(unwinder_wait(unwinder, 200000000));
	unwinder_see(unwinder, pid);
	assert_true(unwinder_wait(unwinder, 200000000));
	stop(pid);
	end();
}

static void test_a_look_that_is_to_end_leaves_files_to_the_next(void **state)
{
	struct code_tables *tables = code_tables_new(FAKE_FILES, FAKE_RULES, NULL, NULL);
	bool ends = true;

	for (int i = 0; i < 2; i++) {
		struct code_look *look = code_look_at(tables, getpid(), 0, &ends);

		assert_int_equal(look->late, ends);
		assert_int_equal(look->n_tables > 0, !ends);
		code_tables_drop(tables, look->tables, look->n_tables);
		free(look->tables);
		free(look);
		ends = false;
	}
	code_tables_free(tables);
}

static void test_a_mapping_that_another_file_has_taken(void **state)
{
	const struct wire_code *code;
	struct mapped_file first, second;
	uint32_t before, generation;

	begin();
	mapped_begin(&first);
	mapped_begin(&second);
	code = look_at(getpid());
	before = mapping_at(code, first.at)->file;
	generation = code->generation;
	assert_int_not_equal(before, mapping_at(code, second.at)->file);
	assert_ptr_equal(mremap(second.at, FIRST_PAGES, FIRST_PAGES, MREMAP_MAYMOVE | MREMAP_FIXED,
	                        first.at),
	                 first.at);
	code = look_at(getpid());
	assert_int_not_equal(mapping_at(code, first.at)->file, before);
	assert_null(mapping_at(code, second.at));
	assert_int_equal(code->generation, generation + 1);
	unlink(second.path);
	mapped_end(&first);
	code = look_at(getpid());
	assert_null(mapping_at(code, first.at));
	end();
}

static void test_code_of_no_file(void **state)
{
	void *jit;

	begin();
	jit = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(mapping_at(look_at(getpid()), jit)->file, UNWIND_FILE_BARE);
	assert_int_equal(figures_now().cut, 0);
	munmap(jit, 4096);
	end();
}

/* Files come first, wherever they are. */
static void expect_own_and_libc(const struct wire_code *code)
{
	assert_true(mapping_at(code, (void *)expect_own_and_libc)->file > UNWIND_FILE_BARE);
	assert_true(mapping_at(code, (void *)getpid)->file > UNWIND_FILE_BARE);
}

/* Where a program's own mappings are: of many, the first and the last are kept. */
static char *below_libc(size_t bytes)
{
	uintptr_t wanted = ((uintptr_t)getpid - ((uintptr_t)4 << 30)) & ~(uintptr_t)4095;

	return mmap((void *)wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void test_more_mappings_of_files_than_fit(void **state)
{
	const size_t page = 4096, pages = 2 * UNWIND_MAPPINGS_MAX + 64;
	char *at = below_libc(pages * page);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct wire_code *code;

	begin();
	assert_ptr_not_equal(at, MAP_FAILED);
	for (size_t i = 0; i < pages; i += 2)
		assert_ptr_not_equal(mmap(at + i * page, page, PROT_READ | PROT_EXEC,
		                          MAP_PRIVATE | MAP_FIXED, fd, 0),
		                     MAP_FAILED);
	code = look_at(getpid());
	assert_int_equal(code->count, UNWIND_MAPPINGS_MAX);
	expect_own_and_libc(code);
	assert_int_equal(figures_now().cut, 1);
	munmap(at, pages * page);
	close(fd);
	end();
}

static void test_more_mappings_than_fit(void **state)
{
	const size_t page = 4096, pages = 2 * UNWIND_MAPPINGS_MAX + 64;
	char *at = below_libc(pages * page);
	const struct wire_code *code;

	begin();
	assert_ptr_not_equal(at, MAP_FAILED);
	for (size_t i = 0; i < pages; i += 2)
		assert_int_equal(mprotect(at + i * page, page, PROT_READ | PROT_EXEC), 0);
	code = look_at(getpid());
	assert_int_equal(code->count, UNWIND_MAPPINGS_MAX);
	for (uint32_t i = 1; i < code->count; i++)
		assert_true(code->begin[i] >= code->mapping[i - 1].end);
	expect_own_and_libc(code);
	assert_int_equal(figures_now().cut, 1);
	munmap(at, pages * page);
	assert_true(look_at(getpid())->count < 100);
	assert_int_equal(figures_now().cut, 1);
	end();
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void test_a_process_that_is_forgotten_leaves_nothing(void **state)
{
	begin();
	look_at(getpid());
	assert_true(figures_now().code.files > 0);
	unwinder_forget(unwinder, getpid());
	wait_for_it();
	assert_int_equal(fake_processes(), 0);
	assert_int_equal(fake_tables(), 0);
	assert_int_equal(figures_now().code.files, 0);
	unwinder_forget(unwinder, getpid()); /* nobody's */
	end();
}

/* Rules that programs remember go by it: what a number was of before must not be found again. */
static void test_a_pid_that_is_used_again_has_no_generation_of_before(void **state)
{
	uint32_t before;

	begin();
	before = look_at(getpid())->generation;
	unwinder_forget(unwinder, getpid());
	wait_for_it();
	assert_true(look_at(getpid())->generation > before);
	end();
}

/* A record of the process may come after that of its end. */
static void test_a_late_word_of_a_process_that_has_ended(void **state)
{
	pid_t pid = start(), other = start();

	begin();
	look_at(pid);
	stop(pid);
	held = other;
	unwinder_see(unwinder, other);
	wait_for_the_thread(); /* the thread is busy: it drops nobody now */
	unwinder_forget(unwinder, pid);
	unwinder_see(unwinder, pid);
	sem_post(&go);
	wait_for_it();
	unwinder_forget(unwinder, other);
	wait_for_it();
	assert_int_equal(fake_processes(), 0);
	assert_int_equal(figures_now().code.files, 0);
	unwinder_see(unwinder, pid); /* one that is not known any more */
	wait_for_it();
	assert_int_equal(figures_now().code.files, 0);
	stop(other);
	end();
}

/* What is known of a process stays until its end is told: samples of it are on their way. */
static void test_a_process_that_has_ended_unseen_stays_known(void **state)
{
	pid_t pid = start();

	begin();
	look_at(pid);
	stop(pid);
	look_at(pid);
	assert_non_null(fake_code_of((uint32_t)pid));
	unwinder_forget(unwinder, pid);
	wait_for_it();
	assert_null(fake_code_of((uint32_t)pid));
	end();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* How long others wait for what the thread has locked, at most, for a second. */
static uint64_t longest_wait_ns(void)
{
	uint64_t end = now_ns() + 1000000000, longest = 0;

	while (now_ns() < end) {
		uint64_t begin_ns = now_ns();

		unwinder_python(unwinder, getpid());
		if (now_ns() - begin_ns > longest)
			longest = now_ns() - begin_ns;
		usleep(1000);
	}
	return longest;
}

/* The kernel waits whenever a table is taken away: for all of them once, and nobody with it. */
static void test_processes_that_end_together_hold_nobody_up(void **state)
{
	pid_t pids[4], other = start();
	struct mapped_file file;
	unsigned before;

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		mapped_begin(&file);
		pids[i] = start();
		look_at(pids[i]);
		mapped_end(&file);
	}
	held = other;
	unwinder_see(unwinder, other);
	wait_for_the_thread();
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		stop(pids[i]);
		unwinder_forget(unwinder, pids[i]);
	}
	before = fake_changes;
	fake_wait_us = 400000;
	sem_post(&go);
	assert_in_range(longest_wait_ns(), 0, 200000000);
	wait_for_it();
	assert_int_equal(fake_changes, before + 1);
	fake_wait_us = 0;
	stop(other);
	end();
}

static void *let_go(void *unused)
{
	usleep(50000);
	sem_post(&go);
	return unused;
}

static void test_a_look_that_waits_for_that_at_another_process(void **state)
{
	pid_t pid = start(), other = start();
	pthread_t thread;

	begin();
	held = other;
	unwinder_see(unwinder, other);
	wait_for_the_thread();
	assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
	assert_true(unwinder_look(unwinder, pid, 5000000000));
	pthread_join(thread, NULL);
	stop(pid);
	stop(other);
	end();
}

static void test_an_exec_that_came_before_the_look_changes_nothing(void **state)
{
	uint64_t before = now_ns();

	begin();
	look_at(getpid());
	unwinder_execed(unwinder, getpid(), before);
	assert_non_null(fake_code_of((uint32_t)getpid()));
	wait_for_it();
	end();
}

/* What a look has found that began before the exec is of the program before. */
/* Programs and files that looks lead to are freed after it: it waits for the one under way. */
struct listener {
	sem_t looks;
	size_t told;
};

static void heard(void *data, pid_t pid)
{
	struct listener *listener = data;

	listener->told++;
	sem_post(&listener->looks);
	usleep(100000); /* the stop comes meanwhile */
	listener->told++;
}

static void test_nobody_is_told_of_looks_after_a_stop(void **state)
{
	const struct unwinder_maps maps = { FAKE_CODE, FAKE_PYTHON, FAKE_FILES, FAKE_RULES };
	struct listener *listener = calloc(1, sizeof(*listener));
	const struct unwinder_told told = { .looked = heard, .data = listener };
	pid_t pids[4];

	sem_init(&listener->looks, 0, 0);
	assert_int_equal(unwinder_new(&maps, &told, &unwinder, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = start();
		unwinder_see(unwinder, pids[i]);
	}
	sem_wait(&listener->looks);
	unwinder_stop(unwinder);
	assert_int_equal(listener->told % 2, 0); /* it was waited for */
	sem_destroy(&listener->looks);
	free(listener);
	usleep(300000); /* of use after that ASan tells */
	unwinder_stop(unwinder);
	unwinder_free(unwinder);
	assert_int_equal(fake_processes(), 0);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		stop(pids[i]);
}

static void test_an_exec_while_the_process_is_looked_at(void **state)
{
	pid_t pid = start();

	begin();
	held = pid;
	unwinder_see(unwinder, pid);
	wait_for_the_thread();
	unwinder_execed(unwinder, pid, now_ns());
	held = pid;
	sem_post(&go);
	wait_for_the_thread(); /* the next look: the first one's findings are gone */
	assert_null(fake_code_of((uint32_t)pid));
	sem_post(&go);
	wait_for_it();
	assert_int_equal(fake_code_of((uint32_t)pid)->generation, 1);
	stop(pid);
	end();
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void test_a_process_without_room_is_counted_once(void **state)
{
	begin();
	fake_failure = E2BIG;
	for (int i = 0; i < 3; i++)
		assert_null(look_at(getpid()));
	assert_int_equal(figures_now().without_room, 1);
	fake_failure = 0;
	assert_non_null(look_at(getpid()));
	end();
}

static int wait_for_ever(void *unused)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* where the test fails */
	while (pause())
		;
	return 0;
}

/* On our memory: a copy of what a sanitizer has takes 30 ms each. */
static pid_t start_of_many(size_t number)
{
	static _Alignas(16) char stacks[UNWIND_PROCESSES_MAX][4096];
	pid_t pid = clone(wait_for_ever, stacks[number] + sizeof(stacks[number]),
	                  CLONE_VM | SIGCHLD, NULL);

	assert_true(pid > 0);
	return pid;
}

static size_t told_of(uint64_t whose, size_t n)
{
	pid_t pids[UNWIND_PROCESSES_MAX];
	size_t told;

	assert_true(n <= ARRAY_SIZE(pids));
	person = whose;
	begin();
	for (size_t i = 0; i < n; i++)
		look_at(pids[i] = start_of_many(i));
	told = fake_processes();
	assert_int_equal(figures_now().without_room, n - told);
	for (size_t i = 0; i < n; i++)
		stop(pids[i]);
	end();
	person = 0;
	return told;
}

static void test_a_user_has_three_quarters_of_the_room(void **state)
{
	assert_int_equal(told_of(1000, UNWIND_PROCESSES_MAX * 3 / 4 + 8),
	                 UNWIND_PROCESSES_MAX * 3 / 4);
	assert_int_equal(told_of(0, UNWIND_PROCESSES_MAX * 3 / 4 + 8),
	                 UNWIND_PROCESSES_MAX * 3 / 4 + 8);
}

/* The thread is for all: who brings files without end has a part of its time, and others theirs. */
static void test_a_user_without_time_has_no_new_files_read(void **state)
{
	struct mapped_file file;

	look_time_charge(LOOK_AT_TABLES, 1001, 60 * 1000000000ull);
	mapped_begin(&file);
	person = 1001;
	begin();
	assert_int_equal(mapping_at(look_at(getpid()), file.at)->file, UNWIND_FILE_NONE);
	end();
	person = 1002;
	begin();
	assert_true(mapping_at(look_at(getpid()), file.at)->file > UNWIND_FILE_BARE);
	end();
	person = 0;
	mapped_end(&file);
}

/* A look at a process with a long list of mappings can take half a second. */
static void test_processes_of_a_user_without_time_come_last(void **state)
{
	pid_t other = start(), dear = start(), next = start();

	look_time_charge(LOOK_AT_TABLES, 1003, 60 * 1000000000ull);
	begin();
	held = other;
	unwinder_see(unwinder, other);
	wait_for_the_thread();
	person = 1003;
	unwinder_see(unwinder, dear);
	person = 1004;
	unwinder_see(unwinder, next);
	sem_post(&go);
	wait_for_it();
	assert_int_equal(last, dear);
	person = 0;
	stop(other);
	stop(dear);
	stop(next);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_process_is_told_of_as_it_is_mapped),
		cmocka_unit_test(test_looks_without_news_change_nothing),
		cmocka_unit_test(test_a_look_that_somebody_waits_for_comes_at_once),
		cmocka_unit_test(test_a_look_that_is_to_end_leaves_files_to_the_next),
		cmocka_unit_test(test_a_mapping_that_another_file_has_taken),
		cmocka_unit_test(test_code_of_no_file),
		cmocka_unit_test(test_more_mappings_than_fit),
		cmocka_unit_test(test_more_mappings_of_files_than_fit),
		cmocka_unit_test(test_a_process_that_is_forgotten_leaves_nothing),
		cmocka_unit_test(test_a_pid_that_is_used_again_has_no_generation_of_before),
		cmocka_unit_test(test_a_late_word_of_a_process_that_has_ended),
		cmocka_unit_test(test_a_process_that_has_ended_unseen_stays_known),
		cmocka_unit_test(test_processes_that_end_together_hold_nobody_up),
		cmocka_unit_test(test_a_look_that_waits_for_that_at_another_process),
		cmocka_unit_test(test_an_exec_that_came_before_the_look_changes_nothing),
		cmocka_unit_test(test_nobody_is_told_of_looks_after_a_stop),
		cmocka_unit_test(test_an_exec_while_the_process_is_looked_at),
		cmocka_unit_test(test_a_process_without_room_is_counted_once),
		cmocka_unit_test(test_a_user_has_three_quarters_of_the_room),
		cmocka_unit_test(test_a_user_without_time_has_no_new_files_read),
		cmocka_unit_test(test_processes_of_a_user_without_time_come_last),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
