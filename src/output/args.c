// SPDX-License-Identifier: MIT
#include "output/args.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cuda/error.h"

size_t call_args(const struct call *call, const struct api_arg **args)
{
	size_t n = call->function->api ? api_args(call->function->api, args) : 0;

	return n < call->args.n_args ? n : call->args.n_args;
}

bool call_has_output(const struct call *call)
{
	return call_has_end(call) && !(call->flags & CALL_FAILED);
}

bool call_has_stream(const struct call *call)
{
	return call->args.has_stream && (call->op != OP_STREAM_CREATE || call_has_output(call));
}

void add_stream(struct buf *out, const struct call *call, uint64_t stream)
{
	if (!stream && api_is_per_thread(call->function->name))
		stream = STREAM_PER_THREAD;
	if (!stream)
		buf_putc(out, '0');
	else if (stream == STREAM_LEGACY)
		buf_puts(out, "legacy");
	else if (stream == STREAM_PER_THREAD)
		buf_puts(out, "per-thread");
	else
		buf_hex(out, stream);
}

void add_dims(struct buf *out, const uint32_t dims[3])
{
	for (int i = 0; i < 3; i++) {
		buf_putc(out, i ? ',' : '(');
		buf_u64(out, dims[i]);
	}
	buf_putc(out, ')');
}

float arg_float(uint64_t word)
{
	uint32_t bits = (uint32_t)word;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void add_text(struct buf *out, const struct call *call, uint64_t address)
{
	if (!call->text) {
		buf_hex(out, address);
		return;
	}
	buf_putc(out, '"');
	text_add_safe(out, call->text);
	buf_putc(out, '"');
}

static void add_size(struct buf *out, uint64_t bytes)
{
	if (bytes)
		buf_bytes(out, bytes);
	else
		buf_putc(out, '0');
}

void add_arg(struct buf *out, const struct call *call, const struct api_arg *args, size_t i)
{
	uint64_t value = call->args.arg[i];

	switch (args[i].type) {
	case T_INT:
	case T_DEVICE:
		buf_s64(out, (int32_t)value);
		break;
	case T_S64:
		buf_s64(out, (int64_t)value);
		break;
	case T_UINT:
	case T_U64:
		buf_u64(out, value);
		break;
	case T_FLOAT:
		buf_printf(out, "%.3f ms", (double)arg_float(value));
		break;
	case T_BYTES:
	case T_SIZE:
	case T_SHMEM:
		add_size(out, value);
		break;
	case T_STREAM:
		add_stream(out, call, value);
		break;
	case T_STRING:
		add_text(out, call, value);
		break;
	case T_COPYKIND:
		buf_puts(out, call->args.direction == DIRECTION_NONE
		                      ? "?"
		                      : api_direction_name(call->args.direction));
		break;
	case T_GRID:
		add_dims(out, call->args.grid);
		break;
	case T_BLOCK:
		add_dims(out, call->args.block);
		break;
	default:
		buf_hex(out, value);
		break;
	}
}

void add_dims_json(struct buf *out, const uint32_t dims[3])
{
	for (int i = 0; i < 3; i++) {
		buf_putc(out, i ? ',' : '[');
		buf_u64(out, dims[i]);
	}
	buf_putc(out, ']');
}

bool add_arg_number(struct buf *out, enum api_type type, uint64_t value)
{
	switch (type) {
	case T_S64:
		buf_s64(out, (int64_t)value);
		return true;
	case T_INT:
	case T_DEVICE:
		buf_s64(out, (int32_t)value);
		return true;
	case T_UINT:
	case T_U64:
	case T_BYTES:
	case T_SIZE:
	case T_SHMEM:
	case T_COPYKIND:
		buf_u64(out, value);
		return true;
	case T_FLOAT:
		buf_printf(out, "%.6f", (double)arg_float(value));
		return true;
	default:
		return false;
	}
}

void add_arg_json(struct buf *out, const struct call *call, enum api_type type, uint64_t value)
{
	if (add_arg_number(out, type, value))
		return;
	switch (type) {
	case T_GRID:
		add_dims_json(out, call->args.grid);
		break;
	case T_BLOCK:
		add_dims_json(out, call->args.block);
		break;
	case T_STRING:
		if (call->text) {
			buf_json_string(out, call->text);
			break;
		}
		/* fall through */
	default:
		buf_putc(out, '"');
		buf_hex(out, value);
		buf_putc(out, '"');
		break;
	}
}

void add_result(struct buf *out, const struct call *call)
{
	const char *name = cuda_error_name(call->function->layer, call->result);

	if (!name && !call_is_cuda(call)) { /* not known to be an error */
		buf_s64(out, call->result);
		return;
	}
	buf_puts(out, name ? name : "error");
	buf_puts(out, " (");
	buf_s64(out, call->result);
	buf_putc(out, ')');
}
