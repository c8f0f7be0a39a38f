// SPDX-License-Identifier: MIT
#include "node/clients.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

struct client {
	struct client *next; /* the next younger one */
	int fd;
	uint64_t since_ns;
	unsigned char from[16]; /* an IPv6 network of 64 bits is one address */
	bool ended;
};

struct clients {
	pthread_mutex_t lock;
	struct client *first, **end;
	size_t count, most, most_of_address; /* count: that were not ended */
	uint64_t ended;
};

struct clients *clients_new(size_t most, size_t most_of_address)
{
	struct clients *clients = xcalloc(1, sizeof(*clients));

	pthread_mutex_init(&clients->lock, NULL);
	clients->end = &clients->first;
	clients->most = most;
	clients->most_of_address = most_of_address;
	return clients;
}

void clients_free(struct clients *clients)
{
	while (clients && clients->first)
		clients_remove(clients, clients->first);
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

/* With the lock held: the socket is open until clients_remove(). */
static void end(struct clients *clients, struct client *client)
{
	if (client->ended)
		return;
	client->ended = true;
	shutdown(client->fd, SHUT_RDWR);
	clients->count--;
	clients->ended++;
}

void clients_make_room(struct clients *clients, const struct sockaddr *from)
{
	struct client *oldest = NULL, *oldest_of_address = NULL;
	unsigned char address[16];
	size_t of_address = 0;

	address_of(from, address);
	pthread_mutex_lock(&clients->lock);
	for (struct client *c = clients->first; c; c = c->next) {
		bool same = !memcmp(c->from, address, sizeof(address));

		if (c->ended)
			continue;
		of_address += same;
		if (!oldest)
			oldest = c;
		if (same && !oldest_of_address)
			oldest_of_address = c;
	}
	if (oldest_of_address && of_address >= clients->most_of_address)
		end(clients, oldest_of_address);
	else if (oldest && clients->count >= clients->most)
		end(clients, oldest);
	pthread_mutex_unlock(&clients->lock);
}

struct client *clients_add(struct clients *clients, int fd, const struct sockaddr *from,
                           uint64_t now_ns)
{
	struct client *client = xcalloc(1, sizeof(*client));

	client->fd = fd;
	client->since_ns = now_ns;
	address_of(from, client->from);
	pthread_mutex_lock(&clients->lock);
	*clients->end = client;
	clients->end = &client->next;
	clients->count++;
	pthread_mutex_unlock(&clients->lock);
	return client;
}

void clients_remove(struct clients *clients, struct client *client)
{
	struct client **at = &clients->first;

	pthread_mutex_lock(&clients->lock);
	while (*at && *at != client)
		at = &(*at)->next;
	if (*at) {
		*at = client->next;
		if (!*at)
			clients->end = at;
		clients->count -= !client->ended;
		free(client);
	}
	pthread_mutex_unlock(&clients->lock);
}

void clients_end_before(struct clients *clients, uint64_t time_ns)
{
	pthread_mutex_lock(&clients->lock);
	for (struct client *c = clients->first; c && c->since_ns < time_ns; c = c->next)
		end(clients, c);
	pthread_mutex_unlock(&clients->lock);
}

uint64_t clients_ended(struct clients *clients)
{
	uint64_t ended;

	pthread_mutex_lock(&clients->lock);
	ended = clients->ended;
	pthread_mutex_unlock(&clients->lock);
	return ended;
}
