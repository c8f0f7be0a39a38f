// SPDX-License-Identifier: MIT
/* Agents of processes that begin, run, fail and end, played by this test. */
#include "agents_scene.h"
#include "fake_library.h"
#include "probe/person.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

/* ---- coming in ------------------------------------------------------------------------------- */

static void test_hello_says_what_is_wanted(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_arrive(scene, &agent);
	assert_int_equal(agent.hello.abi, AGENT_ABI);
	assert_int_equal(agent.hello.kinds, AGENT_WANT_KERNELS | AGENT_WANT_COPIES);
	assert_int_equal(agent.hello.cupti, 0);
	assert_true(agent.hello.flush_ms > 0);
	assert_int_equal(agent.bytes, 65536);
	assert_int_equal(agent.cupti, -1);
	fake_agent_die(&agent);
}

static void test_a_process_that_is_not_wanted_gets_nothing(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	int socket;

	scene_open(scene);
	scene->unwanted = true;
	socket = scene_connect(scene);
	scene_turn(scene);
	assert_false(fake_agent_begin(&agent, socket));
	assert_int_equal(fake_agent_order(&agent), -1);
	assert_int_equal(scene->states, 0);
	close(socket);
}

static void test_each_state_is_told_once(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_arrive(scene, &agent);
	assert_int_equal(scene->states, 0);
	fake_agent_say(&agent, AGENT_STARTING);
	scene_turn(scene);
	scene_turn(scene);
	assert_int_equal(scene->states, 1);
	assert_int_equal(scene->last.state, AGENT_STARTING);
	assert_int_equal(scene->last.pid, getpid());
	fake_agent_say(&agent, AGENT_RUNNING);
	fake_agent_say(&agent, AGENT_RUNNING);
	scene_turn(scene);
	scene_turn(scene);
	assert_int_equal(scene->states, 2);
	assert_false(scene->has_why);
	fake_agent_die(&agent);
}

static void test_a_state_says_what_the_agent_found(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_arrive(scene, &agent);
	agent.shared->cupti_version = 130001;
	agent.shared->driver_version = 13000;
	agent.shared->active_since_ns = 5;
	agent.shared->clock_error_ns = 9;
	agent.shared->leftover = AGENT_LEFT_CUPTI;
	agent.shared->nodes_instead = 1;
	strcpy(agent.shared->cupti_path, "/opt/\033[31mcupti");
	fake_agent_say(&agent, AGENT_RUNNING);
	scene_turn(scene);
	assert_int_equal(scene->last.cupti_version, 130001);
	assert_int_equal(scene->last.driver_version, 13000);
	assert_int_equal(scene->last.active_since_ns, 5);
	assert_int_equal(scene->last.clock_error_ns, 9);
	assert_int_equal(scene->last.leftover, AGENT_LEFT_CUPTI);
	assert_true(scene->last.nodes_instead);
	assert_string_equal(scene->cupti, "/opt/\\x1b[31mcupti");
	assert_why(scene, "node by node");
	fake_agent_die(&agent);
}

static void test_the_descriptor_tells_when_there_is_something_to_do(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	struct pollfd poll_fd = { .events = POLLIN };

	scene_arrive(scene, &agent);
	scene_turn(scene); /* a bell is ready once when it is new */
	poll_fd.fd = agents_fd(scene->agents);
	assert_int_equal(poll(&poll_fd, 1, 0), 0);
	fake_agent_say(&agent, AGENT_RUNNING);
	assert_int_equal(poll(&poll_fd, 1, 0), 1);
	scene_turn(scene);
	assert_int_equal(poll(&poll_fd, 1, 0), 0);
	fake_agent_die(&agent);
	assert_int_equal(poll(&poll_fd, 1, 0), 1);
}

static void test_a_running_process_is_entered(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_open(scene);
	agents_enter(scene->agents, 4242);
	agents_enter(scene->agents, 4242);
	assert_int_equal(injection.begun, 1);
	scene_turn(scene);
	assert_true(fake_agent_begin(&agent, injection.target));
	fake_agent_say(&agent, AGENT_RUNNING);
	scene_turn(scene);
	assert_int_equal(scene->last.pid, 4242);
	assert_int_equal(scene->last.stopped_ns, 7);
	fake_agent_die(&agent);
}

