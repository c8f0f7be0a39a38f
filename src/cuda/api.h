/* SPDX-License-Identifier: MIT */
/*
 * What CUDA means: the functions whose arguments cuscope understands, as rows of one table.
 *
 * A function that has no row is still traced, with name, time and result (docs/decisions.md, 2);
 * a row adds a class, a default (traced or left alone) and typed arguments. From the types
 * follows everything else: which registers and stack words the eBPF program must record on this
 * machine (capture_plan), and what the recorded words mean (api_decode).
 *
 * Variants share a row: `_ptsz` and `_ptds` always, `_v2` where its arguments are the same. A
 * version whose arguments differ has a row of its own. One that is newer than the tables has none:
 * an older one's arguments would show wrong values.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest argument list that any decoded function has. */
#define API_ARGS_MAX 12

enum api_layer {
	LAYER_DRIVER,  /* libcuda: cu* */
	LAYER_RUNTIME, /* libcudart, shared or linked in: cuda*, __cuda* */
	/* No CUDA calls: system calls to the driver and functions of its kernel modules, and what a
	 * user asked for by --hook. The numbers are in trace files. */
	LAYER_KERNEL,
	LAYER_HOOK,
	LAYER_COUNT
};

#define LAYERS_OF_CUDA 2 /* the first two */

static inline bool layer_is_cuda(enum api_layer layer)
{
	return layer == LAYER_DRIVER || layer == LAYER_RUNTIME;
}

const char *api_layer_name(enum api_layer layer); /* "driver", "runtime", "kernel", "hook" */

enum api_class {
	CLASS_LAUNCH,
	CLASS_MEMORY,
	CLASS_TRANSFER,
	CLASS_SYNC,
	CLASS_STREAM,
	CLASS_EVENT,
	CLASS_GRAPH,
	CLASS_MODULE,
	CLASS_DEVICE,
	CLASS_OTHER,
	CLASS_COUNT,
};

/* What a call does, for the analyses. */
enum api_op {
	OP_NONE,
	OP_LAUNCH,       /* asks for one kernel */
	OP_GRAPH_LAUNCH, /* asks for all nodes of an instantiated graph */
	OP_HOST_LAUNCH,  /* puts a host function on a stream */
	OP_ALLOC,        /* makes memory: address and bytes */
	OP_FREE,         /* gives it back: address */
	OP_COPY,         /* moves bytes in a direction */
	OP_SET,          /* fills bytes */
	OP_SYNC,         /* blocks the host until the device did something */
	OP_STREAM_CREATE,
	OP_STREAM_DESTROY,
	OP_CAPTURE_BEGIN, /* a stream starts recording into a graph */
	OP_CAPTURE_END,
	OP_EVENT_RECORD,    /* event on stream */
	OP_EVENT_WAIT,      /* stream waits for event: a capture spreads this way */
	OP_NAME_KERNEL,     /* ties a handle or host stub to a kernel's name */
	OP_MODULE_UNLOAD,   /* handles of kernels die */
	OP_CONTEXT_DESTROY, /* memory of a context or device dies: implicit frees */
	OP_MAP,    /* addresses get the memory of a handle, which lives as long as they have it */
	OP_UNMAP,  /* and lose it */
	OP_RETAIN, /* gives out a handle of memory that there is, to be released like all others */
	OP_INSTANTIATE, /* makes what can be launched of a graph */
	OP_GRAPH_ALLOC, /* a node of a graph, which allocates when it runs */
	OP_GRAPH_FREE,  /* a node that frees then */
	OP_COUNT,
};

enum api_memory { /* kind of memory of OP_ALLOC and OP_FREE */
	          MEMORY_NONE,
	          MEMORY_DEVICE,
	          MEMORY_ASYNC, /* stream-ordered, from a pool */
	          MEMORY_MANAGED,
	          MEMORY_HOST,   /* pinned host memory */
	          MEMORY_ARRAY,  /* cudaArray, mipmapped array */
	          MEMORY_VMM,    /* cuMemCreate handle: physical memory */
	          MEMORY_VMM_VA, /* reserved addresses: no physical memory, not counted as bytes */
	          MEMORY_COUNT,
};

enum api_direction { /* of OP_COPY */
	             DIRECTION_NONE,
	             DIRECTION_H2D,
	             DIRECTION_D2H,
	             DIRECTION_D2D,
	             DIRECTION_H2H,
	             DIRECTION_P2P,
	             DIRECTION_DEFAULT, /* cudaMemcpyDefault, cuMemcpy: the driver infers it from
	                                   the pointers */
	             DIRECTION_COUNT,
};

