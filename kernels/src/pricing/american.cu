// Monte Carlo of American options by a given exercise rule: the twin of `american.rs`, `walks.rs` and
// `american_greeks.rs`, which have the formulas. A thread works on one lane of a block.

#include "bridge.cuh"
#include "dual.cuh"
#include "greeks.cuh"
#include "sums.cuh"

namespace warptape {

struct AmericanArgs {
    u64 is_mixed, is_antithetic;
    Source source;
    u64 first_block, blocks;
    double sign;
    Term moneyness, drift, diffusion;
    double bumped[2];  // Moneyness of the bumped spots, only for Greeks.
    double inverse_width, step_rate, step_years;
    const double *rule;  // By date: a discount, the least payoff of exercise, and four coefficients.
    double *lanes;       // Sums of each lane, by block and sum.
};

template <typename T>
struct Stop {
    T x, date;
};

template <typename T, int SPOTS>
struct Walk {
    T x;
    Stop<T> stops[SPOTS];

    __device__ void start() {
        x = (T)0.0;
        for (int spot = 0; spot < SPOTS; ++spot) stops[spot] = {(T)0.0, (T)0.0};
    }

    __device__ void step(const AmericanArgs &args, const T *moneyness, T date, T least, const T *continuation, T z) {
        x = x + ((T)args.drift.value + (T)args.diffusion.value * z);
        T growth = exp_of(x);
        for (int spot = 0; spot < SPOTS; ++spot) {
            T pays = (T)args.sign * (moneyness[spot] * growth - (T)1.0);
            const T coefficients[4] = {continuation[0], continuation[1], continuation[2], continuation[3]};
            bool stops_here =
                stops[spot].date == (T)0.0 && pays > (T)0.0 && pays >= least && pays >= estrin(coefficients, pays);
            if (stops_here) stops[spot] = {x, date};
        }
    }
};

// A path, and its mirror image.
template <typename T, int SPOTS>
__device__ inline void walk(const AmericanArgs &args, const T *moneyness, u64 group, u64 lane, Walk<T, SPOTS> *walks) {
    walks[0].start();
    walks[1].start();
    Steps<T> steps;
    steps.start();
    const double *rule = args.rule;
    for (u64 date = 0; date < args.source.steps; ++date, rule += 6) {
        T z = steps.normal(args.source, group, lane, date);
        const T continuation[4] = {(T)rule[2], (T)rule[3], (T)rule[4], (T)rule[5]};
        T least = (T)rule[1];
        T number = (T)(double)(date + 1);
        walks[0].step(args, moneyness, number, least, continuation, z);
        if (args.is_antithetic) walks[1].step(args, moneyness, number, least, continuation, -z);
    }
}

__device__ inline double discount_of(const AmericanArgs &args, double date) { return args.rule[6 * ((u64)date - 1)]; }

template <typename T>
__device__ inline double paid_of(const AmericanArgs &args, T x, double date) {
    double pays = args.sign * (args.moneyness.value * (double)exp_of(x) - 1.0);
    return date > 0.0 && pays > 0.0 ? discount_of(args, date) * pays : 0.0;
}

template <typename T>
__device__ inline void simulate_american(const AmericanArgs &args, u64 thread) {
    u64 block = thread / LANES, lane = thread % LANES;
    if (block >= args.blocks) return;
    double *sums = args.lanes + block * SUMS * LANES + lane;
    for (u64 sum = 0; sum < SUMS; ++sum) sums[sum * LANES] = 0.0;
    const T moneyness[1] = {(T)args.moneyness.value};
    double last = (double)args.source.steps;
    for (u64 group = 0; group < GROUPS; ++group) {
        Walk<T, 1> walks[2];
        walk(args, moneyness, (args.first_block + block) * GROUPS + group, lane, walks);
        const Stop<T> &stop = walks[0].stops[0], &other = walks[1].stops[0];
        double payoff = paid_of(args, stop.x, (double)stop.date), control = paid_of(args, walks[0].x, last);
        if (args.is_antithetic) {
            payoff = 0.5 * (payoff + paid_of(args, other.x, (double)other.date));
            control = 0.5 * (control + paid_of(args, walks[1].x, last));
        }
        add(sums, LANES, payoff, control, true);
    }
}

extern "C" __global__ void simulate_americans(const __grid_constant__ AmericanArgs args) {
    if (args.is_mixed) return simulate_american<float>(args, thread_number());
    simulate_american<double>(args, thread_number());
}

// The present value of a path that stops at x on a date, with derivatives.
template <typename T>
__device__ inline Term outcome(const AmericanArgs &args, T x, double date) {
    double growth = (double)exp_of(x);
    double moved = ((double)x - date * args.drift.value) / args.diffusion.value;
    Term grown;
    grown.value = growth;
    for (int number = 0; number < PARAMETERS; ++number) {
        grown.by[number] = growth * (date * args.drift.by[number] + moved * args.diffusion.by[number]);
    }
    Term pays = scaled(args.moneyness * grown - Number<Term>::constant(1.0), args.sign);
    if (!(date > 0.0 && pays.value > 0.0)) return Number<Term>::constant(0.0);
    Term discount = Number<Term>::constant(discount_of(args, date));
    discount.by[YEARS] = -(args.step_rate * date * discount.value);
    discount.by[RATE] = -(args.step_years * date * discount.value);
    return pays * discount;
}

struct Bumped {
    double paid, delta;
};

// The present value of such a path for a bumped spot, and its derivative by that spot alone.
template <typename T>
__device__ inline Bumped bumped_of(const AmericanArgs &args, double moneyness, const Stop<T> &stop) {
    double growth = (double)exp_of(stop.x), date = (double)stop.date;
    double pays = args.sign * (moneyness * growth - 1.0);
    if (!(date > 0.0 && pays > 0.0)) return {0.0, 0.0};
    double discount = discount_of(args, date);
    return {discount * pays, discount * (args.sign * (growth * args.moneyness.by[SPOT]))};
}

// Greeks from the stops for the given spot and for the spots on either side.
template <typename T>
__device__ inline void greeks_of_stops(
    const AmericanArgs &args, const Stop<T> &held, const Stop<T> &above, const Stop<T> &below, double *greeks
) {
    Bumped up = bumped_of(args, args.bumped[0], above), down = bumped_of(args, args.bumped[1], below);
    greeks_of(outcome(args, held.x, (double)held.date), (up.delta - down.delta) * args.inverse_width, greeks);
    greeks[1] = (up.paid - down.paid) * args.inverse_width;
}

// Greeks of the option and of its control, one after the other.
template <typename T>
__device__ inline void greeks_of_walk(const AmericanArgs &args, const Walk<T, 3> &walk, double *greeks) {
    greeks_of_stops(args, walk.stops[0], walk.stops[1], walk.stops[2], greeks);
    Stop<T> last = {walk.x, (T)(double)args.source.steps};
    greeks_of_stops(args, last, last, last, greeks + GREEKS);
}

template <typename T>
__device__ inline void simulate_american_greeks_in(const AmericanArgs &args, u64 thread) {
    u64 block = thread / LANES, lane = thread % LANES;
    if (block >= args.blocks) return;
    double *sums = args.lanes + block * (GREEKS * SUMS) * LANES + lane;
    for (u64 sum = 0; sum < GREEKS * SUMS; ++sum) sums[sum * LANES] = 0.0;
    const T moneyness[3] = {(T)args.moneyness.value, (T)args.bumped[0], (T)args.bumped[1]};
    for (u64 group = 0; group < GROUPS; ++group) {
        Walk<T, 3> walks[2];
        walk(args, moneyness, (args.first_block + block) * GROUPS + group, lane, walks);
        double greeks[2 * GREEKS], other[2 * GREEKS];
        greeks_of_walk(args, walks[0], greeks);
        if (args.is_antithetic) {
            greeks_of_walk(args, walks[1], other);
            for (u64 greek = 0; greek < 2 * GREEKS; ++greek) greeks[greek] = 0.5 * (greeks[greek] + other[greek]);
        }
        for (u64 greek = 0; greek < GREEKS; ++greek) {
            add(sums + greek * SUMS * LANES, LANES, greeks[greek], greeks[GREEKS + greek], true);
        }
    }
}

extern "C" __global__ void simulate_american_greeks(const __grid_constant__ AmericanArgs args) {
    if (args.is_mixed) return simulate_american_greeks_in<float>(args, thread_number());
    simulate_american_greeks_in<double>(args, thread_number());
}

}  // namespace warptape