static void test_why_a_process_was_not_entered_is_told(void **state)
{
	struct scene *scene = *state;

	scene_open(scene);
	injection.fail = "it is a static program";
	agents_enter(scene->agents, 4242);
	scene_turn(scene);
	assert_failed(scene, "process 4242: it is a static program");
}

static void test_why_entering_was_not_begun_is_told(void **state)
{
	struct scene *scene = *state;

	scene_open(scene);
	injection.refuse = "no process can be made";
	agents_enter(scene->agents, 4242);
	assert_failed(scene, "process 4242: no process can be made");
	injection.refuse = NULL;
	agents_enter(scene->agents, 4242); /* may be tried again */
	assert_int_equal(injection.begun, 1);
}

static void test_few_processes_are_entered_at_once(void **state)
{
	struct scene *scene = *state;
	int begun;

	scene_open(scene);
	injection.pending = true;
	for (int pid = 5000; pid < 5100; pid++)
		agents_enter(scene->agents, pid);
	scene_turn(scene);
	begun = injection.begun;
	assert_in_range(begun, 2, 20);
	agents_gone(scene->agents, 5000); /* being entered: another one's turn */
	agents_gone(scene->agents, 5099); /* waiting: nobody's */
	scene_turn(scene);
	assert_int_equal(injection.begun, begun + 1);
}

static void test_those_that_hang_keep_nobody_out(void **state)
{
	struct scene *scene = *state;
	int begun;

	scene_open(scene);
	injection.pending = true;
	for (int pid = 5000; pid < 5100; pid++)
		agents_enter(scene->agents, pid);
	scene_turn(scene);
	begun = injection.begun;
	scene_pass(scene, 19 * SECOND);
	assert_int_equal(injection.begun, begun);
	scene_pass(scene, 2 * SECOND);
	assert_failed(scene, "attaching to it hangs in the kernel");
	scene_turn(scene);
	assert_int_equal(injection.begun, 2 * begun);
}

static void test_all_are_entered_in_the_end(void **state)
{
	struct scene *scene = *state;

	scene_open(scene);
	injection.fail = "no";
	for (int pid = 5000; pid < 5100; pid++)
		agents_enter(scene->agents, pid);
	for (int i = 0; i < 100; i++)
		scene_turn(scene);
	assert_int_equal(injection.begun, 100);
	assert_int_equal(scene->states, 100);
}

/* ---- records --------------------------------------------------------------------------------- */

static void test_records_come_with_each_turn(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	for (int i = 0; i < 10; i++) {
		for (int k = 0; k < 1000; k++)
			assert_true(fake_agent_kernel(&agent, 1));
		scene_turn(scene);
		assert_int_equal(scene->records, 1000 * (i + 1));
	}
	fake_agent_die(&agent);
}

static void test_a_broken_ring_ends_its_agent_only(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent, other;

	scene_runs(scene, &agent);
	agents_enter(scene->agents, 4242);
	scene_turn(scene);
	assert_true(fake_agent_begin(&other, injection.target));
	fake_agent_kernel(&other, 1);
	agent.shared->head = 12345;
	scene_turn(scene);
	assert_failed(scene, "something has overwritten it");
	assert_int_equal(scene->last.pid, getpid());
	assert_int_equal(fake_agent_order(&agent), -1);
	assert_int_equal(scene->records, 1);
	assert_int_equal(fake_agent_order(&other), 0);
	fake_agent_die(&agent);
	fake_agent_die(&other);
}

static void test_a_record_that_is_never_ended_ends_the_agent(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	fake_agent_reserve(&agent, 64);
	fake_agent_kernel(&agent, 1);
	scene_turn(scene);
	scene_pass(scene, 5 * SECOND);
	assert_int_equal(scene->last.state, AGENT_RUNNING);
	scene_pass(scene, 6 * SECOND);
	assert_failed(scene, "did not end it");
	fake_agent_die(&agent);
}

