// Polynomials in Estrin's order: the twin of `polynomial.rs`.
#pragma once

#include "device.cuh"

namespace warptape {

// Lowest degree first.
template <typename T, int N>
__device__ inline T estrin(const T (&coefficients)[N], T x) {
    T terms[N];
#pragma unroll
    for (int term = 0; term < N; ++term) terms[term] = coefficients[term];
    T power = x;
#pragma unroll
    for (int count = N; count > 1; count -= count / 2) {
        int pairs = count / 2;
#pragma unroll
        for (int pair = 0; pair < N / 2; ++pair) {
            if (pair < pairs) terms[pair] = terms[2 * pair] + power * terms[2 * pair + 1];
        }
        if (count % 2 == 1) terms[pairs] = terms[count - 1];
        power = power * power;
    }
    return terms[0];
}

}  // namespace warptape
