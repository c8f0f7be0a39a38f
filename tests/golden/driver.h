/* SPDX-License-Identifier: MIT */
/* The golden trace `driver`: what the driver's modules tell, and the channels that calls make. */
#ifndef TESTS_GOLDEN_DRIVER_H
#define TESTS_GOLDEN_DRIVER_H

/* Writes it into the folder. */
void write_driver_trace(const char *folder);

#endif
