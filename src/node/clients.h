/* SPDX-License-Identifier: MIT */
/*
 * The connections of the server: how many there are, of whom, and which has to go for another. On
 * this machine's loopback they are of a user (probe/person.h), who has all addresses of 127/8; else
 * of an address, as where the kernel does not tell whose a connection is.
 */
#ifndef CUSCOPE_NODE_CLIENTS_H
#define CUSCOPE_NODE_CLIENTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct clients;
struct client;

struct clients *clients_new(size_t most, size_t most_of_one);
void clients_free(struct clients *clients);

/*
 * Makes room for it by ending the oldest of who has it, or of all. Ending is shutdown(2): who reads
 * the socket notices and closes it.
 */
struct client *clients_add(struct clients *clients, int fd, const struct sockaddr *from,
                           uint64_t now_ns);
void clients_remove(struct clients *clients, struct client *client);

/* Ends those that began before. May be called by another thread than the others. */
void clients_end_before(struct clients *clients, uint64_t time_ns);

uint64_t clients_ended(struct clients *clients); /* so far, by the two above */

#endif
