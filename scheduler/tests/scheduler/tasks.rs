//! Text cases of the rules for risk tasks, one rule per test.

use warptape_events::journal::{Decision, Input, RiskConfig, SliceDone, TaskArrived, TaskClass};
use warptape_scheduler::{Scheduler, StepError, TASK_POLICIES, current_task_policy};

use crate::script::{assigned, check, config, started, task};

#[test]
fn slices_grow_until_they_take_what_they_should() {
    check(
        "
        > 0 start 1 slice=1000
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 task 0 units=30
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 10)
        > 110 done 0 0 100
        slice 1 of 0 on 0: 1..3 (Interactive of a after 100, 1 waiting, 100000000 fs, finish 310)
        > 310 done 0 1 200
        slice 2 of 0 on 0: 3..7 (Interactive of a after 300, 1 waiting, 100000000 fs, finish 710)
        > 710 done 0 2 400
        slice 3 of 0 on 0: 7..15 (Interactive of a after 700, 1 waiting, 100000000 fs, finish 1510)
        > 1510 done 0 3 800
        slice 4 of 0 on 0: 15..25 (Interactive of a after 1500, 1 waiting, 100000000 fs, finish 2510)
        > 2510 done 0 4 1000
        slice 5 of 0 on 0: 25..30 (Interactive of a after 2500, 1 waiting, 100000000 fs, finish 3010)
        > 3010 done 0 5 500
        finish 0: 6 slices, 3000 ns
        ",
    );
}

#[test]
fn a_slice_waits_for_ticks_and_a_batch_for_one_slice() {
    check(
        "
        > 0 start 1 slice=1000
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 arrive 0 0:2
        dispatch 0 to 0: 0/0:2 (2 rows, 2 bytes, Idle, oldest 10, finish 10)
        > 20 task 0 units=3 max=1
        admit 0: Interactive of a, 1 known
        > 30 complete 0 0 20
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 30)
        > 40 arrive 0 0:2
        dispatch 1 to 0: 0/0:2 (2 rows, 2 bytes, Idle, oldest 40, finish 60)
        > 50 done 0 0 1000
        > 60 arrive 0 0:2
        wake 1040
        > 70 complete 0 1 20
        dispatch 2 to 0: 0/0:2 (2 rows, 2 bytes, Idle, oldest 60, finish 90)
        > 80 complete 0 2 20
        slice 1 of 0 on 0: 1..2 (Interactive of a after 1000, 1 waiting, 1000000000 fs, finish 1080)
        > 90 arrive 0 0:1
        dispatch 3 to 0: 0/0:1 (1 rows, 1 bytes, Idle, oldest 90, finish 1090)
        > 100 done 0 1 1000
        > 110 complete 0 3 20
        slice 2 of 0 on 0: 2..3 (Interactive of a after 2000, 1 waiting, 1000000000 fs, finish 1110)
        > 120 done 0 2 1000
        finish 0: 3 slices, 3000 ns
        ",
    );
}

#[test]
fn classes_then_tenants_then_deadlines_then_arrival() {
    check(
        "
        > 0 start 1 slice=1000
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 0 task 0
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 0)
        > 1 task 1 class=batch
        admit 1: Batch of a, 2 known
        > 2 task 2 tenant=b
        admit 2: Interactive of b, 3 known
        > 3 task 3
        admit 3: Interactive of a, 4 known
        > 4 task 4 deadline=9000
        admit 4: Interactive of a, 5 known
        wake 9000
        > 5 task 5 deadline=8000
        admit 5: Interactive of a, 6 known
        wake 8000
        > 6 task 6 class=critical
        admit 6: Critical of a, 7 known
        slice 1 of 6 on 0: 0..1 (Critical of a after 0, 6 waiting, 0 fs, finish 6, Reserved)
        > 100 done 0 0 1000
        finish 0: 1 slices, 1000 ns
        > 200 done 0 1 1000
        finish 6: 1 slices, 1000 ns
        slice 2 of 2 on 0: 0..1 (Interactive of b after 1, 5 waiting, 1000000000 fs, finish 1200)
        > 300 done 0 2 1000
        finish 2: 1 slices, 1000 ns
        slice 3 of 5 on 0: 0..1 (Interactive of a after 1000, 4 waiting, 1000000000 fs, finish 1300)
        > 400 done 0 3 1000
        finish 5: 1 slices, 1000 ns
        slice 4 of 4 on 0: 0..1 (Interactive of a after 2000, 3 waiting, 1000000000 fs, finish 1400)
        > 500 done 0 4 1000
        finish 4: 1 slices, 1000 ns
        slice 5 of 3 on 0: 0..1 (Interactive of a after 3000, 2 waiting, 1000000000 fs, finish 1500)
        > 600 done 0 5 1000
        finish 3: 1 slices, 1000 ns
        slice 6 of 1 on 0: 0..1 (Batch of a after 0, 1 waiting, 1000000000 fs, finish 1600)
        > 700 done 0 6 1000
        finish 1: 1 slices, 1000 ns
        ",
    );
}

