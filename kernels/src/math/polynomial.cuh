// Polynomials, lowest degree first: the twin of `polynomial.rs`.
#pragma once

#include "device.cuh"

namespace warptape {

template <typename T>
__device__ inline T estrin(const T (&coefficients)[1], T) {
    return coefficients[0];
}

// The value of a polynomial, in Estrin's order.
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

// p(x) and (p(y) − p(x)) / (y − x).
struct ValueAndSlope {
    double value, slope;

    template <int N>
    __device__ ValueAndSlope(const double (&coefficients)[N], double x, double y) {
        double x_square = x * x, y_square = y * y;
        double values[2], slopes[2];  // First for the even coefficients, then for the odd ones.
        for (int power = N - 1; power >= 0; --power) {
            int part = power % 2;
            if (power + 2 >= N) {
                values[part] = coefficients[power];
                continue;
            }
            slopes[part] = power + 4 >= N ? values[part] : values[part] + y_square * slopes[part];
            values[part] = coefficients[power] + x_square * values[part];
        }
        value = values[0] + x * values[1];
        slope = (x + y) * (slopes[0] + y * slopes[1]) + values[1];
    }
};

}  // namespace warptape
