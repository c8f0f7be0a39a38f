# SPDX-License-Identifier: MIT
# The page's modules as one script, each after those that it imports from, likewise those of the live pages, of a profile's and of a picture's; and these and the style in
# the program. All without the tabs that lines begin with: a page has no control characters.

PAGE_MODULES := text units decode pace elements colors store account view layout draw timeline input find span tables reports why panel picture flame search sums page pair main
LIVE_ALL := js/text js/units js/elements js/tables js/colors live/history live/spark live/rows live/frame
LIVE_MODULES := $(LIVE_ALL) js/why $(addprefix live/,figures missed model source gpus process account main)
PROFILE_MODULES := js/text js/units js/elements js/tables js/reports js/picture profile/main
FLAME_MODULES := js/picture flame/main
AGENT_MODULES := $(LIVE_ALL) js/why live/figures live/account $(addprefix agent/,exposition readings parts source account ask main)

$(B)/page/page.js: $(PAGE_MODULES:%=src/page/js/%.js)
$(B)/page/live.js: $(LIVE_MODULES:%=src/page/%.js)
$(B)/page/agent.js: $(AGENT_MODULES:%=src/page/%.js)

$(B)/page/profile.js: $(PROFILE_MODULES:%=src/page/%.js)
$(B)/page/flame.js: $(FLAME_MODULES:%=src/page/%.js)

$(B)/page/page.js $(B)/page/live.js $(B)/page/agent.js $(B)/page/profile.js $(B)/page/flame.js: src/page/module.mk
	@mkdir -p $(@D)
	{ echo "(() => { 'use strict';"; sed -e '/^import .* from .*;$$/d' -e 's/^export //' -e 's/^\t*//' $(filter %.js,$^); echo '})();'; } >$@

$(B)/page/page.css: src/page/page.css src/page/flame/flame.css
	@mkdir -p $(@D)
	sed -e 's/^\t*//' $^ >$@

# As a page's policy names them: SHA-256 in base64.
$(B)/page/%.hash: $(B)/page/%
	sha256sum $< | cut -c1-64 | tr a-f A-F | basenc --base16 -d | base64 | tr -d '\n' >$@

$(B)/src/page/embedded.o: src/page/embedded.S $(B)/page/page.js.hash $(B)/page/live.js.hash $(B)/page/agent.js.hash $(B)/page/profile.js.hash $(B)/page/flame.js src/page/flame/flame.css $(B)/page/page.css.hash
	@mkdir -p $(@D)
	$(CC) $(HARDEN) $(CFLAGS) -Wa,-I$(B)/page -c -o $@ $<

CARRIED += $(B)/src/page/embedded.o

objects: $(B)/src/page/embedded.o
