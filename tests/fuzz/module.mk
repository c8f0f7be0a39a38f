# SPDX-License-Identifier: MIT
# make fuzz: every tests/fuzz/fuzz_*.c under libFuzzer, AddressSanitizer and UBSan, one after the
# other on one core, FUZZ_SECONDS each (make fuzz-NAME: one of them). It stops at the first finding
# and leaves the input that caused it in build/fuzz/NAME.found/. What was learned stays in
# build/fuzz/NAME.corpus/ for the next time. make test-fuzz: each for five seconds, as a part of the tests.
#
# A new fuzzer is one file; if it wants input to start from, write some in seeds.sh.

FUZZ_SECONDS ?= 600
# All layers: the linker takes from the archive what a fuzzer calls.
FUZZ_SRC     := $(LIB_SRC) $(filter-out src/cli/main.c,$(CLI_SRC)) \
                $(filter-out tests/fuzz/fuzz_% %/trace_seeds.c,$(wildcard tests/fuzz/*.c))

FUZZERS     := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_FLAGS  := -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -fno-sanitize-recover=all
# Lines are what a finding needs; full debug information costs a fifth of the time to compile, and each program as much to link.
# The macro is one that gcc defines by itself.
FUZZ_CFLAGS := $(filter-out $(WARN) -g,$(CFLAGS)) -gline-tables-only $(FUZZ_FLAGS) -I. -DFUZZING -D__SANITIZE_ADDRESS__
# The linker that takes a third of the time, where it is there
FUZZ_LD     := $(if $(shell command -v ld.lld),-fuse-ld=lld)
FUZZ_OBJ    := $(patsubst %.c,$(B)/fuzz/obj/%.o,$(sort $(FUZZ_SRC)))

$(B)/fuzz/obj/%.o: %.c Makefile tests/fuzz/module.mk
	@mkdir -p $(@D)
	$(CLANG) $(FUZZ_CFLAGS) -c -o $@ $<

$(B)/fuzz/libfuzzed.a: $(FUZZ_OBJ) $(CARRIED)
	@rm -f $@
	ar rcs $@ $^

$(B)/fuzz/fuzz_%: $(B)/fuzz/obj/tests/fuzz/fuzz_%.o $(B)/fuzz/libfuzzed.a
	$(CLANG) $(FUZZ_FLAGS) $(FUZZ_LD) -fsanitize=fuzzer -o $@ $^ $(LIBS)

$(B)/tests/fuzz/trace_seeds: $(B)/tests/fuzz/trace_seeds.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/fuzz/seeds: tests/fuzz/seeds.sh $(B)/tests/fuzz/trace_seeds $(B)/tests/export/stacks $(wildcard tests/golden/*.cuscope tests/fuzz/found/*/*)
	CC="$(CC)" tests/fuzz/seeds.sh $@
	$(B)/tests/export/stacks $(B)/fuzz/names.cuscope 20 # names that break out
	$(B)/tests/fuzz/trace_seeds $@ tests/golden/*.cuscope $(B)/fuzz/names.cuscope
	cp -r tests/fuzz/found/. $@/
	@touch $@

# -rss_limit_mb and -malloc_limit_mb are part of the test: no input may ask for much memory.
FUZZ_OPTIONS := -print_final_stats=1 -verbosity=0 -timeout=10 -malloc_limit_mb=300 -max_len=16384

# Of names more: they are long, and none may take a second.
FUZZ_NAMES         := kernel_name symbols
FUZZ_NAMES_OPTIONS := -timeout=1 -max_len=65536
$(FUZZ_NAMES:%=fuzz-%): FUZZ_OPTIONS += $(FUZZ_NAMES_OPTIONS)

fuzz-%: $(B)/fuzz/fuzz_% $(B)/fuzz/seeds
	@mkdir -p $(B)/fuzz/$*.corpus $(B)/fuzz/$*.found $(B)/fuzz/seeds/$*
	$(B)/fuzz/fuzz_$* -max_total_time=$(FUZZ_SECONDS) $(FUZZ_OPTIONS) \
		-artifact_prefix=$(B)/fuzz/$*.found/ $(B)/fuzz/$*.corpus $(B)/fuzz/seeds/$*

fuzzers: $(FUZZERS:%=$(B)/fuzz/fuzz_%) $(B)/fuzz/seeds

# One at a time whatever -j says: two fuzzers on one core learn half as much each.
fuzz: fuzzers
	@set -e; for name in $(FUZZERS); do $(MAKE) --no-print-directory fuzz-$$name; done

# Every fuzzer for five seconds, each a test.
test-fuzz: fuzzers
	@FUZZ_OPTIONS='$(FUZZ_OPTIONS)' FUZZ_NAMES='$(FUZZ_NAMES)' FUZZ_NAMES_OPTIONS='$(FUZZ_NAMES_OPTIONS)' tests/fuzz/run $(B)/fuzz $(FUZZERS)

.PHONY: fuzz fuzzers test-fuzz
.SECONDARY: $(FUZZERS:%=$(B)/fuzz/obj/tests/fuzz/fuzz_%.o)
