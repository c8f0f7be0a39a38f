# SPDX-License-Identifier: MIT
# make fuzz: every tests/fuzz/fuzz_*.c under libFuzzer, AddressSanitizer and UBSan, one after the
# other on one core, FUZZ_SECONDS each (make fuzz-NAME: one of them). It stops at the first finding
# and leaves the input that caused it in build/fuzz/NAME.found/. What was learned stays in
# build/fuzz/NAME.corpus/ for the next time.
#
# A new fuzzer is one file. If what it tests is not in src/base, src/cuda or the parsers of
# src/probe, add its sources to FUZZ_SRC; if it wants input to start from, write some in seeds.sh.

FUZZ_SECONDS ?= 600
FUZZ_SRC     += $(wildcard src/base/*.c src/cuda/*.c src/probe/elf_*.c) src/probe/maps.c src/agent/agent_ring.c \
                src/probe/placement.c src/probe/selection.c src/stack/function_name.c \
                src/stack/function_table.c src/stack/perf_map.c src/stack/place.c src/cli/options.c src/cli/parse.c \
                src/cli/scan.c $(wildcard src/trace/*.c src/analysis/*.c)

FUZZERS     := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_FLAGS  := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_CFLAGS := $(filter-out $(WARN),$(CFLAGS)) $(FUZZ_FLAGS) -DFUZZING
FUZZ_OBJ    := $(patsubst %.c,$(B)/fuzz/obj/%.o,$(sort $(FUZZ_SRC)))

$(B)/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CLANG) $(FUZZ_CFLAGS) -c -o $@ $<

$(B)/fuzz/libfuzzed.a: $(FUZZ_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(B)/fuzz/fuzz_%: $(B)/fuzz/obj/tests/fuzz/fuzz_%.o $(B)/fuzz/libfuzzed.a
	$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

$(B)/tests/fuzz/trace_seeds: $(B)/tests/fuzz/trace_seeds.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/fuzz/seeds: tests/fuzz/seeds.sh $(B)/tests/fuzz/trace_seeds $(wildcard tests/golden/*.cuscope)
	CC="$(CC)" tests/fuzz/seeds.sh $@
	@mkdir -p $@/trace
	$(B)/tests/fuzz/trace_seeds $@/trace tests/golden/*.cuscope
	@touch $@

# -rss_limit_mb and -malloc_limit_mb are part of the test: no input may ask for much memory.
fuzz-%: $(B)/fuzz/fuzz_% $(B)/fuzz/seeds
	@mkdir -p $(B)/fuzz/$*.corpus $(B)/fuzz/$*.found $(B)/fuzz/seeds/$*
	$(B)/fuzz/fuzz_$* -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -verbosity=0 \
		-timeout=10 -malloc_limit_mb=300 -max_len=16384 -artifact_prefix=$(B)/fuzz/$*.found/ \
		$(B)/fuzz/$*.corpus $(B)/fuzz/seeds/$*

# One at a time whatever -j says: two fuzzers on one core learn half as much each.
fuzz: $(FUZZERS:%=$(B)/fuzz/fuzz_%) $(B)/fuzz/seeds
	@set -e; for name in $(FUZZERS); do $(MAKE) --no-print-directory fuzz-$$name; done

.PHONY: fuzz
.SECONDARY: $(FUZZERS:%=$(B)/fuzz/obj/tests/fuzz/fuzz_%.o)
