//! Text cases of the scheduler's rules, one rule per test.

use crate::script::check;

#[test]
fn an_idle_lane_gets_rows_at_once_and_full_when_they_fill_a_batch() {
    check(
        "
        > 0 start 1
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        > 10 arrive 0 0:3 1:4
        dispatch 0 to 0: 0/0:3 0/1:4 (7 rows, 7 bytes, Idle, oldest 10, finish 10)
        > 20 complete 0 0 70
        > 30 arrive 0 1:10
        dispatch 1 to 0: 0/1:10 (10 rows, 10 bytes, Full, oldest 30, finish 130)
        ",
    );
}

#[test]
fn a_busy_lane_waits_for_a_full_batch_or_the_deadline() {
    check(
        "
        > 0 start 1 deadline=1000
        > 0 assign 0 3
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        place 0/2 on 0 epoch 1
        > 10 arrive 0 0:3
        dispatch 0 to 0: 0/0:3 (3 rows, 3 bytes, Idle, oldest 10, finish 10)
        > 20 arrive 0 1:4
        wake 1020
        > 30 arrive 0 0:2 2:5
        dispatch 1 to 0: 0/1:4 0/0:2 0/2:4 (10 rows, 10 bytes, Full, oldest 20, finish 30)
        > 40 complete 0 0 30
        > 50 arrive 0 0:1
        wake 1010
        > 60 complete 0 1 100
        dispatch 2 to 0: 0/2:1 0/0:1 (2 rows, 2 bytes, Idle, oldest 30, finish 80)
        ",
    );
}

#[test]
fn a_deadline_releases_when_woken_or_at_any_later_input() {
    check(
        "
        > 0 start 1 deadline=5000 batches=3
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        > 10 arrive 0 0:10
        dispatch 0 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 10, finish 10)
        > 20 complete 0 0 1000
        > 30 arrive 0 0:10
        dispatch 1 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 30, finish 1030)
        > 40 arrive 0 1:2
        wake 4840
        > 50 woke
        wake 4840
        > 4839 arrive 1 0:1
        error: partition 1 is not assigned (or is to be restored); send PartitionAssigned first
        > 4839 woke
        wake 4840
        > 4840 woke
        dispatch 2 to 0: 0/1:2 (2 rows, 2 bytes, Deadline, oldest 40, finish 5040)
        > 4900 arrive 0 1:2
        wake 9700
        > 20000 arrive 0 1:1
        dispatch 3 to 0: 0/1:3 (3 rows, 3 bytes, Deadline, oldest 4900, finish 20300)
        ",
    );
}

#[test]
fn work_in_flight_beyond_the_deadline_leaves_no_reason_to_wait() {
    check(
        "
        > 0 start 1 deadline=100
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 arrive 0 0:10
        dispatch 0 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 10, finish 10)
        > 20 complete 0 0 1000
        > 30 arrive 0 0:10
        dispatch 1 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 30, finish 1030)
        > 40 arrive 0 0:2
        dispatch 2 to 0: 0/0:2 (2 rows, 2 bytes, Deadline, oldest 40, finish 1230)
        ",
    );
}

#[test]
fn credit_in_rows_bytes_and_batches_is_kept() {
    check(
        "
        > 0 start 1 credit=12 batch=10 batches=2
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 arrive 0 0:40
        dispatch 0 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 10, finish 10)
        dispatch 1 to 0: 0/0:2 (2 rows, 2 bytes, Full, oldest 10, finish 10)
        > 20 complete 0 0 10
        dispatch 2 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 10, finish 32)
        > 30 complete 0 1 10
        dispatch 3 to 0: 0/0:2 (2 rows, 2 bytes, Full, oldest 10, finish 48)
        ",
    );
    check(
        "
        > 0 start 1 bytes=100
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 arrive 0 0:10:250
        dispatch 0 to 0: 0/0:4 (4 rows, 100 bytes, Idle, oldest 10, finish 10)
        > 20 complete 0 0 10
        dispatch 1 to 0: 0/0:4 (4 rows, 100 bytes, Idle, oldest 10, finish 30)
        ",
    );
}

