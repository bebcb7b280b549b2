/* Only one profile can run. When the program itself calls Gc.Memprof.start, ours gives way: the
   call would fail otherwise, and the program with it. */
#ifndef SM_INJECT_YIELD_H
#define SM_INJECT_YIELD_H

#include "ocaml/runtime.h"

/* True when sm_yield_install will succeed: the program's code can be changed in memory. Some security
   policies forbid it. */
bool sm_yield_possible(const struct sm_ocaml_runtime *rt);

/* Makes the program's first call of Gc.Memprof.start end our profile and run `on_yield` before it goes on. False
   when that cannot be arranged. Call after our profile has begun, while no other thread runs. */
bool sm_yield_install(const struct sm_ocaml_runtime *rt, void (*on_yield)(void));

#endif
