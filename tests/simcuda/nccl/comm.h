/* SPDX-License-Identifier: MIT */
/* A communicator: what all its ranks share, and what one has. */
#ifndef SIMCUDA_NCCL_COMM_H
#define SIMCUDA_NCCL_COMM_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

#include "../driver/peers.h"
#include "nccl.h"

/* As RAS counts them; what is behind it does not. */
enum nccl_function {
	NCCL_BROADCAST,
	NCCL_REDUCE,
	NCCL_ALL_GATHER,
	NCCL_REDUCE_SCATTER,
	NCCL_ALL_REDUCE,
	NCCL_COUNTED,
	NCCL_SEND = NCCL_COUNTED,
	NCCL_RECV,
	NCCL_FUNCTIONS
};

struct shared_rank {
	uint32_t there;
	int32_t pid; /* as it has it itself */
	int32_t device;
	char host[64];
	uint64_t counts[NCCL_COUNTED];
	uint32_t splits; /* how often it was split, the last time so: */
	int32_t color, key;
};

struct shared {
	struct peers peers; /* kernels that have begun */
	uint32_t size, left;
	uint64_t magic, hash; /* magic: the same in all communicators of a job */
	struct shared_rank of[PEERS_MAX];
};

/* What others read of it by its place lies as far from the begin as in a real one, and in the same
 * order. */
struct ncclComm {
	uint64_t magic_at_begin;
	char head[1080000];
	uint64_t magic, hash;
	int32_t rank, ranks, device, nvml_device;
	char rest[2000];
	struct shared *shared;
	uint32_t n_splits;
	char path[PATH_MAX];
	struct ncclComm *next; /* of the process */
};

/* All of the process, with the lock held. */
extern struct ncclComm *comms;
extern pthread_mutex_t comms_lock;

/* The folder that ranks meet in, and what its files begin with. */
#define COMM_FILE "simnccl-"
const char *comm_folder(void);

/* Answers questions from then on, once a process. */
void ras_begin(void);

#endif
