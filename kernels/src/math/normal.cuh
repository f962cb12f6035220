// The normal distribution: the twin of `normal.rs`, which has the formulas, but for what only the host asks for.
#pragma once

#include "exp.cuh"
#include "ln.cuh"
#include "polynomial.cuh"

namespace warptape {

// Φ(−x) · exp(x²/2) for 0 ≤ x ≤ 39.
__device__ inline double mills(double x) {
    const double MILLS[23] = {
        0.769193049750063, -0.6653825028900567, 0.4953056159699773, -0.3135331566712962, 0.1650203661703374,
        -0.06911863870656998, 0.020795066800837793, -0.002993376766706082, -0.0007978694080108348,
        0.0005448990333948724, -5.9375674786700834e-5, -4.976265493334499e-5, 1.668104120308104e-5,
        3.980384776257054e-6, -2.76895243101397e-6, -3.3553734188817523e-7, 4.328840141731732e-7,
        4.088067308724329e-8, -6.601141479635665e-8, -8.294942468780107e-9, 7.942093937454417e-9,
        1.43201777389485e-9, -3.028680749515812e-10,
    };
    double inverse = 1.0 / (x + 5.0);
    return estrin(MILLS, (x - 5.0) * inverse) * inverse;
}

struct Normal {
    double density, cdf;
};

__device__ inline Normal density_and_cdf(double x) {
    const double INVERSE_SQRT_TWO_PI = 0.3989422804014327;
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
