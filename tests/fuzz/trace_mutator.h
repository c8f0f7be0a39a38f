/* SPDX-License-Identifier: MIT */
/*
 * Mutations of whole trace files that stay trace files: chunks are unpacked, changed inside, packed
 * again, and sizes, checksums, index and trailer are made to fit. So what is found lies behind the
 * checks that random damage never passes.
 */
#ifndef CUSCOPE_FUZZ_TRACE_MUTATOR_H
#define CUSCOPE_FUZZ_TRACE_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's: its own mutations of bytes, for within a custom mutator. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Changes the trace in `data`, which has room for `max` bytes. Returns its new size. */
size_t trace_mutate(uint8_t *data, size_t size, size_t max, unsigned seed);

/* The same for an input that begins with `prefix` bytes of settings. */
size_t trace_mutate_behind(uint8_t *data, size_t size, size_t max, unsigned seed, size_t prefix);

#endif
