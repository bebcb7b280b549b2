/* The natural logarithm, for code that does without libm. Hook-safe, pure. */
#ifndef SM_BASE_LN_H
#define SM_BASE_LN_H

#include <stdint.h>
#include <string.h>

/* ln x for normal x > 0; relative error about 1e-16. */
static inline double sm_ln(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffull) | 0x3ff0000000000000ull;
    double m;
    memcpy(&m, &bits, sizeof m); /* 1 <= m < 2 */
    if (m > 1.41421356237309505) {
        m *= 0.5;
        exponent++;
    }
    /* ln m = 2 artanh z; |z| < 0.1716, so twelve terms reach the last bit. */
    double z = (m - 1) / (m + 1), z2 = z * z, sum = 0;
    for (int k = 25; k >= 1; k -= 2)
        sum = sum * z2 + 1.0 / k;
    return 2 * z * sum + exponent * 0.693147180559945309417;
}

#endif
