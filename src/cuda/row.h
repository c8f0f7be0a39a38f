/* SPDX-License-Identifier: MIT */
/*
 * The inside of src/cuda: a row as it is written in the tables, and what is made of it once.
 *
 * A row's arguments are one string, `name:type` each, in the order of the C prototype. It may stop
 * early: what is not written is not recorded. The language:
 *
 *   bytesize:bytes         a parameter; the words for types are the table in spec.c
 *   dptr:*ptr              a pointer to an output of that type, read when the call returned 0
 *   dptr:*ptr/4            the value is 4 bytes wide (what CUDA 3.1 calls an address)
 *   gridDim:grid           dim3 by value: two registers
 *   gridDim:grid3          three unsigned: three parameters (grid2: two)
 *   config:addr x:uint@24  the field at byte 24 of the struct that the parameter before points at
 *   p:*ptr pitch:*bytes@8  the same, but read after the call
 *   extent:struct24        a struct by value; `width:bytes@0` after it is a field of it
 *   -                      a parameter of one register that is not worth showing
 *   -:srctype@16           a value that is used and not shown
 *
 * From that follow, for each ABI: where every value is (struct row_where) and what has to be
 * recorded (struct capture_plan).
 */
#pragma once

#include "cuda/api.h"

enum row_flags {
	ON = 0,
	OFF = 1 << 0,   /* a getter or a poll: left alone unless asked for */
	ASYNC = 1 << 1, /* the host does not wait for the work */
	V2 = 1 << 2,    /* the _v2 export has the same arguments */
	FLAT = 1 << 3,  /* a launch: what is not said of the grid is 1 */
};

struct api_row {
	const char *name; /* no _ptsz, _ptds; _vN where that version has its own arguments */
	uint8_t cls, op, memory, direction, flags;
	const char *spec;
};

/* The four fields from `op` to `direction`, for the tables. */
#define PLAIN         OP_NONE, MEMORY_NONE, DIRECTION_NONE
#define OP(name)      OP_##name, MEMORY_NONE, DIRECTION_NONE
#define ALLOC(memory) OP_ALLOC, MEMORY_##memory, DIRECTION_NONE
#define FREE(memory)  OP_FREE, MEMORY_##memory, DIRECTION_NONE
#define VMM(name)     OP_##name, MEMORY_VMM, DIRECTION_NONE
#define COPY(towards) OP_COPY, MEMORY_NONE, DIRECTION_##towards

extern const struct api_row driver_rows[], runtime_rows[];
extern const size_t n_driver_rows, n_runtime_rows;

/* ---- a row, parsed ------------------------------------------------------------------------- */

#define PARAMS_MAX 14 /* C parameters that a spec may describe */
#define PIECES_MAX 20 /* values among them */
#define NO_ARG     255

/* The part that a value plays in its call, beyond being shown. */
enum part {
	PART_NONE,
	PART_ADDRESS,
	PART_SOURCE,
	PART_STREAM,
	PART_EVENT,
	PART_HANDLE,
	PART_SHMEM,
	PART_KIND,     /* cudaMemcpyKind */
	PART_LAUNCHES, /* kernels that one call launches: a device each */
	PART_GRID,     /* + 1, + 2: y and z */
	PART_BLOCK = PART_GRID + 3,
	PART_FACTOR = PART_BLOCK + 3, /* the bytes of the call are the product of these */
	PART_SPARE,    /* stands in for a factor that is an output and did not come back */
	PART_DIM,      /* extent of an array; 0 counts as 1 */
	PART_LEVELS,   /* of a mipmapped array: each has half the extents */
	PART_BITS,     /* of one channel of a cudaChannelFormatDesc */
	PART_FORMAT,   /* CUarray_format */
	PART_SRC_TYPE, /* CUmemorytype; it says which of the next three is the source */
	PART_SRC_HOST,
	PART_SRC_DEVICE,
	PART_SRC_ARRAY,
	PART_DST_TYPE,
	PART_DST_HOST,
	PART_DST_DEVICE,
	PART_DST_ARRAY,
};

/* One value of a call. */
struct piece {
	uint8_t type;   /* enum api_type */
	uint8_t part;   /* enum part */
	uint8_t width;  /* bytes: 4 or 8 */
	uint8_t scale;  /* PART_FACTOR: bytes each, for counts of 16-bit and 32-bit words */
	uint8_t param;  /* index of the C parameter that it is or is reached through */
	uint8_t offset; /* within it, or within what it points at */
	uint8_t arg;    /* index of the argument that shows it, or NO_ARG */
	bool deref;     /* behind a pointer */
	bool out;       /* and there only after the call */
};

enum where { NOWHERE, IN_REG, IN_STACK, IN_OUT, IN_BLOB };

/* Where a value is in struct api_raw: byte `offset` of one of its arrays. */
struct row_where {
	uint8_t where;
	uint8_t offset;
};

struct layout {
	struct capture_plan plan;
	struct row_where at[PIECES_MAX];
};

struct api {
	const struct api_row *row;
	uint8_t n_args, n_params, n_pieces;
	uint8_t param_bytes[PARAMS_MAX]; /* by value: 8, or the size of a struct */
	struct api_arg arg[API_ARGS_MAX];
	struct piece piece[PIECES_MAX];
	struct layout layout[ABI_COUNT];
};

/* spec.c: fills args, params and pieces. False, with what came before, where the spec is wrong. */
bool api_parse(struct api *api, const struct api_row *row);

/* abi.c: fills layout[abi]. */
void api_lay_out(struct api *api, enum api_abi abi);

/* spec.c: of a base name (no version, no _ptsz) that has no row. */
enum api_class guess_class(const char *base);
bool guess_default_on(const char *base);
