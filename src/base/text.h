/* SPDX-License-Identifier: MIT */
/*
 * Text for people. Names of processes, kernels and files are bytes that a traced program chose.
 * They may hold terminal escapes, broken UTF-8 or a thousand characters. None of these may reach a
 * screen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct buf;

/* Bytes of the valid UTF-8 sequence at `text`, 0 where there is none; `code` may be NULL. */
size_t text_utf8(const char *text, unsigned *code);

/*
 * C0 and C1 controls, the marks that reorder what stands around them, and U+FFFE and U+FFFF, which
 * are no characters: XML must not hold them. All below 0x10000.
 */
bool text_is_hostile(unsigned code);

/* Appends `text` with what a terminal could obey, or could not show, as \xNN. */
void text_add_safe(struct buf *out, const char *text);

/* A field of a csv: in quotes where it could be taken for something else. */
void text_add_csv(struct buf *out, const char *text);

/* The same in its place, as much of it as fits in `room` bytes. */
void text_make_safe(char *text, size_t room);

/* Columns that `text` takes on a terminal. */
size_t text_columns(const char *text);

/* Appends `text`, or as much of it as fits with "..." after it. */
void text_add_cut(struct buf *out, const char *text, size_t columns);

/*
 * Appends a C++ name in at most `columns`: the insides of brackets give way first, from the
 * innermost on, then return type and namespaces, then the end. "gemm<...>(...)" says more than
 * "void cutlass::gemm<cutlass::arch::Sm80, cutlas...".
 */
void text_add_name(struct buf *out, const char *name, size_t columns);

/*
 * What a name may have of bytes, from wherever it comes: it is cut when it comes in, since outputs
 * have it again with each event. Those of compilers and people are shorter: a kernel of
 * PyTorch 2.11 that fills with random numbers has 5,000, most of them the lambdas that it is made
 * of.
 */
#define TEXT_NAME_MAX 8192

/* Cuts a text that has more than `most` bytes, 3 at least, in place: "..." is at its end then. */
void text_cut_bytes(char *text, size_t most);

/*
 * Makes lines of `out`, from byte `from` on, no wider than a terminal. What is too wide goes on in
 * a next line, between two words, two blanks further in. A word that is wider than the terminal
 * stays whole. 0 columns: nothing is done. Knows colours (ESC [ ... m).
 */
void text_wrap_lines(struct buf *out, size_t from, size_t columns);

/* Appends blanks until `out` has `columns` columns since `from`, a length it had before. */
void text_pad(struct buf *out, size_t from, size_t columns);

/* ---- xml ----------------------------------------------------------------------------------- */

/* Text in XML: what the SVG pictures are written with. */

/*
 * Appends `text` so that it can stand between tags and in attributes. XML has no way to write most
 * control characters, and a picture with one in it is not shown at all: they become \xNN, as does
 * what is not UTF-8.
 */
void xml_add_text(struct buf *out, const char *text);
