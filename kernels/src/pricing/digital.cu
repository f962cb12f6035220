// Digital options in closed form: the twin of `digital.rs`, which has the formulas. One thread per option.

#include "exp.cuh"
#include "normal.cuh"

namespace warptape {

struct DigitalArgs {
    u64 count;
    const double *given;  // Columns, one after the other: sign, spot, strike, rate, dividend yield, volatility, years, amount, and
                          // 1 where the asset is paid.
    double *found;        // Columns of price and Greeks.
};

extern "C" __global__ void price_digitals(const __grid_constant__ DigitalArgs args) {
    u64 option = thread_number();
    if (option >= args.count) return;
    double given[9];
    for (int column = 0; column < 9; ++column) given[column] = args.given[column * args.count + option];
    double sign = given[0], spot = given[1], strike = given[2], rate = given[3], carry = given[4];
    double volatility = given[5], years = given[6], amount = given[7], of_asset = given[8];
    bool pays_asset = of_asset > 0.0;
    double root = __dsqrt_rn(years);
    double deviation = volatility * root;
    Quotient quotient(spot, strike);
    double below = spot * deviation;
    double inverse_of_both = 1.0 / (below * quotient.sum);
    double inverse = quotient.sum * inverse_of_both;
    double by_deviation = spot * inverse, by_spot = deviation * inverse;
    double by_volatility = root * by_deviation;
    double half_variance = 0.5 * (volatility * volatility);
    double trend = (rate - carry) + (pays_asset ? half_variance : -half_variance);
    double d = (quotient.ln(below * inverse_of_both) + trend * years) * by_deviation;
    double other = d + (pays_asset ? -deviation : deviation);
    double d2 = pays_asset ? other : d;
    double discount = pays_asset ? carry : rate;
    double whole = amount * (pays_asset ? spot : 1.0) * exp_of(-(discount * years));
    Normal normal = density_and_cdf(sign * d);
    double price = whole * normal.cdf;
    double slope = sign * (whole * normal.density);
    double found[8] = {
        price,
        slope * inverse + of_asset * (price * by_spot),
        -(slope * other) * inverse * inverse,
        -(slope * other) * by_volatility,
        discount * price - slope * (trend * by_deviation - 0.5 * d / years),
        years * (slope * by_deviation - (1.0 - of_asset) * price),
        slope * (other * d2 - 1.0) * (inverse * by_volatility),
        -slope * (other * other * d - other - d) * (by_volatility * by_volatility),
    };
    for (int column = 0; column < 8; ++column) args.found[column * args.count + option] = found[column];
}

}  // namespace warptape
