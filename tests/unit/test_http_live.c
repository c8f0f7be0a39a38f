// SPDX-License-Identifier: MIT
/* Who reads a live page, and what that costs where many do it slowly. */
#include "support.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/config.h"
#include "node/http.h"

#define PAGE_BYTES ((size_t)16 << 20)
#define CLIENTS    24
#define WAITING    64 /* connections: no more wait */

static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A port that was free a moment ago. */
static struct sockaddr_in free_address(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	close(fd);
	return at;
}

/* Asks, and reads the first bytes alone. */
static int slow_client(const struct sockaddr_in *at)
{
	static const char ask[] = "GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), room = 4096;
	char begin[15];

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	assert_int_equal(connect(fd, (const struct sockaddr *)at, sizeof(*at)), 0);
	assert_int_equal(send(fd, ask, sizeof(ask) - 1, 0), sizeof(ask) - 1);
	assert_int_equal(recv(fd, begin, sizeof(begin), MSG_WAITALL), sizeof(begin));
	assert_memory_equal(begin, "HTTP/1.1 200 OK", sizeof(begin));
	return fd;
}

struct served {
	struct node_settings settings;
	struct sockaddr_in at;
	struct http *http;
};

static void serve(struct served *served)
{
	static const struct http_page live = { "<html>", 6, "default-src 'none'" };
	struct err err = { 0 };
	char listen[32];

	served->at = free_address();
	snprintf(listen, sizeof(listen), "127.0.0.1:%u", ntohs(served->at.sin_port));
	config_begin(&served->settings);
	assert_int_equal(config_set(&served->settings, "agent", "listen", listen, &err), 0);
	assert_int_equal(http_start_live(&served->settings, &live, &served->http, &err), 0);
}

static void stop(struct served *served)
{
	http_stop(served->http);
	config_end(&served->settings);
}

static void test_slow_clients_share_a_text(void **state)
{
	struct served served;
	struct http *http;
	char *text = malloc(PAGE_BYTES + 1);
	int clients[CLIENTS];
	uint64_t before;

	serve(&served);
	http = served.http;
	memset(text, 'x', PAGE_BYTES);
	text[PAGE_BYTES] = '\0';
	http_publish(http, text);
	before = resident_bytes();
	for (size_t i = 0; i < CLIENTS; i++)
		clients[i] = slow_client(&served.at);
	assert_in_range(resident_bytes(), 0, before + 2 * PAGE_BYTES);
	http_publish(http, "another, while they still read");
	for (size_t i = 0; i < CLIENTS; i++)
		close(clients[i]);
	stop(&served);
	free(text);
}

/* Asks, and reads nothing. */
static int asking(const struct sockaddr_in *at)
{
	static const char ask[] = "GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
	const struct timeval patience = { .tv_sec = 5 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(fd, (const struct sockaddr *)at, sizeof(*at)), 0);
	assert_int_equal(send(fd, ask, sizeof(ask) - 1, 0), sizeof(ask) - 1);
	return fd;
}

/* All that it is told. */
static const char *told(int fd)
{
	static char text[4096];
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, text + len, sizeof(text) - 1 - len, 0)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fd);
	return text;
}

static void until_read(struct http *http)
{
	for (int i = 0; i < 500 && !http_is_read(http, clock_now_ns()); i++)
		usleep(10000);
	assert_true(http_is_read(http, clock_now_ns()));
}

static void test_the_first_reader_waits_for_what_is_made_for_it(void **state)
{
	struct served served;
	char byte;
	int fd;

	serve(&served);
	assert_false(http_is_read(served.http, clock_now_ns()));
	fd = asking(&served.at);
	until_read(served.http);
	http_publish(served.http, NULL); /* nothing is there yet: it goes on waiting */
	usleep(50000);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	http_publish(served.http, "{}");
	assert_non_null(strstr(told(fd), "\r\n\r\nretry: 1000\nid: 1\ndata: {}\n\n"));
	assert_true(http_is_read(served.http, clock_now_ns() + 2000000000));
	assert_false(http_is_read(served.http, clock_now_ns() + 4000000000));
	assert_non_null(strstr(told(asking(&served.at)), "id: 1\n"));
	stop(&served);
}

/* Says which event it had last, as browsers do. */
static int asking_after(const struct sockaddr_in *at, const char *id)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval patience = { .tv_sec = 5 };
	char ask[128];
	int n = snprintf(ask, sizeof(ask),
	                 "GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nLast-Event-ID: %s\r\n\r\n", id);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(fd, (const struct sockaddr *)at, sizeof(*at)), 0);
	assert_int_equal(send(fd, ask, (size_t)n, 0), n);
	return fd;
}

static void test_an_account_comes_to_each_reader_once(void **state)
{
	struct served served;

	serve(&served);
	http_publish_account(served.http, "{\"a\":1}");
	http_publish(served.http, "{}");
	for (int i = 0; i < 2; i++) /* both that have none */
		assert_non_null(strstr(told(asking(&served.at)),
		                       "\r\n\r\nretry: 1000\nevent: why\ndata: {\"a\":1}\n\n"
		                       "retry: 1000\nid: 1.1\ndata: {}\n\n"));
	http_publish(served.http, "{}");
	assert_non_null(strstr(told(asking_after(&served.at, "1.1")),
	                       "\r\n\r\nretry: 1000\nid: 2.1\ndata: {}\n\n"));
	http_publish_account(served.http, "{\"a\":2}");
	http_publish(served.http, "{}");
	assert_non_null(strstr(told(asking_after(&served.at, "2.1")), "data: {\"a\":2}\n\n"));
	for (const char *const *odd = (const char *const[]){ "x", "1.", "2.x", "-1.-1", NULL };
	     *odd; odd++)
		assert_non_null(strstr(told(asking_after(&served.at, *odd)), "{\"a\":2}\n\n"));
	http_publish_account(served.http, NULL);
	http_publish(served.http, "{}");
	assert_non_null(strstr(told(asking(&served.at)), "\r\n\r\nretry: 1000\nid: 4\ndata"));
	stop(&served);
}

static void test_so_many_wait_and_others_are_told_to_come_again(void **state)
{
	struct served served;
	int clients[WAITING + 1];
	size_t later = 0, waited = 0;

	serve(&served);
	for (size_t i = 0; i < WAITING + 1; i++)
		clients[i] = asking(&served.at);
	until_read(served.http);
	usleep(300000);
	http_publish(served.http, "{}");
	for (size_t i = 0; i < WAITING + 1; i++) {
		const char *text = told(clients[i]);

		waited += strstr(text, "data: {}") != NULL;
		later += strstr(text, "retry: 300") != NULL;
	}
	assert_in_range(waited, 1, WAITING); /* of one user some were ended for others */
	assert_int_equal(later, 1);
	stop(&served);
}

static void test_the_end_lets_nobody_wait(void **state)
{
	struct served served;
	int fd;

	serve(&served);
	fd = asking(&served.at);
	until_read(served.http);
	stop(&served);
	told(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_clients_share_a_text),
		cmocka_unit_test(test_the_first_reader_waits_for_what_is_made_for_it),
		cmocka_unit_test(test_an_account_comes_to_each_reader_once),
		cmocka_unit_test(test_so_many_wait_and_others_are_told_to_come_again),
		cmocka_unit_test(test_the_end_lets_nobody_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
