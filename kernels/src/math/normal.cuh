// The normal distribution: the twin of `normal.rs`, which has the formulas, but for what only the host asks for.
#pragma once

#include "exp.cuh"
#include "ln.cuh"
#include "polynomial.cuh"

namespace warptape {

// Φ(−x) · exp(x²/2) for x ≥ 0, as a quotient.
struct Mills {
    double above, below;

    __device__ explicit Mills(double x) {
        const double P[11] = {
            746204.474859137, 1260856.1795163963, 1053367.0085395956, 563239.4791254213, 211608.01474786038,
            58121.887581507355, 11806.174369643864, 1753.6076824434845, 182.9811378814915, 12.19624090674805,
            0.3989422804014327,
        };
        const double Q[12] = {
            1492408.949718274, 3712482.418417016, 4322661.946127274, 3116146.3305531866, 1549036.4520503518,
            559108.9901698827, 150024.46654740153, 30050.356183350526, 4426.214041731672, 459.66569393786057,
            30.571442301065975, 1.0,
        };
        above = estrin(P, x);
        below = estrin(Q, x);
    }
};

__device__ inline double mills(double x) {
    Mills both(x);
    return both.above / both.below;
}

static const double INVERSE_SQRT_TWO_PI = 0.3989422804014327;

struct Normal {
    double density, cdf;
};

__device__ inline Normal density_and_cdf(double x) {
    double distance = fabs(x);
    distance = distance > 39.0 ? 39.0 : distance;
    double high = __longlong_as_double(__double_as_longlong(distance) & ~((1ll << 27) - 1));
    double rest = (distance - high) * (distance + high);
    double e = exp_of_sum(-0.5 * (high * high), -0.5 * rest);
    double below = e * mills(distance);
    return {INVERSE_SQRT_TWO_PI * e, x > 0.0 ? 1.0 - below : below};
}

// A(r)/B(r) of the inverse's central region.
__device__ inline double central_ratio(double r) {
    const double A[8] = {
        3.3871328727963665, 133.14254057507426, 1971.6184902762554, 13731.998999524581, 45923.38535058146,
        67268.48806939839, 33432.221037276235, 2509.2233835004645,
    };
    const double B[8] = {
        1.0, 42.31358834820725, 687.1959125479207, 5394.307215991498, 21214.408313211097, 39309.37585776889,
        28730.413330704927, 5226.776917424197,
    };
    return estrin(A, r) / estrin(B, r);
}

// −Φ⁻¹(exp(−t²/2)) in its tail.
__device__ inline double tail_ratio(double t) {
    const double A[9] = {
        -3.5407107434412812, -25.00661114118081, -25.846832637917984, 9.12491896884223, 17.639243773902237,
        7.2367693501100785, 1.2665416500234592, 0.08501469442796811, 0.0015301323207511262,
    };
    const double B[8] = {
        1.0, 11.687086852069566, 27.16591825525196, 21.63564387701581, 7.593198530382482, 1.2754959441463376,
        0.08502806827984784, 0.0015300884605663635,
    };
    return estrin(A, t) / estrin(B, t);
}

}  // namespace warptape
