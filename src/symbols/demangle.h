/* Names as compilers mangle them. Hosted. Each writes at most `bytes` bytes with the final 0 and returns false when the name is
   not of its kind, damaged, or too long for the buffer. */
#ifndef SM_SYMBOLS_DEMANGLE_H
#define SM_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Rust's v0 scheme: `_R...` (RFC 2603). Without the crates' disambiguators, as rustc shows names by default. */
bool sm_demangle_rust_v0(const char *symbol, char *out, size_t bytes);

/* Rust's older scheme, `_ZN...17h<16 hex digits>E`, which looks like C++'s. The hash is left out. */
bool sm_demangle_rust_legacy(const char *symbol, char *out, size_t bytes);

/* C++ by the demangler of the C++ runtime (libstdc++.so.6), found when first needed; false where there is none. */
bool sm_demangle_cpp(const char *symbol, char *out, size_t bytes);

#endif
