/* SPDX-License-Identifier: MIT */
/*
 * Hooks that a user asks for, in words: what --hook says, and a line of a file of --hooks.
 *
 *   uprobe:libnccl.so:ncclAllReduce(send=arg0:ptr, count=arg2:u64) as nccl if count > 1024
 *
 *   KIND:PLACE [(ARGUMENTS)] [as NAME] [if FILTER]
 *
 *   uprobe:MODULE:GLOB         a function of a library or program, as a span: entry to return
 *   uentry:MODULE:GLOB         its entry alone, a moment
 *   uretprobe:MODULE:GLOB      its return alone, a moment
 *   usdt:MODULE:PROVIDER:NAME  a marker that the program's author has put there, a moment
 *   kprobe:[MODULE:]GLOB       a function of the kernel, as a span; kentry, kretprobe: a moment
 *   tracepoint:GROUP:GLOB      a moment
 *
 * An argument is [NAME=]VALUE[*TABLE(VALUE)][:TYPE][@return][@user]. VALUE is argN (N from 0), ret,
 * or the name of a tracepoint's field. Behind argN or ret, "+16" reads what lies 16 bytes behind
 * where it points, "->8" goes on from there, and a star before all of it reads where that points.
 * Behind arguments of the kernel's functions that is the kernel's memory; "@user" makes it the
 * process's. An address that a process has chosen is never to be read as one of the kernel's: see
 * kstr.
 *
 * This is the language alone: what the words mean is known without looking at the machine. Whether
 * a function or a field exists is for src/probe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPEC_TEXT_MAX   4096 /* bytes of one hook */
#define SPEC_ARGS_MAX   12   /* that are shown; as many as any call has */
#define SPEC_VALUES_MAX 16   /* with those that only the filter asks for */
#define SPEC_LOADS_MAX  3    /* reads of memory on the way to a value */
#define SPEC_ARG_LAST   11   /* six registers, six words of the stack */
#define SPEC_FILTER_MAX 32   /* comparisons, and what joins them */
#define SPEC_CHARS_MAX  255  /* of char[N] */
#define SPEC_NAME_MAX   24   /* of an argument, with its NUL */
#define SPEC_PLACE_MAX  256  /* of a module, a glob, a provider, with their NUL */
#define SPEC_TABLE_MAX  64   /* numbers of a table */

enum spec_kind {
	SPEC_UPROBE,
	SPEC_UENTRY,
	SPEC_URETPROBE,
	SPEC_USDT,
	SPEC_KPROBE,
	SPEC_KENTRY,
	SPEC_KRETPROBE,
	SPEC_TRACEPOINT,
	SPEC_KINDS
};

enum spec_type {
	SPEC_I8,
	SPEC_I16,
	SPEC_I32,
	SPEC_I64,
	SPEC_U8,
	SPEC_U16,
	SPEC_U32,
	SPEC_U64,
	SPEC_HEX,   /* 64 bits */
	SPEC_BYTES, /* 64 bits, a size */
	SPEC_PTR,
	SPEC_STR,   /* the value points at text that a NUL ends */
	SPEC_CHARS, /* char[N]: the text lies there itself */
	/* the same of functions of the kernel, in its memory and not in the process's: */
	SPEC_KSTR,
	SPEC_KCHARS,
	SPEC_TYPES
};

enum spec_base { BASE_ARG, BASE_RET, BASE_FIELD };

/* Numbers by number, which a line of a file gives: how many bytes each data type has. */
struct spec_table {
	char name[SPEC_NAME_MAX];
	uint64_t number[SPEC_TABLE_MAX];
	size_t n;
	struct spec_table *next;
};