#[test]
fn tasks_of_a_tenant_take_turns() {
    check(
        "
        > 0 start 1 slice=100 quantum=200
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 0 task 0 units=99 max=1
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 0)
        > 100 done 0 0 100
        slice 1 of 0 on 0: 1..2 (Interactive of a after 100, 1 waiting, 100000000 fs, finish 200)
        > 150 task 1 units=3 max=1
        admit 1: Interactive of a, 2 known
        > 200 done 0 1 100
        slice 2 of 1 on 0: 0..1 (Interactive of a after 200, 2 waiting, 100000000 fs, finish 300)
        > 300 done 0 2 100
        slice 3 of 1 on 0: 1..2 (Interactive of a after 300, 2 waiting, 100000000 fs, finish 400)
        > 400 done 0 3 100
        slice 4 of 0 on 0: 2..3 (Interactive of a after 400, 2 waiting, 100000000 fs, finish 500)
        > 450 task 2 units=1 max=1
        admit 2: Interactive of a, 3 known
        > 500 done 0 4 100
        slice 5 of 0 on 0: 3..4 (Interactive of a after 500, 3 waiting, 100000000 fs, finish 600)
        > 600 done 0 5 100
        slice 6 of 1 on 0: 2..3 (Interactive of a after 600, 3 waiting, 100000000 fs, finish 700)
        > 700 done 0 6 100
        finish 1: 3 slices, 300 ns
        slice 7 of 2 on 0: 0..1 (Interactive of a after 700, 2 waiting, 100000000 fs, finish 800)
        > 800 done 0 7 100
        finish 2: 1 slices, 100 ns
        slice 8 of 0 on 0: 4..5 (Interactive of a after 800, 1 waiting, 100000000 fs, finish 900)
        ",
    );
}

/// Classes of the first `slices` slices, while each class has more work than that.
fn classes_of_slices(quantum_ns: i64, slices: i64) -> Vec<TaskClass> {
    let mut scheduler_config = config();
    scheduler_config.risk = RiskConfig { slice_ns: 100, quantum_ns, ..RiskConfig::default() };
    let mut scheduler = Scheduler::new();
    let (mut decisions, mut classes) = (Vec::new(), Vec::new());
    let mut step = |at_ns: i64, input: Input| {
        decisions.clear();
        scheduler.step(at_ns, &input, &mut decisions).expect("a good input");
        classes.extend(decisions.iter().filter_map(|decision| match decision {
            Decision::RunSlice(run) => Some(run.class),
            _ => None,
        }));
    };
    step(0, started(scheduler_config, &[1]));
    step(0, assigned(0, 1));
    let tasks = [TaskClass::Batch, TaskClass::Interactive, TaskClass::Critical];
    for (number, class) in (0..).zip(tasks) {
        step(0, Input::TaskArrived(TaskArrived { class, units: 1_000, slice_units_max: 1, ..task(number) }));
    }
    for slice in 0..slices {
        step(100 * (slice + 1), Input::SliceDone(SliceDone { lane: 0, slice, service_ns: 100 }));
    }
    classes
}

#[test]
fn lanes_with_ticks_keep_time_for_critical_and_aged_tasks() {
    check(
        "
        > 0 start 1 slice=100 critical=25 ageing=1000 batches=1
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 arrive 0 0:5
        dispatch 0 to 0: 0/0:5 (5 rows, 5 bytes, Idle, oldest 10, finish 10)
        > 20 task 0 class=batch
        admit 0: Batch of a, 1 known
        wake 1020
        > 30 task 1 class=critical units=2 max=1
        admit 1: Critical of a, 2 known
        slice 0 of 1 on 0: 0..1 (Critical of a after 0, 2 waiting, 0 fs, finish 30, Reserved)
        > 80 done 0 0 50
        wake 230
        > 230 woke
        slice 1 of 1 on 0: 1..2 (Critical of a after 50, 2 waiting, 50000000 fs, finish 280, Reserved)
        wake 1020
        > 240 done 0 1 10
        finish 1: 2 slices, 60 ns
        > 1020 woke
        slice 2 of 0 on 0: 0..1 (Batch of a after 0, 1 waiting, 30000000 fs, finish 1050, Aged)
        ",
    );
}

