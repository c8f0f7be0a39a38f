# SPDX-License-Identifier: MIT
# make bench            what a traced call costs, beside bpftrace and a bare eBPF program (root)
# make bench-programs   only the programs that it runs
# make bench-pipeline   from the rings to a trace file and back, on one core; needs no root
# make bench-sums       what a call costs that is summed up in the kernel (root)
# make bench-kernel-side  what a system call to the driver costs that is traced, and what others pay (root)
# make bench-hooks      what a call costs that a hook of one's own is on, beside bpftrace (root)
# make bench-agent      what the node agent takes beside processes that launch, and while it is scraped (root)
# make bench-in-process what a call costs that is recorded inside the process; needs no root
# make build/bench/in-process-drain   what cuscope takes for such a call, as instructions too: bench/in-process/drain.c
# make bench-profile    what a profile costs a busy thread, beside perf record (root); within 5 minutes
# bench/profile/attach  what attaching costs cuscope itself, as CPU seconds (root); needs nothing built but cuscope
# make bench-host-waits what recording what threads wait for costs who does nothing but wait (root); within 5 minutes
# make build/bench/tables   how long rows of unwind tables take to be made: bench/profile/tables.c
# make bench-top        what `top --web` costs steps that are bound by launches, with the account of the last seconds and without (root); within 10 minutes
# make bench-fleet      the questions of docs/fleet.md, asked DuckDB of a thousand ranks; needs no root
# make bench-ranks      who is late in trainings that are made up, named right or not, by SQL and by report ranks; needs no root; within 10 minutes
# make bench-questions  what reports and exports of large trace files cost, with and without GPU work; needs no root
# make bench-page       what a page of ten million events costs, to export and in a browser; needs no root
# make dist/bench       the programs of bench/calls for another machine, with nothing but glibc needed: bench/calls/run --build dist/bench
# bench/step/run and those of bench/gpu are for a machine with a GPU and PyTorch, bench/ddp/run for one with two; they need nothing built but
# cuscope. PYTHONPATH=tests/gpu/stand-in tries them on the simulated driver.

BENCH      := $(B)/bench
BENCH_OUT  ?= $(BENCH)/results

bench: $(B)/cuscope bench-programs
	bench/calls/run --cuscope $(B)/cuscope --build $(BENCH) --out $(BENCH_OUT)

bench-programs: $(BENCH)/caller $(BENCH)/floor $(BENCH)/floor.bpf.o

dist/bench: bench-programs
	@mkdir -p $@
	cp $(BENCH)/caller $(BENCH)/libentries.so $(BENCH)/floor.bpf.o $@
	$(CC) $(CFLAGS) -o $@/floor bench/calls/floor.c -Wl,-Bstatic -lbpf -lelf -lz -lzstd -Wl,-Bdynamic -ldl

bench-pipeline: $(BENCH)/pipeline
	bench/pipeline/run --build $(BENCH) --out $(BENCH_OUT)

bench-sums: $(B)/cuscope $(BENCH)/sums simcuda
	bench/sums/run --cuscope $(B)/cuscope --build $(B) --out $(BENCH_OUT)

bench-host-waits: $(B)/cuscope $(BENCH)/switches $(BENCH)/steps simcuda
	bench/host-waits/run --cuscope $(B)/cuscope --build $(BENCH) --out $(BENCH_OUT)

bench-top: $(B)/cuscope $(BENCH)/steps simcuda
	bench/top/run --cuscope $(B)/cuscope --build $(BENCH) --out $(BENCH_OUT)

$(BENCH)/switches: bench/host-waits/switches.c bench/host-waits/chunks.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $<

$(BENCH)/steps: bench/host-waits/steps.c bench/host-waits/chunks.h $(B)/programs/sample.o
	@mkdir -p $(@D)
	$(CC) $(PROG_CFLAGS) -o $@ $(filter-out %.h,$^) -ldl

bench-hooks: $(B)/cuscope $(BENCH)/hooks-caller
	bench/hooks/run --cuscope $(B)/cuscope --build $(BENCH) --out $(BENCH_OUT)

$(BENCH)/libcalled.so: bench/hooks/called.c bench/hooks/called.h
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -Werror -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

$(BENCH)/hooks-caller: bench/hooks/caller.c bench/hooks/called.h $(BENCH)/libcalled.so
	$(CC) $(CFLAGS) -o $@ $< -L$(BENCH) -lcalled -Wl,-rpath,'$$ORIGIN'