struct spec_value {
	char name[SPEC_NAME_MAX];
	char field[64]; /* BASE_FIELD */
	enum spec_base base;
	enum spec_type type;
	bool typed;     /* the type was said; a field has its own */
	bool hidden;    /* only the filter asks for it */
	bool on_return; /* memory is read when the function returns */
	bool in_user;   /* of the kernel: the memory is the process's */
	uint8_t index;  /* BASE_ARG */
	uint8_t n_loads;
	int32_t offset[SPEC_LOADS_MAX];
	uint16_t chars;                 /* SPEC_CHARS, SPEC_KCHARS */
	const struct spec_table *table; /* it is multiplied by a number of this, or NULL: */
	uint8_t factor;                 /* the one that this value says */
	size_t key_at;                  /* where in the text that is named */
	size_t at;                      /* where in the text it stands */
};

/* A filter is worked off from the left, with a stack of truths. */
enum filter_op {
	FILTER_EQ,
	FILTER_NE,
	FILTER_LT,
	FILTER_LE,
	FILTER_GT,
	FILTER_GE,
	FILTER_ANY_BIT, /* flags & 0x4 */
	FILTER_AND,     /* of the two truths before */
	FILTER_OR,
	FILTER_NOT, /* of the one before */
};

#define FILTER_DURATION 255 /* in place of a value: how long the call took */

struct filter_step {
	uint8_t op;    /* enum filter_op */
	uint8_t value; /* of a comparison: which of the values */
	bool is_signed;
	uint64_t with;
};

struct hook_spec {
	enum spec_kind kind;
	char module[SPEC_PLACE_MAX];   /* "" where there is none; of a tracepoint its group */
	char provider[SPEC_PLACE_MAX]; /* of usdt */
	char glob[SPEC_PLACE_MAX];
	char as[32]; /* "": the module's name */
	bool listed; /* there are brackets; a tracepoint without shows all of its fields */
	struct spec_value value[SPEC_VALUES_MAX]; /* hidden ones come last */
	size_t n_values;
	struct filter_step filter[SPEC_FILTER_MAX];
	size_t n_filter;
	size_t module_at, glob_at; /* where in the text they stand */
	/* A module's path without the links in it, with the list; NULL: it leads over none. */
	char *real_module;
	char *text;       /* as the user wrote it */
	const char *file; /* NULL: --hook; owned by the list */
	size_t line;
	bool optional; /* nobody minds if there is no such place: "?" before it, in files */
	bool unasked;  /* by cuscope itself: nor if its place has another hook */
};

/* What is wrong with a text, and where: the byte from its begin. */
struct hook_mistake {
	size_t at;
	char says[400]; /* one sentence, what is allowed with it */
};

/*
 * Reads one hook, which may name these tables (a list, NULL: none). False with *mistake where it is
 * none; then nothing is to be freed.
 */
bool spec_read(const char *text, const struct spec_table *tables, struct hook_spec *spec,
               struct hook_mistake *mistake);
void spec_free(struct hook_spec *spec);

const char *spec_kind_name(enum spec_kind kind); /* "uprobe" */
bool spec_is_span(const struct hook_spec *spec); /* it has a begin and an end */
bool spec_is_kernel(const struct hook_spec *spec);

unsigned spec_type_bytes(enum spec_type type); /* 1 to 8; of text: those of its address */
bool spec_type_is_signed(enum spec_type type);
bool spec_type_is_text(enum spec_type type);
bool spec_type_has_length(enum spec_type type); /* char[N] */
bool spec_type_is_kernel(enum spec_type type);  /* text of the kernel */

/* Whether the filter can be decided when the function is entered. */
bool spec_filter_on_entry(const struct hook_spec *spec);

/* Whether it tells of returns alone, or shows or asks for what is known then. */
bool spec_needs_return(const struct hook_spec *spec);

/* A value times the number of its table that `key` says; 0 for one that the table has not. */
uint64_t spec_value_times(const struct spec_value *value, uint64_t number, uint64_t key);

/* For tests: what the filter says of these values, one for each of the spec's, extended to 64 bits.
 */
bool spec_filter_passes(const struct filter_step *steps, size_t n, const uint64_t *values,
                        uint64_t duration_ns);
