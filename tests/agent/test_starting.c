// SPDX-License-Identifier: MIT
/*
 * The library as CUDA loads it into a command that starts, and how such a process ends. The process
 * is this program again, with "target" and what it is to do; AGENT_SO is the library's path.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"
#include "work.h"

#define ALL      (AGENT_WANT_KERNELS | AGENT_WANT_COPIES | AGENT_WANT_SETS)
#define KIB(n)   ((uint64_t)(n) << 10)
#define LAUNCHES 50

/* ---- the process --------------------------------------------------------------------------- */

static void launch_some(void)
{
	for (uint32_t i = 1; i <= LAUNCHES; i++)
		work_launch(i);
}

static void do_exit(void)
{
	launch_some();
	work_sync();
	exit(0); /* at once: records are still where CUPTI has them */
}

static void do_fork(void)
{
	pid_t child;

	launch_some();
	child = fork();
	if (!child) {
		host_sleep(500); /* it lives longer than its parent */
		exit(0);         /* by way of all handlers */
	}
	work_sync();
	raise(SIGKILL);
}

static void do_fork_and_wait(void)
{
	int status = 0;

	launch_some();
	work_sync();
	if (!fork())
		exit(0);
	wait(&status);
	exit(status == 0 ? 0 : 7);
}

static void do_exec(void)
{
	launch_some();
	work_sync();
	host_sleep(100);
	execl("/bin/sleep", "sleep", "0.5", (char *)NULL);
	exit(8);
}

/* Runs after the agent's own part of the exit. */
static void call_late(void)
{
	work_launch(1);
	work_sync();
	host_sleep(20); /* the agent would say that it has left */
}

static void do_exit_later(void)
{
	launch_some();
	work_sync();
	host_sleep(250);
	exit(0);
}

static void do_loop(void)
{
	for (;;) {
		work_launch(1);
		work_sync();
	}
}

static void do_graph(void)
{
	work_graph(3);
	exit(0);
}

/* Another thread forks while CUDA begins. */
static void *fork_meanwhile(void *data)
{
	uint64_t begin;
	pid_t child;

	host_sleep(300);
	begin = host_now();
	child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	if (host_now() - begin > 1000000000)
		_exit(5);
	return NULL;
}

static pthread_t forking;

static void do_join(void)
{
	exit(pthread_join(forking, NULL));
}

static int on_signal; /* the thread's tid that ran the handler */

static void handle(int number)
{
	__atomic_store_n(&on_signal, gettid(), __ATOMIC_RELAXED);
}

static void do_signals(void)
{
	sigset_t set;

	signal(SIGUSR1, handle);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL); /* only a foreign thread could take it now */
	kill(getpid(), SIGUSR1);
	launch_some();
	work_sync();
	host_sleep(50);
	if (on_signal)
		exit(6);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	exit(on_signal == getpid() ? 0 : 7);
}

static const struct {
	const char *name;
	void (*act)(void);
} acts[] = {
	{ "exit", do_exit },
	{ "fork", do_fork },
	{ "fork-and-wait", do_fork_and_wait },
	{ "exec", do_exec },
	{ "loop", do_loop },
	{ "signals", do_signals },
	{ "graph", do_graph },
	{ "ticks", do_exit },
	{ "forks-early", do_join },
	{ "calls-late", do_exit_later },
};

/* A signal every two milliseconds, from before CUDA begins. */
static void tick(void)
{
	const struct itimerval timer = { { 0, 2000 }, { 0, 2000 } };

	signal(SIGALRM, handle);
	setitimer(ITIMER_REAL, &timer, NULL);
}

int cuscope_agent_enter(int socket);

/* Before the agent's thread has begun to run. */
static int fork_at_once(void)
{
	struct host *host = host_new(KIB(64));
	int status = -1;
	pid_t child;

	if (cuscope_agent_enter(host->theirs))
		return 1;
	child = fork();
	if (!child)
		_exit(fcntl(STDIN_FILENO, F_GETFD) < 0 ? 2 : 0);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

static int be_target(const char *what)
{
	if (strcmp(what, "entered") == 0)
		_exit(fork_at_once());
	if (strcmp(what, "ticks") == 0)
		tick();
	if (strcmp(what, "calls-late") == 0)
		atexit(call_late);
	if (strcmp(what, "forks-early") == 0)
		pthread_create(&forking, NULL, fork_meanwhile, NULL);
	work_begin();
	for (size_t i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
		if (strcmp(acts[i].name, what) == 0)
			acts[i].act();
	}
	return 9;
}

/* ---- starting it --------------------------------------------------------------------------- */

static pid_t start(const char *what)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setenv("CUDA_INJECTION64_PATH", getenv("AGENT_SO"), 1);
	execl("/proc/self/exe", "test_starting", "target", what, (char *)NULL);
	_exit(9);
}