#[test]
fn lanes_wake_for_a_critical_task_that_another_one_has_taken_meanwhile() {
    check(
        "
        > 0 start 2 slice=100 critical=25 batches=1
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 1 epoch 1
        > 10 arrive 0 0:5 1:5
        dispatch 0 to 0: 0/0:5 (5 rows, 5 bytes, Idle, oldest 10, finish 10)
        dispatch 1 to 1: 0/1:5 (5 rows, 5 bytes, Idle, oldest 10, finish 10)
        > 20 task 0 class=critical units=2 max=1
        admit 0: Critical of a, 1 known
        slice 0 of 0 on 0: 0..1 (Critical of a after 0, 1 waiting, 0 fs, finish 20, Reserved)
        slice 1 of 0 on 1: 1..2 (Critical of a after 1, 1 waiting, 0 fs, finish 20, Reserved)
        > 30 done 0 0 10
        > 80 done 1 1 60
        finish 0: 2 slices, 70 ns
        > 100 task 1 class=critical
        admit 1: Critical of a, 1 known
        slice 2 of 1 on 0: 0..1 (Critical of a after 0, 1 waiting, 35000000 fs, finish 135, Reserved)
        wake 260
        > 260 woke
        ",
    );
}

#[test]
fn quotas_and_rates_refuse_and_say_which() {
    check(
        "
        > 0 start 1 tasks=4 quota-firm=2:0:3 quota-a@firm=1:0:0:2:1 quota-b=0:0:1
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 task 0 tenant=b
        admit 0: Interactive of b, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of b after 0, 1 waiting, 0 fs, finish 10)
        > 20 task 1 tenant=b
        reject 1: Quota, 1 of 1 known for b
        > 30 task 2 tenant=x
        admit 2: Interactive of x, 2 known
        > 40 task 3 tenant=x
        reject 3: Quota, 4 of 4 known for x
        > 50 task 4 tenant=a
        admit 4: Interactive of a, 3 known
        > 60 task 5 tenant=a
        reject 5: Rate, 0 of 2 known for a
        > 1000000000 task 6 tenant=a
        admit 6: Interactive of a, 4 known
        > 1000000000 task 7 tenant=firm
        reject 7: Overloaded, 4 of 4 known
        ",
    );
}

#[test]
fn standing_delay_sheds_tasks_and_lowers_the_limit() {
    check(
        "
        > 0 start 1 target=50 interval=100 least=1
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 0 task 0 class=critical
        admit 0: Critical of a, 1 known
        slice 0 of 0 on 0: 0..1 (Critical of a after 0, 1 waiting, 0 fs, finish 0)
        > 0 task 1
        admit 1: Interactive of a, 2 known
        wake 50
        > 0 task 2 class=batch
        admit 2: Batch of a, 3 known
        > 0 task 3 class=critical
        admit 3: Critical of a, 4 known
        > 50 woke
        wake 150
        > 150 woke
        shed 2: Batch, StandingDelay, 150 of 50 ns, number 1
        wake 250
        > 160 task 4
        reject 4: Congested, 3 of 3 known
        > 170 task 5 class=critical
        admit 5: Critical of a, 4 known
        > 180 task 6
        reject 6: Congested, 4 of 3 known
        > 250 woke
        shed 1: Interactive, StandingDelay, 250 of 50 ns, number 2
        > 300 woke
        ",
    );
}

#[test]
fn some_slices_go_to_less_urgent_classes() {
    let classes = classes_of_slices(200, 65);
    let count = |wanted: TaskClass| classes.iter().filter(|&&class| class == wanted).count();
    assert_eq!(classes[15], TaskClass::Batch, "the least urgent");
    assert_eq!(classes[31], TaskClass::Interactive, "the next one");
    // The first slice is for the task that arrived first.
    assert_eq!([count(TaskClass::Batch), count(TaskClass::Interactive)], [3, 2]);
    // Journals from before the quantum existed have 0.
    assert!(classes_of_slices(0, 65)[1..].iter().all(|&class| class == TaskClass::Critical));
}

