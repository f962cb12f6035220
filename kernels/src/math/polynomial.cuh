// Polynomials in Estrin's order: the twin of `polynomial.rs`.
#pragma once

#include "device.cuh"

namespace warptape {

template <typename T>
__device__ inline T estrin(const T (&coefficients)[1], T) {
    return coefficients[0];
}

// Lowest degree first.
template <typename T, int N>
__device__ inline T estrin(const T (&coefficients)[N], T x) {
    const int PAIRS = N / 2;
    T terms[N - PAIRS];
    for (int pair = 0; pair < PAIRS; ++pair) {
        terms[pair] = coefficients[2 * pair] + x * coefficients[2 * pair + 1];
    }
    if (N % 2 == 1) terms[N - PAIRS - 1] = coefficients[N - 1];
    return estrin(terms, x * x);
}

}  // namespace warptape
