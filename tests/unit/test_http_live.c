// SPDX-License-Identifier: MIT
/* What a live page costs where many read it slowly. */
#include "support.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/config.h"
#include "node/http.h"

#define TEXT_BYTES ((size_t)16 << 20)
#define CLIENTS    24

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

static void test_slow_clients_share_a_text(void **state)
{
	const struct http_live live = { "<html>", 6, "default-src 'none'" };
	const struct sockaddr_in at = free_address();
	struct node_settings settings;
	struct err err = { 0 };
	struct http *http;
	char listen[32], *text = malloc(TEXT_BYTES + 1);
	int clients[CLIENTS];
	uint64_t before;

	snprintf(listen, sizeof(listen), "127.0.0.1:%u", ntohs(at.sin_port));
	config_begin(&settings);
	assert_int_equal(config_set(&settings, "agent", "listen", listen, &err), 0);
	assert_int_equal(http_start_live(&settings, &live, &http, &err), 0);
	memset(text, 'x', TEXT_BYTES);
	text[TEXT_BYTES] = '\0';
	http_publish(http, text);
	before = resident_bytes();
	for (size_t i = 0; i < CLIENTS; i++)
		clients[i] = slow_client(&at);
	assert_in_range(resident_bytes(), 0, before + 2 * TEXT_BYTES);
	http_publish(http, "another, while they still read");
	for (size_t i = 0; i < CLIENTS; i++)
		close(clients[i]);
	http_stop(http);
	config_end(&settings);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_slow_clients_share_a_text) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
