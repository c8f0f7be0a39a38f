// SPDX-License-Identifier: MIT
#include "unwind/splice.h"

struct splicing {
	const struct wire_entry *entries;
	uint64_t sp;                 /* of the innermost native one */
	size_t natives, natives_end; /* where the native ones are */
	size_t python, end;          /* where those of Python are, with their anchors */
	bool (*is_evaluator)(void *data, const struct wire_entry *native);
	void *data;
	struct wire_entry *out;
	size_t n_out;
};

static uint64_t cfa_of(const struct wire_entry *native)
{
	return native->b & ENTRY_CFA_MASK;
}

/* Where the invocation ends whose frames begin at `from`: its anchor, or the end. */
static size_t anchor_after(const struct splicing *s, size_t from)
{
	while (from < s->end && entry_kind(&s->entries[from]) != ENTRY_ANCHOR)
		from++;
	return from;
}

/*
 * Whether an address is in the frame of native entry `i`, between its stack pointer and its CFA.
 * The frames of a signal's handler may be on a stack of their own, so its place among the others
 * says nothing.
 */
static bool holds(const struct splicing *s, size_t i, uint64_t address)
{
	uint64_t low = i > s->natives ? cfa_of(&s->entries[i - 1]) : s->sp;

	return low && address >= low && address < cfa_of(&s->entries[i]);
}

/* The native frame of the next invocation, at or outside of `from`; natives_end: there is none. */
static size_t find_evaluator(const struct splicing *s, size_t from, size_t anchor)
{
	uint64_t address = anchor < s->end ? s->entries[anchor].a : 0;

	for (size_t i = from; address && i < s->natives_end; i++)
		if (holds(s, i, address))
			return i;
	for (size_t i = from; s->is_evaluator && i < s->natives_end; i++)
		if (s->is_evaluator(s->data, &s->entries[i]))
			return i;
	return s->natives_end;
}

static void copy(struct splicing *s, size_t from, size_t to)
{
	for (; from < to && s->n_out < STACK_ENTRIES_MAX; from++)
		if (entry_kind(&s->entries[from]) != ENTRY_ANCHOR)
			s->out[s->n_out++] = s->entries[from];
}

size_t splice(const struct wire_entry *entries, size_t n, uint64_t sp, struct wire_entry *out,
              bool (*is_evaluator)(void *data, const struct wire_entry *native), void *data,
              bool *loosely)
{
	struct splicing s = { .entries = entries,
		              .sp = sp,
		              .end = n,
		              .is_evaluator = is_evaluator,
		              .data = data,
		              .out = out };
	size_t native, anchor, at;

	*loosely = false;
	while (s.natives < n && entry_kind(&entries[s.natives]) == ENTRY_KERNEL)
		s.natives++;
	s.natives_end = s.natives;
	while (s.natives_end < n && entry_kind(&entries[s.natives_end]) == ENTRY_NATIVE)
		s.natives_end++;
	copy(&s, 0, s.natives);
	native = s.natives;
	for (at = s.natives_end; at < n; at = anchor + 1) {
		size_t evaluator;

		anchor = anchor_after(&s, at);
		evaluator = anchor > at ? find_evaluator(&s, native, anchor) : native;
		if (anchor == at) /* an invocation that has not begun to run a frame */
			continue;
		if (evaluator == s.natives_end) {
			*loosely = true;
			copy(&s, native, s.natives_end);
			copy(&s, at, n);
			return s.n_out;
		}
		copy(&s, native, evaluator);
		copy(&s, at, anchor);
		native = evaluator + 1;
	}
	copy(&s, native, s.natives_end);
	return s.n_out;
}
