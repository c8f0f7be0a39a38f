/* SPDX-License-Identifier: MIT */
/* Where and of what a trace is made, for those who look at it later. */
#ifndef CUSCOPE_CAPTURE_HOST_H
#define CUSCOPE_CAPTURE_HOST_H

#include "trace/event.h"

struct host;

/* `command`: the words of the command that is run, or NULL. */
struct host *host_new(char *const *command);
void host_free(struct host *host);

/* Fills hostname, kernel_release, driver_version and command; the texts are the host's. */
void host_describe(const struct host *host, struct run_info *run);

/*
 * The version in the text of /proc/driver/nvidia/version: its first word that is made of numbers
 * and dots. Written to `version` of `size` bytes; "" where there is none.
 */
void host_driver_version(const char *text, char *version, size_t size);

#endif
