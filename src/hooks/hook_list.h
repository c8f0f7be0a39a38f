/* SPDX-License-Identifier: MIT */
/*
 * All hooks that a user asks for: those of --hook, one each, and of files of --hooks. A file has a
 * hook in each line, and besides
 *
 *   # a remark
 *   table NAME = 1 1 4 8      numbers, from that of 0 on: see spec.h
 *   driver 545-               what follows is for these versions of the driver; 515-544, any
 *   machine aarch64           what follows is for this kind of processor; x86_64, any
 *   ?kprobe:nvidia:nv_open    nobody minds if there is no such function
 *
 * A name without a slash is that of a file which cuscope has in itself (--hooks nccl).
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "hooks/spec.h"

#define HOOK_LIST_MAX    1024 /* hooks in all; a glob is one */
#define HOOK_MATCHES     512  /* functions of one glob, unless --hook-limit says more */
#define HOOK_MATCHES_TOP 8192 /* the most that it may say */

struct hook_list {
	struct hook_spec **spec;
	size_t n;
	size_t matches;  /* 0: HOOK_MATCHES */
	bool first_kept; /* of more than that, the first: to be listed, not hooked */
	char **files;    /* their names, as the hooks have them */
	size_t n_files;
	struct spec_table *tables;
	unsigned
		driver; /* major version of the driver; 0: not known, then all versions are meant */
	const char *machine; /* "aarch64"; NULL: what cuscope is built for */
};

/*
 * Both return 0, or -EINVAL with what is wrong in several lines: the sentence, the text, and a
 * caret under the byte. Files that cannot be read: another negative errno, and one line.
 */
int hook_list_add(struct hook_list *list, const char *text, struct buf *wrong);
int hook_list_add_file(struct hook_list *list, const char *name, struct buf *wrong);

/* Those of a file within cuscope that nobody asked for: none is told of that is not hooked. What a
 * user asked for comes before. */
void hook_list_add_unasked(struct hook_list *list, const char *name);

/* A user asked for one of them. NULL: there are none. */
bool hook_list_was_asked(const struct hook_list *list);

/* The same of a file's text. */
int hook_list_add_text(struct hook_list *list, const char *file, const char *text,
                       struct buf *wrong);

void hook_list_free(struct hook_list *list);

/* "--hook", "nccl, line 7": where a hook was asked for. */
void hook_list_add_origin(const struct hook_spec *spec, struct buf *out);

/* A mistake that shows when the machine was looked at; the same lines. */
void hook_list_add_mistake(const struct hook_spec *spec, const struct hook_mistake *mistake,
                           struct buf *wrong);

/* Names and texts of the files that cuscope has in itself; NULL behind the last. */
const char *hook_file_name(size_t index);
