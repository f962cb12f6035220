// Options in closed form, and implied volatilities: the twin of `black_scholes.rs` and `implied.rs`, which have the
// formulas. One thread per option.

#include "exp.cuh"
#include "normal.cuh"

namespace warptape {

struct OptionArgs {
    u64 count;
    const double *given;  // Columns, one after the other: sign, spot, strike, rate, dividend yield, volatility, years; and prices of
                          // which volatilities are wanted.
    double *found;        // Columns of price and Greeks, or one of volatilities.
};

// Values that do not depend on volatility.
struct Discounted {
    double asset, cash, difference;

    __device__ Discounted(double spot, double strike, double rate, double carry, double years) {
        Exp of_asset(-(carry * years)), of_cash(-(rate * years));
        double scaled = spot * of_asset.power, scaled_cash = strike * of_cash.power;
        double rest = scaled * of_asset.less_1, rest_cash = scaled_cash * of_cash.less_1;
        asset = scaled + rest;
        cash = scaled_cash + rest_cash;
        difference = (scaled - scaled_cash) + (rest - rest_cash);
    }
};

extern "C" __global__ void price_options(const __grid_constant__ OptionArgs args) {
    u64 option = thread_number();
    if (option >= args.count) return;
    double given[7];
    for (int column = 0; column < 7; ++column) given[column] = args.given[column * args.count + option];
    double sign = given[0], spot = given[1], strike = given[2], rate = given[3], carry = given[4];
    double volatility = given[5], years = given[6];
    double drift = (rate - carry + 0.5 * (volatility * volatility)) * years;
    double root = __dsqrt_rn(years);
    double deviation = volatility * root;
    Quotient quotient(spot, strike);
    double below = spot * deviation;
    double inverse_of_both = 1.0 / (below * quotient.sum);
    double inverse = quotient.sum * inverse_of_both;
    double d1 = (quotient.ln(below * inverse_of_both) + drift) * (spot * inverse);
    double d2 = d1 - deviation;
    Discounted whole(spot, strike, rate, carry, years);
    bool is_call = d1 + d2 < 0.0;
    double near = is_call ? -d1 : d2, far = is_call ? -d2 : d1;
    double most = is_call ? whole.asset : whole.cash;
    double dense = exp_of(-0.5 * (near * near)) * most;
    bool is_beyond = near < MILLS_MIN;
    Mills mills(is_beyond ? -near : near, far, is_beyond ? far + near : deviation, dense);
    double larger = is_beyond ? most - mills.near : mills.near, smaller = mills.far;
    double outer = is_beyond ? larger - smaller : mills.fall;
    bool is_outer = (sign > 0.0) == is_call;
    double outer_asset = is_call ? larger : smaller, outer_cash = is_call ? smaller : larger;
    double price = is_outer ? outer : sign * whole.difference + outer;
    double rest = near < -2.0 ? mills.near : most - larger;
    double lesser = is_call ? whole.cash - smaller : whole.asset - smaller;
    double asset = is_outer ? outer_asset : is_call ? rest : lesser;
    double cash = is_outer ? outer_cash : is_call ? lesser : rest;
    double by_deviation = spot * inverse, by_spot = deviation * inverse;
    dense = INVERSE_SQRT_TWO_PI * dense;
    double vega = dense * root;
    double found[8] = {
        price,
        sign * (asset * by_spot),
        dense * by_spot * inverse,
        vega,
        sign * (carry * asset - rate * cash) - 0.5 * (dense * volatility) * (volatility * by_deviation),
        sign * (years * cash),
        -(dense * by_spot * d2) * (root * by_deviation),
        vega * (d1 * d2) * (root * by_deviation),
    };
    for (int column = 0; column < 8; ++column) args.found[column * args.count + option] = found[column];
}

extern "C" __global__ void imply_volatilities(const __grid_constant__ OptionArgs args) {
    const double D_MAX = 38.5, S_MIN = 1e-12, B_MIN = 1e-290, SQRT_TWO_PI = 2.5066282746310007, LAST_STEP = 1e-8;
    const double FAILURES[3] = {-1.0, -2.0, -3.0};  // Too low, too high, not finite.
    const int STEPS_MAX = 100;
    u64 option = thread_number();
    if (option >= args.count) return;
    const double *given = args.given + option;
    double sign = given[0], spot = given[args.count], strike = given[2 * args.count], rate = given[3 * args.count];
    double carry = given[4 * args.count], years = given[6 * args.count], price = given[7 * args.count];
    Discounted whole(spot, strike, rate, carry, years);
    double intrinsic = sign * whole.difference;
    intrinsic = intrinsic > 0.0 ? intrinsic : 0.0;
    double b = (price - intrinsic) / (__dsqrt_rn(whole.asset) * __dsqrt_rn(whole.cash));
    Quotient quotient(spot, strike);
    double x = -fabs(quotient.ln(1.0 / quotient.sum) + (rate - carry) * years);
    double most = exp_of(0.5 * x);
    double inflection = __dsqrt_rn(-2.0 * x);
    bool is_low = b < most * (0.5 - mills(inflection));
    double side = is_low ? -1.0 : 1.0;
    double target = ln_of_positive(is_low ? b : most - b);
    double s = inflection > S_MIN ? inflection : S_MIN;
    double least = is_low ? -x / D_MAX : 0.0;
    double greatest = is_low ? s : D_MAX + __dsqrt_rn(D_MAX * D_MAX - 2.0 * x);
    double failure = b >= most ? FAILURES[1] : 0.0;
    failure = b < B_MIN ? FAILURES[0] : failure;
    // The comparison is written so that it is false for NaN.
    failure = fabs(price) < __longlong_as_double(0x7ff0000000000000ll) ? failure : FAILURES[2];
    for (int step = 0; step < STEPS_MAX && failure == 0.0; ++step) {
        double h = x / s, t = 0.5 * s;
        double both = mills(fabs(h + t)) + side * mills(t - h);
        double excess = ln_of_positive(both) - 0.5 * (h * h + t * t) - target;
        bool is_beyond = side * excess < 0.0;
        if (is_beyond) greatest = s;
        if (!is_beyond) least = s;
        double newton = excess * (SQRT_TWO_PI * both);
        double next = side < 0.0 ? s / __dsqrt_rn(1.0 + 2.0 * newton / s) : s + newton;
        bool is_within = next >= least && next <= greatest;
        next = is_within ? next : 0.5 * (least + greatest);
        bool is_moving = fabs(next - s) > LAST_STEP * s;
        s = next;
        if (!is_moving) break;
    }
    args.found[option] = failure == 0.0 ? s / __dsqrt_rn(years) : failure;
}

}  // namespace warptape