static void test_losses_are_summed_over_all_that_ever_were(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	struct agents_lost lost;

	for (int i = 0; i < 3; i++) {
		scene_runs(scene, &agent);
		agent.shared->lost_ring = 5;
		agent.shared->lost_buffers = 6;
		agent.shared->lost_times = 7;
		agent.shared->lost_ranges = 8;
		if (i < 2)
			fake_agent_die(&agent);
		scene_turn(scene);
	}
	agents_lost(scene->agents, &lost);
	assert_int_equal(lost.ring, 15);
	assert_int_equal(lost.buffers, 18);
	assert_int_equal(lost.times, 21);
	assert_int_equal(lost.ranges, 24);
	fake_agent_die(&agent);
}

/* Nor does one process make the clocks of all wrong by years. */
static void test_a_number_that_cannot_be_hides_no_losses(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	struct agents_lost lost;

	scene_runs(scene, &agent);
	agent.shared->lost_ring = 5;
	agent.shared->probe_lost[AGENT_PROBE_TEXT] = 6;
	scene_turn(scene);
	fake_agent_die(&agent);
	scene_turn(scene);
	scene_runs(scene, &agent);
	agent.shared->lost_ring = UINT64_MAX - 4;
	agent.shared->lost_buffers = agent.shared->lost_times = UINT64_MAX;
	agent.shared->lost_ranges = UINT64_MAX;
	agent.shared->probe_lost[AGENT_PROBE_TEXT] = UINT64_MAX - 5;
	agent.shared->clock_error_ns = UINT64_MAX;
	scene_turn(scene);
	agents_lost(scene->agents, &lost);
	assert_int_equal(lost.ring, 5 + AGENT_LOST_MOST);
	assert_int_equal(lost.buffers, AGENT_LOST_MOST);
	assert_int_equal(lost.times, AGENT_LOST_MOST);
	assert_int_equal(lost.ranges, AGENT_LOST_MOST);
	assert_int_equal(lost.probes[AGENT_PROBE_TEXT], 6 + AGENT_LOST_MOST);
	fake_agent_die(&agent);
	scene_turn(scene);
	assert_int_equal(scene->last.clock_error_ns, AGENT_CLOCK_ERROR_MOST_NS);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void test_the_rest_is_read_when_the_socket_closes(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	struct timespec now;
	uint64_t died_ns;

	scene_runs(scene, &agent);
	fake_agent_kernel(&agent, 1);
	fake_agent_kernel(&agent, 2);
	clock_gettime(CLOCK_MONOTONIC, &now);
	died_ns = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
	fake_agent_die(&agent);
	scene_turn(scene);
	assert_int_equal(scene->records, 2);
	assert_int_equal(scene->last.state, AGENT_OFF);
	assert_int_equal(scene->last.active_since_ns, 1000 * SECOND);
	assert_true(scene->last.active_until_ns >=
	            died_ns); /* not the turn's time, which is before */
}

static void test_the_rest_is_read_when_the_process_is_gone(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	fake_agent_kernel(&agent, 1);
	agents_gone(scene->agents, getpid());
	assert_int_equal(scene->records, 1);
	assert_int_equal(scene->last.state, AGENT_OFF);
	agents_gone(scene->agents, getpid());
	scene_turn(scene);
	assert_int_equal(scene->states, 2);
	fake_agent_die(&agent);
}

static void test_records_before_its_end_come_before_the_news_of_it(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	fake_agent_kernel(&agent, 1);
	agent.shared->active_until_ns = 77;
	fake_agent_say(&agent, AGENT_OFF);
	scene_turn(scene);
	assert_int_equal(scene->records, 1);
	assert_int_equal(scene->last.state, AGENT_OFF);
	assert_int_equal(scene->last.active_until_ns, 77);
	assert_int_equal(fake_agent_order(&agent), -1);
	fake_agent_die(&agent);
}

/* Whatever it had done by then, nothing hangs, and the next one is as welcome. */
static void test_an_agent_may_die_at_any_moment(void **state)
{
	struct scene *scene = *state;

	scene_open(scene);
	for (int moment = 0; moment < 7; moment++) {
		struct fake_agent agent = { .socket = scene_connect(scene),
			                    .memfd = -1,
			                    .cupti = -1 };

		if (moment > 0)
			scene_turn(scene);
		if (moment > 1)
			assert_true(fake_agent_begin(&agent, agent.socket));
		if (moment > 2)
			fake_agent_say(&agent, AGENT_STARTING);
		if (moment > 3)
			scene_turn(scene);
		if (moment > 4)
			fake_agent_say(&agent, AGENT_RUNNING);
		if (moment > 5)
			fake_agent_reserve(&agent, 64);
		fake_agent_die(&agent);
		scene_turn(scene);
		scene_turn(scene);
		if (moment < 3)
			assert_failed(scene, "left before it had begun");
		else
			assert_int_equal(scene->last.state, AGENT_OFF);
	}
	agents_stop(scene->agents);
	assert_true(agents_stopped(scene->agents));
}

/* As a process that was just forked to enter another one. */
static pid_t fork_with_copies(const struct fake_agent *agent)
{
	pid_t child = fork();

	if (child)
		return child;
	close(agent->socket);
	pause();
	_exit(0);
}

static void test_copies_of_its_socket_do_not_bring_it_back(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	struct pollfd ready = { .events = POLLIN };
	pid_t child;
	int told;

	scene_runs(scene, &agent);
	child = fork_with_copies(&agent);
	fake_agent_die(&agent);
	for (int i = 0; i < 1000 && scene->last.state != AGENT_OFF; i++) {
		usleep(1000);
		scene_turn(scene);
	}
	ready.fd = agents_fd(scene->agents);
	told = poll(&ready, 1, 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(scene->last.state, AGENT_OFF);
	assert_int_equal(told, 0);
}

static void test_nothing_is_told_of_a_process_that_ended_before_it_was_measured(void **state)
{
	struct scene *scene = *state;

	scene_open(scene);
	scene_variable(scene, AGENT_ENV);
	scene->child = fork();
	if (!scene->child) {
		scene_connect(scene);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)scene->child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT),
	                 0); /* a zombie */
	scene_turn(scene);
	scene_turn(scene);
	assert_int_equal(scene->states, 0);
	waitpid(scene->child, NULL, 0);
}

