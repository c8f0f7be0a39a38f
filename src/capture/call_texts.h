/* SPDX-License-Identifier: MIT */
/*
 * What calls pass by address, where the eBPF programs could not read it: they cannot wait for a
 * page that is not there. A process is asked for it (probe/helper.h), which takes longer than all
 * else that a record takes, and a program can make each of its calls so. So it is on the account of
 * its user (LOOK_INTO_CALLS).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As helper_memory and helper_string; false as well where the user has had its part of the time. */
bool call_memory_read(uint32_t pid, uint64_t address, void *to, size_t bytes);
bool call_text_read(uint32_t pid, uint64_t address, char *to, size_t size);
