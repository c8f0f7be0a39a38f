// SPDX-License-Identifier: MIT
#include "account/chains_inside.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/place.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/vec.h"
#include "cuda/kernel_name.h"

#define FRAME_COLUMNS 100 /* of a label: the rest of a longer one gives way */

/* ---- numbers by keys ------------------------------------------------------------------------- */

/* The number of a key: a new one is how many there were, and CHAINS_NONE where these are `most`. */
static uint32_t number_of(struct keyed *numbers, uint64_t key, size_t most)
{
	const void *row = keyed_row(numbers, &key, most);

	return row ? (uint32_t)keyed_number(numbers, row) : CHAINS_NONE;
}

/* ---- the tree -------------------------------------------------------------------------------- */

struct chains *chains_new(void)
{
	static const struct keyed numbers = { .row_bytes = sizeof(uint64_t),
		                              .key_bytes = sizeof(uint64_t) };
	struct chains *chains = xcalloc(1, sizeof(*chains));

	chains->nodes_by = chains->lines_by = chains->functions_by = numbers;
	*VEC_ADD(chains->nodes, chains->n_nodes) = (struct chains_node){ 0 };
	chains->scratch = xcalloc(1, sizeof(*chains->scratch));
	return chains;
}

void chains_free(struct chains *chains)
{
	if (!chains)
		return;
	keyed_free(&chains->nodes_by);
	keyed_free(&chains->lines_by);
	keyed_free(&chains->functions_by);
	FREE_ALL(chains->nodes, chains->lines, chains->by_frame, chains->by_stack, chains->parted);
	buf_free(&chains->text);
	FREE_ALL(chains->scratch->sums, chains->scratch->by_function, chains->scratch->group,
	         chains->scratch->inner, chains->scratch, chains);
}

