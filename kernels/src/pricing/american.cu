// Monte Carlo of American options by a rule that is given: the twin of `american.rs`, which says what is computed. A thread works on
// one lane of a block.

#include "draws.cuh"
#include "sums.cuh"

namespace warptape {

struct AmericanArgs {
    u64 is_antithetic, exercises, key;
    u64 first_block, blocks;
    double sign, moneyness, drift, diffusion;
    const double *rule;  // By date: a discount, and four coefficients.
    double *lanes;       // By block and sum, of each lane.
};

struct Held {
    double x, paid, pays;
    bool is_held;

    __device__ void step(const AmericanArgs &args, const double *rule, double z) {
        x += args.drift + args.diffusion * z;
        pays = args.sign * (args.moneyness * exp_of(x) - 1.0);
        const double continuation[4] = {rule[1], rule[2], rule[3], rule[4]};
        bool takes = is_held && pays > 0.0 && pays >= estrin(continuation, pays);
        if (!takes) return;
        paid = rule[0] * pays;
        is_held = false;
    }

    __device__ double european(double discount) const { return pays > 0.0 ? discount * pays : 0.0; }
};

extern "C" __global__ void simulate_americans(const __grid_constant__ AmericanArgs args) {
    u64 block = thread_number() / LANES, lane = thread_number() % LANES;
    if (block >= args.blocks) return;
    double *sums = args.lanes + block * SUMS * LANES + lane;
    for (u64 sum = 0; sum < SUMS; ++sum) sums[sum * LANES] = 0.0;
    for (u64 group = 0; group < GROUPS; ++group) {
        u64 number = (args.first_block + block) * GROUPS + group;
        Held ahead = {0.0, 0.0, 0.0, true}, mirrored = ahead;
        const double *rule = args.rule;
        double last = 0.0;
        for (u64 date = 0; date < args.exercises; ++date, rule += 5) {
            double z = normal_of(drawn<double>(args.key, number, lane, (u32)date, STREAM_STEPS));
            ahead.step(args, rule, z);
            if (args.is_antithetic) mirrored.step(args, rule, -z);
            last = rule[0];
        }
        double payoff = ahead.paid, control = ahead.european(last);
        if (args.is_antithetic) {
            payoff = 0.5 * (payoff + mirrored.paid);
            control = 0.5 * (control + mirrored.european(last));
        }
        add(sums, LANES, payoff, control, true);
    }
}

}  // namespace warptape
