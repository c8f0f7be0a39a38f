// SPDX-License-Identifier: MIT
#include "node/clients.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/peer.h"
#include "base/xalloc.h"
#include "probe/person.h"

struct from {
	unsigned char address[16]; /* an IPv6 network of 64 bits is one */
	uint64_t person;           /* of this machine; else 0 */
};

struct share {
	struct from from;
	size_t clients, held; /* held: that were not ended */
	UT_hash_handle hh;
};

struct client {
	struct client *next; /* the next younger one */
	int fd;
	uint64_t since_ns;
	struct share *of;
	bool ended;
};

struct clients {
	pthread_mutex_t lock;
	struct client *first, **end;
	struct share *shares;
	size_t count, most, most_of_one; /* count: that were not ended */
	uint64_t ended;
	int diag;
};

struct clients *clients_new(size_t most, size_t most_of_one)
{
	struct clients *clients = xcalloc(1, sizeof(*clients));

	pthread_mutex_init(&clients->lock, NULL);
	clients->end = &clients->first;
	clients->most = most;
	clients->most_of_one = most_of_one;
	clients->diag = peer_open();
	return clients;
}

void clients_free(struct clients *clients)
{
	while (clients && clients->first)
		clients_remove(clients, clients->first);
	if (clients && clients->diag >= 0)
		close(clients->diag);
	if (clients)
		pthread_mutex_destroy(&clients->lock);
	free(clients);
}

static void address_of(const struct sockaddr *from, unsigned char out[16])
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;

	memset(out, 0, 16);
	if (from->sa_family == AF_INET)
		memcpy(out, &v4->sin_addr, sizeof(v4->sin_addr));
	else if (from->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		memcpy(out, &v6->sin6_addr.s6_addr[12], 4);
	else if (from->sa_family == AF_INET6)
		memcpy(out, &v6->sin6_addr, 8);
}

static bool is_loopback(const struct sockaddr *from)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;

	if (from->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) &&
	        v6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
}

/*
 * Who connects to 127.0.0.1 may come from any address that this machine has. Those of loopback of
 * whom nobody is known any more are of one, too.
 */
static struct from from_of(const struct clients *clients, int fd, const struct sockaddr *from)
{
	struct from of = { 0 };
	uid_t user;
	int rc = clients->diag < 0 ? -ENOTSUP : peer_user(clients->diag, fd, &user);

	if (!rc)
		of.person = person_of_uid(user) + 1;
	else if (is_loopback(from) && (rc == -ENOENT || rc == -ENOTCONN))
		of.person = PERSON_UNKNOWN;
	else
		address_of(from, of.address);
	return of;
}

/* With the lock held: the socket is open until clients_remove(). */
static void end(struct clients *clients, struct client *client)
{
	if (client->ended)
		return;
	client->ended = true;
	shutdown(client->fd, SHUT_RDWR);
	client->of->held--;
	clients->count--;
	clients->ended++;
}

/* With the lock held. The oldest of who has most: somebody may come as two. */
static void make_room(struct clients *clients, const struct share *share)
{
	struct client *of_most = NULL, *of_one = NULL;

	for (struct client *c = clients->first; c; c = c->next) {
		if (c->ended)
			continue;
		if (!of_most || c->of->held > of_most->of->held)
			of_most = c;
		if (c->of == share && !of_one)
			of_one = c;
	}
	if (of_one && share->held >= clients->most_of_one)
		end(clients, of_one);
	else if (of_most && clients->count >= clients->most)
		end(clients, of_most);
}

struct client *clients_add(struct clients *clients, int fd, const struct sockaddr *from,
                           uint64_t now_ns)
{
	struct client *client = xcalloc(1, sizeof(*client));
	struct from of = from_of(clients, fd, from);

	client->fd = fd;
	client->since_ns = now_ns;
	LOCKED(&clients->lock);
	client->of = MAP_MAKE(clients->shares, from, &of);
	make_room(clients, client->of);
	client->of->clients++;
	client->of->held++;
	*clients->end = client;
	clients->end = &client->next;
	clients->count++;
	return client;
}

void clients_remove(struct clients *clients, struct client *client)
{
	struct client **at = &clients->first;

	LOCKED(&clients->lock);
	while (*at && *at != client)
		at = &(*at)->next;
	if (*at) {
		*at = client->next;
		if (!*at)
			clients->end = at;
		clients->count -= !client->ended;
		client->of->held -= !client->ended;
		if (!--client->of->clients)
			MAP_DROP(clients->shares, client->of);
		free(client);
	}
}

void clients_end_before(struct clients *clients, uint64_t time_ns)
{
	LOCKED(&clients->lock);
	for (struct client *c = clients->first; c && c->since_ns < time_ns; c = c->next)
		end(clients, c);
}

uint64_t clients_ended(struct clients *clients)
{

	LOCKED(&clients->lock);
	return clients->ended;
}