/* How an argument is shown, and the part it plays for the op of its row. */
enum api_type {
	T_NONE,
	T_INT,  /* signed 32 bits */
	T_UINT, /* unsigned 32 bits */
	T_U64,
	T_FLOAT, /* float behind an output pointer: milliseconds of cudaEventElapsedTime. The */
		 /* argument's value is its 32 bits. */
	T_HEX,   /* flags, options */
	T_BYTES, /* the size that OP_ALLOC, OP_COPY and OP_SET count, or the factor of it that */
		 /* is in bytes (pitch, width): api_call.bytes is the whole */
	T_SIZE,  /* another size: pitch, offset, width */
	T_PTR,   /* the address that OP_ALLOC made or OP_FREE frees */
	T_DST,
	T_SRC,
	T_ADDR, /* an address with no part to play */
	T_STREAM,
	T_EVENT,
	T_KERNEL,   /* CUfunction, CUkernel, cudaKernel_t or a host stub */
	T_HOSTFUN,  /* the host stub that a kernel is registered under */
	T_STRING,   /* char * */
	T_COPYKIND, /* cudaMemcpyKind */
	T_DEVICE,
	T_CONTEXT,
	T_MODULE,
	T_GRAPH,
	T_GRAPHEXEC,
	T_POOL,
	T_HANDLE, /* any other opaque handle */
	T_GRID,   /* dim3 by value, three unsigned in the driver's calls, or a field of a struct: */
		  /* in all cases one argument, "gridDim" */
	T_BLOCK,
	T_SHMEM, /* dynamic shared memory, bytes */
	T_S64,   /* signed 64 bits: of calls that are not CUDA's */
	T_COUNT,
};

struct api_arg {
	char name[24];
	enum api_type type;
	bool out; /* a pointer whose target is read when the call returned 0 */
};

struct api; /* one row; opaque */

/* ---- looking up ---------------------------------------------------------------------------- */

/*
 * Whether `symbol` is a CUDA API function: cu + capital, cuda + capital, __cuda + capital. Which
 * of them a module really offers is for src/probe to find.
 */
bool api_is_symbol(const char *symbol);

/* Whether it is a variant, _ptsz or _ptds, for which the default stream is the thread's own. */
bool api_is_per_thread(const char *symbol);

/* Handles of streams that are no pointers: cudaStreamLegacy, cudaStreamPerThread; in
 * both layers. */
#define STREAM_LEGACY     1
#define STREAM_PER_THREAD 2

/* The row of a symbol, NULL where none is known. Static storage; from any thread. */
const struct api *api_find(const char *symbol);

/* The names of the rows, one after the other; NULL behind the last. */
const char *api_known(size_t index);

/* Class and default of any symbol: from its row, or guessed from its name. */
enum api_class api_class(const char *symbol);
bool api_default_on(const char *symbol); /* false for getters and polls that tell little */

/* False where what comes back is no cudaError_t or CUresult: nothing, a pointer, a string. */
bool api_returns_status(const char *symbol);

enum api_op api_op(const struct api *api);
enum api_memory api_memory(const struct api *api);
bool api_is_async(const struct api *api); /* returns before the work is done */
/* Whether it has addresses or sizes of 32 bits, as functions of CUDA before 4.0 have. */
bool api_is_narrow(const struct api *api);
size_t api_args(const struct api *api, const struct api_arg **args); /* decoded arguments */

extern const char *const api_class_names[]; /* "launch", by enum api_class, up to a NULL */
const char *api_class_name(enum api_class cls);
const char *api_direction_name(enum api_direction dir); /* "H2D" */
const char *api_memory_name(enum api_memory memory);    /* "device" */

/* ---- recording ----------------------------------------------------------------------------- */

enum api_abi { ABI_X86_64, ABI_AARCH64, ABI_COUNT };

#if defined(__aarch64__)
#define ABI_NATIVE ABI_AARCH64
#else
#define ABI_NATIVE ABI_X86_64
#endif

#define PLAN_NO_ARG 15 /* in the index fields below */

/*
 * What the eBPF program records of one function, by machine word: the integer argument registers
 * in order (x86-64: rdi rsi rdx rcx r8 r9; AArch64: x0..x7) and the words above the return
 * address (x86-64) or at the stack pointer (AArch64) on entry.
 */
struct capture_plan {
	uint8_t regs;   /* registers to record, from the first: 0..8 */
	uint8_t stack;  /* stack words to record: 0..6 */
	uint8_t out[2]; /* registers that point at an output, read on return, or PLAN_NO_ARG */
	uint8_t out_bytes[2]; /* 4 or 8 */
	uint8_t blob;         /* register that points at a struct to record, or PLAN_NO_ARG */
	uint8_t blob_words;   /* its size in 8-byte words: 0..31 */
	bool blob_on_return;  /* read after the call rather than before it */
	uint8_t string;       /* register that points at a string to record, or PLAN_NO_ARG */
	uint8_t kernel;       /* register that holds a kernel handle to name, or PLAN_NO_ARG */
	uint8_t name_key; /* the string names this register's value; PLAN_NO_ARG: names out[0], */
			  /* or, where there is no out[0], the call itself */
	bool forgets_kernels; /* handles of kernels may be reused after this call */
};

