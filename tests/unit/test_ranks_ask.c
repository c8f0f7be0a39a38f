// SPDX-License-Identifier: MIT
/* Whom an answer of RAS may speak of. */
#include "support.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/capture/ranks_ask.c"

#include "base/peer.h"
#include "base/rights.h"

static struct ras_rank ras_rank_of(int rank, int pid, const char *host, uint64_t hash)
{
	struct ras_rank one = { .hash = hash,
		                .host_hash = 1,
		                .pid_hash = 2,
		                .size = 2,
		                .rank = rank,
		                .pid = pid,
		                .counts = { 100 + (uint64_t)rank } };

	snprintf(one.host, sizeof(one.host), "%s", host);
	return one;
}

static void test_a_rank_elsewhere_with_the_same_pid_is_not_the_process_here(void **state)
{
	static struct known_rank processes[1] = {
		{ .pid = 4711, .own_pid = 55, .space = 9, .port = RAS_PORT }
	};
	struct ranks_feed feed = { .processes = processes, .n_processes = 1 };
	struct ras_rank ranks[2] = { ras_rank_of(0, 55, "10.0.0.1", 7),
		                     ras_rank_of(1, 55, "10.0.0.2", 7) };
	struct ras_answer answer = { .ranks = ranks, .n = 2 };

	ranks[1].elsewhere = true;

	struct heard heard;

	heard_begin(&heard, &feed, &processes[0], &answer);
	take_answer(&feed, &heard, true);
	assert_int_equal(feed.n_told, 2);
	assert_false(feed.told[0].own && feed.told[1].own);
	for (size_t i = 0; i < feed.n_processes; i++)
		free(processes[i].ranks);
	free(feed.told);
	quota_free(&feed.of_processes);
	quota_free(&feed.of_told);
}

static void test_an_answer_of_another_port_is_not_of_this_jobs_processes(void **state)
{
	static struct known_rank processes[2] = {
		{ .pid = 4711, .own_pid = 55, .space = 9, .port = 28028 },
		{ .pid = 5711, .own_pid = 55, .space = 9, .port = 28111 }
	};
	struct ranks_feed feed = { .processes = processes, .n_processes = 2 };
	struct ras_rank ranks[1] = { ras_rank_of(0, 55, "10.0.0.1", 8) };
	struct ras_answer answer = { .ranks = ranks, .n = 1 };
	struct heard heard;

	heard_begin(&heard, &feed, &processes[1], &answer);
	take_answer(&feed, &heard, true);
	assert_int_equal(feed.told[0].pid, 5711);
	for (size_t i = 0; i < feed.n_processes; i++)
		free(processes[i].ranks);
	free(feed.told);
	quota_free(&feed.of_processes);
	quota_free(&feed.of_told);
}

/* Without a thread that asks. */
static struct ranks_feed *feed_make(void)
{
	struct ranks_feed *feed = ranks_feed_new();

	pthread_mutex_lock(&feed->lock);
	feed->asks = 12;
	pthread_mutex_unlock(&feed->lock);
	return feed;
}

static struct known_rank *process_make(struct ranks_feed *feed, pid_t pid, uint64_t space,
                                       uint16_t port, uid_t user)
{
	feed->processes = vec_room(feed->processes, feed->n_processes, sizeof(*feed->processes));
	feed->processes[feed->n_processes] = (struct known_rank){ .pid = (uint32_t)pid,
		                                                  .own_pid = pid,
		                                                  .space = space,
		                                                  .port = port,
		                                                  .person = user,
		                                                  .user = user,
		                                                  .start_time = 1 };
	return &feed->processes[feed->n_processes++];
}

/* What listens there may be root's, and pass on what that user sends. */
static void test_a_port_that_a_process_named_speaks_of_its_user_alone(void **state)
{
	const struct ras_answer answer = { .user = 0 };
	struct ranks_feed *feed = feed_make();
	struct known_rank asked;
	struct heard heard;

	process_make(feed, 500, 99, 5000, 1002);
	asked = *process_make(feed, 600, 99, 5000, 1001);
	heard_begin(&heard, feed, &asked, &answer);
	assert_int_equal(heard.n, 1);
	assert_int_equal(heard.members[0]->pid, 600);
	asked = *process_make(feed, 700, 99, RAS_PORT, 1001);
	process_make(feed, 701, 99, RAS_PORT, 1002);
	heard_begin(&heard, feed, &asked, &answer);
	assert_int_equal(heard.n, 2); /* that one is RAS' own */
	ranks_feed_free(feed);
}

/* Whoever holds the usual port of the host may be somebody else. */
static void test_a_place_that_does_not_answer_hides_no_other(void **state)
{
	struct ranks_feed *feed = feed_make();
	struct known_rank at = { .person = 1002, .space = 99, .port = RAS_PORT }, other = at;

	waited_for(feed, &at, clock_now_ns(), -ETIMEDOUT);
	assert_true(is_silent(feed, &at));
	other.port = 5000;
	assert_false(is_silent(feed, &other));
	for (unsigned i = 1; i < SILENT_USER; i++) {
		at.space++;
		waited_for(feed, &at, clock_now_ns(), -ETIMEDOUT);
	}
	assert_true(is_silent(feed, &other)); /* it is enough */
	ranks_feed_free(feed);
}

