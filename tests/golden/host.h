/* SPDX-License-Identifier: MIT */
/* The golden traces `host_*`: trainings that are slow for one reason each, with their samples. */
#ifndef TESTS_GOLDEN_HOST_H
#define TESTS_GOLDEN_HOST_H

/* Writes them into the folder. */
void write_host_traces(const char *folder);

#endif
