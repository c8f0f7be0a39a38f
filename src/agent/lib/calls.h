/* SPDX-License-Identifier: MIT */
/*
 * Calls that ask the GPU for something, as CUPTI's callbacks tell of them: what activities'
 * correlation ids stand for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CALLS_NAMES 1024 /* names up to this number are those of functions */

/* Before the first callback, each time that measuring begins. */
void calls_prepare(void);

/* Which of a domain's callbacks are needed for `kinds`, one after another from *at = 0; 0:
 * no more. */
uint32_t calls_next(uint32_t domain, uint32_t kinds, unsigned *at);

/* A cupti_callback's part at all times: whether graphs are used while something is measured. */
void calls_notice_graphs(uint32_t domain, uint32_t id);
bool calls_saw_graphs(void); /* once true, it stays */

/* A node of a graph was made as a copy of another; both are numbers that records of its work have.
 */
void calls_node(uint64_t node, uint64_t original);

/* A cupti_callback's part while there is something to measure; `graphs`: they are to be noticed. */
void calls_callback(uint32_t domain, uint32_t id, const void *data, bool graphs);
