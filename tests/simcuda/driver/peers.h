/* SPDX-License-Identifier: MIT */
/*
 * Kernels of communication that wait for each other, as NCCL's do: with SIMCUDA_PEERS=FILE:N one
 * whose name begins with ncclDevKernel ends when the Nth process's kernel of the same number has
 * begun, too, and after its own time at the least. FILE is made by the program, of zeros.
 */
#ifndef SIMCUDA_DRIVER_PEERS_H
#define SIMCUDA_DRIVER_PEERS_H

#include <stdbool.h>

bool peers_wanted(const char *kernel);
/* Two seconds at most: the others may have ended. */
void peers_meet(void);

#endif