#[test]
fn a_row_heavier_than_the_credit_goes_alone() {
    check(
        "
        > 0 start 1 bytes=100
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        > 10 arrive 0 0:2:1000 1:1:0
        dispatch 0 to 0: 0/0:1 (1 rows, 500 bytes, Idle, oldest 10, finish 10)
        > 20 complete 0 0 10
        dispatch 1 to 0: 0/0:1 (1 rows, 500 bytes, Idle, oldest 10, finish 30)
        wake 1000
        > 30 complete 0 1 10
        dispatch 2 to 0: 0/1:1 (1 rows, 0 bytes, Idle, oldest 10, finish 40)
        ",
    );
}

#[test]
fn a_partition_is_paused_once_and_resumed_once() {
    check(
        "
        > 0 start 1 high=25 low=5
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 0 assign 1 1
        place 1/0 on 0 epoch 1
        > 10 arrive 0 0:44
        dispatch 0 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 10, finish 10)
        dispatch 1 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 10, finish 10)
        > 20 arrive 0 0:20
        pause 0 at 44
        > 30 arrive 1 0:10
        > 40 complete 0 0 10
        dispatch 2 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 10, finish 60)
        > 50 complete 0 1 10
        dispatch 3 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 10, finish 70)
        > 60 complete 0 2 10
        dispatch 4 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 10, finish 80)
        > 70 complete 0 3 10
        dispatch 5 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 20, finish 90)
        resume 0 at 4
        > 80 complete 0 4 10
        dispatch 6 to 0: 0/0:4 1/0:6 (10 rows, 10 bytes, Full, oldest 20, finish 100)
        ",
    );
}

#[test]
fn a_lost_lane_takes_its_partitions_with_it() {
    check(
        "
        > 0 start 2 high=25 low=5
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 1 epoch 1
        > 0 assign 7 1
        place 7/0 on 1 epoch 1
        > 10 arrive 0 0:45 1:5
        dispatch 0 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 10, finish 10)
        dispatch 1 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 10, finish 10)
        dispatch 2 to 1: 0/1:5 (5 rows, 5 bytes, Idle, oldest 10, finish 10)
        pause 0 at 25
        > 10 arrive 7 0:3
        wake 1010
        > 20 lost 0
        fence 0: 1 groups, gone
        restore 0 for 0
        > 30 arrive 0 0:1
        error: partition 0 is not assigned (or is to be restored); send PartitionAssigned first
        > 30 complete 0 0 10
        > 30 lost 0
        error: lane 0 is lost already; report its loss once, and LaneReady before the next
        > 40 assign 0 2
        place 0/0 on 1 epoch 2
        place 0/1 on 1 epoch 2
        > 50 arrive 0 0:1 1:1
        > 60 ready 0
        > 60 ready 0
        error: lane 0 is ready already; report LaneReady only after LaneLost
        > 70 assign 0 2
        place 0/0 on 0 epoch 3
        place 0/1 on 0 epoch 3
        > 80 complete 0 0 10
        > 80 complete 1 1 10
        error: batch 1 is not in flight on lane 1; complete each dispatched batch once
        ",
    );
}

#[test]
fn groups_wait_for_a_ready_lane() {
    check(
        "
        > 0 start 1 high=5 low=1
        > 0 lost 0
        fence 0: 0 groups, gone
        > 10 assign 0 2
        > 20 arrive 0 0:4 1:3
        pause 0 at 7
        > 30 ready 0
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        dispatch 0 to 0: 0/0:4 0/1:3 (7 rows, 7 bytes, Idle, oldest 20, finish 30)
        resume 0 at 0
        > 40 complete 0 0 10
        ",
    );
}

