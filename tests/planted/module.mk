# SPDX-License-Identifier: MIT
# make planted-programs    programs with one planted problem each, and healthy ones
# make test-planted        whether `cuscope why` names problem and line of each (root)

PLANTED   := tests/planted
PLANTED_B := $(B)/planted
PLANTED_C := planted host workers gpu ranks healthy

planted-programs: $(PLANTED_B)/planted

# Each function of a step stays one: it is what is to be named.
$(PLANTED_C:%=$(PLANTED_B)/%.o): $(PLANTED_B)/%.o: $(PLANTED)/%.c $(PLANTED)/planted.h
	@mkdir -p $(@D)
	$(CC) $(PROG_CFLAGS) -fno-optimize-sibling-calls -c -o $@ $<

$(PLANTED_B)/planted: $(PLANTED_C:%=$(PLANTED_B)/%.o) $(B)/programs/sample.o
	$(CC) $(PROG_CFLAGS) -o $@ $^ -ldl

test-planted: $(B)/cuscope planted-programs simcuda
	@tests/planted/run --build $(B)

.PHONY: planted-programs test-planted
