// SPDX-License-Identifier: MIT
/* Whose account the node agent has made, and what it takes of what was sent. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/account.h"
#include "node/config.h"
#include "node/recorder.h"

#define MOST (260u << 10)

/* Its descriptor is at the end, for a message that is read from there. */
static int file_of(const char *text, size_t bytes)
{
	int fd = memfd_create("account", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, bytes), bytes);
	return fd;
}

static bool reads(const char *text, size_t bytes)
{
	AT_END(buf_free) struct buf json = { 0 };
	int fd = file_of(text, bytes);
	bool good = account_read(fd, &json);

	assert_int_equal(fcntl(fd, F_GETFD), -1); /* it is closed either way */
	if (good)
		assert_memory_equal(json.data, text, bytes);
	assert_int_equal(json.len, good ? bytes : 0);
	return good;
}

static void test_what_is_sent_is_one_line_of_text(void **state)
{
	static char large[MOST + 1];
	AT_END(buf_free) struct buf json = { 0 };
	int pipes[2];

	assert_true(reads("{\"state\":\"\xc3\xa9\"}", 14));
	assert_false(reads("", 0));
	assert_false(reads("[]", 2));
	assert_false(reads("{}\n\nevent: why", 14));
	assert_false(reads("{\r}", 3));
	assert_false(reads("{\0}", 3));
	memset(large, ' ', sizeof(large));
	large[0] = '{';
	assert_true(reads(large, MOST));
	assert_false(reads(large, MOST + 1));
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_false(account_read(pipes[0], &json));
	close(pipes[1]);
	assert_false(account_read(open("/", O_RDONLY | O_CLOEXEC), &json));
	assert_int_equal(json.len, 0);
}

static void test_it_is_sent_with_a_message(void **state)
{
	AT_END(buf_free) struct buf json = { 0 };
	struct recorder_message message;
	int pair[2], fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(recorder_receive_with(pair[1], &message, &fd), -EAGAIN);
	assert_int_equal(account_send(pair[0], "{\"a\":1}", false), 0);
	assert_int_equal(recorder_receive_with(pair[1], &message, &fd), 0);
	assert_int_equal(message.kind, RECORDER_ACCOUNT);
	assert_false(message.worn);
	assert_true(account_read(fd, &json));
	assert_string_equal(json.data, "{\"a\":1}");
	account_send_failure(pair[0], "why not");
	assert_int_equal(recorder_receive_with(pair[1], &message, &fd), 0);
	assert_int_equal(fd, -1);
	assert_string_equal(message.text, "why not");
	assert_int_equal(write(pair[0], "short", 5), 5);
	assert_int_equal(recorder_receive_with(pair[1], &message, &fd), -EPIPE);
	while (!account_send(pair[0], "{}", false)) /* until there is no room */
		;
	assert_int_equal(account_send(pair[0], "{}", false), -EAGAIN);
	close(pair[0]);
	close(pair[1]);
}

static struct account_busy busy_of(uint32_t pid, uint64_t person, uint64_t more)
{
	return (struct account_busy){ .pid = pid, .person = person, .more = more };
}

static void expect_chosen(struct account_busy *busy, size_t n, size_t most, const char *pids)
{
	AT_END(buf_free) struct buf text = { 0 };
	size_t chosen = account_choose(busy, n, most);

	buf_puts(&text, "");
	for (size_t i = 0; i < n; i++) {
		if (busy[i].chosen)
			buf_printf(&text, "%u ", busy[i].pid);
		chosen -= busy[i].chosen;
	}
	assert_int_equal(chosen, 0);
	assert_string_equal(text.data, pids);
}

static void test_the_busiest_are_chosen(void **state)
{
	struct account_busy busy[] = { busy_of(1, 0, 5), busy_of(2, 0, 0), busy_of(3, 0, 9),
		                       busy_of(4, 0, 7) };

	expect_chosen(busy, 4, 2, "3 4 ");
	for (size_t i = 0; i < 4; i++)
		busy[i].chosen = false;
	expect_chosen(busy, 4, 64, "1 3 4 "); /* who asks for nothing is in none */
	expect_chosen(NULL, 0, 8, "");
}

/* Who starts many busy processes takes no place of those of others. */
static void test_users_are_chosen_in_turns(void **state)
{
	struct account_busy busy[] = { busy_of(1, 1000, 900), busy_of(2, 1000, 800),
		                       busy_of(3, 1000, 700), busy_of(4, 1001, 1),
		                       busy_of(5, 0, 2),      busy_of(6, 0, 1) };

	expect_chosen(busy, 6, 4, "1 2 4 5 ");
}

static void test_it_wants_a_token(void **state)
{
	struct node_settings settings;
	struct err err = { 0 };

	config_begin(&settings);
	assert_int_equal(account_check(&settings, &err), 0);
	assert_int_equal(config_set(&settings, "account", "enabled", "yes", &err), 0);
	assert_int_equal(account_check(&settings, &err), -EPERM);
	assert_non_null(strstr(err.text, "token"));
	assert_int_equal(config_set(&settings, "tls", "token", "/nowhere", &err), 0);
	assert_int_equal(account_check(&settings, &err), 0);
	config_end(&settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_sent_is_one_line_of_text),
		cmocka_unit_test(test_it_is_sent_with_a_message),
		cmocka_unit_test(test_the_busiest_are_chosen),
		cmocka_unit_test(test_users_are_chosen_in_turns),
		cmocka_unit_test(test_it_wants_a_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
