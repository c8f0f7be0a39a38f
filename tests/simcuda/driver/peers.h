/* SPDX-License-Identifier: MIT */
/*
 * Kernels of communication that wait for each other, as NCCL's do: with SIMCUDA_PEERS=FILE:N one
 * whose name begins with ncclDevKernel ends when the Nth process's kernel of the same number has
 * begun, too, and after its own time at the least. FILE is made by the program, of zeros.
 *
 * Kernels of the simulated libnccl meet by communicators of their own, whose state they are given.
 */
#ifndef SIMCUDA_DRIVER_PEERS_H
#define SIMCUDA_DRIVER_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#define PEERS_MAX 64

/* How many processes came, and how many kernels each has begun. */
struct peers {
	uint32_t here, begun[PEERS_MAX];
};

bool peers_wanted(const char *kernel);
/* Two seconds at most: the others may have ended. */
void peers_meet(void);
/* The same of one of n that meet elsewhere, for as long as it takes. */
void peers_meet_at(struct peers *peers, uint32_t own, uint32_t n);

#endif
