/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the feed share: ranks_feed.c has its thread, and what the main loop gives and
 * takes; ranks_ask.c asks RAS, and heeds whom it may speak of; ranks_handles.c looks for
 * communicators in processes' memory. Private to them.
 */
#pragma once

#include <pthread.h>

#include "base/map.h"
#include "base/quota.h"
#include "capture/ranks_feed.h"
#include "identity/process_read.h"
#include "identity/ras.h"
#include "probe/account.h"

#define PROCESSES_MAX 1024 /* that are told apart; further ones are no ranks */
#define RANKS_EACH    64   /* communicators of a process that RAS may say it is in */
#define HANDLES_EACH  32   /* communicators of each that are looked at */
#define SPACES_MAX    64   /* network namespaces, and ports in them, that are asked */

struct known_handle;

struct known_rank { /* a process; its numbers elsewhere */
	uint32_t pid;
	pid_t own_pid;
	uint64_t space; /* network namespace; 0: not looked at */
	uint16_t port;  /* where RAS is asked in that: NCCL_RAS_ADDR's, or the usual one */
	uint64_t person, start_time;
	uid_t user;
	bool gone; /* another may take its place here */
	bool nudged;
	bool far; /* of ranks elsewhere it was told what an answer of its network says */
	unsigned n_handles;
	struct known_handle *handles[HANDLES_EACH];
	uint64_t answer; /* the last one that it was in, so many times: */
	unsigned n_told;
	struct ras_rank *ranks; /* that RAS said it is, last; at most RANKS_EACH */
	size_t n_ranks;
};

/* What a user has cost: he may have any number of processes, and of networks. */
struct known_user {
	uint64_t person;
	unsigned looks;
	unsigned n_silent; /* of his networks and ports, whose did not answer in time; */
	bool silent;       /* too many: none of his is asked any more */
};

/* A communicator whose ranks have not launched the same: since when nothing has moved. */
struct known_comm {
	uint64_t person; /* of who was asked: others can say the same hash */
	uint64_t hash, host_hash, pid_hash;
	uint64_t counts, since_ns; /* counts: of all ranks, mixed */
	bool uneven;
};

struct handle_key {
	uint64_t handle;
	uint32_t pid, padding;
};

struct known_handle {
	struct handle_key key;
	bool found, dead; /* dead: its process has ended; the thread forgets it */
	unsigned tries;
	UT_hash_handle hh;
};

/* What a turn passes on. */
struct ranks_told {
	uint32_t pid;    /* of the process that it is told of */
	uint64_t handle; /* 0: a rank of RAS', of which... */
	bool own;        /* it is that process's */
	uint64_t person; /* whose that is */
	struct ras_rank rank;
	uint64_t begin_ns, end_ns;
};

/* What is left out for want of room, or of a user's share; of all that was tried. */
struct ranks_left {
	uint64_t rows;    /* of what RAS said, that waited for their turn */
	uint64_t ranks;   /* of a process beyond RANKS_EACH, in all answers */
	uint64_t far;     /* elsewhere, beyond what is told of an answer */
	uint64_t cut;     /* answers that had more than is read */
	uint64_t asked;   /* times that a network's RAS was not asked */
	uint64_t handles; /* calls of communicators that are not looked for */
	uint64_t looks;   /* for one that were not made */
};

struct ranks_feed {
	pthread_t thread;
	pthread_mutex_t lock; /* of all below, but while RAS is asked or memory is read */
	pthread_cond_t wake;
	bool stop, settle, running, answered;
	uint64_t since_ns; /* of the first process; 0: none */
	size_t asks;
	struct known_rank *processes;
	size_t n_processes;
	struct quota of_processes, of_comms, of_told;
	struct accounts waited; /* for answers that came, at last */
	uint64_t answers;
	struct known_handle *handles;
	size_t unfound;
	struct process_reader *reader; /* of the thread; NULL: not needed yet */
	uint64_t silent[SPACES_MAX];   /* ports in networks, likewise: they are not asked again */
	size_t n_silent;
	struct known_user *users;
	size_t n_users;
	struct ranks_told *told;
	size_t n_told;
	struct ranks_left left;
	struct known_comm *comms;
	size_t n_comms;
	/* of the main loop alone */
	struct function comm, rank;
	struct api *made[2];
	bool numbered;
};

/* All with the lock. Passed on at the next turn, or counted as refused. */
void ranks_tell(struct ranks_feed *feed, const struct ranks_told *told);

/* A port in a network. */
static inline uint64_t ranks_where(const struct known_rank *process)
{
	return process->space << 16 | process->port;
}

/* The living process with this number; NULL: there is none. */
struct known_rank *ranks_process_find(struct ranks_feed *feed, uint32_t pid);

/* Its place is free for another. */
void ranks_be_gone(struct ranks_feed *feed, struct known_rank *process);

/* NULL: of root, who is trusted, or there is no room for more. */
struct known_user *ranks_user_of(struct ranks_feed *feed, uint64_t person);

/* One process of each network namespace and port is asked; `far`: what is said of ranks elsewhere
 * is told, too. The lock is let go of meanwhile. */
void ranks_ask_all(struct ranks_feed *feed, bool far);

/* Which ranks the handles are that are not known yet. The lock is let go of meanwhile. */
void ranks_find_handles(struct ranks_feed *feed);
