/* SPDX-License-Identifier: MIT */
/* One decoded argument of a call as text: the words that the formats share. Private
 * to src/output. */
#ifndef CUSCOPE_OUTPUT_ARGS_H
#define CUSCOPE_OUTPUT_ARGS_H

#include <stdbool.h>

#include "base/buf.h"
#include "trace/event.h"

/* Arguments that a call has, and their names and types. */
size_t call_args(const struct call *call, const struct api_arg **args);

/* Whether an argument's value is known: outputs are not before the end, nor after a failure. */
bool call_has_output(const struct call *call);

/* "0" for the default stream, "legacy", "per-thread", else the handle. */
void add_stream(struct buf *out, const struct call *call, uint64_t stream);

/* Whether call->args.stream is one: not that of a stream whose creation failed. */
bool call_has_stream(const struct call *call);

/* "(196,1,1)" */
void add_dims(struct buf *out, const uint32_t dims[3]);

/* As a person reads it: sizes with units, handles in hexadecimal, strings in quotes. */
void add_arg(struct buf *out, const struct call *call, const struct api_arg *args, size_t i);

/* A plain number as every output has it. False: the type is none, and nothing was added. */
bool add_arg_number(struct buf *out, enum api_type type, uint64_t value);

/* A value of this type as JSON: numbers, handles and addresses as "0x1f", texts as they are. */
void add_arg_json(struct buf *out, const struct call *call, enum api_type type, uint64_t value);

/* "[196,1,1]" */
void add_dims_json(struct buf *out, const uint32_t dims[3]);

/* The value of a T_FLOAT, whose bits are in the low half of the word. */
float arg_float(uint64_t word);

/* "cudaErrorMemoryAllocation (2)", "error 12345 (12345)" */
void add_result(struct buf *out, const struct call *call);

#endif