#[test]
fn tenants_share_by_weight_and_save_up_nothing() {
    check(
        "
        > 0 start 1 slice=100 tenant-a=2
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 0 task 0 units=9 max=1
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 0)
        > 0 task 1 units=9 max=1 tenant=b
        admit 1: Interactive of b, 2 known
        > 100 done 0 0 100
        slice 1 of 1 on 0: 0..1 (Interactive of b after 1, 2 waiting, 100000000 fs, finish 200)
        > 200 done 0 1 100
        slice 2 of 0 on 0: 1..2 (Interactive of a after 50, 2 waiting, 100000000 fs, finish 300)
        > 300 done 0 2 100
        slice 3 of 0 on 0: 2..3 (Interactive of a after 100, 2 waiting, 100000000 fs, finish 400)
        > 400 done 0 3 100
        slice 4 of 1 on 0: 1..2 (Interactive of b after 101, 2 waiting, 100000000 fs, finish 500)
        > 450 task 2 units=1 tenant=c
        admit 2: Interactive of c, 3 known
        > 500 done 0 4 100
        slice 5 of 0 on 0: 3..4 (Interactive of a after 150, 3 waiting, 100000000 fs, finish 600)
        > 600 done 0 5 100
        slice 6 of 2 on 0: 0..1 (Interactive of c after 150, 3 waiting, 100000000 fs, finish 700)
        > 610 task 3 units=1 tenant=c
        admit 3: Interactive of c, 4 known
        > 700 done 0 6 100
        finish 2: 1 slices, 100 ns
        slice 7 of 0 on 0: 4..5 (Interactive of a after 200, 3 waiting, 100000000 fs, finish 800)
        > 800 done 0 7 100
        slice 8 of 1 on 0: 2..3 (Interactive of b after 201, 3 waiting, 100000000 fs, finish 900)
        ",
    );
}

#[test]
fn shares_by_score_are_exact_and_worked_on_by_their_lanes() {
    check(
        "
        > 0 start 3 weights=95,80,0 split=score slice=1000000
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 0 task 0 units=10000 max=10000
        admit 0: Interactive of a, 1 known
        split 0, Score: 0:0..5429 by 95 1:5429..10000 by 80
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 0)
        slice 1 of 0 on 1: 5429..5430 (Interactive of a after 1, 1 waiting, 0 fs, finish 0)
        > 10 done 0 0 1
        slice 2 of 0 on 0: 1..3 (Interactive of a after 2, 1 waiting, 1000000 fs, finish 12)
        > 20 lost 1
        fence 1: 0 groups, gone
        slice 3 of 0 on 2: 5429..5431 (Interactive of a after 3, 1 waiting, 1000000 fs, finish 22)
        > 30 done 1 1 5
        > 40 done 0 2 2
        slice 4 of 0 on 0: 5431..5435 (Interactive of a after 5, 1 waiting, 1000000 fs, finish 44)
        > 50 ready 1
        slice 5 of 0 on 1: 5435..5439 (Interactive of a after 9, 1 waiting, 1000000 fs, finish 54)
        ",
    );
    check(
        "
        > 0 start 3 split=equal
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 0 task 0 units=5 max=10
        admit 0: Interactive of a, 1 known
        split 0, Equal: 0:0..2 by 1 1:2..4 by 1 2:4..5 by 1
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 0)
        slice 1 of 0 on 1: 2..3 (Interactive of a after 1, 1 waiting, 0 fs, finish 0)
        slice 2 of 0 on 2: 4..5 (Interactive of a after 2, 1 waiting, 0 fs, finish 0)
        > 0 task 1 units=1
        admit 1: Interactive of a, 2 known
        > 10 done 2 2 1
        > 20 done 0 0 1
        slice 3 of 0 on 0: 1..2 (Interactive of a after 3, 2 waiting, 1000000 fs, finish 21)
        ",
    );
}

