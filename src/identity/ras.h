/* SPDX-License-Identifier: MIT */
/*
 * What NCCL's RAS says of a job (NCCL 2.24 and newer, as JSON since 2.28.7): which process is which
 * rank of which communicator, on which machine, and how many collectives it has launched. A process
 * of the job listens on a port of its machine's loopback, and knows of all of them.
 *
 * Whoever has that port answers, and can say anything. So it is asked by a process without rights,
 * in the network namespace of a process, with a limit of time and size; whose answer it is comes
 * with it, and what it says of a process is to be believed only of that user's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define RAS_PORT      28028
#define RAS_BYTES_MAX (16u << 20) /* of an answer; a rank takes some 650 */
#define RAS_RANKS_MAX 32768       /* that are taken of one */
#define RAS_ANSWER_MS 3000        /* it asks all other machines of the job */

enum ras_count {
	RAS_BROADCAST,
	RAS_REDUCE,
	RAS_ALL_GATHER,
	RAS_REDUCE_SCATTER,
	RAS_ALL_REDUCE,
	RAS_COUNTS
};

/* A rank of a communicator, as it was told. */
struct ras_rank {
	uint64_t hash, host_hash, pid_hash; /* the communicator's; all three are in all its ranks */
	uint32_t size;                      /* ranks of the communicator */
	int32_t rank, pid;                  /* pid: in its own namespace */
	int32_t device, nvml_device;
	bool missing;   /* nothing has been heard of it: its counts are 0 */
	bool failed;    /* NCCL had an error, or it was given up */
	bool elsewhere; /* its address is none of the network that was asked (IPv4): its pid is no
	                 * process's here */
	char host[64];
	uint64_t counts[RAS_COUNTS]; /* collectives that were launched */
};

struct ras_answer {
	struct ras_rank *ranks;
	size_t n;
	bool cut;                       /* there are more, or the answer was longer than is read */
	uid_t user;                     /* who answered */
	uint64_t asked_ns, answered_ns; /* CLOCK_MONOTONIC: counts are of a time between */
};

/*
 * Asks in the network namespace of a descriptor, until `stop` is set, where this user listens, or
 * on RAS_PORT root. 0, and the answer is to be freed; -ECONNREFUSED: nobody listens there; -EPERM:
 * somebody else does, who hears nothing; else a negative errno, with a sentence.
 */
int ras_ask(int network, uint16_t port, uid_t user, const bool *stop, struct ras_answer *answer,
            struct err *err);
void ras_answer_free(struct ras_answer *answer);

/* The ranks in the text of an answer, of any bytes. Returns how many; `each` may be called with
 * anything. */
size_t ras_read(const char *text, size_t bytes, void (*each)(void *data, const struct ras_rank *),
                void *data);