/* A process that is measured. */
static struct host *start_wanting(uint32_t kinds, const char *what, pid_t *pid)
{
	struct host *host = host_new(KIB(256));
	int listening = host_listen();

	*pid = start(what);
	host_accept(host, listening);
	close(listening);
	host_hello(host, kinds);
	assert_int_equal(host_wait(host, AGENT_RUNNING), AGENT_RUNNING);
	return host;
}

static struct host *start_measured(const char *what, pid_t *pid)
{
	return start_wanting(ALL, what, pid);
}

static int status_of(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Whether our side of the socket sees that the other one is closed. */
static bool is_closed(struct host *host, int within_ms)
{
	struct agent_message message;
	uint64_t until = host_now() + (uint64_t)within_ms * 1000000;

	while (host_now() < until) {
		struct pollfd ready = { .fd = host->socket, .events = POLLIN };

		if (poll(&ready, 1, 10) > 0 &&
		    recv(host->socket, &message, sizeof(message), 0) == 0)
			return true;
	}
	return false;
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_the_first_and_the_last_kernel_are_seen(void **state)
{
	pid_t pid;
	struct host *host = start_measured("exit", &pid);
	const struct agent_kernel *kernel;

	assert_int_equal(status_of(pid), 0);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), LAUNCHES);
	assert_int_equal(host_count(host, AGENT_CALL), LAUNCHES);
	kernel = host_get(host, AGENT_KERNEL, 0);
	assert_int_equal(host->shapes[kernel->shape]->grid[0], 1);
	assert_non_null(host_call(host, kernel->correlation));
	host_free(host);
}

static void test_a_graph_as_a_whole_has_no_nodes(void **state)
{
	pid_t pid;
	struct host *host = start_wanting(AGENT_WANT_KERNELS | AGENT_WANT_GRAPHS, "graph", &pid);

	assert_int_equal(status_of(pid), 0);
	host_read(host);
	assert_int_equal(host->shared->nodes_instead, 0);
	assert_int_equal(host_count(host, AGENT_KERNEL), 0);
	assert_int_equal(host_count(host, AGENT_GRAPH), 3);
	host_free(host);
}

static void test_without_cuscope_nothing_happens(void **state)
{
	char nobody[64];

	snprintf(nobody, sizeof(nobody), "%d:cuscope-that-is-not-there", AGENT_ABI);
	unsetenv(AGENT_ENV);
	assert_int_equal(status_of(start("exit")), 0);
	setenv(AGENT_ENV, nobody, 1);
	assert_int_equal(status_of(start("exit")), 0);
	setenv(AGENT_ENV, "nonsense", 1);
	assert_int_equal(status_of(start("exit")), 0);
}

static void test_a_cuscope_that_says_nothing_is_waited_for_two_seconds(void **state)
{
	struct host *host = host_new(KIB(64));
	int listening = host_listen();
	uint64_t begin = host_now();
	pid_t pid = start("exit");

	host_accept(host, listening);
	close(listening);
	assert_int_equal(status_of(pid), 0);
	assert_in_range(host_now() - begin, 1900000000, 4000000000);
	host_free(host);
}

static void test_signals_do_not_end_the_wait_for_cuscope(void **state)
{
	struct host *host = host_new(KIB(256));
	int listening = host_listen();
	pid_t pid = start("ticks");

	host_accept(host, listening);
	close(listening);
	host_sleep(100);
	host_hello(host, ALL);
	assert_int_equal(host_wait(host, AGENT_RUNNING), AGENT_RUNNING);
	assert_int_equal(status_of(pid), 0);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), LAUNCHES);
	host_free(host);
}

static void test_nobody_who_forks_waits_for_cuscope(void **state)
{
	struct host *host = host_new(KIB(64));
	int listening = host_listen();
	pid_t pid = start("forks-early");

	host_accept(host, listening);
	close(listening);
	assert_int_equal(status_of(pid), 0);
	host_free(host);
}

/* As another user who has taken the name once cuscope is gone. */
static int listen_as_nobody(void)
{
	int listening;

	assert_int_equal(seteuid(65534), 0);
	listening = host_listen();
	assert_int_equal(seteuid(0), 0);
	return listening;
}

static void test_another_user_s_socket_is_not_believed(void **state)
{
	struct host *host;
	int listening;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	host = host_new(KIB(64));
	listening = listen_as_nobody();
	pid = start("exit");
	host_accept(host, listening);
	close(listening);
	assert_true(is_closed(host, 1000)); /* it did not wait for a hello */
	assert_int_equal(status_of(pid), 0);
	host_free(host);
}

