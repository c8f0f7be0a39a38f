// SPDX-License-Identifier: MIT
/*
 * Folded stacks: "main;step;cudaLaunchKernel;[GPU_Kernel]gemm 41000", a line for each stack, which
 * flamegraph.pl, inferno and speedscope read. The number is microseconds, of CPUs and of GPUs
 * alike, so that both have widths that can be compared. Readers take them for samples, and some
 * make one of each: of nanoseconds there would be a thousand times as many.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "profile/writers.h"

#define APART "\\x3b" /* what stands for a semicolon within a name */

/* Controls become \xNN, and so does a semicolon, which would end the frame. */
static void add_name(struct buf *out, const char *name)
{
	size_t from = out->len, plain;
	char *part;

	text_add_safe(out, *name ? name : "-"); /* no name at all would be no frame */
	if (!strchr(out->data + from, ';'))
		return;
	part = xstrdup(out->data + from);
	out->len = from;
	for (const char *at = part; *at; at += plain) {
		plain = strcspn(at, ";");
		buf_add(out, at, plain);
		for (; at[plain] == ';'; at++)
			buf_puts(out, APART);
	}
	free(part);
}

/* None is lost for being short. */
static uint64_t whole_us(uint64_t ns)
{
	uint64_t us = ns / 1000 + (ns % 1000 >= 500);

	return ns && !us ? 1 : us;
}

static void cut_to(struct buf *path, size_t len)
{
	path->len = len;
	path->data[len] = '\0';
}

/* `ends`: for each level, where the path ends that leads to the frame there. */
static void write_all(const struct tree *tree, size_t *ends, struct buf *path, struct lines *lines)
{
	for (uint32_t at = tree_next(tree, 0); at != KEEP_NONE; at = tree_next(tree, at)) {
		uint32_t depth = tree->nodes[at].depth;
		uint64_t self[] = { tree_self(tree, 0, at), tree_self(tree, 1, at) };

		cut_to(path, ends[depth - 1]);
		if (depth > 1)
			buf_putc(path, ';');
		add_name(path, tree_label(tree, at));
		ends[depth] = path->len;
		if (!self[0] && !self[1])
			continue;
		buf_add(&lines->pending, path->data, path->len);
		buf_putc(&lines->pending, ' ');
		buf_u64(&lines->pending, whole_us(self[0]));
		if (tree->profiles[1]) {
			buf_putc(&lines->pending, ' ');
			buf_u64(&lines->pending, whole_us(self[1]));
		}
		buf_putc(&lines->pending, '\n');
		if (lines_added(lines, NULL))
			return;
	}
}

void folded_write_tree(const struct tree *tree, struct lines *lines)
{
	size_t *ends = xcalloc(tree->deepest + 1, sizeof(*ends));
	struct buf path = { 0 };

	buf_reserve(&path, 256);
	write_all(tree, ends, &path, lines);
	free(ends);
	buf_free(&path);
}

void folded_write(const struct profile *profile, const struct profile_info *info,
                  struct lines *lines)
{
	struct tree tree = { 0 };

	tree_add(&tree, profile, 0, info_kinds(info));
	tree_finish(&tree);
	folded_write_tree(&tree, lines);
	tree_free(&tree);
}