static void test_one_that_says_nothing_is_given_up(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_arrive(scene, &agent);
	scene_pass(scene, 9 * SECOND);
	assert_int_equal(scene->states, 0);
	scene_pass(scene, 2 * SECOND);
	assert_failed(scene, "did not begin within 10 s");
	assert_int_equal(fake_agent_order(&agent), -1);
	fake_agent_die(&agent);
}

static void test_another_version_is_refused(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_arrive(scene, &agent);
	agent.shared->abi = AGENT_ABI + 1;
	agent.shared->magic = AGENT_MAGIC;
	scene_turn(scene);
	assert_failed(scene, "another version of cuscope");
	fake_agent_die(&agent);
}

static void test_who_comes_by_itself_can_send_no_descriptor(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	socklen_t length = sizeof(int);
	int asks;

	scene_arrive(scene, &agent);
	if (!getsockopt(agent.socket, SOL_SOCKET, SO_PASSRIGHTS, &asks, &length)) {
		assert_int_equal(fake_agent_send_descriptor(&agent, STDIN_FILENO), -1);
		assert_int_equal(errno, EPERM);
	} /* else the kernel is older than 6.16, and what is sent is never received */
	fake_agent_die(&agent);
}

/* Neither taken, with what comes along, nor in the way of what is told by memory. */
static void test_what_an_agent_sends_is_never_received(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	int pair[2], waits = 0;

	scene_open(scene);
	agents_enter(scene->agents, 4242);
	scene_turn(scene);
	assert_true(fake_agent_begin(&agent, injection.target));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(fake_agent_send_descriptor(&agent, pair[0]), 1);
	close(pair[0]);
	agent.shared->active_since_ns = scene->now_ns;
	fake_agent_say(&agent, AGENT_RUNNING);
	scene_turn(scene);
	assert_int_equal(scene->last.state, AGENT_RUNNING);
	assert_int_equal(ioctl(agent.socket, SIOCOUTQ, &waits), 0);
	assert_true(waits > 0);
	assert_int_equal(send(pair[1], "", 1, MSG_NOSIGNAL), 1); /* it is open still */
	close(pair[1]);
	fake_agent_die(&agent);
}

