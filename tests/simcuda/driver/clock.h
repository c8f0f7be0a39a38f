/* SPDX-License-Identifier: MIT */
/*
 * Simulated time: how long work would take on the device. SIMCUDA_TIME_SCALE multiplies all of it;
 * with 0 work takes no time and runs in the thread that asked for it wherever the order of streams
 * allows. SIMCUDA_KERNEL_US sets what one kernel takes.
 */
#ifndef SIMCUDA_DRIVER_CLOCK_H
#define SIMCUDA_DRIVER_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void clock_read_settings(void);
bool clock_is_instant(void); /* SIMCUDA_TIME_SCALE=0 */

uint64_t clock_now_ns(void); /* CLOCK_MONOTONIC */
void clock_sleep_until(uint64_t ns);

uint64_t clock_kernel_ns(uint64_t threads);
uint64_t clock_copy_ns(size_t bytes, bool over_pcie);

#endif