bench-kernel-side: $(B)/cuscope $(BENCH)/kernel-side
	bench/kernel-side/run --cuscope $(B)/cuscope --build $(B) --out $(BENCH_OUT)

$(BENCH)/kernel-side: bench/kernel-side/caller.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $<

bench-agent: $(B)/cuscope $(BENCH)/launcher simcuda simnvml
	bench/agent/run --cuscope $(B)/cuscope --build $(B) --out $(BENCH_OUT)

$(BENCH)/launcher: bench/agent/launcher.c $(B)/programs/sample.o
	@mkdir -p $(@D)
	$(CC) $(PROG_CFLAGS) -o $@ $(filter-out %.h,$^) -ldl

bench-in-process: $(BENCH)/in-process-reader $(BENCH)/in-process-caller
	bench/in-process/run --build $(BENCH) --out $(BENCH_OUT)

# The agent's recorder as in targets: a library that is loaded late.
$(BENCH)/libprobes.so: bench/in-process/shim.c $(AGENT_OBJ)
	@mkdir -p $(@D)
	$(CC) $(AGENT_CFLAGS) -shared -o $@ $(filter-out %.h,$^) $(AGENT_LIBS)

$(BENCH)/in-process-caller: bench/in-process/caller.c $(BENCH)/libprobes.so
	$(CC) $(CFLAGS) -o $@ $< -ldl -lm

$(BENCH)/in-process-kinds: bench/in-process/kinds.c simcuda
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $< $(B)/simcuda/stub/libcuda.so.1 $(B)/simcuda/libcudart.so.12

$(BENCH)/in-process-threads: bench/in-process/threads.c simcuda
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $< $(B)/simcuda/stub/libcuda.so.1

$(BENCH)/in-process-reader: bench/in-process/reader.c $(B)/libcuscope.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %.h,$^) $(LIBS)

# Its own modules_hook and programs_state, instead of those of the library.
$(BENCH)/in-process-drain: bench/in-process/drain.c $(B)/libcuscope.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-z,muldefs -o $@ $(filter-out %.h,$^) $(LIBS)

$(BENCH)/sums: bench/sums/caller.c $(B)/programs/sample.o
	@mkdir -p $(@D)
	$(CC) $(PROG_CFLAGS) -o $@ $(filter-out %.h,$^) -ldl

bench-profile: $(B)/cuscope $(BENCH)/busy
	bench/profile/run --cuscope $(B)/cuscope --build $(BENCH) --out $(BENCH_OUT)

$(BENCH)/busy: bench/profile/busy.cc
	@mkdir -p $(@D)
	$(CXX) -O2 -g -o $@ $<

$(BENCH)/tables: bench/profile/tables.c $(B)/libcuscope.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %.h,$^) $(LIBS)

bench-questions: $(B)/cuscope $(BENCH)/pipeline $(BENCH)/training $(BENCH)/stacked
	bench/questions/run --cuscope $(B)/cuscope --build $(BENCH) --out $(BENCH_OUT)

bench-page: $(B)/cuscope $(BENCH)/pipeline $(BENCH)/training
	bench/page/run $(B)

$(BENCH)/pipeline: bench/pipeline/pipeline.c bench/pipeline/workload.c $(B)/libcuscope.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %.h,$^) $(LIBS)

$(BENCH)/training $(BENCH)/stacked: $(BENCH)/%: bench/questions/%.c $(B)/libcuscope.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %.h,$^) -lcmocka $(LIBS)

$(BENCH)/libentries.so: bench/calls/entries.S
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-soname,$(@F) -o $@ $<

$(BENCH)/caller: bench/calls/caller.c $(BENCH)/libentries.so
	$(CC) $(CFLAGS) -o $@ $< -L$(BENCH) -lentries -Wl,-rpath,'$$ORIGIN'

$(BENCH)/floor: bench/calls/floor.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $< -lbpf -ldl

$(BENCH)/floor.bpf.o: bench/calls/floor.bpf.c
	@mkdir -p $(@D)
	$(CLANG) -O2 -g -target bpf -I/usr/include/$(ARCH)-linux-gnu -c -o $@ $<

bench-fleet: $(B)/cuscope $(B)/tests/export/ranks parquet-readers
	bench/fleet/run --build $(B)

bench-ranks: $(B)/cuscope $(B)/tests/export/ranks parquet-readers
	bench/ranks/run --build $(B)

.PHONY: dist/bench bench bench-ranks bench-fleet bench-hooks bench-host-waits bench-in-process bench-kernel-side bench-page bench-programs bench-pipeline bench-profile bench-questions bench-sums bench-top