static void test_a_bell_that_is_rung_wakes_each_time(void **state)
{
	struct scene *scene = *state;
	struct pollfd wakes = { .events = POLLIN };
	struct fake_agent agent;

	scene_arrive(scene, &agent);
	scene_turn(scene);
	wakes.fd = agents_fd(scene->agents);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(poll(&wakes, 1, 0), 0);
		fake_agent_say(&agent, i % 2 ? AGENT_RUNNING : AGENT_STARTING);
		fake_agent_say(&agent, i % 2 ? AGENT_RUNNING : AGENT_STARTING);
		assert_int_equal(poll(&wakes, 1, 0), 1);
		scene_turn(scene);
		assert_int_equal(scene->last.state, i % 2 ? AGENT_RUNNING : AGENT_STARTING);
	}
	fake_agent_die(&agent);
}

static void test_an_agent_without_its_bell_is_heard_all_the_same(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_arrive(scene, &agent);
	close(agent.bell);
	agent.bell = -1;
	scene_turn(scene);
	fake_agent_say(&agent, AGENT_RUNNING);
	scene_turn(scene);
	assert_int_equal(scene->last.state, AGENT_RUNNING);
	fake_agent_die(&agent);
}

static void test_a_state_that_there_is_not_ends_it(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	agent.shared->state = 99;
	scene_turn(scene);
	assert_failed(scene, "state 99");
	fake_agent_die(&agent);
}

static void test_a_process_that_execs_gets_a_new_agent(void **state)
{
	struct scene *scene = *state;
	struct fake_agent before, after;

	scene_runs(scene, &before);
	fake_agent_kernel(&before, 1);
	scene_arrive(scene, &after); /* before the end of the other one was seen */
	assert_int_equal(scene->records, 1);
	assert_int_equal(scene->last.state, AGENT_OFF);
	assert_int_equal(fake_agent_order(&before), -1);
	fake_agent_die(&before);
	fake_agent_say(&after, AGENT_RUNNING);
	scene_turn(scene);
	assert_int_equal(scene->last.state, AGENT_RUNNING);
	fake_agent_die(&after);
}

/* Of thousands of agents one is turned: programs start others a thousand times a second. */
static void test_an_exec_turns_the_agent_of_its_process_alone(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	fake_agent_kernel(&agent, 1);
	agents_turn_of(scene->agents, getpid() + 1, scene->now_ns);
	assert_int_equal(scene->records, 0);
	agents_turn_of(scene->agents, getpid(), scene->now_ns);
	assert_int_equal(scene->records, 1);
	fake_agent_die(&agent); /* its end is heard of all the same */
	agents_turn_of(scene->agents, getpid(), scene->now_ns);
	assert_int_equal(scene->last.state, AGENT_OFF);
}

/* One that writes as fast as it is read would have twice its time. */
static void test_an_exec_turns_an_agent_that_rings_once(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;

	scene_runs(scene, &agent);
	fake_agent_kernel(&agent, 1);
	scene->writes_on = &agent;
	fake_agent_say(&agent, AGENT_RUNNING);
	agents_turn_of(scene->agents, getpid(), scene->now_ns);
	assert_int_equal(scene->records, 1);
	scene->writes_on = NULL;
	fake_agent_die(&agent);
}

static size_t open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

static void test_a_thousand_may_come_and_go(void **state)
{
	struct scene *scene = *state;
	struct fake_agent agent;
	size_t files;

	scene_runs(scene, &agent);
	fake_agent_die(&agent);
	scene_turn(scene);
	files = open_files();
	for (int i = 0; i < 1000; i++) {
		scene_runs(scene, &agent);
		fake_agent_kernel(&agent, 1);
		fake_agent_die(&agent);
		scene_turn(scene);
	}
	assert_int_equal(scene->records, 1000);
	assert_int_equal(open_files(), files);
}

static uint64_t person;

uint64_t __wrap_helper_person_of(pid_t pid);
uint64_t __wrap_helper_person_of(pid_t pid)
{
	return person;
}