#[test]
fn draining_releases_as_credit_allows() {
    check(
        "
        > 0 start 1
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 10 arrive 0 0:3
        dispatch 0 to 0: 0/0:3 (3 rows, 3 bytes, Idle, oldest 10, finish 10)
        > 20 arrive 0 0:2
        wake 1020
        > 30 drain
        dispatch 1 to 0: 0/0:2 (2 rows, 2 bytes, Drain, oldest 20, finish 30)
        > 40 arrive 0 0:1
        > 50 complete 0 0 10
        dispatch 2 to 0: 0/0:1 (1 rows, 1 bytes, Drain, oldest 40, finish 59)
        ",
    );
}

#[test]
fn epochs_survive_revoking_but_not_a_restart() {
    check(
        "
        > 0 start 1
        > 0 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        > 10 arrive 0 0:3 1:3
        dispatch 0 to 0: 0/0:3 0/1:3 (6 rows, 6 bytes, Idle, oldest 10, finish 10)
        > 20 arrive 0 0:9
        wake 1020
        > 30 revoke 0
        > 30 revoke 0
        error: partition 0 is not assigned (or is to be restored); send PartitionAssigned first
        > 40 assign 0 1
        place 0/0 on 0 epoch 2
        > 50 assign 0 2
        place 0/0 on 0 epoch 3
        place 0/1 on 0 epoch 2
        > 60 complete 0 0 10
        > 70 start 1
        > 70 assign 0 1
        place 0/0 on 0 epoch 1
        ",
    );
}

#[test]
fn bad_input_is_refused() {
    check(
        "
        > 0 assign 0 1
        error: the scheduler knows no lanes yet; the first input of a process life must be Started
        > 5 start 1 low=1000
        error: the scheduler's configuration has mistakes: low_water_rows is 1000; it must be below high_water_rows (1000)
        > 5 start 0
        error: the scheduler's configuration has mistakes: lanes is a list of 0; there must be from 1 to 256 lanes
        > -1 start 1
        error: time -1 is out of range; it must be from 0 to 4611686018427387903 nanoseconds since the epoch
        > 5 start 2
        > 4 woke
        error: time fell from 5 to 4; give each step at least the time of the one before
        > 9223372036854775807 woke
        error: time 9223372036854775807 is out of range; it must be from 0 to 4611686018427387903 nanoseconds since the epoch
        > 5 assign -1 1
        error: partition -1 is negative; partitions are numbered from 0
        > 5 assign 0 0
        error: 0 groups in partition 0; there must be from 1 to 4096
        > 5 assign 0 1000000
        error: 1000000 groups in partition 0; there must be from 1 to 4096
        > 5 assign 0 2
        place 0/0 on 0 epoch 1
        place 0/1 on 1 epoch 1
        > 5 arrive 1 0:1
        error: partition 1 is not assigned (or is to be restored); send PartitionAssigned first
        > 5 arrive 0 2:1
        error: group 2 of partition 0 does not exist; its groups are numbered from 0 to 1
        > 5 arrive 0 1:1 0:1
        error: group 0 of partition 0 is out of order; list each group once, ascending
        > 5 arrive 0 0:0
        error: 0 rows, 0 bytes for group 0 of partition 0; rows must be at least 1, bytes 0
        > 5 arrive 0 0:1:-1
        error: 1 rows, -1 bytes for group 0 of partition 0; rows must be at least 1, bytes 0
        > 5 arrive 0 0:1 1:9223372036854775807
        error: partition 0 would have more than 1099511627776 rows or 1125899906842624 bytes waiting; pause it sooner
        > 5 complete 2 0 1
        error: lane 2 does not exist; lanes are numbered from 0 to 1
        > 5 complete 0 0 1
        error: batch 0 is not in flight on lane 0; complete each dispatched batch once
        > 5 arrive 0 0:20
        dispatch 0 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 5, finish 5)
        dispatch 1 to 0: 0/0:10 (10 rows, 10 bytes, Full, oldest 5, finish 5)
        > 5 complete 0 1 1
        error: batch 1 of lane 0 completed before batch 0; a lane works in order of dispatch
        > 5 complete 0 0 -1
        error: service time -1 ns of batch 0 is negative; measure it with a monotonic clock
        > 5 lost 2
        error: lane 2 does not exist; lanes are numbered from 0 to 1
        > 5 ready 0
        error: lane 0 is ready already; report LaneReady only after LaneLost
        ",
    );
}

