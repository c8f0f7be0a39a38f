// SPDX-License-Identifier: MIT
#include "node/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/parse.h"

#define BACKLOG 32 /* fewer than one address may have, as all of them may be taken at once */

static bool parse_port(const char *text, in_port_t *port)
{
	uint64_t number;

	if (!parse_number(text, 65535, &number) || !number)
		return false;
	*port = htons((uint16_t)number);
	return true;
}

static bool parse_v6(const char *host, const char *port, struct address *address)
{
	struct sockaddr_in6 *at = (struct sockaddr_in6 *)&address->at;

	at->sin6_family = AF_INET6;
	address->bytes = sizeof(*at);
	return inet_pton(AF_INET6, host, &at->sin6_addr) == 1 && parse_port(port, &at->sin6_port);
}

static bool parse_v4(const char *host, const char *port, struct address *address)
{
	struct sockaddr_in *at = (struct sockaddr_in *)&address->at;

	at->sin_family = AF_INET;
	address->bytes = sizeof(*at);
	return inet_pton(AF_INET, host, &at->sin_addr) == 1 && parse_port(port, &at->sin_port);
}

bool address_parse(const char *text, struct address *address)
{
	const char *colon = strrchr(text, ':');
	bool v6 = text[0] == '[';
	char host[64];
	size_t bytes;

	memset(address, 0, sizeof(*address));
	if (!colon || colon == text || (v6 && (colon < text + 2 || colon[-1] != ']')))
		return false;
	text += v6;
	bytes = (size_t)(colon - text) - v6;
	if (bytes >= sizeof(host))
		return false;
	memcpy(host, text, bytes);
	host[bytes] = '\0';
	return v6 ? parse_v6(host, colon + 1, address) : parse_v4(host, colon + 1, address);
}

bool address_is_loopback(const struct address *address)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->at;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->at;

	if (address->at.ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
	return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
}

int address_listen(const struct address *address, const char *text, struct err *err)
{
	int fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, failure;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", text, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, (const struct sockaddr *)&address->at, address->bytes) &&
	    !listen(fd, BACKLOG))
		return fd;
	failure = errno;
	close(fd);
	if (failure == EADDRINUSE)
		return err_set(err, failure,
		               "%s is in use: another program listens there, perhaps another "
		               "'cuscope agent'; --listen takes another port",
		               text);
	if (failure == EADDRNOTAVAIL)
		return err_set(err, failure, "%s: this machine has no such address (--listen)",
		               text);
	return err_set(err, failure, "cannot listen on %s: %s", text, strerror(failure));
}

/* ---- a request's host ------------------------------------------------------------------------ */

#define NAME_MOST 64 /* an IPv6 address is shorter */

/* Up to the port, without the brackets of IPv6. False: it is none. */
static bool host_name(const char *host, char name[NAME_MOST])
{
	bool brackets = *host == '[';
	const char *begin = host + brackets;
	size_t bytes = strcspn(begin, brackets ? "]" : ":");
	const char *rest = begin + bytes + brackets;

	if (!bytes || bytes >= NAME_MOST || (brackets && begin[bytes] != ']'))
		return false;
	if (*rest == ':')
		rest += 1 + strspn(rest + 1, "0123456789");
	memcpy(name, begin, bytes);
	name[bytes] = '\0';
	return !*rest;
}

bool http_host_is_loopback(const char *host)
{
	char name[NAME_MOST];
	struct in6_addr six;
	struct in_addr four;

	if (!host)
		return true;
	if (!host_name(host, name))
		return false;
	if (*host == '[')
		return inet_pton(AF_INET6, name, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
	if (inet_pton(AF_INET, name, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return !strcasecmp(name, "localhost");
}
