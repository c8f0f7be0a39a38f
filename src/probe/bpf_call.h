/* SPDX-License-Identifier: MIT */
/*
 * Calls of bpf(2) and perf_event_open(2) that libbpf 1.1 (Debian 12) does not know yet, and thin
 * names for those that attach one probe. Descriptors are returned to the caller, who closes them;
 * failures are negative errnos.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* include/uapi/linux/bpf.h: BPF_TRACE_UPROBE_MULTI since 6.6, _SESSION since 6.13. */
#define ATTACH_UPROBE_MULTI   48
#define ATTACH_UPROBE_SESSION 57

/*
 * One link for all `offsets` of the file behind `path` ("/proc/self/fd/N" is followed by the
 * kernel). `attach_type` is one of the two above; `counters` (may be NULL) turn markers on;
 * `returns` is BPF_F_UPROBE_MULTI_RETURN.
 */
int bpf_link_uprobe_multi(int prog_fd, unsigned attach_type, const char *path,
                          const uint64_t *offsets, const uint64_t *cookies,
                          const uint64_t *counters, size_t count, bool returns);

/* One perf event for one uprobe of any process, on every CPU. `counter`: of a marker, or 0. */
int perf_uprobe_open(const char *path, uint64_t offset, uint64_t counter, bool returns);

/* One for a function of the kernel. */
int perf_kprobe_open(const char *function, bool returns);

/* A perf event for a tracepoint: "syscalls/sys_enter_mmap". -ENOENT: tracefs has none of the name.
 */
int perf_tracepoint_open(const char *tracepoint);

/* Ties a program to a perf event, whose descriptor is what keeps it attached. 0 or a negative
 * errno. */
int perf_event_run(int perf_fd, int prog_fd);

/* The same by a link, with a cookie (5.15), or without both where `use_cookie` is false: 0. */
int perf_event_attach(int perf_fd, int prog_fd, bool use_cookie, uint64_t cookie);

/*
 * The keys of a map, `most` of them at most, which the caller frees. Some may be in it twice: a key
 * that goes away meanwhile makes the kernel begin anew.
 */
void *bpf_map_keys(int map, size_t key_bytes, size_t most, size_t *n);

/* The map of a section of data, by the end of its name: ".rodata"; NULL: there is none. */
struct bpf_object;
struct bpf_map *bpf_section(struct bpf_object *object, const char *ending);

/* The first bytes of ".bss", which are the programs' own memory; NULL, with errno. For munmap. */
void *bpf_section_shared(struct bpf_object *object, size_t bytes);

/* The root of a file system of the kernel's in a mount that nobody else sees, as a descriptor by
 * which files of it can be opened; or a negative errno. */
int hidden_mount(const char *type);

/*
 * Opens a file of tracefs, also where it is not mounted (a private mount that nobody else sees).
 * `path` is relative to its root. Returns a descriptor or a negative errno.
 */
int tracefs_open(const char *path);