#[test]
fn groups_move_to_devices_when_their_batches_pay_and_back_when_they_do_not() {
    check(
        "
        > 0 start 2 route=100 credit=1000 batch=1000
        > 0 assign 0 1
        place 0/0 on 0 epoch 1
        > 0 measured 0 1:10 100:1000
        > 0 measured 1 1:400 100:499
        > 10 arrive 0 0:60
        dispatch 0 to 0: 0/0:60 (60 rows, 60 bytes, Idle, oldest 10, finish 10)
        > 110 arrive 0 0:7
        release 0/0 from 0 epoch 1: Device for 60 rows, device from 48 (host 600, device 459)
        > 120 complete 0 0 600
        > 130 released 0 0 0 1
        place 0/0 on 1 epoch 2: Device for 60 rows, device from 48 (host 600, device 459)
        dispatch 1 to 1: 0/0:7 (7 rows, 7 bytes, Idle, oldest 110, finish 130)
        > 140 released 0 0 0 1
        error: group 0 of partition 0 is not leaving lane 0 with epoch 1. Report Released once after Release, unless the lane is lost or the partition gone
        > 150 complete 1 1 407
        > 250 arrive 0 0:2
        dispatch 2 to 1: 0/0:2 (2 rows, 2 bytes, Idle, oldest 250, finish 366)
        > 260 complete 1 2 401
        > 350 arrive 0 0:2
        dispatch 3 to 1: 0/0:2 (2 rows, 2 bytes, Idle, oldest 350, finish 501)
        > 360 complete 1 3 401
        > 450 arrive 0 0:2
        dispatch 4 to 1: 0/0:2 (2 rows, 2 bytes, Idle, oldest 450, finish 633)
        > 460 complete 1 4 401
        > 550 arrive 0 0:2
        dispatch 5 to 1: 0/0:2 (2 rows, 2 bytes, Idle, oldest 550, finish 760)
        > 560 complete 1 5 401
        > 650 arrive 0 0:2
        release 0/0 from 1 epoch 2: Host for 34 rows, device from 48 (host 340, device 433)
        > 670 released 0 0 1 2
        place 0/0 on 0 epoch 3: Host for 34 rows, device from 48 (host 340, device 433)
        dispatch 6 to 0: 0/0:2 (2 rows, 2 bytes, Idle, oldest 650, finish 690)
        ",
    );
}

#[test]
fn a_lane_that_is_lost_before_it_lets_go_takes_the_partition_with_it() {
    check(
        "
        > 0 start 4 route=100 credit=1000 batch=1000
        > 0 assign 0 2
        place 0/0 on 3 epoch 1
        place 0/1 on 0 epoch 1
        > 0 measured 0 1:10 100:1000
        > 0 measured 1 1:2000 100:3000
        > 10 arrive 0 0:10 1:10
        dispatch 0 to 0: 0/1:10 (10 rows, 10 bytes, Idle, oldest 10, finish 10)
        dispatch 1 to 3: 0/0:10 (10 rows, 10 bytes, Idle, oldest 10, finish 10)
        > 120 arrive 0 0:10
        release 0/0 from 3 epoch 1: Host for 20 rows, device never (host 100, device 2090)
        > 130 lost 3
        fence 3: 1 groups, gone
        restore 0 for 3
        > 140 released 0 0 3 1
        error: group 0 of partition 0 is not leaving lane 3 with epoch 1. Report Released once after Release, unless the lane is lost or the partition gone
        > 150 measured 9 1:1
        error: lane 9 does not exist; lanes are numbered from 0 to 3
        > 150 measured 1 0:1
        error: lane 1 took 1 ns for 0 rows; rows must be from 1 to 1099511627776, the time 0 or more
        ",
    );
}
