// SPDX-License-Identifier: MIT
#include "probe/bpf_call.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/array.h"
#include "base/file.h"
#include "base/xalloc.h"

/* The part of union bpf_attr that BPF_LINK_CREATE reads for uprobe_multi, as 6.6 laid it out. */
struct multi_link_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t count;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t reserved;
};

#define MULTI_RETURN 1u /* BPF_F_UPROBE_MULTI_RETURN */

int bpf_link_uprobe_multi(int prog_fd, unsigned attach_type, const char *path,
                          const uint64_t *offsets, const uint64_t *cookies,
                          const uint64_t *counters, size_t count, bool returns)
{
	struct multi_link_attr attr = {
		.prog_fd = prog_fd,
		.attach_type = attach_type,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.ref_ctr_offsets = (uintptr_t)counters,
		.cookies = (uintptr_t)cookies,
		.count = count,
		.multi_flags = returns ? MULTI_RETURN : 0,
	};
	long fd = syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

/* A number in a file of an event source; its "retprobe" is written "config:0". */
static int event_source_number(const char *source, const char *name, const char *fmt)
{
	char path[128], line[64];
	int value;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/%s", source, name);
	if (!file_line(path, line, sizeof(line)))
		return errno ? -errno : -EINVAL;
	return sscanf(line, fmt, &value) == 1 ? value : -EINVAL;
}

/* What both kinds of probes have in common; the number that `attr` has then, or less than 0. */
static int fill_probe(const char *source, bool returns, int *type, int *return_bit,
                      struct perf_event_attr *attr)
{
	if (!*type) {
		*type = event_source_number(source, "type", "%d");
		*return_bit = event_source_number(source, "format/retprobe", "config:%d");
	}
	if (*type < 0)
		return *type;
	if (returns && *return_bit < 0)
		return *return_bit;
	attr->size = sizeof(*attr);
	attr->type = (uint32_t)*type;
	attr->config = returns ? 1ull << *return_bit : 0;
	return 0;
}

int perf_uprobe_open(const char *path, uint64_t offset, uint64_t counter, bool returns)
{
	struct perf_event_attr attr = { 0 };
	static int type, return_bit;
	int r = fill_probe("uprobe", returns, &type, &return_bit, &attr);
	long fd;

	if (r)
		return r;
	attr.config |= counter << 32; /* format/ref_ctr_offset */
	attr.uprobe_path = (uintptr_t)path;
	attr.probe_offset = offset;
	fd = syscall(__NR_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int perf_kprobe_open(const char *function, bool returns)
{
	struct perf_event_attr attr = { 0 };
	static int type, return_bit;
	int r = fill_probe("kprobe", returns, &type, &return_bit, &attr);
	long fd;

	if (r)
		return r;
	attr.kprobe_func = (uintptr_t)function;
	fd = syscall(__NR_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int perf_tracepoint_open(const char *tracepoint)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
		                        .type = PERF_TYPE_TRACEPOINT,
		                        .sample_period = 1 };
	char path[256], id[32] = "";
	long fd;

	if (snprintf(path, sizeof(path), "events/%s/id", tracepoint) >= (int)sizeof(path))
		return -ENOENT;
	fd = tracefs_open(path);
	if (fd < 0)
		return (int)fd;
	if (read((int)fd, id, sizeof(id) - 1) <= 0)
		id[0] = '\0';
	close((int)fd);
	attr.config = strtoull(id, NULL, 10);
	if (!attr.config)
		return -EIO;
	fd = syscall(__NR_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

int perf_event_run(int perf_fd, int prog_fd)
{
	return ioctl(perf_fd, PERF_EVENT_IOC_SET_BPF, prog_fd) ||
	                       ioctl(perf_fd, PERF_EVENT_IOC_ENABLE, 0)
	               ? -errno
	               : 0;
}

int perf_event_attach(int perf_fd, int prog_fd, bool use_cookie, uint64_t cookie)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);

	return use_cookie ? bpf_link_create(prog_fd, perf_fd, BPF_PERF_EVENT, &opts)
	                  : perf_event_run(perf_fd, prog_fd);
}

void *bpf_map_keys(int map, size_t key_bytes, size_t most, size_t *n)
{
	char *keys = xcalloc(most, key_bytes), *last = NULL;

	for (*n = 0; *n < most; ++*n, last = last ? last + key_bytes : keys)
		if (bpf_map_get_next_key(map, last, keys + *n * key_bytes))
			break;
	return keys;
}

struct bpf_map *bpf_section(struct bpf_object *object, const char *ending)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		const char *name = bpf_map__name(map);
		size_t len = strlen(name), end = strlen(ending);

		if (bpf_map__is_internal(map) && len >= end && !strcmp(name + len - end, ending))
			return map;
	}
	return NULL;
}

void *bpf_section_shared(struct bpf_object *object, size_t bytes)
{
	struct bpf_map *map = bpf_section(object, ".bss");
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
	                    map ? bpf_map__fd(map) : -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int hidden_mount(const char *type)
{
#ifdef __NR_fsopen
	int context = (int)syscall(__NR_fsopen, type, 1 /* FSOPEN_CLOEXEC */), fd = -1;

	if (context < 0)
		return -errno;
	if (syscall(__NR_fsconfig, context, 6 /* FSCONFIG_CMD_CREATE */, NULL, NULL, 0) == 0)
		fd = (int)syscall(__NR_fsmount, context, 1 /* FSMOUNT_CLOEXEC */, 0);
	if (fd < 0)
		fd = -errno;
	close(context);
	return fd;
#else
	return -ENOSYS;
#endif
}

int tracefs_open(const char *path)
{
	static const char *const roots[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	static int hidden = -1;
	char full[256];
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		snprintf(full, sizeof(full), "%s/%s", roots[i], path);
		fd = open(full, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	if (hidden < 0)
		hidden = hidden_mount("tracefs");
	if (hidden < 0)
		return hidden == -ENOSYS ? -ENOENT : hidden;
	fd = openat(hidden, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