static unsigned n_accepted;

static void *serve(void *data)
{
	const int listener = *(const int *)data;
	char text[256];
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		n_accepted++;
		if (read(fd, text, sizeof(text)) > 0 &&
		    write(fd, "SERVER PROTOCOL 2\n", 18) == 18 && read(fd, text, sizeof(text)) > 0)
			assert_int_equal(write(fd, "OK\nOK\nOK\n{\"nccl_version\": 1}", 27), 27);
		close(fd);
	}
	return NULL;
}

static void *ask_all(void *data)
{
	struct ranks_feed *feed = data;

	pthread_mutex_lock(&feed->lock);
	ranks_ask_all(feed, true);
	pthread_mutex_unlock(&feed->lock);
	return NULL;
}

static pid_t child_make(bool lives)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (lives)
			pause();
		_exit(0);
	}
	if (!lives)
		waitpid(pid, NULL, 0);
	return pid;
}

static int listen_as(uid_t user, struct sockaddr_in *at)
{
	socklen_t size = sizeof(*at);
	int listener;

	assert_int_equal(setfsuid(user), 0); /* whose sockets are */
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setfsuid(0);
	*at = (struct sockaddr_in){ .sin_family = AF_INET,
		                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(listener, (struct sockaddr *)at, sizeof(*at)), 0);
	assert_int_equal(listen(listener, 5), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)at, &size), 0);
	return listener;
}

/* What is behind it could take it for root's doing. */
static void test_a_named_port_of_another_user_gets_no_connection(void **state)
{
	struct ranks_feed *feed = feed_make();
	pid_t pids[2] = { child_make(true), child_make(true) };
	struct sockaddr_in at, from;
	socklen_t size = sizeof(from);
	struct stat st;
	pthread_t thread;
	uid_t user = 0;
	int listener = listen_as(1001, &at), diag = peer_open(), fd;

	assert_int_equal(stat("/proc/self/ns/net", &st), 0);
	pthread_mutex_lock(&feed->lock);
	process_make(feed, pids[0], st.st_ino, ntohs(at.sin_port), 1002);
	ranks_ask_all(feed, true);
	fcntl(listener, F_SETFL, O_NONBLOCK);
	assert_int_equal(accept(listener, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(feed->n_silent, 0);

	/* the other one's, that names it as well, does, and from nobody */
	process_make(feed, pids[1], st.st_ino, ntohs(at.sin_port), 1001);
	fcntl(listener, F_SETFL, 0);
	pthread_mutex_unlock(&feed->lock);
	assert_int_equal(pthread_create(&thread, NULL, ask_all, feed), 0);
	fd = accept(listener, (struct sockaddr *)&from, &size);
	assert_true(fd >= 0);
	assert_int_equal(peer_user(diag, fd, &user), 0);
	assert_int_equal(user, RIGHTS_NOBODY);
	close(fd);
	pthread_join(thread, NULL);
	close(diag);
	close(listener);
	for (size_t i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	ranks_feed_free(feed);
}

static void test_a_process_that_has_ended_keeps_nobody_from_being_asked(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	pid_t dead = child_make(false), living = child_make(true);
	struct ranks_feed *feed = feed_make();
	socklen_t size = sizeof(at);
	pthread_t thread;
	struct stat st;

	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 5), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	assert_int_equal(stat("/proc/self/ns/net", &st), 0);
	pthread_create(&thread, NULL, serve, &listener);
	pthread_mutex_lock(&feed->lock);
	process_make(feed, dead, st.st_ino, ntohs(at.sin_port), 1001);
	process_make(feed, living, st.st_ino, ntohs(at.sin_port), 0);
	ranks_ask_all(feed, true);
	assert_true(feed->processes[0].gone);
	pthread_mutex_unlock(&feed->lock);
	shutdown(listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listener);
	kill(living, SIGKILL);
	waitpid(living, NULL, 0);
	assert_int_equal(n_accepted, 1);
	ranks_feed_free(feed);
}

static int begin_all(void **state)
{
	struct err err = { 0 };

	return helper_begin(&err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_rank_elsewhere_with_the_same_pid_is_not_the_process_here),
		cmocka_unit_test(test_an_answer_of_another_port_is_not_of_this_jobs_processes),
		cmocka_unit_test(test_a_port_that_a_process_named_speaks_of_its_user_alone),
		cmocka_unit_test(test_a_place_that_does_not_answer_hides_no_other),
		cmocka_unit_test(test_a_named_port_of_another_user_gets_no_connection),
		cmocka_unit_test(test_a_process_that_has_ended_keeps_nobody_from_being_asked),
	};

	return cmocka_run_group_tests(tests, begin_all, NULL);
}
