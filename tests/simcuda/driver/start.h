/* SPDX-License-Identifier: MIT */
/* What the real driver does besides when it is initialised, and others rely on. */
#ifndef SIMCUDA_DRIVER_START_H
#define SIMCUDA_DRIVER_START_H

/*
 * A thread of the driver's own, named as the real one's and like it waiting in poll() for the rest
 * of the process. SIMCUDA_NO_EVENT_THREAD leaves it out.
 */
void start_event_thread(void);

/*
 * Loads the library that CUDA_INJECTION64_PATH names and calls its InitializeInjection, once in a
 * process. What cannot be loaded is ignored.
 */
void start_injection(void);

#endif