#[test]
fn a_lane_without_work_takes_of_the_share_that_would_be_done_last() {
    check(
        "
        > 0 start 2 weights=1,8 split=score slice=4 steals=1
        > 0 assign 0 1
        place 0/0 on 1 epoch 1
        > 0 task 0 units=18 max=100
        admit 0: Interactive of a, 1 known
        split 0, Score: 0:0..2 by 1 1:2..18 by 8
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 0)
        slice 1 of 0 on 1: 2..3 (Interactive of a after 1, 1 waiting, 0 fs, finish 0)
        > 1 done 0 0 1
        slice 2 of 0 on 0: 1..2 (Interactive of a after 2, 1 waiting, 1000000 fs, finish 2)
        > 2 done 0 2 1
        slice 3 of 0 on 0: 16..18 (Interactive of a after 3, 1 waiting, 1000000 fs, finish 4, Stolen from 1)
        > 4 done 0 3 2
        slice 4 of 0 on 0: 12..16 (Interactive of a after 5, 1 waiting, 1000000 fs, finish 8, Stolen from 1)
        > 8 done 0 4 4
        slice 5 of 0 on 0: 8..12 (Interactive of a after 9, 1 waiting, 1000000 fs, finish 12, Stolen from 1)
        > 9 done 1 1 9
        slice 6 of 0 on 1: 3..5 (Interactive of a after 21, 1 waiting, 2000000 fs, finish 13)
        > 9 done 0 5 1
        slice 7 of 0 on 0: 6..8 (Interactive of a after 22, 1 waiting, 1363636 fs, finish 11, Stolen from 1)
        > 10 lost 0
        fence 0: 0 groups, gone
        > 13 done 1 6 1
        slice 8 of 0 on 1: 6..8 (Interactive of a after 19, 1 waiting, 1166666 fs, finish 15)
        ",
    );
}

#[test]
fn a_gang_begins_on_all_of_its_lanes_or_waits_for_a_time() {
    check(
        "
        > 0 start 2 slice=10
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 1 epoch 1
        > 5 task 0 units=1
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 5)
        > 10 task 1 units=4 gang class=critical
        admit 1: Critical of a, 2 known
        reserve [0, 1] for 1, [0] busy, until 650
        wake 650
        > 20 task 2 units=1
        admit 2: Interactive of a, 3 known
        > 30 done 0 0 20
        finish 0: 1 slices, 20 ns
        split 1, Score, gang: 0:0..2 by 1 1:2..4 by 1
        slice 1 of 1 on 0: 0..1 (Critical of a after 0, 2 waiting, 20000000 fs, finish 50)
        slice 2 of 1 on 1: 2..3 (Critical of a after 20, 2 waiting, 20000000 fs, finish 50)
        > 40 done 0 1 5
        slice 3 of 1 on 0: 1..2 (Critical of a after 25, 2 waiting, 12500000 fs, finish 52)
        > 50 done 1 2 5
        slice 4 of 1 on 1: 3..4 (Critical of a after 22, 2 waiting, 10000000 fs, finish 60)
        > 60 done 0 3 5
        slice 5 of 2 on 0: 0..1 (Interactive of a after 20, 1 waiting, 8750000 fs, finish 68)
        > 70 done 1 4 5
        finish 1: 4 slices, 20 ns
        ",
    );
    check(
        "
        > 0 start 2 slice=10
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 1 epoch 1
        > 5 arrive 0 0:1
        dispatch 0 to 0: 0/0:1 (1 rows, 1 bytes, Idle, oldest 5, finish 5)
        > 10 task 0 units=4 gang
        admit 0: Interactive of a, 1 known
        reserve [0, 1] for 0, [0] busy, until 650
        wake 650
        > 20 task 1 units=1
        admit 1: Interactive of a, 2 known
        > 650 woke
        slice 0 of 1 on 1: 0..1 (Interactive of a after 0, 2 waiting, 0 fs, finish 650)
        wake 1290
        > 660 done 1 0 5
        finish 1: 1 slices, 5 ns
        reserve [0, 1] for 0, [0] busy, until 1300
        > 1290 woke
        wake 1300
        > 1300 complete 0 0 5
        split 0, Score, gang: 0:0..2 by 1 1:2..4 by 1
        slice 1 of 0 on 0: 0..2 (Interactive of a after 5, 1 waiting, 5000000 fs, finish 1310)
        slice 2 of 0 on 1: 2..4 (Interactive of a after 15, 1 waiting, 5000000 fs, finish 1310)
        ",
    );
}

