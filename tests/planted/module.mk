# SPDX-License-Identifier: MIT
# make planted-programs    programs with one planted problem each, and healthy ones
# make test-planted        whether `cuscope why` names problem and line of each (root)
# make test-answers        the same of some, one or two of each sort

PLANTED   := tests/planted
PLANTED_B := $(B)/planted
PLANTED_C := planted host workers gpu waits ranks nccl healthy held_out unseen unmet untold

planted-programs: $(PLANTED_B)/planted $(PLANTED_B)/libpool.so $(PLANTED_B)/libnvrtc.so.12 $(B)/programs/ownroot

# As a wheel's: no debug information.
$(PLANTED_B)/libpool.so: $(PLANTED)/pool.c
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -Werror -fno-optimize-sibling-calls -shared -fPIC -pthread -o $@ $<

$(PLANTED_B)/libnvrtc.so.12: $(PLANTED)/compiler.c
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -Werror -fno-optimize-sibling-calls -shared -fPIC -o $@ $<

# Each function of a step stays one: it is what is to be named.
$(PLANTED_C:%=$(PLANTED_B)/%.o): $(PLANTED_B)/%.o: $(PLANTED)/%.c $(PLANTED)/planted.h
	@mkdir -p $(@D)
	$(CC) $(PROG_CFLAGS) -fno-optimize-sibling-calls -c -o $@ $<

$(PLANTED_B)/cpp.o: $(PLANTED)/cpp.cc $(PLANTED)/planted.h
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -Itests -MMD -MP -fno-optimize-sibling-calls -c -o $@ $<

$(PLANTED_B)/planted: $(PLANTED_C:%=$(PLANTED_B)/%.o) $(PLANTED_B)/cpp.o $(B)/programs/sample.o
	$(CXX) -pthread -o $@ $^ -ldl

test-planted: $(B)/cuscope planted-programs simcuda
	@tests/planted/run --build $(B)

ANSWERS := prep sleep lock pipe sync_each pageable alloc two_sleep_prep busy busy_loader rank_prep rank_busy nccl_sleep py_gil py_gc \
	py_worker py_busy

test-answers: $(B)/cuscope planted-programs simcuda
	@tests/planted/run --build $(B) $(ANSWERS)

.PHONY: planted-programs test-answers test-planted
