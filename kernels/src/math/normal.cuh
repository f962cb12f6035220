// The normal distribution: the twin of `normal.rs`, which has the formulas. Functions that only the host calls are not
// here.
#pragma once

#include "exp.cuh"
#include "ln.cuh"
#include "polynomial.cuh"

namespace warptape {

// The coefficients of Φ(−x) · exp(x²/2), which is a quotient of polynomials.
struct MillsTable {
    double above[11] = {
        790974.276372959, 1329563.3369904195, 1105489.4743421874, 588323.2695823557, 219958.64388691442,
        60106.3054582464, 12142.318165264094, 1792.7980124062647, 185.84547891959807, 12.29676568222134,
        0.3989422804014327,
    };
    double below[12] = {
        1581948.5527459178, 3921339.0002012444, 4548780.518246139, 3266116.22712701, 1616692.4529479558,
        580869.1405128832, 155096.39615637928, 30900.123563699242, 4524.701609156654, 466.8455321721435,
        30.8234205455683, 1.0,
    };
};

static const double MILLS_MIN = -0.33;

// Φ(−x) · exp(x²/2) for x from MILLS_MIN on.
__device__ inline double mills(double x) {
    const MillsTable TABLE{};
    return estrin(TABLE.above, x) / estrin(TABLE.below, x);
}

// Φ(−x) · exp(x²/2) of x and of y = x + distance, and its fall from one to the other; all times a factor.
struct Mills {
    double near, far, fall;

    __device__ Mills(double x, double y, double distance, double factor) {
        const MillsTable TABLE{};
        ValueAndSlope above(TABLE.above, x, y), below(TABLE.below, x, y);
        double above_far = above.value + distance * above.slope;
        double below_far = below.value + distance * below.slope;
        double scale = factor / (below.value * below_far);
        far = above_far * below.value * scale;
        fall = distance * (above.value * below.slope - below.value * above.slope) * scale;
        near = far + fall;
    }
};

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