void api_plan(const struct api *api, enum api_abi abi, struct capture_plan *plan);

/* The words that came back, at fixed offsets; what was not recorded or not readable is zero. */
struct api_raw {
	uint64_t out[2];
	uint64_t reg[8];
	uint64_t stack[6];
	uint64_t blob[31];
	bool out_valid; /* the call returned 0 and its outputs were read */
	bool blob_valid;
};

/*
 * Where the parts of a call lie that can be added up without decoding it: for programs that run in
 * the kernel. A struct api_where is a byte offset in struct api_raw; what the function does not
 * have is not `known`. The bytes of a call are the product of the factors times, for an array, its
 * elements times their bits by 8: what api_decode makes of the same words.
 */
struct api_where {
	bool known;
	uint16_t offset;
	uint8_t width; /* bytes: 4 or 8 */
	uint8_t scale; /* of a factor: 1, 2 or 4 */
};

struct api_parts {
	struct api_where address, source, stream, event, handle;
	struct api_where kind;      /* cudaMemcpyKind, where it says the direction */
	struct api_where launches;  /* how many kernels; not known: one */
	struct api_where factor[3]; /* the first is an output where there is a spare: */
	struct api_where spare;     /* stands in for it in a call that did not return 0 */
	struct api_where dim[3], levels;
	struct api_where bits[4]; /* summed up; or the first is a CUarray_format: */
	struct api_where grid[3], block[3];
	struct api_where from[4], to[4]; /* of a copy by struct: type, host, device, array */
	bool sized;                      /* the bytes can be known */
	bool array;                      /* dim, levels and bits count */
	bool format;
	bool flat; /* a launch that says nothing of its grid has one of 1 by 1 by 1 */
	enum api_direction direction; /* DIRECTION_NONE where the call itself says it */
};

void api_parts(const struct api *api, enum api_abi abi, struct api_parts *parts);

/* Bits of one channel of a CUarray_format, 0 where it is not known. */
unsigned api_format_bits(uint32_t format);

/* By a cudaMemcpyKind, and by the CUmemorytype of both ends. */
enum api_direction api_kind_direction(uint64_t kind);
enum api_direction api_types_direction(uint64_t from, uint64_t to);

/* ---- decoding ------------------------------------------------------------------------------ */

#define API_LAUNCHES_MAX 64 /* devices of a call: a process can say what it likes */

struct api_call {
	uint8_t n_args;
	/* One for each api_args() entry. Outputs hold what was written, or 0; T_GRID and T_BLOCK
	 * hold 0: see grid and block. */
	uint64_t arg[API_ARGS_MAX];
	uint64_t handle; /* T_KERNEL: function of a launch; T_GRAPHEXEC of a graph launch. */
			 /* OP_NAME_KERNEL: what the string names or, where there is no */
			 /* string, whose kernel the handle in the output (arg[0]) is too */
	uint64_t stream;
	uint64_t event;
	bool has_stream;
	uint32_t grid[3], block[3];
	uint64_t shmem_bytes;
	uint32_t launches; /* OP_LAUNCH: of the kernel, a device each; 0: one */
	uint64_t address;  /* OP_ALLOC, OP_FREE; destination of OP_COPY and OP_SET */
	uint64_t source;   /* OP_COPY */
	uint64_t bytes;    /* OP_ALLOC, OP_COPY, OP_SET */
	bool size_unknown; /* OP_COPY, OP_SET: the call does not say it, bytes are 0 */
	enum api_direction direction;
};

/* Fills `call` from the words of one call. Never fails: what is missing stays zero. */
void api_decode(const struct api *api, enum api_abi abi, const struct api_raw *raw,
                struct api_call *call);

/*
 * A row of the function tables as a trace file keeps it. The file has to tell its functions'
 * arguments also to a cuscope whose tables differ.
 *
 * The numbers of op, memory, direction, class and the flags are those above and in row.h. They are
 * stored, so entries of these enums keep their places: new ones are added at the end.
 */

struct api_text {
	const char *name, *spec; /* row.h describes the language of `spec` */
	uint32_t cls, op, memory, direction, flags;
};

/* The texts are static, or live as long as `api`. */
void api_to_text(const struct api *api, struct api_text *text);

/*
 * The row that was described so: the built-in one where it is the same. Else a new one with texts
 * of its own, which is put into `made` too; the caller frees that with api_free(). What this
 * program does not know (an op, a class, a type in the spec) is read as none, and the arguments of
 * a spec end before it.
 */
const struct api *api_from_text(const struct api_text *text, struct api **made);
void api_free(struct api *made);
