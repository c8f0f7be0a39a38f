/* SPDX-License-Identifier: MIT */
/* The connections of the server: how many there are, of whom, and which has to go for another. */
#ifndef CUSCOPE_NODE_CLIENTS_H
#define CUSCOPE_NODE_CLIENTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct clients;
struct client;

struct clients *clients_new(size_t most, size_t most_of_address);
void clients_free(struct clients *clients);

/*
 * Before a connection: makes room by ending the oldest of its address, or of all. Ending is
 * shutdown(2): who reads the socket notices and closes it.
 */
void clients_make_room(struct clients *clients, const struct sockaddr *from);

struct client *clients_add(struct clients *clients, int fd, const struct sockaddr *from,
                           uint64_t now_ns);
void clients_remove(struct clients *clients, struct client *client);

/* Ends those that began before. May be called by another thread than the others. */
void clients_end_before(struct clients *clients, uint64_t time_ns);

uint64_t clients_ended(struct clients *clients); /* so far, by the two above */

#endif
