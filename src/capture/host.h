/* SPDX-License-Identifier: MIT */
/* Where and of what a trace is made, for those who look at it later. */
#pragma once

#include "gpus/gpus.h"
#include "trace/event.h"

struct host;

/* `command`: the words of the command that is run, or NULL. */
struct host *host_new(char *const *command);
void host_free(struct host *host);

/* Fills in the machine and the command of a run; the texts are the host's. */
void host_describe(const struct host *host, struct run_info *run);

/* Keeps what is known of the GPUs, for the next host_describe(). */
void host_take_gpus(struct host *host, const struct gpus_sample *sample);

/*
 * The version in the text of /proc/driver/nvidia/version: its first word that is made of numbers
 * and dots. Written to `version` of `size` bytes; "" where there is none.
 */
void host_driver_version(const char *text, char *version, size_t size);