#[test]
fn a_lost_lane_gives_back_what_it_had() {
    check(
        "
        > 0 start 2 slice=1000
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 1 epoch 1
        > 0 task 0 units=4 max=1
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 0)
        slice 1 of 0 on 1: 1..2 (Interactive of a after 1, 1 waiting, 0 fs, finish 0)
        > 10 lost 1
        fence 1: 1 groups, gone
        restore 0 for 1
        > 20 done 1 1 5
        > 30 done 0 0 100
        slice 2 of 0 on 0: 1..2 (Interactive of a after 100, 1 waiting, 100000000 fs, finish 130)
        > 40 ready 1
        slice 3 of 0 on 1: 2..3 (Interactive of a after 200, 1 waiting, 100000000 fs, finish 140)
        > 50 done 1 1 5
        > 50 done 1 9 5
        error: lane 1 does not work on slice 9; report each slice of RunSlice once
        > 60 done 0 2 100
        slice 4 of 0 on 0: 3..4 (Interactive of a after 300, 1 waiting, 100000000 fs, finish 160)
        > 70 done 1 3 100
        > 80 done 0 4 100
        finish 0: 4 slices, 400 ns
        ",
    );
}

#[test]
fn as_many_bytes_of_requests_are_known_as_may_be() {
    check(
        "
        > 0 start 1 slice=1000 requests=100
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 task 0 bytes=500
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 10)
        > 20 task 1 bytes=1
        reject 1: Overloaded, 1 of 10000 known, 501 of 100 bytes
        > 30 done 0 0 20
        finish 0: 1 slices, 20 ns
        > 40 task 2 bytes=60
        admit 2: Interactive of a, 1 known
        slice 1 of 2 on 0: 0..1 (Interactive of a after 0, 1 waiting, 20000000 fs, finish 60)
        > 50 task 3 bytes=40
        admit 3: Interactive of a, 2 known
        > 60 task 4 bytes=1
        reject 4: Overloaded, 2 of 10000 known, 101 of 100 bytes
        > 70 drop 3
        > 80 task 5 bytes=40
        admit 5: Interactive of a, 2 known
        ",
    );
}

#[test]
fn deadlines_end_tasks_while_lanes_are_busy() {
    check(
        "
        > 0 start 1 slice=1000 tasks=2
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 task 0 deadline=10
        reject 0: Expired, 0 of 2 known, due 10
        > 10 task 1 units=3 deadline=500
        admit 1: Interactive of a, 1 known
        slice 0 of 1 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 10)
        wake 500
        > 20 task 2 units=3 deadline=200
        admit 2: Interactive of a, 2 known
        wake 200
        > 30 task 3
        reject 3: Overloaded, 2 of 2 known
        > 200 woke
        expire 2: due 200, 0 running
        wake 500
        > 300 task 4
        admit 4: Interactive of a, 2 known
        > 600 done 0 0 600
        expire 1: due 500, 0 running
        slice 1 of 4 on 0: 0..1 (Interactive of a after 600, 1 waiting, 600000000 fs, finish 1200)
        > 700 done 0 1 100
        finish 4: 1 slices, 100 ns
        ",
    );
}

#[test]
fn later_rounds_come_in_whatever_is_known() {
    check(
        "
        > 0 start 1 tasks=1
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 task 0 units=1
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 10)
        > 20 done 0 0 100
        finish 0: 1 slices, 100 ns
        > 30 task 1
        admit 1: Interactive of a, 1 known
        slice 1 of 1 on 0: 0..1 (Interactive of a after 0, 1 waiting, 100000000 fs, finish 130)
        > 40 task 0 first=1
        admit 0: Interactive of a, 2 known
        > 50 task 0 first=2
        error: task 0 has a wrong number. A request needs number 2 or higher; a later round (first_unit above 0) has the number of its request, after Finish
        > 60 task 1
        error: task 1 has a wrong number. A request needs number 2 or higher; a later round (first_unit above 0) has the number of its request, after Finish
        > 70 task 3 first=1
        error: task 3 has a wrong number. A request needs number 2 or higher; a later round (first_unit above 0) has the number of its request, after Finish
        > 80 done 0 1 100
        finish 1: 1 slices, 100 ns
        slice 2 of 0 on 0: 1..2 (Interactive of a after 100, 1 waiting, 100000000 fs, finish 180)
        > 90 done 0 2 100
        finish 0: 1 slices, 100 ns
        ",
    );
}

