# SPDX-License-Identifier: MIT
# make programs        $(B)/programs: what the integration tests trace
# make check-programs  whether they work and count right, untraced

PROG    := tests/programs
PROG_B  := $(B)/programs
PROG_LIB := $(B)/$(PROG)/sample.o $(B)/$(PROG)/gpu.o

# These find the libraries at run time, by dlopen.
PROGRAMS := $(filter-out sample gpu runtime,$(patsubst $(PROG)/%.c,%,$(wildcard $(PROG)/*.c))) throw
# These are linked with a runtime, as nvcc links.
LINKED   := runtime12 runtime13 static

programs: $(PROGRAMS:%=$(PROG_B)/%) $(LINKED:%=$(PROG_B)/%)

$(PROG_B)/%: $(PROG)/%.c $(PROG_LIB)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(PROG_LIB) -ldl

$(PROG_B)/throw: $(PROG)/throw.cc $(PROG_LIB)
	@mkdir -p $(@D)
	$(CXX) $(filter-out -std=gnu17 -Wstrict-prototypes -Wmissing-prototypes,$(CFLAGS)) $(LDFLAGS) \
		-std=gnu++17 -o $@ $< $(PROG_LIB) -ldl

# The libraries' folder is found without LD_LIBRARY_PATH, which still goes first.
$(PROG_B)/runtime12 $(PROG_B)/runtime13: $(PROG_B)/runtime%: $(PROG)/runtime.c $(PROG_LIB) \
		$(B)/simcuda/libcudart.so.%
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -DCUDART_MAJOR=$* -o $@ $^ \
		-Wl,-rpath,'$$ORIGIN/../simcuda' -ldl

$(PROG_B)/static: $(PROG)/runtime.c $(PROG_LIB) $(B)/simcuda/libcudart_static.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(PROG_LIB) $(B)/simcuda/libcudart_static.a -ldl

check-programs: simcuda programs
	SANITIZE='$(SANITIZE)' $(PROG)/test/run $(B)

.PHONY: programs check-programs
