// SPDX-License-Identifier: MIT
/*
 * The floor that bench/calls compares with: attaches floor.bpf.o to functions of one process and
 * throws the records away, until SIGINT or SIGTERM; then prints {"records": N, "lost": N}.
 *
 *   floor OBJECT entry|session PID LIBRARY SYMBOL[+BYTES]...
 *
 * BYTES is where in the function to probe: whoever calls knows what its entry looks like.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* Linux 6.6 and 6.13; libbpf 1.1 and the headers of its time know neither. */
#define ATTACH_UPROBE_MULTI   48
#define ATTACH_UPROBE_SESSION 57

#define MAX_FUNCTIONS 64

/* union bpf_attr for BPF_LINK_CREATE with link_create.uprobe_multi, from Linux 6.6 on. */
struct uprobe_multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t count, multi_flags, pid, unused;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = 1;
}

static void die(const char *what, const char *which)
{
	fprintf(stderr, "floor: %s %s: %s\n", what, which, strerror(errno));
	exit(1);
}

static int count_record(void *ctx, void *data, size_t size)
{
	++*(uint64_t *)ctx;
	return 0;
}

/* Where in its file the code at `address` of this process comes from. */
static uint64_t file_offset(const void *address)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uint64_t start, end, offset, found = 0, at = (uintptr_t)address;
	char line[4096];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && at >= start &&
		    at < end)
			found = at - start + offset;
	if (maps)
		fclose(maps);
	return found;
}

static uint64_t function_offset(void *library, char *spec)
{
	char *plus = strchr(spec, '+');
	uint64_t bytes = plus ? strtoul(plus + 1, NULL, 0) : 0;

	if (plus)
		*plus = '\0';
	void *address = dlsym(library, spec);
	if (!address)
		die("no function", spec);
	return file_offset(address) + bytes;
}

static struct bpf_object *load(const char *path, int session, struct bpf_program **used)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *p;

	if (!object)
		die("cannot open", path);
	bpf_object__for_each_program(p, object)
	{
		int is_session = !strcmp(bpf_program__name(p), "floor_session");
		bpf_program__set_autoload(p, is_session == session);
		bpf_program__set_expected_attach_type(p, session ? ATTACH_UPROBE_SESSION
		                                                 : ATTACH_UPROBE_MULTI);
		if (is_session == session)
			*used = p;
	}
	if (bpf_object__load(object))
		die("cannot load", path);
	return object;
}

static int attach(struct bpf_program *program, int session, int pid, const char *path,
                  const uint64_t *offsets, uint32_t count)
{
	struct uprobe_multi_attr attr = {
		.prog_fd = bpf_program__fd(program),
		.attach_type = session ? ATTACH_UPROBE_SESSION : ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.count = count,
		.pid = pid,
	};
	int fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		die("cannot attach to", path);
	return fd;
}

/* The programs' only global variable is the count of lost records. */
static uint64_t read_lost(struct bpf_object *object)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".bss");
	uint64_t lost = 0;
	uint32_t key = 0;

	if (map)
		bpf_map_lookup_elem(bpf_map__fd(map), &key, &lost);
	return lost;
}

int main(int argc, char **argv)
{
	uint64_t offsets[MAX_FUNCTIONS], records = 0;
	struct bpf_program *program = NULL;
	int count = argc - 5;

	if (count < 1 || count > MAX_FUNCTIONS) {
		fprintf(stderr,
		        "usage: floor OBJECT entry|session PID LIBRARY SYMBOL[+BYTES]...\n");
		return 2;
	}
	int session = !strcmp(argv[2], "session");
	void *library = dlopen(argv[4], RTLD_NOW);
	if (!library)
		die("cannot open", argv[4]);
	for (int i = 0; i < count; i++)
		offsets[i] = function_offset(library, argv[5 + i]);

	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	struct bpf_object *object = load(argv[1], session, &program);
	struct ring_buffer *ring = ring_buffer__new(
		bpf_object__find_map_fd_by_name(object, "records"), count_record, &records, NULL);
	if (!ring)
		die("cannot read", "the ring");
	int link = attach(program, session, atoi(argv[3]), argv[4], offsets, count);

	while (!stop) {
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
		ring_buffer__consume(ring);
	}
	close(link);
	ring_buffer__consume(ring);
	printf("{\"records\": %lu, \"lost\": %lu}\n", records, read_lost(object));
	ring_buffer__free(ring);
	bpf_object__close(object);
	dlclose(library);
	return 0;
}