static uint64_t hash_text(const struct buf *text)
{
	return hash_long(text->data, text->len);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void add_function(const struct stack_frame *frame, struct buf *out)
{
	char *name = chains_is_native(frame) ? kernel_name_qualified(frame->function) : NULL;

	buf_puts(out, name && *name ? name : frame->function);
	free(name);
}

/* A damaged recording has names of no letters. */
static bool has_text(const char *text)
{
	return text && *text;
}

static bool has_line(const struct stack_frame *frame)
{
	return has_text(frame->file) && frame->line;
}

/* One frame: "model.cpp:23 Model::grow", "Model::grow (app)" where no line is known, "app+0x1234"
 * where it has no name. */
static void chains_label_frame(const struct stack_frame *frame, struct buf *out)
{
	bool named = has_text(frame->function);

	if (has_line(frame))
		buf_printf(out, "%s:%u%s", place_file(frame->file), frame->line, named ? " " : "");
	if (named)
		add_function(frame, out);
	if (has_line(frame))
		return;
	if (!named && has_text(frame->module))
		buf_printf(out, "%s+0x%lx", frame->module, frame->offset);
	else if (!named)
		buf_puts(out, "[unknown]");
	else if (has_text(frame->file))
		buf_printf(out, " (%s)", place_file(frame->file));
	else if (has_text(frame->module))
		buf_printf(out, " (%s)", frame->module);
}

static bool has_words(const struct stack_frame *frame)
{
	return has_text(frame->function) || has_text(frame->module) || has_line(frame);
}

/* Places in code without names are a function each: nothing tells which belong together. */
static uint32_t function_of(struct chains *chains, const struct stack_frame *frame)
{
	struct buf *text = &chains->text;

	buf_reset(text);
	if (has_text(frame->function)) {
		add_function(frame, text);
		buf_printf(text, "\n%s\n%u",
		           frame->file     ? place_file(frame->file)
		           : frame->module ? frame->module
		                           : "",
		           chains_is_native(frame) ? 0 : frame->first_line);
	} else {
		chains_label_frame(frame, text);
	}
	return number_of(&chains->functions_by, hash_text(text), CHAINS_NODES_MAX);
}

struct known_frame *chains_known(struct chains *chains, const struct stack_frame *frame)
{
	return BY_ID(chains->by_frame, chains->n_by_frame, frame->id);
}

enum place_rank chains_rank(struct chains *chains, const struct stack_frame *frame)
{
	struct known_frame *known = chains_known(chains, frame);

	if (!known->rank)
		known->rank = (uint8_t)(place_rank(frame) + 1);
	return (enum place_rank)(known->rank - 1);
}

/* CHAINS_NONE where there is no room for another. */
static uint32_t line_of(struct chains *chains, const struct stack_frame *frame)
{
	struct known_frame *known = chains_known(chains, frame);
	uint32_t line;

	if (known->line)
		return known->line - 1;
	buf_reset(&chains->text);
	chains_label_frame(frame, &chains->text);
	line = number_of(&chains->lines_by, hash_text(&chains->text), CHAINS_NODES_MAX);
	if (line == CHAINS_NONE)
		return CHAINS_NONE;
	if (line == chains->n_lines) {
		*VEC_ADD(chains->lines, chains->n_lines) =
			(struct chains_line){ .frame = frame,
			                      .function = function_of(chains, frame) };
	}
	known->line = line + 1;
	return line;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/*
 * Puts parts in the place of their frames, as a reader does with those that it knows (STACK_PARTED_
 * DEPTH). They are the last of `parted`; returns how many.
 */
static size_t part_frames(struct chains *chains, const struct stack *stack)
{
	size_t room = STACK_PARTED_DEPTH + stack->n_frames, count = 0;

	if (room > chains->room_parted) {
		free(chains->parted);
		chains->parted = xcalloc(room, sizeof(struct stack_frame *));
		chains->room_parted = room;
	}
	for (size_t i = stack->n_frames; i-- > 0;) {
		const struct stack_frame *frame = stack->frames[i];
		const struct stack_frame **end = chains->parted + chains->room_parted;

		if (!frame->n_parts || count + frame->n_parts > STACK_PARTED_DEPTH) {
			end[-(ptrdiff_t)++count] = frame;
			continue;
		}
		for (size_t part = frame->n_parts; part-- > 0;)
			end[-(ptrdiff_t)++count] = frame->parts[part];
	}
	return count;
}

/* "f.<locals>.<genexpr>" of "f"; older Pythons tell its own name alone. */
static bool is_comprehension_of(const struct stack_frame *inner, const struct stack_frame *outer)
{
	static const char *const kinds[] = { "<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>" };
	const char *name = inner->function, *of = outer->function, *dot;
	bool is = false;
	size_t length;

	if (chains_is_native(inner) || chains_is_native(outer) || !has_text(name) || !has_text(of))
		return false;
	dot = strrchr(name, '.');
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		is |= !strcmp(dot ? dot + 1 : name, kinds[i]);
	if (!is || !dot)
		return is;
	length = (size_t)(dot - name);
	if (length > 9 && !strncmp(dot - 9, ".<locals>", 9))
		length -= 9;
	return strlen(of) == length && !strncmp(name, of, length);
}

/* The lines of a chain, innermost first; *cut: there are more. */
static size_t find_lines(struct chains *chains, const struct stack_frame *const *frames, size_t n,
                         uint32_t lines[CHAINS_DEPTH_MAX], bool *cut, bool *compiles,
                         bool *packaged)
{
	const struct stack whole = { .n_frames = n, .frames = frames };
	const struct chains_users users = chains_users_find(chains, frames, n);
	const struct stack_frame *place,
		*inner = chains_users_compiled(chains, &users, frames, compiles);
	uint32_t function = CHAINS_NONE;
	size_t count = 0;

	*cut = false;
	if (inner && has_words(inner)) {
		lines[count] = line_of(chains, inner);
		if (lines[count] != CHAINS_NONE)
			function = chains->lines[lines[count]].function;
		count++;
	}
	*packaged = users.package;
	if (users.python && users.innermost == n && !users.package)
		n = 0; /* libraries alone */
	for (size_t i = 0; i < n; i++) {
		uint32_t line;

		if (!chains_users_has(chains, &users, frames[i], i) || !has_words(frames[i]))
			continue;
		line = line_of(chains, frames[i]);
		if (inner && is_comprehension_of(inner, frames[i]))
			count--;
		else if (line != CHAINS_NONE && chains->lines[line].function == function)
			continue; /* the same function, which calls itself */
		if (count == CHAINS_DEPTH_MAX) {
			*cut = true;
			break;
		}
		lines[count++] = line;
		inner = frames[i];
		function = line == CHAINS_NONE ? CHAINS_NONE : chains->lines[line].function;
	}
	place = count ? NULL : place_of(&whole);
	if (place && has_words(place))
		lines[count++] = line_of(chains, place);
	return count;
}

/* Of a parent and a line; CHAINS_NONE where there is no room for another. */
static uint32_t node_of(struct chains *chains, uint32_t parent, uint32_t line)
{
	uint32_t number =
		number_of(&chains->nodes_by, (uint64_t)parent << 32 | line, CHAINS_NODES_MAX - 1);

	if (number == CHAINS_NONE || ++number != chains->n_nodes) /* node 0 has no key */
		return number;
	chains->nodes = vec_room(chains->nodes, chains->n_nodes, sizeof(*chains->nodes));
	chains->nodes[chains->n_nodes++] = (struct chains_node){
		.parent = parent,
		.line = line,
		.sibling = chains->nodes[parent].child,
		.depth = chains->nodes[parent].depth + 1,
	};
	chains->nodes[parent].child = number;
	return number;
}

static void mark_users(struct chains *chains, uint32_t parent, uint32_t node, bool packaged)
{
	enum place_rank rank = chains_rank(chains, chains_frame(chains, node));

	chains->nodes[node].own = rank == PLACE_PYTHON;
	chains->nodes[node].users |= chains->nodes[parent].users || rank == PLACE_PYTHON ||
	                             (packaged && rank == PLACE_PYTHON_LIBRARY);
}

static void mark_jax(struct chains *chains, const struct stack_frame *const *frames, size_t n,
                     uint32_t node)
{
	bool jax = false;

	for (size_t i = 0; i < n && !jax; i++)
		jax = place_is_jax(frames[i]);
	for (; jax && !chains->nodes[node].jax; node = chains->nodes[node].parent)
		chains->nodes[node].jax = true;
}

static struct known_stack look_at(struct chains *chains, const struct stack *stack)
{
	uint32_t lines[CHAINS_DEPTH_MAX], node = 0, next;
	size_t n = part_frames(chains, stack), count;
	bool cut, compiles, packaged;

	count = find_lines(chains, chains->parted + chains->room_parted - n, n, lines, &cut,
	                   &compiles, &packaged);
	chains->cut += cut;
	while (count--) {
		next = lines[count] == CHAINS_NONE ? CHAINS_NONE
		                                   : node_of(chains, node, lines[count]);
		if (next == CHAINS_NONE) {
			chains->refused++;
			break;
		}
		mark_users(chains, node, next, packaged);
		node = next;
	}
	mark_jax(chains, chains->parted + chains->room_parted - n, n, node);
	return (struct known_stack){ node + 1, compiles };
}

static struct known_stack known_stack_of(struct chains *chains, const struct stack *stack)
{
	struct known_stack *known = BY_ID(chains->by_stack, chains->n_by_stack, stack->id);

	if (!known->node)
		*known = look_at(chains, stack);
	return *known;
}

uint32_t chains_of(struct chains *chains, const struct stack *stack)
{
	return stack ? known_stack_of(chains, stack).node - 1 : 0;
}

bool chains_compile(struct chains *chains, const struct stack *stack)
{
	return stack && known_stack_of(chains, stack).compiles;
}

size_t chains_count(const struct chains *chains)
{
	return chains->n_nodes;
}

uint32_t chains_parent(const struct chains *chains, uint32_t node)
{
	return chains->nodes[node].parent;
}

size_t chains_depth(const struct chains *chains, uint32_t node)
{
	return chains->nodes[node].depth;
}

const struct stack_frame *chains_frame(const struct chains *chains, uint32_t node)
{
	return node ? chains->lines[chains->nodes[node].line].frame : NULL;
}

uint32_t chains_called(const struct chains *chains, uint32_t node)
{
	uint32_t at = node, called = node;

	for (; at && !has_line(chains_frame(chains, at)); at = chains->nodes[at].parent)
		called = at;
	return at ? called : node;
}

uint32_t chains_function(const struct chains *chains, uint32_t node)
{
	return node ? chains->lines[chains->nodes[node].line].function : CHAINS_NONE;
}

bool chains_is_users(const struct chains *chains, uint32_t node)
{
	return chains->nodes[node].users;
}

bool chains_has_jax(const struct chains *chains, uint32_t node)
{
	return chains->nodes[node].jax;
}

uint64_t chains_cut(const struct chains *chains)
{
	return chains->cut;
}

uint64_t chains_refused(const struct chains *chains)
{
	return chains->refused;
}

/* ---- telling --------------------------------------------------------------------------------- */

/* Of a place in a package the user's line that leads there: in the place of the outermost of so
 * many, unless it is one of them. False: nothing but begins of programs is missing outside of it.
 */
static bool tell_own(const struct chains *chains, uint32_t node, uint32_t *nodes, size_t n)
{
	while (node && !chains->nodes[node].own)
		node = chains->nodes[node].parent;
	if (!node || n < 2 || chains->nodes[node].depth >= chains->nodes[nodes[n - 1]].depth)
		return true;
	nodes[n - 1] = node;
	do
		node = chains->nodes[node].parent;
	while (node && chains_begins(chains_frame(chains, node)));
	return node;
}

size_t chains_told(const struct chains *chains, uint32_t node, size_t most, uint32_t *nodes,
                   bool *left_out)
{
	uint32_t inner = node;
	size_t n = 0;
	bool left = false;

	for (size_t from_inside = 0; node; node = chains->nodes[node].parent, from_inside++) {
		if (from_inside > 1 && chains_begins(chains_frame(chains, node)))
			continue;
		left = n == most;
		if (left)
			break;
		nodes[n++] = node;
	}
	if (left)
		left = tell_own(chains, inner, nodes, n);
	for (size_t i = 0; i < n / 2; i++) {
		inner = nodes[i];
		nodes[i] = nodes[n - 1 - i];
		nodes[n - 1 - i] = inner;
	}
	if (left_out)
		*left_out = left;
	return n;
}

/* A target's choice, as a screen may have it. */
static void add_shown_frame(const struct stack_frame *frame, struct buf *out)
{
	struct buf raw = { 0 }, safe = { 0 };

	chains_label_frame(frame, &raw);
	text_add_safe(&safe, raw.data ? raw.data : "");
	text_add_cut(out, safe.data ? safe.data : "", FRAME_COLUMNS);
	buf_free(&raw);
	buf_free(&safe);
}

void chains_label(const struct chains *chains, uint32_t node, size_t most, struct buf *out)
{
	uint32_t nodes[CHAINS_DEPTH_MAX];
	bool left_out;
	size_t n;

	if (!node) {
		buf_puts(out, PLACE_NO_STACK);
		return;
	}
	if (most > CHAINS_DEPTH_MAX)
		most = CHAINS_DEPTH_MAX;
	n = chains_told(chains, node, most ? most : 1, nodes, &left_out);
	for (size_t i = 0; i < n; i++) {
		bool next = i && chains->nodes[nodes[i]].parent == nodes[i - 1];

		buf_puts(out, next ? " > " : i ? " > ... > " : left_out ? "... > " : "");
		add_shown_frame(chains_frame(chains, nodes[i]), out);
	}
}

void chains_label_below(const struct chains *chains, uint32_t node, uint32_t caller,
                        struct buf *out)
{
	size_t depth = chains->nodes[caller].depth;
	uint32_t callee = node;

	while (chains->nodes[callee].depth > depth + 1)
		callee = chains->nodes[callee].parent;
	add_shown_frame(chains_frame(chains, callee), out);
	if (callee == node)
		return;
	buf_puts(out, chains->nodes[node].parent == callee ? " > " : " > ... > ");
	add_shown_frame(chains_frame(chains, node), out);
}
