// SPDX-License-Identifier: MIT
#include "node/http_host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#define NAME_MOST 64 /* an IPv6 address is shorter */

/* Up to the port, without the brackets of IPv6. False: it is none. */
static bool name_of(const char *host, char name[NAME_MOST])
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
	if (!name_of(host, name))
		return false;
	if (*host == '[')
		return inet_pton(AF_INET6, name, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
	if (inet_pton(AF_INET, name, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return !strcasecmp(name, "localhost");
}
