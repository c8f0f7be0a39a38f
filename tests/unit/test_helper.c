// SPDX-License-Identifier: MIT
/* A FIFO that nobody writes to stands for a file whose server does not answer. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/clock.h"
#include "probe/helper.h"
#include "probe/helper_inside.h"
#include "probe/maps.h"
#include "probe/mounts.h"
#include "probe/person.h"

static char folder[] = "/tmp/cuscope-helper-XXXXXX";

static int begin(void **state)
{
	struct err err = { 0 };

	return helper_begin(&err);
}

static int end(void **state)
{
	helper_end();
	return 0;
}

/* A child that waits to be killed, so that there is another process to be asked about. */
static pid_t make_target(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static void end_target(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_memory_is_read(void **state)
{
	static const char text[] = "what the parent had when it forked";
	char seen[sizeof(text)] = "";
	pid_t pid = make_target();

	assert_true(helper_memory(pid, (uint64_t)(uintptr_t)text, seen, sizeof(seen)));
	assert_string_equal(seen, text);
	assert_false(helper_memory(pid, 8, seen, sizeof(seen)));
	end_target(pid);
	assert_int_equal(helper_unanswered(), 0);
}

static int count_code(const struct mapping *mapping, void *data)
{
	++*(size_t *)data;
	return 0;
}

static int stop_at_first(const struct mapping *mapping, void *data)
{
	++*(size_t *)data;
	return -77;
}

static void test_maps_are_read(void **state)
{
	size_t count = 0, one = 0;
	pid_t pid = make_target();
	struct err err = { 0 };

	assert_int_equal(maps_each(pid, count_code, &count, &err), 0);
	assert_true(count > 2);
	assert_int_equal(maps_each(pid, stop_at_first, &one, &err), -77);
	assert_int_equal(one, 1);
	end_target(pid);
	assert_int_equal(maps_each(pid, count_code, &count, &err), -ESRCH);
}

/* Its answers are 64 KiB each: more than one of them. */
static void test_long_maps_are_read_whole(void **state)
{
	size_t before = 0, after = 0;
	struct err err = { 0 };
	const size_t pages = 4000;
	char *memory = mmap(NULL, pages * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	assert_int_equal(maps_each_code(getpid(), count_code, &before, &err), 0);
	for (size_t i = 0; i < pages; i += 2)
		mprotect(memory + i * 4096, 4096, PROT_READ | PROT_EXEC);
	pid = make_target();
	assert_int_equal(maps_each_code(pid, count_code, &after, &err), 0);
	assert_int_equal(after, before + pages / 2);
	end_target(pid);
	munmap(memory, pages * 4096);
}

/* Its answers are of 65,536 pages at most. */
static void test_pages_are_asked_for_in_parts(void **state)
{
	const size_t pages = 70000, written = 66000, page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *private = calloc(pages, 1);
	char *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pid_t pid;

	assert_true(memory != MAP_FAILED);
	memory[written * page] = 1;
	pid = make_target();
	assert_true(helper_private_pages(pid, (uint64_t)(uintptr_t)memory, private, pages));
	end_target(pid);
	for (size_t i = 0; i < pages; i++)
		assert_int_equal(private[i], i == written);
	munmap(memory, pages * page);
	free(private);
}

/* One that has ended has no more of it than a thread of the kernel's. */
static void test_who_has_no_memory_has_no_code(void **state)
{
	struct mapping mapping[4];
	pid_t pid = fork();
	siginfo_t info;

	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	if (helper_code_of(getpid(), 1, mapping, 4) != -ENOTTY)
		assert_int_equal(helper_code_of(pid, 1, mapping, 4), 0);
	waitpid(pid, NULL, 0);
	assert_int_equal(helper_code_of(pid, 1, mapping, 4), -ENOENT);
}

static int open_first(const struct mapping *mapping, void *data)
{
	*(int *)data = mapping_open(getpid(), mapping, NULL);
	return 1;
}

static void test_files_are_opened_and_read(void **state)
{
	char magic[4];
	struct stat st;
	int fd = -1;

	maps_each(getpid(), open_first, &fd, NULL);
	assert_true(fd >= 0);
	assert_int_equal(helper_pread(fd, magic, 4, 0), 4);
	assert_memory_equal(magic, "\177ELF", 4);
	assert_int_equal(file_stat(fd, &st), 0);
	assert_true(st.st_size > 4096 && S_ISREG(st.st_mode));
	close(fd);
}

/* No regular file, no link as its last part. */
static void test_only_regular_files_are_opened_by_path(void **state)
{
	char path[64], other[64];

	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(other, sizeof(other), "%s/link", folder);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(symlink("file", other), 0);
	close(helper_open_in_root(getpid(), path));
	assert_true(helper_open_in_root(getpid(), path) >= 0);
	assert_true(helper_open_in_root(getpid(), other) < 0);
	assert_int_equal(helper_open_in_root(getpid(), folder), -EINVAL);
	assert_int_equal(helper_open_in_root(getpid(), "/proc/self/cmdline"), -EINVAL);
}

/* What was known of a descriptor is not believed of another that has its number. */
static void test_a_number_that_is_used_again_is_another_file(void **state)
{
	char path[64], seen[6] = "";
	int served, fd;

	snprintf(path, sizeof(path), "%s/again", folder);
	fd = open(path, O_CREAT | O_RDWR, 0600);
	assert_int_equal(write(fd, "plain", 6), 6);
	served = open(path, O_PATH);
	helper_note(served, getpid(), 1234);
	assert_true(helper_is_users(served));
	assert_int_equal(helper_mapped_by(served), 1234);
	assert_int_equal(dup2(fd, served), served);
	close(fd);
	assert_false(helper_is_users(served));
	assert_true(helper_mapped_by(served) == PERSON_UNKNOWN);
	assert_int_equal(helper_pread(served, seen, 6, 0), 6);
	assert_string_equal(seen, "plain");
	close(served);
}

/* Its server may have answered before, and can be a user's. */
static void test_a_file_system_that_gives_no_answer_is_not_roots(void **state)
{
	int fd = open(folder, O_PATH);

	assert_true(file_is_on_roots_file_system(getpid(), fd));
	close(fd);
	assert_false(file_is_on_roots_file_system(getpid(), fd));
}

static void test_who_does_not_answer_is_given_up(void **state)
{
	static const char text[] = "still there";
	pid_t pid = make_target(), other = make_target();
	char path[64], seen[sizeof(text)] = "", why[512];
	uint64_t before = helper_unanswered();
	pid_t told = 0;
	int fd;

	assert_false(helper_news(&told, why, sizeof(why)));
	snprintf(path, sizeof(path), "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_PATH);
	helper_note(fd, pid, person_of_process(pid));
	assert_int_equal(helper_pread(fd, seen, 1, 0), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(helper_unanswered(), before + 1);
	assert_true(helper_news(&told, why, sizeof(why)));
	assert_int_equal(told, pid);
	assert_non_null(strstr(why, "could not be read within 2 s"));
	assert_false(helper_news(&told, why, sizeof(why)));

	/* nothing of it is read any more; another is not its fault */
	assert_false(helper_memory(pid, (uint64_t)(uintptr_t)text, seen, sizeof(seen)));
	assert_int_equal(helper_unanswered(), before + 2);
	assert_true(helper_memory(other, (uint64_t)(uintptr_t)text, seen, sizeof(seen)));
	assert_string_equal(seen, text);
	close(fd);
	end_target(pid);
	end_target(other);
}

/* Who answers late, and in time. */
static pid_t answer_after(const char *path, unsigned ms)
{
	pid_t pid = fork();

	if (pid == 0) {
		usleep(ms * 1000);
		_exit(open(path, O_WRONLY) < 0);
	}
	return pid;
}

static bool is_refused(pid_t pid, uint64_t person)
{
	bool refused;

	helper_lock();
	refused = waits_refuse(pid, person);
	helper_unlock();
	return refused;
}

static void charge(pid_t pid, uint64_t person, uint64_t ms)
{
	helper_lock();
	waits_charge(pid, person, ms * 1000000);
	helper_unlock();
}

static void test_who_answers_late_again_and_again_is_not_waited_for(void **state)
{
	const uint64_t person = 4711;
	char path[64], seen[1], why[512];
	pid_t pid = make_target(), told = 0, server;
	uint64_t before = helper_unanswered();
	int fd;

	snprintf(path, sizeof(path), "%s/late", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_PATH);
	helper_note(fd, pid, person);
	charge(pid, person, 3800);
	assert_false(is_refused(pid, person));
	server = answer_after(path, 500);
	assert_int_equal(helper_pread(fd, seen, 1, 0), -1);
	assert_int_equal(errno, ESPIPE); /* that is an answer */
	waitpid(server, NULL, 0);

	assert_true(is_refused(pid, person));
	assert_false(is_refused(pid, person + 1));
	assert_false(helper_was_unanswered(fd));
	assert_int_equal(helper_pread(fd, seen, 1, 0), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_true(helper_was_unanswered(fd));
	assert_int_equal(helper_unanswered(), before + 1);
	assert_true(helper_news(&told, why, sizeof(why)));
	assert_int_equal(told, pid);
	assert_non_null(strstr(why, ": memory and files of this user's processes have made"));
	close(fd);
	end_target(pid);
}

/* Takes the first processor for so long, from who is none of the real-time ones. False: it may not.
 */
static bool take_processor(unsigned ms)
{
	const struct sched_param first = { .sched_priority = 1 };
	cpu_set_t set;
	int status;
	pid_t pid;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(helper_now(), sizeof(set), &set))
		return false;
	pid = fork();
	if (pid == 0) {
		uint64_t end_ns;

		if (sched_setaffinity(0, sizeof(set), &set) ||
		    sched_setscheduler(0, SCHED_FIFO, &first))
			_exit(1);
		if (fork())
			_exit(0);
		end_ns = clock_now_ns() + ms * 1000000ull;
		while (clock_now_ns() < end_ns)
			;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return !status;
}

/* For how long the helper has waited for a processor so far. */
static uint64_t queued_ms(void)
{
	unsigned long long ran, queued = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)helper_now());
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu %llu", &ran, &queued), 2);
	fclose(file);
	return queued / 1000000;
}

/* Less than the limit is waited for somebody, and more than that for a processor. The kernel gives
 * others a share beside the first: where the helper had its request by it, it is asked again. */
static void test_a_helper_without_a_processor_is_waited_for(void **state)
{
	char path[64], seen[1];
	uint64_t before, queued;
	int fd, error, times = 0;
	pid_t pid, server;

	snprintf(path, sizeof(path), "%s/starved", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	do {
		pid = make_target();
		assert_true(helper_memory(pid, (uint64_t)(uintptr_t)folder, seen, 1));
		before = helper_unanswered();
		queued = queued_ms();
		fd = open(path, O_PATH);
		helper_note(fd, pid, 4713 + times);
		if (!take_processor(1500))
			skip();
		server = answer_after(path, 2400);
		assert_int_equal(helper_pread(fd, seen, 1, 0), -1);
		error = errno;
		if (error == ETIMEDOUT) /* nobody reads there any more */
			kill(server, SIGKILL);
		waitpid(server, NULL, 0);
		close(fd);
		end_target(pid);
	} while (error == ETIMEDOUT && ++times < 5);
	assert_int_equal(error, ESPIPE); /* that is an answer */
	assert_int_equal(helper_unanswered(), before);
	assert_true(queued_ms() >= queued + 700);
}

/* A machine that is busy, and files of root's servers, are nobody's fault. */
static void test_reading_what_answers_at_once_costs_nothing(void **state)
{
	const uint64_t person = 4712;
	char path[64], text[HELPER_BYTES] = "", seen[HELPER_BYTES];
	pid_t pid = make_target();
	int fd;

	snprintf(path, sizeof(path), "%s/plain", folder);
	fd = open(path, O_CREAT | O_RDWR, 0600);
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	close(fd);
	fd = open(path, O_PATH);
	helper_note(fd, pid, person);
	charge(pid, person, 3900);
	for (int i = 0; i < 2000; i++)
		assert_true(helper_pread(fd, seen, 1, (uint64_t)i * 7 % sizeof(text)) == 1);
	assert_false(is_refused(pid, person));
	close(fd);
	end_target(pid);
}

static void test_helpers_that_hang_count_until_they_end(void **state)
{
	const uint64_t person = 4713;
	int pairs[4][2];

	for (int i = 0; i < 4; i++) {
		assert_false(is_refused(getppid(), person));
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pairs[i]), 0);
		helper_lock();
		waits_give_up(i + 1000000, person, "a page", 500, pairs[i][0]);
		helper_unlock();
	}
	assert_true(is_refused(getppid(), person));
	assert_false(is_refused(getppid(), person + 1));
	close(pairs[0][1]); /* as when its helper ends */
	usleep(150000);
	assert_false(is_refused(getppid(), person));
	for (int i = 1; i < 4; i++)
		close(pairs[i][1]);
}

/* One of a process that is gone, by the root of another: that one is not to blame. */
/* Opening it waits for this process, for 45 s or until that ends. */
static pid_t lease(const char *path)
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		int fd = open(path, O_CREAT | O_RDWR, 0600);

		signal(SIGIO, SIG_IGN);
		if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0 && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

/* Who ran it is charged: neither its parent, by whose root its file is looked for, nor all whose
 * processes are gone. */
static void test_who_is_gone_is_not_given_up_for_others(void **state)
{
	const uint64_t person = 4720;
	pid_t parent = make_target(), holder, told;
	struct mapping mapping = { 0 };
	char path[64], why[512];
	struct stat st;

	while (helper_news(&told, why, sizeof(why))) /* of the tests before */
		;
	snprintf(path, sizeof(path), "%s/leased", folder);
	holder = lease(path);
	assert_int_equal(stat(path, &st), 0);
	mapping = (struct mapping){ .path = path, .inode = st.st_ino, .dev = st.st_dev };
	charge(0, person, 2500);
	assert_int_equal(helper_open_gone(parent, person, &mapping), -ETIMEDOUT);
	assert_true(is_refused(0, person)); /* with 2 s for that it is over */
	assert_false(is_refused(0, PERSON_UNKNOWN));
	assert_false(helper_gave_up(parent));
	assert_true(helper_news(&told, why, sizeof(why)));
	assert_int_equal(told, 0);
	assert_non_null(strstr(why, "a process that is gone: "));
	end_target(holder);
	end_target(parent);
}

/* Its names are read later, and whoever starts and ends many has no others pay for that. */
static void test_who_was_known_is_still_who_is_gone(void **state)
{
	const struct timespec later = { .tv_nsec = 20000000 };
	const uint64_t person = 4721;
	pid_t known, unknown;

	if (geteuid())
		SKIP(NEEDS_ROOT);
	known = fork();
	if (known == 0) {
		if (setresuid((uid_t)person, (uid_t)person, (uid_t)person))
			_exit(1);
		pause();
	}
	while (helper_person_of(known) != person)
		nanosleep(&later, NULL); /* until it is that user's */
	unknown = make_target();
	end_target(known);
	end_target(unknown);
	nanosleep(&later, NULL); /* then the process is looked at again */
	assert_int_equal(helper_person_of(known), person);
	assert_int_equal(helper_person_of(unknown), PERSON_UNKNOWN);
	helper_process_begun(known); /* its own begin, told late */
	assert_int_equal(helper_person_of(known), person);
	helper_process_ended(known, clock_now_ns());
	assert_int_equal(helper_person_of(known), person);
	helper_process_begun(known); /* another's, which is gone already */
	assert_int_equal(helper_person_of(known), PERSON_UNKNOWN);
}

static void test_a_helper_that_was_killed_is_replaced(void **state)
{
	static const char text[] = "read twice";
	char seen[sizeof(text)] = "";
	pid_t pid = make_target();

	assert_true(helper_memory(pid, (uint64_t)(uintptr_t)text, seen, sizeof(seen)));
	assert_int_equal(kill(helper_now(), SIGKILL), 0);
	memset(seen, 0, sizeof(seen));
	assert_true(helper_memory(pid, (uint64_t)(uintptr_t)text, seen, sizeof(seen)));
	assert_string_equal(seen, text);
	end_target(pid);
}

/* What was forked since has nobody to ask, and must not take its parent's answers. */
static void test_a_child_reads_by_itself(void **state)
{
	static const char text[] = "by itself";
	char seen[sizeof(text)] = "";
	pid_t pid = make_target(), child = fork();
	int status = 0;

	if (child == 0) {
		bool ok = helper_memory(pid, (uint64_t)(uintptr_t)text, seen, sizeof(seen));

		_exit(ok && !strcmp(seen, text) ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	end_target(pid);
}

static void *hold_the_lock(void *data)
{
	const int *ends = data;
	char any;

	helper_lock();
	assert_int_equal(write(ends[0], "", 1), 1);
	while (read(ends[1], &any, 1) > 0)
		;
	helper_unlock();
	return NULL;
}

/* Who attaches is forked while threads that look up names ask: their lock is nobody's in there. */
static void test_a_child_does_not_wait_for_who_asks_in_its_parent(void **state)
{
	static const char text[] = "meanwhile";
	int held[2], over[2], ends[2], status = 0;
	char seen[sizeof(text)] = "", any;
	pid_t pid = make_target(), child;
	pthread_t thread;

	assert_int_equal(pipe(held), 0);
	assert_int_equal(pipe(over), 0);
	ends[0] = held[1];
	ends[1] = over[0];
	assert_int_equal(pthread_create(&thread, NULL, hold_the_lock, ends), 0);
	assert_int_equal(read(held[0], &any, 1), 1);
	child = fork();
	if (child == 0) {
		alarm(10);
		_exit(helper_memory(pid, (uint64_t)(uintptr_t)text, seen, sizeof(seen)) &&
		                      !strcmp(seen, text)
		              ? 0
		              : 1);
	}
	waitpid(child, &status, 0);
	close(over[1]);
	pthread_join(thread, NULL);
	close(over[0]);
	close(held[0]);
	close(held[1]);
	end_target(pid);
	assert_int_equal(status, 0);
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void test_only_that_device_is_copied(void **state)
{
	int null = open("/dev/null", O_RDONLY), zero = open("/dev/zero", O_RDONLY), copy;
	struct stat st;

	copy = helper_copy_device(getpid(), null, makedev(1, 3));
	assert_true(copy >= 0 && copy != null);
	assert_int_equal(fstat(copy, &st), 0);
	assert_int_equal(st.st_rdev, makedev(1, 3));
	assert_int_equal(helper_same_file(getpid(), null, copy), 1);
	assert_int_equal(helper_same_file(getpid(), zero, copy), 0);
	assert_int_equal(helper_same_file(getpid(), 99999, copy), -EBADF);
	close(copy);
	assert_int_equal(helper_copy_device(getpid(), zero, makedev(1, 3)), -EPROTOTYPE);
	assert_int_equal(helper_copy_device(getpid(), null, 0), -EPROTOTYPE);
	assert_int_equal(helper_copy_device(getpid(), 99999, makedev(1, 3)), -EBADF);
	close(null);
	close(zero);
}

/* Whoever closes the last of it sleeps for `seconds`: there is data that nobody reads. */
static int make_slow(int listener, int seconds)
{
	const struct linger linger = { 1, seconds };
	static char data[65536];
	struct sockaddr_in at;
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

static void test_what_is_let_go_is_closed_and_not_waited_for(void **state)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char text[] = "others are still helped";
	uint64_t begin, longest = 0;
	char seen[sizeof(text)];
	pid_t target;

	assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(listener, 64), 0);
	for (int i = 0; i < 20; i++) {
		int slow = make_slow(listener, 5), pair[2], read_end;
		struct pollfd end = { .events = POLLIN };
		char byte;

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		assert_int_equal(worker_send(pair[1], "x", 1, slow), 0);
		assert_int_equal(dup2(pair[1], slow), slow); /* not the last that has it */
		begin = clock_now_ns();
		helper_let_go(i % 2 ? pair[0] : slow);
		helper_let_go(i % 2 ? slow : pair[0]);
		if (clock_now_ns() - begin > longest)
			longest = clock_now_ns() - begin;
		end.fd = pair[1];
		assert_int_equal(poll(&end, 1, 2000), 1);
		assert_true(end.revents & POLLHUP);
		assert_true(worker_receive(pair[1], &byte, 1, &read_end) <= 0);
		close(pair[1]);
	}
	helper_let_go(-1);
	assert_true(longest < 1000000000);
	close(listener);
	assert_int_equal(fcntl(listener, F_GETFD), -1);
	target = make_target();
	assert_true(helper_memory(target, (uint64_t)(uintptr_t)text, seen, sizeof(seen)));
	end_target(target);
}

static bool is_closed(int end, int ms)
{
	struct pollfd ready = { .fd = end, .events = POLLIN };

	return poll(&ready, 1, ms) == 1 && ready.revents & POLLHUP;
}

/* The process that makes helpers: of those that run this program the last that began. */
static pid_t find_maker(void)
{
	char path[32], exe[4096] = "", own[4096] = "", name[32];
	uint64_t began, last = 0;
	pid_t pid, maker = 0;
	DIR *list = process_list(0);

	assert_true(readlink("/proc/self/exe", own, sizeof(own) - 1) > 0);
	while ((pid = process_next(list))) {
		memset(exe, 0, sizeof(exe));
		snprintf(path, sizeof(path), "/proc/%d/exe", pid);
		if (pid == getpid() || readlink(path, exe, sizeof(exe) - 1) <= 0 ||
		    strcmp(exe, own) || !process_comm(pid, 0, name, sizeof(name)) ||
		    strcmp(name, "cuscope-read"))
			continue;
		began = process_start_time(pid);
		if (began >= last)
			maker = pid;
		last = began >= last ? began : last;
	}
	process_list_end(&list);
	return maker;
}

/* It has room for `more` descriptors; 0: for many. */
static void limit(pid_t maker, size_t more)
{
	struct rlimit most = { 1024, 1024 };
	char path[64];

	for (rlim_t fd = 0; more; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%lu", maker, (unsigned long)fd);
		more -= access(path, F_OK) != 0;
		most.rlim_cur = fd + 1;
	}
	assert_int_equal(prlimit(maker, RLIMIT_NOFILE, &most, NULL), 0);
}

static void test_what_nobody_could_close_is_closed_with_the_next(void **state)
{
	int first[2], second[2];
	pid_t maker;

	while (!(maker = find_maker())) /* it names itself */
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, first), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, second), 0);
	limit(maker, 1);
	helper_let_go(first[0]);
	assert_false(is_closed(first[1], 300));
	limit(maker, 0);
	helper_let_go(second[0]);
	assert_true(is_closed(second[1], 2000));
	assert_true(is_closed(first[1], 2000));
	close(first[1]);
	close(second[1]);
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_memory_is_read),
		TEST(test_maps_are_read),
		TEST(test_long_maps_are_read_whole),
		TEST(test_pages_are_asked_for_in_parts),
		TEST(test_who_has_no_memory_has_no_code),
		TEST(test_files_are_opened_and_read),
		TEST(test_only_regular_files_are_opened_by_path),
		TEST(test_a_helper_that_was_killed_is_replaced),
		TEST(test_a_child_reads_by_itself),
		TEST(test_a_child_does_not_wait_for_who_asks_in_its_parent),
		TEST(test_a_number_that_is_used_again_is_another_file),
		TEST(test_a_file_system_that_gives_no_answer_is_not_roots),
		TEST(test_who_does_not_answer_is_given_up),
		TEST(test_who_answers_late_again_and_again_is_not_waited_for),
		TEST(test_a_helper_without_a_processor_is_waited_for),
		TEST(test_reading_what_answers_at_once_costs_nothing),
		TEST(test_helpers_that_hang_count_until_they_end),
		TEST(test_who_is_gone_is_not_given_up_for_others),
		TEST(test_who_was_known_is_still_who_is_gone),
		TEST(test_only_that_device_is_copied),
		TEST(test_what_is_let_go_is_closed_and_not_waited_for),
		TEST(test_what_nobody_could_close_is_closed_with_the_next),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