#[test]
fn tasks_go_when_they_are_withdrawn_or_their_partition_is() {
    check(
        "
        > 0 start 1
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 0 assign 1 1
        place 1/0 on 0 epoch 1
        > 10 task 0 units=2
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 10)
        > 10 task 1 partition=1
        admit 1: Interactive of a, 2 known
        > 20 drop 0
        > 20 drop 0
        error: task 0 is not known; drop a task only after its Admit, and before its Expire or Finish
        > 30 done 0 0 100
        slice 1 of 1 on 0: 0..1 (Interactive of a after 1, 1 waiting, 0 fs, finish 30)
        > 40 task 2 partition=0
        admit 2: Interactive of a, 2 known
        > 50 lost 0
        fence 0: 2 groups, gone
        restore 0 for 0
        restore 1 for 0
        > 60 ready 0
        slice 2 of 1 on 0: 0..1 (Interactive of a after 1, 2 waiting, 0 fs, finish 60)
        > 70 revoke 1
        > 80 done 0 1 100
        > 80 done 0 2 100
        slice 3 of 2 on 0: 0..1 (Interactive of a after 2, 1 waiting, 0 fs, finish 80)
        > 90 task 3 partition=1
        error: partition 1 is not assigned (or is to be restored); send PartitionAssigned first
        > 90 task 3 units=0
        error: units of task 3 is 0; it must be from 1 to 68719476736
        > 90 done 0 2 -1
        error: service time -1 ns of slice 2 is negative; measure it with a monotonic clock
        > 90 drain
        > 95 task 3
        admit 3: Interactive of a, 2 known
        ",
    );
}

#[test]
fn a_lane_takes_the_kind_whose_price_by_its_time_is_the_greatest() {
    check(
        "
        > 0 start 1 slice=100 policy=lp-price prices=1000
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 1 task 0 key=a units=4 max=1
        admit 0: Interactive of a, 1 known
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 1)
        > 2 task 1 key=b units=4 max=1
        admit 1: Interactive of a, 2 known
        > 100 done 0 0 100
        slice 1 of 1 on 0: 0..1 (Interactive of a after 100, 2 waiting, 0 fs, finish 100)
        > 300 done 0 1 200
        slice 2 of 0 on 0: 1..2 (Interactive of a after 300, 2 waiting, 100000000 fs, finish 400)
        > 1300 woke
        ask 0 for lanes [1]: a:4 at [100000000] b:4 at [200000000]
        > 1310 priced 0 1 100
        > 1400 done 0 2 100
        slice 3 of 1 on 0: 1..2 (Interactive of a after 400, 2 waiting, 200000000 fs, finish 1600)
        > 1410 priced 1 5 5
        error: question 1 for prices was not asked; questions below 1 were
        > 1410 priced 0 5
        error: 1 prices answer question 0 of 2 kinds; give one of 0 or more for each kind, or none at all
        ",
    );
}

#[test]
fn the_policy_that_learns_leaves_lanes_to_the_kind_that_their_time_is_worth_most_on() {
    check(
        "
        > 0 start 2 route=1000000 policy=linucb@3 prices=1000
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 1 task 0 key=a
        admit 0: Interactive of a, 1 known
        assign 0 to 0: 0 tasks, 0 ns, then 4 ns
        slice 0 of 0 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 1)
        > 2 task 1 key=a
        admit 1: Interactive of a, 2 known
        assign 1 to 1: 0 tasks, 0 ns, then 4 ns
        slice 1 of 1 on 1: 0..1 (Interactive of a after 1, 1 waiting, 0 fs, finish 2)
        > 100 done 0 0 100
        finish 0: 1 slices, 100 ns
        > 110 done 1 1 100
        finish 1: 1 slices, 100 ns
        > 120 task 2 key=b
        admit 2: Interactive of a, 1 known
        assign 2 to 0: 0 tasks, 0 ns, then 100 ns
        slice 2 of 2 on 0: 0..1 (Interactive of a after 0, 1 waiting, 0 fs, finish 120)
        > 130 task 3 key=b
        admit 3: Interactive of a, 2 known
        assign 3 to 1: 0 tasks, 0 ns, then 100 ns
        slice 3 of 3 on 1: 0..1 (Interactive of a after 1, 1 waiting, 0 fs, finish 130)
        > 220 done 0 2 100
        finish 2: 1 slices, 100 ns
        > 420 done 1 3 300
        finish 3: 1 slices, 300 ns
        > 430 task 4 key=a
        admit 4: Interactive of a, 1 known
        assign 4 to 0: 0 tasks, 0 ns, then 100 ns
        slice 4 of 4 on 0: 0..1 (Interactive of a after 0, 1 waiting, 100000000 fs, finish 530)
        > 530 done 0 4 100
        finish 4: 1 slices, 100 ns
        > 1300 woke
        ask 0 for lanes [1, 1]: a:3 at [100000000, 100000000] b:2 at [100000000, 300000000]
        > 1310 priced 0 100 200
        > 1400 task 5 key=a
        admit 5: Interactive of a, 1 known
        assign 5 to 1: 0 tasks, 0 ns, then 100 ns
        slice 5 of 5 on 1: 0..1 (Interactive of a after 0, 1 waiting, 100000000 fs, finish 1500)
        > 1410 task 6 key=b
        admit 6: Interactive of a, 2 known
        assign 6 to 0: 0 tasks, 0 ns, then 100 ns
        slice 6 of 6 on 0: 0..1 (Interactive of a after 100, 1 waiting, 100000000 fs, finish 1510)
        ",
    );
}

