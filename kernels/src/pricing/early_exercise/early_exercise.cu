// Early-exercise boundaries and premiums: the twin of `points.rs`, which has the order of all sums; formulas are in
// `mod.rs`.

#include "normal.cuh"

namespace warptape {

static const int NODES = 32, LEVEL_POINTS = 64, PREMIUM_POINTS = 256, POINT_LANES = 8;

static const u64 BY_SLOPES = 1, BY_VALUES_BELOW = 2;

// A put of strike 1.
struct Put {
    double spot, ln_spot, ln_limit, rate, carry, volatility, years, endless_years;
    u64 way;
};

struct Premium {
    double amount, delta, gamma;
};

// √(τ/T) of the nodes, then the points of the two integrals.
struct Tables {
    double shares[NODES];
    double level_sines[LEVEL_POINTS], level_cosines[LEVEL_POINTS], level_weights[LEVEL_POINTS];
    double premium_sines[PREMIUM_POINTS], premium_cosines[PREMIUM_POINTS], premium_weights[PREMIUM_POINTS];
};

struct EarlyExerciseArgs {
    u64 puts;
    const Put *put;
    const Tables *tables;
    const double *curves;  // By put: coefficients.
    double *levels;        // By put: at the nodes.
    Premium *premiums;     // By put.
};

// ln(B/X) at a point of a curve.
__device__ inline double level_at(const double *curve, double x) {
    double last = 0.0, before = 0.0;
    for (int degree = NODES; degree > 0; --degree) {
        double next = 2.0 * x * last - before + curve[degree];
        before = last;
        last = next;
    }
    double square = x * last - before + curve[0];
    return -__dsqrt_rn(square > 0.0 ? square : 0.0);
}

// A sum by lane, then by halves.
struct PointSum {
    double lanes[POINT_LANES];

    __device__ PointSum() {
        for (int lane = 0; lane < POINT_LANES; ++lane) lanes[lane] = 0.0;
    }
    __device__ void add(int point, double value) { lanes[point % POINT_LANES] = lanes[point % POINT_LANES] + value; }
    __device__ double take() {
        for (int half = POINT_LANES / 2; half > 0; half /= 2) {
            for (int lane = 0; lane < half; ++lane) lanes[lane] = lanes[lane] + lanes[lane + half];
        }
        return lanes[0];
    }
};

__device__ inline double improved(const Put &put, const Tables &tables, const double *curve, double share, double level) {
    bool smooth = put.way == BY_SLOPES, is_below = put.way == BY_VALUES_BELOW;
    double years = put.years * (share * share);
    double spread = put.volatility * __dsqrt_rn(years);
    double drift = put.rate - put.carry - 0.5 * (put.volatility * put.volatility);
    PointSum cash_sum, asset_sum;
    for (int point = 0; point < LEVEL_POINTS; ++point) {
        double later = level_at(curve, 2.0 * (share * tables.level_sines[point]) - 1.0);
        double cosine = tables.level_cosines[point];
        double left = years * (cosine * cosine);
        double deviation = spread * cosine;
        double minus = (level - later + drift * left) / deviation;
        double weight = years * tables.level_weights[point];
        double plus = minus + deviation;
        Normal below = density_and_cdf(minus), above = density_and_cdf(is_below ? -plus : plus);
        double of_cash = smooth ? below.density / deviation : below.cdf;
        double of_asset = smooth ? above.cdf + above.density / deviation : above.cdf;
        cash_sum.add(point, weight * exp_of(-(put.rate * left)) * of_cash);
        asset_sum.add(point, weight * exp_of(-(put.carry * left)) * of_asset);
    }
    double minus = (put.ln_limit + level + drift * years) / spread;
    double plus = minus + spread;
    Normal below = density_and_cdf(minus), above = density_and_cdf(is_below ? -plus : plus);
    double of_cash = smooth ? below.density / spread : below.cdf;
    double of_asset = smooth ? above.cdf + above.density / spread : above.cdf;
    double numerator = exp_of(-(put.rate * years)) * of_cash + put.rate * cash_sum.take();
    double denominator = exp_of(-(put.carry * years)) * of_asset + put.carry * asset_sum.take();
    if (is_below) denominator = 1.0 - denominator;
    double ratio = numerator / denominator;
    bool is_known = ratio > 1e-300 && ratio < 1e300;
    double found = ln_of_positive(is_known ? ratio : 1.0) - put.ln_limit;
    if (found > 0.0) found = 0.0;
    return is_known ? found : 1.0;
}

extern "C" __global__ void improve_boundaries(const __grid_constant__ EarlyExerciseArgs args) {
    u64 thread = thread_number(), put = thread / NODES, node = thread % NODES;
    if (put >= args.puts) return;
    double *level = args.levels + thread;
    const double *curve = args.curves + put * (NODES + 1);
    *level = improved(args.put[put], *args.tables, curve, args.tables->shares[node], *level);
}

extern "C" __global__ void weigh_premiums(const __grid_constant__ EarlyExerciseArgs args) {
    u64 thread = thread_number();
    if (thread >= args.puts) return;
    const Put put = args.put[thread];
    const Tables &tables = *args.tables;
    const double *curve = args.curves + thread * (NODES + 1);
    double spread = put.volatility * __dsqrt_rn(put.years);
    double drift = put.rate - put.carry + 0.5 * (put.volatility * put.volatility);
    double distance = put.ln_spot - put.ln_limit;
    PointSum amount, delta, gamma;
    for (int point = 0; point < PREMIUM_POINTS; ++point) {
        double later = level_at(curve, 2.0 * tables.premium_cosines[point] - 1.0);
        double sine = tables.premium_sines[point];
        double left = put.years * (sine * sine);
        double deviation = spread * sine;
        if (put.endless_years > 0.0) {
            left = put.endless_years + left;
            deviation = put.volatility * __dsqrt_rn(left);
        }
        double d1 = (distance - later + drift * left) / deviation;
        Normal of_asset = density_and_cdf(-d1), of_cash = density_and_cdf(deviation - d1);
        double weight = put.years * tables.premium_weights[point];
        double cash = exp_of(-(put.rate * left)), asset = exp_of(-(put.carry * left));
        double ln_level = put.ln_limit + later;
        ln_level = ln_level > -690.0 ? ln_level : -690.0;
        double lift = put.rate * exp_of(-ln_level) - put.carry;
        double dense = asset * of_asset.density / deviation;
        amount.add(point, weight * (put.rate * cash * of_cash.cdf - put.carry * (put.spot * asset) * of_asset.cdf));
        delta.add(point, -(weight * (put.carry * asset * of_asset.cdf + dense * lift)));
        gamma.add(point, weight * (dense / put.spot * (put.carry + lift * d1 / deviation)));
    }
    args.premiums[thread] = {amount.take(), delta.take(), gamma.take()};
}

}  // namespace warptape
