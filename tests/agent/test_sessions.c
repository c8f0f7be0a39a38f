// SPDX-License-Identifier: MIT
/* Sessions in which calls are recorded inside the process: how they end, and what comes after. */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/lib/probe_threads.h"
#include "orders_scene.h"
#include "work.h"

#define ROUNDS 1000

/* ---- begins ---- */

static unsigned descriptors_room(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned room = 0;
	char line[256];

	while (file && !room && fgets(line, sizeof(line), file))
		sscanf(line, "FDSize: %u", &room);
	if (file)
		fclose(file);
	return room;
}

/* As where it takes 30 ms, the thread of the program's that brings the socket would wait. No thread
 * can be made here, so that it is that one alone. */
static int room_after_entering(void)
{
	unsigned before = descriptors_room();
	pthread_attr_t huge;
	int pair[2];

	if (pthread_attr_init(&huge) || pthread_attr_setstacksize(&huge, (size_t)1 << 46) ||
	    pthread_setattr_default_np(&huge) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return 2;
	if (cuscope_agent_enter(pair[0]) != -EAGAIN)
		return 3;
	return before && descriptors_room() == before ? 0 : 1;
}

static void test_who_brings_the_socket_makes_no_room_for_high_numbers(void **state)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(room_after_entering());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static bool is_ours(int fd)
{
	char byte = 0;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 1 && byte == 'x';
}

/* A descriptor of that file. */
static int find_same(const struct stat *file)
{
	struct stat st;

	for (int fd = 0; fd < 10000; fd++) {
		if (!fstat(fd, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino)
			return fd;
	}
	return -1;
}

static void *return_id(void *id)
{
	*(pid_t *)id = gettid();
	return NULL;
}

/* With what a sanitizer adds at a process's first: TSan has a thread of its own from then on. */
static size_t count_after_a_thread(void)
{
	pthread_t thread;
	pid_t id;

	if (pthread_create(&thread, NULL, return_id, &id) || pthread_join(thread, NULL))
		return 0;
	while (!tgkill(getpid(), id, 0)) /* it is joined a little before it is gone */
		host_sleep(1);
	return count_threads();
}

/*
 * As a daemon that closes what it does not know, and opens its own: while the library's thread
 * waits for room, or, `later`, for the hello. The other end then closes, for which that waits.
 */
static int number_is_another_s(bool later)
{
	struct host *host = host_new(1 << 16);
	size_t threads = count_after_a_thread();
	int pair[2], number = host->theirs;
	struct stat theirs;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ||
	    send(pair[1], "x", 1, 0) != 1 || fstat(number, &theirs))
		return 2;
	if (cuscope_agent_enter(number))
		return 3;
	if (later) {
		host_sleep(500); /* it has moved the socket, and waits */
		number = find_same(&theirs);
	}
	if (number < 0 || dup2(pair[0], number) < 0)
		return 4;
	close(pair[0]);
	close(host->socket);
	for (int i = 0; i < 1000 && count_threads() > threads; i++)
		host_sleep(5);
	if (count_threads() > threads)
		return 5;
	return is_ours(number) ? 0 : 1;
}

static void test_a_number_that_has_become_the_program_s_is_left_alone(void **state)
{
	for (int i = 0; i < 6; i++) {
		pid_t child = fork();
		int status;

		if (!child)
			_exit(number_is_another_s(i % 2));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

/* ---- ends ---- */

static int input;
static bool waiting;

static int waits(int value)
{
	char byte;

	__atomic_store_n(&waiting, true, __ATOMIC_RELEASE);
	return read(input, &byte, 1) == 1 ? value : -1;
}

static void *call_once(void *thunk)
{
	assert_int_equal(((function)thunk)(5), 5);
	return NULL;
}

static pthread_t call_that_waits(function thunk, int pipes[2])
{
	pthread_t thread;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	input = pipes[0];
	waiting = false;
	pthread_create(&thread, NULL, call_once, (void *)thunk);
	while (!__atomic_load_n(&waiting, __ATOMIC_ACQUIRE))
		host_sleep(1);
	return thread;
}

static void end_wait(pthread_t thread, int pipes[2])
{
	assert_int_equal(write(pipes[1], "x", 1), 1);
	pthread_join(thread, NULL);
	close(pipes[0]);
	close(pipes[1]);
}

static void test_calls_that_are_open_when_cuscope_goes_are_unfinished(void **state)
{
	for (int dies = 0; dies < 2; dies++) {
		struct host *host = begin();
		int pipes[2];
		pthread_t thread = call_that_waits(divert(host, 0, waits, AGENT_SLOT_CALL), pipes);

		if (dies) {
			close(host->socket);
			host->socket = -1;
		} else {
			host_tell(host, AGENT_STOP);
		}
		assert_int_equal(host_wait(host, AGENT_OFF), AGENT_OFF);
		assert_int_equal(calls_told(host), 1);
		assert_int_equal(call_at(host, 0)->head.flags, WIRE_UNFINISHED);
		end_wait(thread, pipes); /* through a thunk of nobody's */
		assert_int_equal(calls_told(host), 1);
		host_free(host);
	}
}

/* A call in another thread; then the exit. What the program calls in its last handlers is told. */
static function at_end;

static void call_at_end(void)
{
	at_end(77);
}

static void exit_within(struct host *host)
{
	int pipes[2];
	function thunk;

	atexit(call_at_end);
	assert_int_equal(cuscope_agent_enter(host->theirs), 0);
	host_hello(host, 0);
	assert_int_equal(host_wait(host, AGENT_RUNNING), AGENT_RUNNING);
	thunk = divert(host, 0, waits, AGENT_SLOT_CALL);
	at_end = divert(host, 1, nothing, AGENT_SLOT_CALL);
	call_that_waits(thunk, pipes);
	exit(0);
}

static void test_at_exit_open_calls_are_told_and_later_ones_as_well(void **state)
{
	struct host *host;
	uint32_t lanes = 0;
	int status;
	pid_t child;

	NOT_UNDER_TSAN();
	host = host_new(KIB(256));
	host->probes = AGENT_PROBES;
	child = fork();
	if (!child)
		exit_within(host);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(calls_told(host), 2);
	/* which of the two handlers comes first depends on whether there was an agent before */
	for (size_t i = 0; i < 2; i++) {
		const struct agent_probed *call = call_at(host, i);

		lanes |= 1u << slot_of(host, call);
		assert_int_equal(call->head.flags, slot_of(host, call) ? 0 : WIRE_UNFINISHED);
	}
	assert_int_equal(lanes, 3);
	close(host->theirs);
	host_free(host);
}

static void test_a_child_passes_on_and_can_have_a_session(void **state)
{
	struct host *host, *own;
	function thunk;
	int status;
	pid_t child;

	NOT_UNDER_TSAN();
	host = begin();
	own = host_new(KIB(256));
	thunk = divert(host, 0, twice, AGENT_SLOT_CALL);
	child = fork();
	if (!child) {
		bool right = thunk(4) == 8;

		own->probes = AGENT_PROBES;
		assert_int_equal(cuscope_agent_enter(own->theirs), 0);
		host_hello(own, 0);
		assert_int_equal(host_wait(own, AGENT_RUNNING), AGENT_RUNNING);
		right &= thunk(4) == 8 && calls_told(own) == 0;
		right &= divert(own, 0, twice, AGENT_SLOT_CALL)(5) == 10 && calls_told(own) == 1;
		_exit(right ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(calls_told(host), 0);
	close(own->theirs);
	host_free(own);
	end(host);
}

/* ---- a thread that stays in the recording ---- */

static bool stuck_goes_on, stuck_called;

static void *be_stuck(void *thunk)
{
	struct probe_thread *thread;

	((function)thunk)(1);
	thread = probe_thread_own();
	while (__atomic_exchange_n(&thread->busy, 1, __ATOMIC_SEQ_CST))
		continue;
	__atomic_store_n(&stuck_called, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&stuck_goes_on, __ATOMIC_ACQUIRE))
		host_sleep(1);
	probe_thread_give(thread);
	return NULL;
}

static void test_a_thread_that_stays_keeps_its_ring_and_no_other(void **state)
{
	struct host *host = begin();
	function thunk = divert(host, 0, twice, AGENT_SLOT_CALL), next;
	pthread_t thread;

	stuck_goes_on = stuck_called = false;
	pthread_create(&thread, NULL, be_stuck, (void *)thunk);
	while (!__atomic_load_n(&stuck_called, __ATOMIC_ACQUIRE))
		host_sleep(1);
	host_tell(host, AGENT_STOP);
	assert_int_equal(host_wait(host, AGENT_OFF), AGENT_OFF);
	assert_int_equal(host->shared->probe_lost[AGENT_PROBE_STUCK], 1);
	host_sleep(50);
	assert_int_equal(count_mappings("memfd:ring"), 2 + 3); /* ours, and what is kept */
	host_free(host);
	host = begin();
	next = divert(host, 0, nothing, AGENT_SLOT_CALL);
	assert_int_equal(next(3), 3);
	__atomic_store_n(&stuck_goes_on, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(next(4), 4);
	assert_int_equal(calls_told(host), 2);
	host_tell(host, AGENT_STOP);
	assert_int_equal(host_wait(host, AGENT_OFF), AGENT_OFF);
	assert_int_equal(host->shared->probe_lost[AGENT_PROBE_STUCK], 0); /* of this session */
	host_free(host);
}

/* ---- sessions under load ---- */

#define CALLERS 3

static function current; /* the newest thunk */
static bool stop_calling;
static uint64_t wrong;

static void *keep_calling(void *data)
{
	for (int i = 0; !__atomic_load_n(&stop_calling, __ATOMIC_RELAXED); i++) {
		function thunk = __atomic_load_n(&current, __ATOMIC_ACQUIRE);

		if (thunk(i) != i)
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		if (i % 64 == 0)
			host_sleep(1); /* others want the processors, too */
	}
	return NULL;
}

/* Requests whose answers nobody waits for. */
static void ask_without_waiting(struct host *host, unsigned *seed)
{
	struct agent_message message = { .abi = AGENT_ABI };

	for (unsigned n = 1 + rand_r(seed) % 8; n; n--) {
		message.type = AGENT_PROBES_AREA + rand_r(seed) % 3;
		message.area.number = ++host->asked;
		message.area.bytes = 1; /* or as many slots */
		message.area.near = (uint64_t)nothing;
		send(host->socket, &message, sizeof(message), MSG_NOSIGNAL);
	}
}

/* One that ends at any moment: before it was told anything, while it is, in the midst of calls. */
static size_t one_round(unsigned *seed)
{
	struct host *host = begin_with(KIB(64), 0, AGENT_PROBES_TICKS);
	unsigned how = rand_r(seed) % 8;
	size_t told;

	if (how == 0) {
		ask_without_waiting(host, seed);
		close(host->socket);
		host->socket = -1;
	} else {
		__atomic_store_n(&current, divert(host, 0, nothing, AGENT_SLOT_CALL),
		                 __ATOMIC_RELEASE);
		if (how > 2)
			host_sleep(rand_r(seed) % 4);
		if (how > 5)
			ask_without_waiting(host, seed);
		if (how % 2) {
			host_tell(host, AGENT_STOP);
		} else {
			close(host->socket);
			host->socket = -1;
		}
	}
	assert_int_equal(host_wait(host, AGENT_OFF), AGENT_OFF);
	told = calls_told(host);
	for (size_t i = 0; i < told; i++) {
		assert_int_equal(slot_of(host, call_at(host, i)), 0);
		assert_true(call_at(host, i)->head.flags == WIRE_UNFINISHED ||
		            (call_at(host, i)->head.flags == 0 &&
		             call_at(host, i)->result == (int)call_at(host, i)->word[WIRE_AT_REG]));
		if (i > 200)
			break; /* one is looked for from the begin each time */
	}
	host_free(host);
	return told;
}

static void test_a_thousand_sessions_under_load(void **state)
{
	const char *rounds = getenv("TEST_ROUNDS");
	int n = rounds ? atoi(rounds) : ROUNDS;
	pthread_t callers[CALLERS];
	size_t mappings = 0, told = 0;
	unsigned seed = 7;

	current = nothing;
	stop_calling = false;
	wrong = 0;
	for (int i = 0; i < CALLERS; i++)
		pthread_create(&callers[i], NULL, keep_calling, NULL);
	for (int i = 0; i < n; i++) {
		told += one_round(&seed);
		if (i == n / 10)
			mappings = count_mappings("");
	}
	__atomic_store_n(&stop_calling, true, __ATOMIC_RELAXED);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i], NULL);
	assert_int_equal(wrong, 0);
	assert_true(told > (size_t)n);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they have many */
	/* of code there is one for 64 sessions of this kind; those of malloc come and go */
	assert_true(count_mappings("") < mappings + (size_t)n / 32 + 16);
#else
	assert_true(mappings > 0);
#endif
}

/* What a slot records is of one session, however many threads are on their way through it. */
static void test_one_slot_in_all_sessions_under_load(void **state)
{
	struct agent_slot slot = { .cookie = plain(), .does = AGENT_SLOT_CALL };
	const char *rounds = getenv("TEST_ROUNDS");
	int n = rounds ? atoi(rounds) : ROUNDS;
	pthread_t callers[CALLERS];
	size_t told = 0;

	stop_calling = false;
	wrong = 0;
	for (int round = 0; round < n / 5; round++) {
		struct host *host = begin_with(KIB(64), 0, AGENT_PROBES_TICKS);
		uint32_t words = WIRE_AT_STACK - (uint32_t)round % 4;

		if (!round) {
			slot.slot = fresh(host, 0);
			slot.original = area_of(host, 1, nothing);
			current = (function)thunk_of(host, 0);
		}
		slot.cookie &= ~cookie_with_words(~0ull);
		slot.cookie |= cookie_with_words(words);
		host_sleep(round % 2);
		assert_int_equal(set_one(host, slot), 0);
		for (int i = 0; !round && i < CALLERS; i++)
			pthread_create(&callers[i], NULL, keep_calling, NULL);
		host_sleep(1 + round % 3);
		host_tell(host, AGENT_STOP);
		assert_int_equal(host_wait(host, AGENT_OFF), AGENT_OFF);
		for (size_t i = calls_told(host); i--; told++) {
			const struct agent_probed *call = call_at(host, i);

			assert_int_equal(call->head.lane, slot.slot);
			assert_int_equal(call->head.bytes, sizeof(*call) + words * 8);
			assert_int_equal(call->head.flags & WIRE_NO_RETURN, 0);
		}
		host_free(host);
	}
	__atomic_store_n(&stop_calling, true, __ATOMIC_RELAXED);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(callers[i], NULL);
	assert_int_equal(wrong, 0);
	assert_true(told > (size_t)n / 5);
}

/* ---- beside CUPTI ---- */

static void test_windows_are_none_of_the_probes(void **state)
{
	struct host *host;
	function thunk;

	host = begin_with(KIB(256), AGENT_WANT_KERNELS, AGENT_PROBES_TICKS);
	if (host_wait(host, AGENT_RUNNING) != AGENT_RUNNING)
		fail_msg("failure %u, code %d, %s", host->shared->failure, host->shared->code,
		         host->shared->text);
	thunk = divert(host, 0, twice, AGENT_SLOT_CALL);
	assert_int_equal(thunk(1), 2);
	host_tell(host, AGENT_PAUSE);
	assert_int_equal(host_wait(host, AGENT_PAUSED), AGENT_PAUSED);
	assert_int_equal(thunk(2), 4);
	assert_int_equal(ask_turn(host, 0, 1, AGENT_SLOT_ENTRY), 0);
	host_tell(host, AGENT_RUN);
	assert_int_equal(host_wait(host, AGENT_RUNNING), AGENT_RUNNING);
	assert_int_equal(thunk(3), 6);
	assert_int_equal(calls_told(host), 3);
	end(host);
}

static void test_without_a_cupti_that_works_probes_go_on(void **state)
{
	const char *torch = getenv("TEST_TORCH");
	struct host *host;
	function thunk;

	if (torch)
		assert_non_null(dlopen(torch, RTLD_NOW));
	host = begin_with(KIB(256), AGENT_WANT_KERNELS, AGENT_PROBES_TICKS);
	assert_int_equal(host_wait(host, AGENT_PROBES_ONLY), AGENT_PROBES_ONLY);
	assert_int_equal(host->shared->failure, AGENT_CUPTI_BUSY);
	if (getenv("SIMCUPTI_OTHER")) /* what CUPTI says, where it says who it is */
		assert_string_equal(host->shared->text, "CUPTI for other tool");
	else if (torch) /* or else by what is loaded */
		assert_string_equal(host->shared->text, "perhaps torch.profiler");
	else
		assert_string_equal(host->shared->text, "");
	thunk = divert(host, 0, twice, AGENT_SLOT_CALL);
	assert_int_equal(thunk(1), 2);
	host_tell(host, AGENT_PAUSE);
	host_sleep(20);
	assert_int_equal(host->shared->state, AGENT_PROBES_ONLY);
	assert_int_equal(thunk(1), 2);
	assert_int_equal(calls_told(host), 2);
	host_tell(host, AGENT_STOP);
	assert_int_equal(host_wait(host, AGENT_FAILED), AGENT_FAILED);
	host_free(host);
}

static int begin_work(void **state)
{
	work_begin();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_brings_the_socket_makes_no_room_for_high_numbers),
		cmocka_unit_test(test_a_number_that_has_become_the_program_s_is_left_alone),
		cmocka_unit_test(test_calls_that_are_open_when_cuscope_goes_are_unfinished),
		cmocka_unit_test(test_at_exit_open_calls_are_told_and_later_ones_as_well),
		cmocka_unit_test(test_a_child_passes_on_and_can_have_a_session),
		cmocka_unit_test(test_a_thread_that_stays_keeps_its_ring_and_no_other),
		cmocka_unit_test(test_a_thousand_sessions_under_load),
		cmocka_unit_test(test_one_slot_in_all_sessions_under_load),
	};
	const struct CMUnitTest beside_cupti[] = {
		cmocka_unit_test(test_windows_are_none_of_the_probes),
	};
	const struct CMUnitTest beside_another[] = {
		cmocka_unit_test(test_without_a_cupti_that_works_probes_go_on),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (getenv("SIMCUPTI_BUSY") || getenv("SIMCUPTI_OTHER"))
		return cmocka_run_group_tests_name("agent: sessions of probes, another profiler",
		                                   beside_another, begin_work, NULL);
	if (getenv("TEST_WITH_CUPTI"))
		return cmocka_run_group_tests_name("agent: sessions of probes, and CUPTI",
		                                   beside_cupti, begin_work, NULL);
	return cmocka_run_group_tests_name("agent: sessions of probes", tests, NULL, NULL);
}