static void test_a_user_with_many_processes_leaves_room_for_others(void **state)
{
	struct scene *scene = *state;
	struct agents_lost lost;

	scene_open(scene);
	injection.pending = true;
	person = 1000;
	for (pid_t pid = 5000; pid < 5000 + 4096; pid++)
		agents_enter(scene->agents, pid);
	assert_why(scene, "at most 1,024 processes of one user");
	person = 1001;
	for (pid_t pid = 10000; pid < 10000 + 1024; pid++)
		agents_enter(scene->agents, pid);
	agents_lost(scene->agents, &lost);
	assert_int_equal(lost.turned_away, 4096 - 1024 - 1);
	agents_gone(scene->agents, 5000); /* and its place is free again */
	person = 1000;
	agents_enter(scene->agents, 9999);
	agents_lost(scene->agents, &lost);
	assert_int_equal(lost.turned_away, 4096 - 1024 - 1);
	person = PERSON_ROOT;
}

static void test_of_too_many_processes_one_is_named_and_the_others_are_counted(void **state)
{
	struct scene *scene = *state;
	struct agents_lost lost;

	scene_open(scene);
	injection.pending = true;
	for (pid_t pid = 5000; pid < 5000 + 4096 + 10; pid++)
		agents_enter(scene->agents, pid);
	assert_why(scene, "at most 4,096 processes");
	agents_lost(scene->agents, &lost);
	assert_int_equal(lost.turned_away, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_hello_says_what_is_wanted),
		SCENE_TEST(test_a_user_with_many_processes_leaves_room_for_others),
		SCENE_TEST(test_a_process_that_is_not_wanted_gets_nothing),
		SCENE_TEST(test_each_state_is_told_once),
		SCENE_TEST(test_a_state_says_what_the_agent_found),
		SCENE_TEST(test_the_descriptor_tells_when_there_is_something_to_do),
		SCENE_TEST(test_a_running_process_is_entered),
		SCENE_TEST(test_why_a_process_was_not_entered_is_told),
		SCENE_TEST(test_why_entering_was_not_begun_is_told),
		SCENE_TEST(test_few_processes_are_entered_at_once),
		SCENE_TEST(test_those_that_hang_keep_nobody_out),
		SCENE_TEST(test_all_are_entered_in_the_end),
		SCENE_TEST(test_records_come_with_each_turn),
		SCENE_TEST(test_a_broken_ring_ends_its_agent_only),
		SCENE_TEST(test_a_record_that_is_never_ended_ends_the_agent),
		SCENE_TEST(test_losses_are_summed_over_all_that_ever_were),
		SCENE_TEST(test_a_number_that_cannot_be_hides_no_losses),
		SCENE_TEST(test_the_rest_is_read_when_the_socket_closes),
		SCENE_TEST(test_the_rest_is_read_when_the_process_is_gone),
		SCENE_TEST(test_records_before_its_end_come_before_the_news_of_it),
		SCENE_TEST(test_an_agent_may_die_at_any_moment),
		SCENE_TEST(test_copies_of_its_socket_do_not_bring_it_back),
		SCENE_TEST(test_nothing_is_told_of_a_process_that_ended_before_it_was_measured),
		SCENE_TEST(test_one_that_says_nothing_is_given_up),
		SCENE_TEST(test_another_version_is_refused),
		SCENE_TEST(test_who_comes_by_itself_can_send_no_descriptor),
		SCENE_TEST(test_what_an_agent_sends_is_never_received),
		SCENE_TEST(test_a_bell_that_is_rung_wakes_each_time),
		SCENE_TEST(test_an_agent_without_its_bell_is_heard_all_the_same),
		SCENE_TEST(test_a_state_that_there_is_not_ends_it),
		SCENE_TEST(test_a_process_that_execs_gets_a_new_agent),
		SCENE_TEST(test_an_exec_turns_the_agent_of_its_process_alone),
		SCENE_TEST(test_an_exec_turns_an_agent_that_rings_once),
		SCENE_TEST(test_a_thousand_may_come_and_go),
		SCENE_TEST(test_of_too_many_processes_one_is_named_and_the_others_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