static void test_the_library_that_was_named_before_is_initialized_too(void **state)
{
	struct host *host;
	pid_t pid;

	setenv(AGENT_ENV_NEXT, "/nowhere/libother.so", 1);
	host = start_measured("exit", &pid);
	unsetenv(AGENT_ENV_NEXT);
	assert_int_equal(status_of(pid), 0); /* that it is not there harms nobody */
	host_free(host);
}

static void test_a_chain_that_comes_back_to_the_library_ends(void **state)
{
	struct host *host;
	pid_t pid;

	setenv(AGENT_ENV_NEXT, getenv("AGENT_SO"), 1);
	host = start_measured("exit", &pid);
	unsetenv(AGENT_ENV_NEXT);
	assert_int_equal(status_of(pid), 0);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), LAUNCHES);
	host_free(host);
}

static void test_destructors_are_no_moment_to_leave(void **state)
{
	pid_t pid;
	struct host *host = start_measured("calls-late", &pid);

	host_sleep(100);
	host_tell(host, AGENT_STOP);
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(host->shared->state, AGENT_ENDING);
	host_free(host);
}

static void test_a_fork_at_once_keeps_the_child_s_descriptors(void **state)
{
	unsetenv(AGENT_ENV);
	for (int i = 0; i < 20; i++)
		assert_int_equal(status_of(start("entered")), 0);
}

static void test_a_forks_child_is_silent_and_holds_nothing(void **state)
{
	pid_t pid;
	struct host *host = start_measured("fork", &pid);

	status_of(pid);
	assert_true(is_closed(host, 300)); /* the child lives on */
	host_free(host);
}

static void test_a_forks_child_ends_as_it_would(void **state)
{
	pid_t pid;
	struct host *host = start_measured("fork-and-wait", &pid);

	assert_int_equal(status_of(pid), 0);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), LAUNCHES);
	host_free(host);
}

static void test_exec_closes_all(void **state)
{
	pid_t pid;
	struct host *host = start_measured("exec", &pid);

	assert_true(is_closed(host, 400)); /* while sleep runs */
	assert_int_equal(status_of(pid), 0);
	host_read(host);
	assert_int_equal(host_count(host, AGENT_KERNEL), LAUNCHES);
	host_free(host);
}

static void test_the_programs_signals_are_its_own(void **state)
{
	pid_t pid;
	struct host *host = start_measured("signals", &pid);

	assert_int_equal(status_of(pid), 0);
	host_free(host);
}

static void test_a_kill_at_any_moment_leaves_what_was_written(void **state)
{
	for (unsigned i = 0; i < 30; i++) {
		pid_t pid;
		struct host *host = start_measured("loop", &pid);

		host_sleep(i * 2);
		kill(pid, SIGKILL);
		status_of(pid);
		host_read(host);
		host_free(host);
	}
}

static void test_a_command_goes_on_when_cuscope_dies(void **state)
{
	pid_t pid;
	struct host *host = start_measured("loop", &pid);

	host_sleep(20);
	close(host->socket);
	host->socket = -1;
	assert_int_equal(host_wait(host, AGENT_OFF), AGENT_OFF);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	status_of(pid);
	host_free(host);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_and_the_last_kernel_are_seen),
		cmocka_unit_test(test_a_graph_as_a_whole_has_no_nodes),
		cmocka_unit_test(test_without_cuscope_nothing_happens),
		cmocka_unit_test(test_a_cuscope_that_says_nothing_is_waited_for_two_seconds),
		cmocka_unit_test(test_signals_do_not_end_the_wait_for_cuscope),
		cmocka_unit_test(test_nobody_who_forks_waits_for_cuscope),
		cmocka_unit_test(test_another_user_s_socket_is_not_believed),
		cmocka_unit_test(test_the_library_that_was_named_before_is_initialized_too),
		cmocka_unit_test(test_a_chain_that_comes_back_to_the_library_ends),
		cmocka_unit_test(test_destructors_are_no_moment_to_leave),
		cmocka_unit_test(test_a_fork_at_once_keeps_the_child_s_descriptors),
		cmocka_unit_test(test_a_forks_child_is_silent_and_holds_nothing),
		cmocka_unit_test(test_a_forks_child_ends_as_it_would),
		cmocka_unit_test(test_exec_closes_all),
		cmocka_unit_test(test_the_programs_signals_are_its_own),
		cmocka_unit_test(test_a_kill_at_any_moment_leaves_what_was_written),
		cmocka_unit_test(test_a_command_goes_on_when_cuscope_dies),
	};

	if (argc > 2 && strcmp(argv[1], "target") == 0)
		return be_target(argv[2]);
	return cmocka_run_group_tests_name("agent: starting", tests, NULL, NULL);
}
