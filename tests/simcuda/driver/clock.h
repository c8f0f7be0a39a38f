/* SPDX-License-Identifier: MIT */
/*
 * Simulated time: how long work would take on the device. SIMCUDA_TIME_SCALE multiplies all of it;
 * with 0 work takes no time and runs in the thread that asked for it wherever the order of streams
 * allows. SIMCUDA_KERNEL_US sets what one kernel takes. With SIMCUDA_AT_WAITS=1 what is over runs
 * when it is waited for, in the thread that waits: waits then end as early as a real driver's,
 * which looks again and again, and no other thread has to get a CPU meanwhile.
 */
#ifndef SIMCUDA_DRIVER_CLOCK_H
#define SIMCUDA_DRIVER_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void clock_read_settings(void);
bool clock_is_instant(void); /* SIMCUDA_TIME_SCALE=0 */
bool clock_at_waits(void);   /* SIMCUDA_AT_WAITS */

uint64_t clock_now_ns(void); /* CLOCK_MONOTONIC */
void clock_sleep_until(uint64_t ns);

uint64_t clock_kernel_ns(uint64_t threads);
uint64_t clock_copy_ns(size_t bytes, bool over_pcie);

#endif