/// A policy whose version is missing is refused, with a list of those that this software has, so that no journal is
/// replayed differently. A name without a version is refused as well if the first version is gone.
#[test]
fn a_version_of_a_policy_that_is_not_there_is_refused_by_its_name() {
    let begin = |policy: &str| {
        let mut config = config();
        policy.clone_into(&mut config.risk.policy);
        Scheduler::new().step(0, &started(config, &[1]), &mut Vec::new())
    };
    for name in TASK_POLICIES {
        assert_eq!(begin(&current_task_policy(name)), Ok(()), "{name}");
    }
    for gone in ["linucb", "linucb@1", "linucb@2", "linucb@4", "fair@2"] {
        let error = begin(gone).expect_err("nobody has it");
        let StepError::BadConfig(mistakes) = &error else { panic!("{error}") };
        let [mistake] = &mistakes[..] else { panic!("{error}") };
        assert_eq!((mistake.field.as_str(), mistake.found.as_str()), ("risk.policy", gone));
        assert!(
            mistake.allowed.contains("fair@1, ") && mistake.allowed.contains("linucb@3 (version 1"),
            "{error}"
        );
    }
}

/// Lanes of one class have done a task, which took a second; the other lanes have done none. 300 tasks arrive before
/// any is done.
#[test]
fn whole_tasks_do_not_go_to_one_lane_for_want_of_its_rate() {
    let mut config = config();
    config.route_interval_ns = 1_000;
    config.risk.policy = "earliest-completion".to_owned();
    let mut scheduler = Scheduler::new();
    let mut step = |at_ns, input: &Input| {
        let mut decisions = Vec::new();
        scheduler.step(at_ns, input, &mut decisions).expect("good input");
        decisions
    };
    step(0, &started(config, &[1, 1]));
    step(0, &assigned(0, 1));
    step(1, &Input::TaskArrived(task(0)));
    step(1_000_000_000, &Input::SliceDone(SliceDone { lane: 0, slice: 0, service_ns: 999_999_999 }));
    let assigned = (1..=300).flat_map(|number| step(1_000_000_001, &Input::TaskArrived(task(number))));
    let to_unknown =
        assigned.filter(|decision| matches!(decision, Decision::Assign(assign) if assign.lane == 1));
    assert_eq!(to_unknown.count(), 150);
}

/// The only lane works on a slice of a batch task, whose thread is delayed. Critical tasks still begin at once, one at
/// a time, and the passed slice continues.
#[test]
fn a_critical_task_passes_the_slice_of_another() {
    check(
        "
        > 0 start 1
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 task 0 class=batch units=2
        admit 0: Batch of a, 1 known
        slice 0 of 0 on 0: 0..1 (Batch of a after 0, 1 waiting, 0 fs, finish 10)
        > 20 task 1 class=critical
        admit 1: Critical of a, 2 known
        slice 1 of 1 on 0: 0..1 (Critical of a after 0, 2 waiting, 0 fs, finish 20, Reserved)
        > 20 task 2 class=critical
        admit 2: Critical of a, 3 known
        > 30 task 3 class=interactive
        admit 3: Interactive of a, 4 known
        > 40 done 0 1 5
        finish 1: 1 slices, 5 ns
        slice 2 of 2 on 0: 0..1 (Critical of a after 5, 3 waiting, 5000000 fs, finish 45, Reserved)
        > 50 done 0 0 40
        > 60 done 0 2 5
        finish 2: 1 slices, 5 ns
        slice 3 of 3 on 0: 0..1 (Interactive of a after 0, 2 waiting, 16666666 fs, finish 76)
        ",
    );
}
